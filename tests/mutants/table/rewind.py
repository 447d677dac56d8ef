# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of REWIND's transaction managers and of their recovery."""

from operations import also_here, always, insert, instead, leave_out, never, succeed
from .mutant import Mutant

# REWIND's transaction managers and their recovery.
REWIND = (
    Mutant(
        "home before its record (WAL, REWIND-1)",
        {"rewind-wal": insert("store_now(tx, offset, value);")},
        by="rewind",
    ),
    Mutant(
        "home before its record's group (batch, REWIND-1)",
        {"rewind-wal-batch": always(part="2 of 2")},
        by="rewind",
    ),
    Mutant("stores before END (REWIND-2)", {"rewind-stores-before-end": never()}, by="rewind"),
    Mutant(
        "a rollback's stores are written back (REWIND-2)",
        {"rewind-rollback-flushes": never()},
        by="rewind",
    ),
    Mutant(
        "an interrupted rollback's stores are written back (REWIND-2)",
        {"rewind-recovered-rollback-flushes": never()},
        by="rewind",
    ),
    Mutant(
        "a block's DELETE is removed behind its ALLOC",
        {"rewind-removes-frees-last": never()},
        by="rewind",
    ),
    Mutant(
        "END is removed last (force, REWIND-3)",
        {"rewind-removals-before-end": leave_out()},
        by="rewind",
    ),
    Mutant(
        "the data region is written back before a close says so",
        {"rewind-close-flushes": never()},
        by="rewind",
    ),
    Mutant("the newest END stays (force)", {"rewind-newest-end-kept": never()}, by="rewind"),
    Mutant(
        "the header before home is written back (REWIND-4)",
        {"rewind-flush-before-header": also_here("rewind-flush-before-header-late")},
        by="rewind",
    ),
    Mutant(
        "records are removed when the header says so (REWIND-4)",
        {"rewind-header-before-removal": succeed()},
        by="rewind",
    ),
    Mutant(
        "ENDs last at a checkpoint (REWIND-3)",
        {"rewind-checkpoint-ends-last": always(part=("2 of 2", "1 of 2"))},
        by="rewind",
    ),
    Mutant(
        "removals durable before a record's line is given again",
        {"bucket-removal-durable-before-reuse": leave_out()},
        by="rewind",
    ),
    Mutant(
        "what has ended is removed up to X only",
        {"rewind-checkpoint-removes-to-id": always(part="2 of 2")},
        by="rewind",
    ),
    Mutant(
        "heap bits before their records are removed (force)",
        {"rewind-heap-bits-before-removal": succeed()},
        by="rewind",
    ),
    Mutant("room for a CLR (REWIND-5)", {"rewind-clr-space": leave_out()}, by="rewind"),
    Mutant(
        "recovery leaves out what X covers",
        {"rewind-recovery-skips-covered": never(inner=True)},
        by="rewind",
    ),
    Mutant(
        "what X covers has an id up to X",
        {"rewind-covered-id": always(inner=True, part="2 of 2")},
        by="rewind",
    ),
    Mutant("redo without force", {"rewind-redo-without-force": never(part="then")}, by="rewind"),
    Mutant(
        "CLRs of an interrupted rollback", {"rewind-redo-clrs": never(part="else")}, by="rewind"
    ),
    Mutant(
        "an UPDATE is undone once",
        {"rewind-update-undone-once": always(part="2 of 2")},
        by="rewind",
        explained=(
            "undone again, in the same order, home comes to the same; asked so that "
            "the log's room is enough however often recovery is cut off"
        ),
    ),
    Mutant(
        "records of several logs in the order of LSNs",
        {"rewind-lsn-order": instead("false")},
        by="threads",
    ),
    Mutant("a log of this epoch only", {"rewind-log-epoch": always()}, by="rewind"),
    Mutant(
        "recovery is rehearsed before it writes",
        {"rewind-recovery-rehearsal": instead("Manager::Use::real", part="argument 3 of 3")},
        by="control_words",
    ),
    Mutant(
        "the stamp before the empty anchor (REWINDLOG-1)",
        {
            "rewind-stamp-after-anchor": insert(
                "nvm_.start_word(control_ + stamp_word, ControlWord::make(place_.identity, control_"
                " + stamp_word, place_.epoch)); nvm_.fence();"
            )
        },
        by="rewind",
    ),
    Mutant(
        "a record's checksum (REWIND)", {"rewind-record-checksum": never(part="1 of 2")}, by="laws"
    ),
    Mutant(
        "the log's anchor durable as it was seen (REDO-4)",
        {"rewind-anchor-rewritten": leave_out()},
        by="rewind_log",
    ),
    Mutant(
        "a bucket durable as it was seen (REDO-4)",
        {"bucket-rewritten": leave_out()},
        by="rewind_log",
    ),
    Mutant(
        "who ends a group writes again what others appended",
        {"bucket-group-of-other-threads": never()},
        by="pointer_log",
    ),
)
