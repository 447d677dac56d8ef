# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of single callers of a line that flushes or fences for several."""

from operations import leave_out, succeed
from .mutant import Mutant

# The record that a ring's fence makes durable.
_RECORD = "at(tail_.load(std::memory_order_relaxed))"

# Callers of a line that flushes or fences for several of them, one at a time.
CALLERS = (
    Mutant(
        "the fence of a commit record",
        {
            "fence-of-commit-record": succeed(
                when=f"{_RECORD}.kind() == RecordKind::commit && {_RECORD}.transactions() != 0"
            )
        },
    ),
    Mutant(
        "the fence of a group record",
        {"fence-of-group-record": succeed(when=f"{_RECORD}.kind() == RecordKind::group")},
    ),
    Mutant(
        "the fence of an undo record (UNDO-1)",
        {"fence-of-undo-record": succeed(when=f"{_RECORD}.kind() == RecordKind::undo")},
    ),
    Mutant(
        "the fence of the record of a rollback",
        {
            "fence-of-rollback-record": succeed(
                when=f"{_RECORD}.kind() == RecordKind::commit && {_RECORD}.transactions() == 0"
            )
        },
    ),
    Mutant(
        "the fence between a span's bitmap and its word (HEAP-4)",
        {"span-bitmap-fence": leave_out()},
    ),
    Mutant(
        "the fence between bitmaps and directory (undo's recovery)",
        {"staged-bitmaps-fence": leave_out()},
    ),
    Mutant("the flush of a part of redo", {"redo-part-flush": leave_out()}),
    Mutant("the fence of a team's part of redo", {"redo-team-fence": leave_out()}, by="redo"),
    Mutant("the flush of what a scan found (REDO-4)", {"scan-flush": leave_out(inner=True)}),
    Mutant(
        "the fence of a team's part of a scan (REDO-4)", {"scan-team-fence": leave_out()}, by="ring"
    ),
    Mutant("the flush at the end of undo", {"undo-recovery-flush": leave_out()}),
    Mutant("the flush of undo's heap bits", {"undo-heap-bits-flush": leave_out()}),
    Mutant(
        "the lines of a commit before its record (undo, UNDO-2)",
        {"undo-commit-lines-first": succeed()},
    ),
    Mutant(
        "the lines of a rollback before its record (undo)", {"undo-rollback-lines-first": succeed()}
    ),
)
