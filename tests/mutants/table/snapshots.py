# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of snapshots: what is saved, when it gets its stamp, how a read decides, the cut."""

from operations import also_here, always, exchange, instead, leave_out, never
from .mutant import Mutant

SNAPSHOTS = (
    Mutant(
        "a line is saved before its first store (SNAP-3)",
        {"snapshot-saves-before-store": never()},
        by="snapshots",
    ),
    Mutant(
        "a line is saved once for each snapshot (SNAP-3)",
        {"snapshot-saves-once": instead("(stamp == 0)", part="2 of 2")},
        by="snapshots",
    ),
    Mutant(
        "a new span's bitmap is saved (SNAP-3)",
        {"snapshot-saves-bitmaps": leave_out()},
        by="snapshots",
    ),
    Mutant(
        "a transaction that is alone saves, too (SNAP-3)",
        {"snapshot-writer-saves": never(part=("argument 1 of 2", "2 of 2"))},
        by="snapshots",
    ),
    Mutant(
        "a store behind a virtual call saves, too, of a transaction that is alone (SNAP-3)",
        {"snapshot-write-alone-saves": exchange("saver_.saving()", "false")},
        by="snapshots",
    ),
    Mutant(
        "a chunk of saved lines is used again when none needs it (SNAP-1)",
        {"snapshot-chunk-needed": always()},
        by="versions",
    ),
    Mutant(
        "a head leads a reader to its own line's entry (SNAP-1)",
        {"snapshot-entry-s-line": never(part="2 of 2")},
        by="versions",
    ),
    Mutant(
        "a head leads a writer to its own line's entry (SNAP-1)",
        {"snapshot-saver-s-line": never()},
        by="snapshots",
    ),
    Mutant(
        "a snapshot looks at the head again (SNAP-2)",
        {"snapshot-second-look": always()},
        by="snapshots",
    ),
    Mutant(
        "a snapshot looks at the entry's stamp again (SNAP-2)",
        {"snapshot-second-look-stamp": always(part="2 of 2")},
        by="versions",
    ),
    Mutant(
        "a commit stamps what it has saved (SNAP-4)",
        {"snapshot-commit-stamps": never()},
        by="snapshots",
    ),
    Mutant(
        "a rollback stamps what it has saved (SNAP-4)",
        {"snapshot-rollback-stamps": never()},
        by="snapshots",
    ),
    Mutant(
        "a rollback restores, then stamps (SNAP-4)",
        {"snapshot-restores-first": also_here("snapshot-restores-first-late")},
        by="snapshots",
    ),
    Mutant(
        "an opening waits for the updates that were open (SNAP-5)",
        {"snapshot-cut-waits": leave_out()},
        by="snapshots",
    ),
    Mutant(
        "an opening waits for the updates that were open when it took its id (SNAP-5)",
        {"snapshot-cut-waits-again": leave_out()},
        by="snapshots_engine",
    ),
    Mutant(
        "a read looks whether its snapshot has expired (SNAP-6)",
        {"snapshot-expired-after": never()},
        by="snapshots",
    ),
    Mutant(
        "the memory for saved lines goes back when no transaction uses it",
        {"snapshot-memory-not-used": always(part="3 of 3")},
        by="snapshots_engine",
    ),
    Mutant(
        "a trim is refused beside a snapshot",
        {"trim-refuses-beside-snapshots": never()},
        by="snapshots_engine",
    ),
)
