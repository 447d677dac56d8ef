# SPDX-License-Identifier: BSD-3-Clause
"""The mutants that are written down: tests of recovery left out, and orders of publication turned
round.

Each names sites in the sources and what it does to the statements there. No entry names a file, so
that moving and reformatting the sources leaves the table as it is. Calls of flush and fence are not
listed here: calls.py finds them.

names.txt has the name of every mutant that there ever was. A new mutant is added there too; one
that is taken out of the table stays there, and is listed in REMOVED with the reason.
"""

from .blurred import BLURRED
from .callers import CALLERS
from .flush_all import FLUSH_ALL
from .mutant import Mutant
from .orders import ORDERS
from .recovery import CHECKS, SESSIONS
from .rewind import REWIND
from .rewind_lists import LISTS
from .softwrap import SOFTWRAP

__all__ = ["MUTANTS", "Mutant", "REMOVED"]

MUTANTS = FLUSH_ALL + CHECKS + SESSIONS + ORDERS + CALLERS + LISTS + REWIND + BLURRED + SOFTWRAP

# (name, why it was taken out)
REMOVED = ()
