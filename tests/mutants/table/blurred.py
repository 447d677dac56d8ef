# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of Blurred Persistence's log and engine."""

from operations import always, instead, leave_out, never, succeed, turned
from .mutant import Mutant

# Blurred Persistence's log and engine.
BLURRED = (
    Mutant(
        "a transaction's records durable with its commit (TORN-1)",
        {"torn-commit-flush-tail": leave_out()},
        by="bppm",
    ),
    Mutant(
        "what stands before streamed lines durable with the commit (TORN-1)",
        {"torn-commit-flush-head": leave_out()},
        by="bppm",
    ),
    Mutant(
        "abort records durable with the next commit (TORN-1)",
        {"torn-commit-flush-aborts": never()},
        by="torn_log",
    ),
    Mutant(
        "an abort record each 64 blocks", {"torn-abort-record-spacing": leave_out()}, by="torn_log"
    ),
    Mutant(
        "the rest of a lap is filled (TORN-2)",
        {"torn-generation-filled": leave_out()},
        by="torn_log",
    ),
    Mutant(
        "aborted runs are the lap's at its end (TORN-2)",
        {"torn-generation-aborts-flushed": never()},
        by="torn_log",
    ),
    Mutant(
        "the filling before the next lap (TORN-2)",
        {"torn-generation-fill-fence": leave_out()},
        by="torn_log",
    ),
    Mutant(
        "a lap's beginning durable (TORN-3)",
        {"torn-generation-begin-flush": leave_out()},
        by="bppm",
    ),
    Mutant(
        "a lap's beginning before its records (TORN-3)",
        {"torn-generation-begin-fence": succeed()},
        by="bppm",
        explained=(
            "the first transaction's own fence makes it durable with its commit, and "
            "without it none of the lap's records count: the fence is for the "
            "reader's sake"
        ),
    ),
    Mutant(
        "a log is zero, durably, before the header may say that the pool was closed (TORN-5)",
        {"torn-close-zero-fence": succeed()},
        by="torn_log",
    ),
    Mutant("a log is zero before a session (TORN-5)", {"torn-format-zeroes": never()}, by="bppm"),
    Mutant(
        "a backpointer is the last commit's",
        {"torn-backpointer": always(part="3 of 4")},
        by="torn_log",
        explained="the checksum in its ADDR has the last commit's place, too",
    ),
    Mutant(
        "holes are looked over no further than 64 blocks",
        {"torn-hole-limit": instead("records")},
        by="torn_log",
        explained=(
            "an abort record further away whose backpointer is the last commit's "
            "leads to the same end: the limit spares reading"
        ),
    ),
    Mutant("a torn-bit log of this epoch only", {"torn-log-epoch": always()}, by="bppm"),
    Mutant(
        "a transaction's checksum (torn-bit log)",
        {"torn-transaction-checksum": never(part="2 of 2")},
        by="torn_log",
    ),
    Mutant("a break with a transaction behind it", {"torn-break-detected": never()}, by="torn_log"),
    Mutant(
        "X before the log is gone (BPPM-2)",
        {"bulk-id-before-truncation": succeed()},
        by="bppm",
    ),
    Mutant(
        "a tail leads to a commit record that is there (TORN-6)",
        {"torn-ordered-tail-check": never()},
        by="bppm",
    ),
    Mutant("home before X (BPPM-2)", {"bulk-flush-before-id": succeed()}, by="bppm"),
    Mutant("home's lines written back (SYNC)", {"bppm-sync-flush": leave_out()}, by="bppm"),
    Mutant(
        "a thread's lines written back (ASYNC)",
        {"bppm-async-flush": leave_out(inner=True)},
        by="bppm",
    ),
    Mutant(
        "recovery leaves out what X covers (BPPM-2)",
        {"bppm-recovery-skips-covered": instead("header.checkpoint_id")},
        by="bppm",
    ),
    Mutant(
        "committed transactions in the order of TxIDs",
        {"bppm-txid-order": turned(inner=True)},
        by="bppm",
    ),
    Mutant(
        "a log durable as it was seen (REDO-4)", {"bppm-log-rewritten": leave_out()}, by="killed"
    ),
)
