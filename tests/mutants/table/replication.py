# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the replicated log: what counts, and who may append."""

from operations import also_here, always, instead, leave_out, never, replace, succeed
from .mutant import Mutant

REPLICATION = (
    Mutant(
        "a frame counts only behind the one that it continues (STREAM-2)",
        {"stream-counts-chained": instead("true")},
        by="stream",
    ),
    Mutant(
        "a frame counts only in the newest term (STREAM-2)",
        {"stream-counts-term": always(part="1 of 2")},
        by="stream",
    ),
    Mutant(
        "only frames of older terms are void (STREAM-2)",
        {"stream-void-older": always()},
        by="stream",
    ),
    Mutant(
        "a claim reads the log to its end (STREAM-3)",
        {"stream-claim-reads": leave_out()},
        by="stream",
    ),
    Mutant(
        "a frame that is found is this copy's (STREAM-4)",
        {"stream-look-compares": never()},
        by="stream",
    ),
    Mutant(
        "an append looks for the message before it again (SERVICE-1)",
        {"store-log-looks-again": leave_out()},
        by="store_log",
    ),
    Mutant(
        "a trim keeps the last message of those that it was to remove (SERVICE-1)",
        {"store-log-trim-keeps-one": replace("n + 1", "n + (MUTANT ? 0 : 1)")},
        by="store_log",
    ),
    Mutant(
        "a reader sees that what it has found was not trimmed (SERVICE-1)",
        {"store-log-read-looks-again": instead("messages.empty() ? PART : Result<bool>(true)")},
        by="store_log",
    ),
    Mutant(
        "a message that is read is durable (STORELOG-1)",
        {"store-log-keeps-what-it-reads": leave_out()},
        by="store_log",
    ),
    Mutant(
        "a TERM frame voids the pieces before it (STREAM-6)",
        {"stream-term-voids-parts": leave_out()},
        by="stream",
    ),
    Mutant(
        "a copy sees that the log is the one in which it has its place",
        {"stream-sees-its-place": never()},
        by="stream",
    ),
    Mutant(
        "a copy with transactions that another one began without is refused",
        {"primary-diverged": always()},
        by="primary",
    ),
    Mutant(
        "a copy that lacks transactions is refused",
        {"primary-behind": always()},
        by="primary",
    ),
    Mutant(
        "a claim's number is durable before the claim (PRIMARY-3)",
        {"primary-claim-durable": leave_out()},
        by="primary",
    ),
    Mutant(
        "an opening appends what the log lacks (PRIMARY-2)",
        {"primary-appends-rest": succeed()},
        by="primary",
    ),
    Mutant(
        "a record stays until the replicated log has it (PRIMARY-2)",
        {"primary-floor-before-append": also_here("primary-floor-after-append")},
        by="primary",
    ),
    Mutant(
        "a close appends the rest (PRIMARY-2)",
        {"primary-appends-all": never()},
        by="primary",
    ),
    Mutant(
        "a deposed copy refuses work (PRIMARY-4)",
        {"primary-refuses": leave_out()},
        by="primary",
    ),
    Mutant(
        "a replicated pool is changed with its log only",
        {"replicated-pool-needs-its-log": always()},
        by="primary",
    ),
    Mutant(
        "a backup of a replicated pool waits for the log",
        {"backup-of-what-is-shipped": never()},
        by="primary",
    ),
    Mutant(
        "a backup with more than another term began with is refused",
        {"copy-of-diverged-backup": never()},
        by="primary",
    ),
    Mutant(
        "a primary behind which the log was trimmed is deposed (PRIMARY-4)",
        {"primary-trimmed-is-deposed": never()},
        by="primary",
    ),
    Mutant(
        "a standby makes the place behind a TERM frame durable (STREAM-5)",
        {"standby-term-durable": leave_out()},
        by="standby",
    ),
    Mutant(
        "a frame is durable before the header may have the place behind it (REPLICA-1)",
        {"replica-notes-before-apply": also_here("replica-notes-after-apply")},
        by="standby_explore",
    ),
    Mutant(
        "a standby has the bytes that entries name before it logs them (REPLICA-2)",
        {"replica-grows-first": leave_out()},
        by="standby",
    ),
    Mutant(
        "a standby whose places differ from the primary's is refused (REPLICA-2)",
        {"replica-same-places": leave_out()},
        by="standby",
    ),
    Mutant(
        "a further copy has no checksums where another one may have objects (REPLICA-2)",
        {"replica-drops-moved-checksums": never()},
        by="standby",
    ),
    Mutant(
        "readers of a standby learn of a new layout (REPLICA-3)",
        {"replica-sees-catalog": leave_out()},
        by="standby",
    ),
    Mutant(
        "a standby's checkpoint tells readers what it will change (REPLICA-3)",
        {"replica-passes-gate": leave_out()},
        by="standby",
    ),
    Mutant(
        "a standby does not say how many bytes are in blocks",
        {"replica-counts-no-blocks": leave_out()},
        by="standby",
    ),
    Mutant(
        "a standby that is to end does not wait for its archive",
        {"replica-waits-on": never()},
        by="standby",
    ),
    Mutant(
        "a claim in place of one term deposes no later one",
        {"stream-claim-in-place": never()},
        by="stream",
    ),
    Mutant(
        "a standby that was slower follows the one that has taken over",
        {"claim-in-place": never()},
        by="take_over",
    ),
    Mutant(
        "a log that does not answer is no silent primary",
        {"silence-of-the-log": leave_out()},
        by="take_over",
    ),
    Mutant(
        "a primary that gives no signs is not taken over from",
        {"silence-needs-beats": never()},
        by="take_over",
    ),
    Mutant(
        "a primary's own copy is none of its standbys (STANDBYS-1)",
        {"standbys-own-copy": always(part="2 of 2")},
        by="standbys",
    ),
    Mutant(
        "what standbys have counts only where the log has it, too",
        {"primary-standbys-and-log": instead("standbys_.id_of(n) >= id")},
        by="standbys",
    ),
    Mutant(
        "a standby says what it has when that is on its disk (STANDBY-3)",
        {"standby-applies": also_here("standby-confirms-what-it-has")},
        by="standbys",
    ),
)
