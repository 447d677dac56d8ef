# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the archive of the log, of backups, and of what is restored from them."""

from operations import also_here, always, instead, leave_out, never, succeed
from .mutant import Mutant

BACKUP = (
    Mutant(
        "a reader of the log takes the lowest id of all rings",
        {"log-cursor-lowest-id": leave_out()},
        by="log_cursor",
    ),
    Mutant(
        "the archive takes durable transactions only (ARCHIVE-1)",
        {"archive-durable-only": instead("~std::uint64_t{0}")},
        by="archive_order",
    ),
    Mutant(
        "a flush archives what there was no room for, too",
        {"archive-gathers-all": always()},
        by="archive",
    ),
    Mutant(
        "a checkpoint truncates to the lowest floor (FLOOR-1)",
        {"checkpoint-keeps-floor": instead("x")},
        by="archive",
    ),
    Mutant(
        "a writer without log space waits for a floor",
        {"log-space-waits-for-floor": never()},
        by="archive",
    ),
    Mutant(
        "a floor is given up when its patience is over",
        {"floor-patience": always(part="1 of 3")},
        by="archive",
    ),
    Mutant(
        "the archive's floor follows the segment (ARCHIVE-2)",
        {"archive-floor-before-segment": also_here("archive-floor-after-segment")},
        by="archive_order",
    ),
    Mutant(
        "an opening archives what the log has (ARCHIVE-2)",
        {"archive-catches-up": succeed()},
        by="archive",
    ),
    Mutant(
        "a gap in the archive is seen (ARCHIVE-3)",
        {"archive-sees-gap": always()},
        by="archive",
    ),
    Mutant(
        "a close archives the rest of the log",
        {"close-finishes-followers": leave_out()},
        by="archive",
    ),
    Mutant(
        "an object's contents are synced before it is named (STORE-1)",
        {"store-syncs-first": never(part="1 of 2")},
        by="archive_killed",
    ),
    Mutant(
        "many objects' contents are synced before they are named (STORE-1)",
        {"store-flush-syncs-first": leave_out()},
        by="archive_killed",
    ),
    Mutant(
        "a backup's list follows its chunks (BASE-1)",
        {"base-after-chunks": leave_out()},
        by="restore",
    ),
    Mutant(
        "a restore stops at a gap",
        {"restore-stops-at-gap": never()},
        by="archive",
    ),
    Mutant(
        "a restore compares the chains of two segments (FRAME-1)",
        {"restore-checks-chain": never()},
        by="restore",
    ),
    Mutant(
        "a restore skips the transactions that the backup has",
        {"restore-skips-what-the-backup-has": never()},
        by="restore",
    ),
    Mutant(
        "a backup keeps others from removing chunks (PRUNE-1)",
        {"backup-shares-chunks": instead("store.lock(Store::Use::log)")},
        by="restore",
    ),
    Mutant(
        "chunks that a backup lists are not removed",
        {"prune-keeps-needed-chunks": always()},
        by="restore",
    ),
    Mutant(
        "a restore takes the newer header",
        {"restore-newer-header": never()},
        by="archive",
    ),
    Mutant(
        "a restore to a time stops at it",
        {"restore-to-time": never()},
        by="restore",
    ),
)
