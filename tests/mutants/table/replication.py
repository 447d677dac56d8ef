# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the replicated log: what counts, and who may append."""

from operations import always, instead, leave_out, never
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
)
