# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of orders: something becomes durable, becomes visible or is released too early."""

from operations import (
    also_here,
    always,
    exchange,
    insert,
    instead,
    leave_out,
    never,
    rewrite,
    succeed,
)
from .mutant import Mutant

# The order in which things become durable, become visible or are released, reversed.
ORDERS = (
    Mutant(
        "a ring's tail before its record is durable",
        {"ring-tail-before-fence": also_here("ring-tail-before-fence-late")},
    ),
    Mutant(
        "a log is taken from ended threads only (LEASE-1)",
        {"lease-of-ended-threads-only": never()},
        by="thread_logs",
    ),
    Mutant(
        "a second writer on a record ends the transaction (SHADOW-3)",
        {"writer-within-a-writer": never()},
        by="writer",
    ),
    Mutant(
        "a writer gives its cursor back (SHADOW-3)",
        {"writer-gives-back": leave_out()},
        by="writer",
    ),
    Mutant(
        "a rollback restores the old values",
        {"rollback-restores-old-values": never()},
        by="writer",
    ),
    Mutant(
        "a change of the bias takes grants back (GRANT-1)",
        {"grants-taken-back": leave_out()},
        by="bias",
    ),
    Mutant(
        "a copy beside a bias follows the transaction that was open (BESIDE-1)",
        {"beside-waits-before": leave_out()},
        by="copy",
    ),
    Mutant(
        "a copy beside a bias counts when what it may hold has ended (BESIDE-2)",
        {"beside-waits-after": leave_out()},
        by="copy",
    ),
    Mutant(
        "a copy beside a bias counts if nothing was rolled back (BESIDE-3)",
        {"beside-counts-rollbacks": always()},
        by="copy",
    ),
    Mutant(
        "a pool that refuses takes grants back (GRANT-1)",
        {"refusing-takes-grants-back": never()},
        by="eio",
    ),
    Mutant(
        "a page is given back while its ownership records are held (RESIDENT-1)",
        {"hold-owns": always()},
        by="resident_threads",
    ),
    Mutant(
        "a page with marks is not given back (RESIDENT-1)",
        {"resident-marks": never()},
        by="resident",
    ),
    Mutant(
        "a page that differs from the data region is not given back (RESIDENT-1)",
        {"resident-compares": always()},
        by="resident",
    ),
    Mutant(
        "pages of bitmaps are given back only while no update runs (RESIDENT-2)",
        {"resident-bitmaps": never()},
        by="resident_threads",
    ),
    Mutant(
        "records that a killed process left are flushed before the data region changes (REDO-4)",
        {"scanned-flush": leave_out()},
        by="killed",
    ),
    Mutant(
        "records that a killed process left are durable before the data region changes (REDO-4)",
        {"undo-records-fence": succeed()},
        by="killed",
    ),
    Mutant(
        "an id durable before its record is",
        {"durable-id-before-fence": insert("durable_.store(last, std::memory_order_release);")},
        by="threads",
    ),
    Mutant(
        "a ring's room before the header (replay)",
        {"replay-truncates-before-header": also_here("replay-truncates-before-header-late")},
        by="threads",
    ),
    Mutant(
        "X is what a settlement began with",
        {"replay-checkpoint-id": instead("reproduced_.load(std::memory_order_relaxed)")},
        by="settlement",
    ),
    Mutant(
        "a settlement ends when all of its lines are durable",
        {"replay-all-lines-durable": never()},
        by="settlement",
    ),
    Mutant(
        "replay up to what is quiet (held)", {"replay-low-watermark": never(part="test")}, by="room"
    ),
    Mutant(
        "an op after a word in its span's bitmap (GROUP-1)",
        {"combine-op-after-word": always(inner=True, part="2 of 2")},
        by="combiner",
    ),
    Mutant(
        "a word after an op in its span's bitmap (GROUP-1)",
        {"combine-word-after-op": always(inner=True, part="2 of 2")},
        by="combiner",
    ),
    Mutant(
        "a group ends before what does not commute (GROUP-1)",
        {"group-ends-at-conflict": never(part=("2 of 2", "2 of 2"))},
        by="persister",
    ),
    Mutant(
        "the pool's version before the first combined record",
        {"combined-records-feature": never()},
        by="dudetm",
    ),
    Mutant(
        "an eviction waits for writers (PAGING-1)",
        {"eviction-waits-for-writers": leave_out()},
        by="paging",
    ),
    Mutant(
        "a writer meets an eviction's mark (PAGING-1)",
        {"writer-sees-eviction": never()},
        by="paging",
    ),
    Mutant(
        "a stamp is complete below what is pending (HTM-1)",
        {"timestamp-below-pending": leave_out()},
        by="htm",
    ),
    Mutant(
        "a pending stamp is shown before the try (HTM-1)", {"pending-before-try": never()}, by="htm"
    ),
    Mutant(
        "the store buffer is drained in the try before its stamp is drawn, by more than a locked"
        " instruction (HTM-1, TIMESTAMP-1)",
        {"store-buffer-drained": leave_out(unless="holds_")},
        by="store_buffer",
    ),
    Mutant(
        "a stamp's tick is over when isolation ends (TIMESTAMP-2)",
        {"timestamp-tick-over": never()},
        by="htm",
    ),
    Mutant(
        "only complete stamps are taken (PERSIST-2)",
        {"take-complete-timestamps": never(part="2 of 3")},
        by="stamps",
    ),
    Mutant(
        "stamps are merged in order (PERSIST-2)",
        {"merge-timestamp-order": never(part="3 of 3")},
        by="stamps",
    ),
    Mutant(
        "a dependent record names what is open (DEPEND-4)",
        {"htm-names-open": leave_out()},
        by="shadow_htm",
    ),
    Mutant(
        "a dependent record names lower timestamps alone (DEPEND-4)",
        {"dependent-names-only-lower": never()},
        by="shadow_htm",
    ),
    Mutant(
        "a transaction waits for what its record names (DEPEND-5)",
        {"htm-waits-for-named": leave_out()},
        by="shadow_htm",
    ),
    Mutant(
        "a transaction is acknowledged when what its record names is (DEPEND-5)",
        {"htm-acknowledged-after-named": also_here("htm-acknowledged-after-named-late")},
        explained=(
            "the stand-in's transactions become visible in the order of their timestamps, so what "
            "the acknowledged one names is open for a thread that has seen it; "
            "models/dependent.pml has the fault (ACKNOWLEDGED_AT_FENCE)"
        ),
    ),
    Mutant(
        "nothing follows a lost transaction on its ring (DEPEND-4)",
        {"htm-ring-of-lost-refuses": never()},
        by="shadow_htm",
    ),
    Mutant(
        "an update that stored nothing is acknowledged when what it saw is (shadow/htm)",
        {"htm-read-acknowledged-durable": never()},
        by="receipts",
    ),
    Mutant(
        "X of complete timestamps (shadow/htm, DEPEND-6)",
        {"htm-checkpoint-id-complete": instead("tm_.clock.now()")},
        by="shadow_htm",
    ),
    Mutant(
        "lines are marked before their transaction stops pending (DEPEND-7)",
        {"htm-marks-before-finished": leave_out()},
    ),
    Mutant(
        "a pool of the pipelined order has no dependent records",
        {"pipelined-pool-has-no-dependencies": never()},
        by="shadow_htm",
    ),
    Mutant(
        "a pool of order held has no stamps",
        {"strict-pool-has-no-timestamps": never()},
        by="engine_htm",
    ),
    Mutant(
        "an eviction waits for Reproduce (PAGING-2)",
        {"eviction-waits-for-replay": succeed()},
        by="paging",
    ),
    Mutant(
        "a page that another swaps in is waited for (PAGING-4)",
        {"page-swap-in-wait": leave_out()},
        by="paging",
    ),
    Mutant(
        "a page's entry after its frame's words (PAGING-4)",
        {"page-entry-after-words": also_here("page-entry-after-words-late")},
        by="paging",
    ),
    Mutant(
        "a reader looks at a frame's entry again (PAGING-5)",
        {"frame-entry-read-again": always()},
        by="paging",
    ),
    Mutant(
        "an entry's generation (PAGING-5)",
        {"frame-entry-generation": instead("0")},
        by="paging",
    ),
    Mutant(
        "bitmaps are touched with their ops (PAGING-3)",
        {"heap-op-touches-bitmap": leave_out()},
        by="dudetm",
    ),
    Mutant(
        "a ring's room before the header (checkpoint)",
        {
            "checkpoint-truncates-before-header": also_here(
                "checkpoint-truncates-before-header-late"
            )
        },
        by="room",
    ),
    Mutant(
        "a ring's room before the header (undo)",
        {"undo-truncates-before-header": also_here("undo-truncates-before-header-late")},
        by="room",
    ),
    Mutant(
        "a ring's room up to X only (checkpoint)",
        {"checkpoint-truncates-to-id": instead("rings[i].tail()")},
        by="threads",
    ),
    Mutant(
        "a ring's room up to X only (undo)",
        {"undo-truncates-to-id": never(part="3 of 3")},
        by="room",
    ),
    Mutant(
        "a ring's room up to what has ended (undo)",
        {"undo-truncates-to-ended": exchange("ended", "ring.tail()")},
        by="shared_ring",
    ),
    Mutant(
        "X of ids that have finished (checkpoint)",
        {
            "checkpoint-id-finished": instead(
                "tm_.domain.clock.load()", inner=True, part=("argument 1 of 1", "then")
            )
        },
        by="room",
    ),
    Mutant(
        "X of ids that are durable (checkpoint)",
        {
            "checkpoint-id-durable": instead(
                "tm_.domain.clock.load()", inner=True, part=("argument 1 of 1", "else")
            )
        },
        explained="every batch waits for ids drawn after X, before the header has X",
    ),
    Mutant(
        "X of ids that have finished (undo)",
        {"undo-checkpoint-id-finished": instead("tm_.domain.clock.load()")},
        by="room",
    ),
    Mutant("a batch waits until it is durable", {"batch-waits-durable": always(part="2 of 2")}),
    Mutant(
        "the directory waits until it is durable",
        {"directory-waits-durable": never()},
        explained=(
            "a batch of the rest, copied later, has waited for more; there is none "
            "only where large blocks were freed and nothing was stored"
        ),
    ),
    Mutant("the directory behind what it names", {"directory-after-targets": never()}),
    Mutant("acknowledged when durable (prefix)", {"pipelined-acknowledged-durable": leave_out()}),
    Mutant(
        "acknowledged when what was read is durable",
        {"read-acknowledged-durable": never()},
        by="receipts",
    ),
    Mutant(
        "isolation ends before the fence (held)",
        {
            "strict-isolation-until-fence": insert("return;"),
            "strict-isolation-until-fence-late": insert(
                "const std::uint64_t end = ring_->append(record_, log::RecordKind::commit, id, 1);"
                " count(bytes); (void)ring_->fence(end); if (!ops_.empty()) apply_heap_ops();"
            ),
        },
        by="threads",
    ),
    Mutant(
        "what a lambda has caught of a change ends the transaction (REFUSED-1)",
        {"refused-transaction-commits": never()},
        by="refusals",
    ),
    Mutant(
        "a catalog that a pool gets later has an owner at once (CATALOG-2)",
        {"late-catalog-has-an-owner": leave_out()},
        by="add_catalog",
    ),
    Mutant(
        "a catalog is durable before the header leads to it (CATALOG-2)",
        {
            "late-catalog-before-header": instead(
                "Durability::async", part="argument 1 of 2"
            )
        },
        by="add_catalog",
    ),
    Mutant(
        "isolation ends before the fence (undo)",
        {
            "commit-isolation-until-fence": rewrite(
                "const auto work = PART; if (MUTANT) { tm_.commit([&](std::uint64_t drawn) { id ="
                " drawn; }); work(id); } else { tm_.commit(work); }",
                part="argument 1 of 1",
            )
        },
        by="threads",
    ),
    Mutant(
        "old values before heap records (undo)",
        {
            "undo-old-values-first": leave_out(),
            "undo-old-values-first-late": also_here("undo-old-values-first"),
        },
        explained=(
            "a block is handed out again only when the bits of who freed it are "
            "home: the old values have them, and no record changes a bitmap under a "
            "block in flight"
        ),
    ),
)
