# SPDX-License-Identifier: BSD-3-Clause
"""The mutants that are written down: omitted tests of recovery, and reversed orders of publication.

Each names sites in the sources and what it does to the statements there. No entry names a file, so
that moving and reformatting the sources leaves the table as it is. Calls of flush and fence are not
listed here: calls.py finds them.

names.txt has the name of every mutant that ever existed. A new mutant is added there, too; one that
is removed from the table stays there, and is listed in REMOVED with the reason.
"""

from .backup import BACKUP
from .blurred import BLURRED
from .callers import CALLERS
from .checksums import CHECKSUMS
from .copies import COPIES
from .events import EVENTS
from .flush_all import FLUSH_ALL
from .mutant import Mutant
from .orders import ORDERS
from .plain import PLAIN
from .readers import READERS
from .recovery import CHECKS, SESSIONS
from .replication import REPLICATION
from .rewind import REWIND
from .rewind_lists import LISTS
from .snapshots import SNAPSHOTS
from .softwrap import SOFTWRAP

__all__ = ["MUTANTS", "Mutant", "REMOVED"]

MUTANTS = (
    FLUSH_ALL
    + CHECKS
    + SESSIONS
    + ORDERS
    + SNAPSHOTS
    + BACKUP
    + READERS
    + EVENTS
    + CHECKSUMS
    + REPLICATION
    + CALLERS
    + LISTS
    + REWIND
    + BLURRED
    + SOFTWRAP
    + COPIES
    + PLAIN
)

# (name, why it was removed)
REMOVED = (
    (
        "a log's records are removed oldest first",
        "their removals share a fence, and a crash leaves any of them: what has an order is a "
        "block's ALLOC and DELETE, which have a mutant of their own",
    ),
)
