# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of snapshots: what is saved, when it gets its stamp, how a read decides, the cut."""

from operations import also_here, always, exchange, instead, leave_out, never, turned
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
        "a transaction does not save its own stores (SNAP-3)",
        {"snapshot-saves-own-stores": never()},
        by="snapshots_engine",
    ),
    Mutant(
        "a transaction that gives up saves nothing more (SNAP-3)",
        {"snapshot-gives-up": leave_out()},
        by="snapshots_engine",
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
        explained=(
            "SNAP-5: an opening waits a second time for the updates that are open, so until the "
            "words are back; an older snapshot has the entry (tests/models/snapshots.pml)"
        ),
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
        "heap ops are saved (SNAP-7)",
        {"snapshot-saves-heap-ops": leave_out()},
        by="snapshots",
    ),
    Mutant(
        "of several heap ops on a block the first one counts (SNAP-7)",
        {"snapshot-first-heap-op": turned()},
        by="snapshots",
    ),
    Mutant(
        "only heap ops above the snapshot's id count (SNAP-7)",
        {"snapshot-newer-heap-ops": never(part="1 of 2")},
        by="snapshots",
    ),
    Mutant(
        "only heap ops up to the clock count (SNAP-7)",
        {"snapshot-heap-ops-up-to-the-clock": never(part="2 of 2")},
        by="snapshots",
    ),
    Mutant(
        "a bitmap that is data by now does not count (SNAP-7)",
        {"snapshot-bitmap-is-data": never()},
        by="snapshots",
    ),
    Mutant(
        "the bitmap of a span that another transaction has made is not saved (SNAP-7)",
        {"snapshot-span-made-meanwhile": always()},
        by="snapshots_checks",
    ),
    Mutant(
        "an audit beside transactions asks for the pool's length again (SNAP-7)",
        {"audit-of-a-pool-that-grows": leave_out()},
        by="snapshots_checks",
    ),
    Mutant(
        "a span that a trim frees is no block (SNAP-7)",
        {"snapshot-trimmed-spans": never()},
        by="snapshots_checks",
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
