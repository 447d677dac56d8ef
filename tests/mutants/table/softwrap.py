# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of SoftWrAP's log and engines."""

from operations import always, exchange, instead, leave_out, never, replace, succeed, turned
from .mutant import Mutant

# SoftWrAP's log and engines.
SOFTWRAP = (
    Mutant("a wrap's sum", {"wrap-sum": never()}, by="wrap_log"),
    Mutant("a wrap's check", {"wrap-check": always(part="test")}, by="wrap_log"),
    Mutant("wraps behind a torn one", {"wrap-torn-wrap-detected": never()}, by="wrap_log"),
    Mutant(
        "wraps that agree in 96 bits (WRAP-1)",
        {"wrap-agreement-bits": exchange("enough", "32")},
        by="wrap_log",
    ),
    Mutant(
        "one directly behind the other (WRAP-1)",
        {"wrap-run-adjacent": always(part="2 of 3")},
        by="wrap_log",
    ),
    Mutant(
        "ids rise along a run (WRAP-1)", {"wrap-run-ids-rise": always(part="3 of 3")}, by="wrap_log"
    ),
    Mutant(
        "wraps of a bucket's own base (WRAPLOG-2)",
        {"wrap-seed-base": replace("base * 4", "(MUTANT ? 0 : base) * 4")},
        by="wrap_log",
    ),
    Mutant("a log of wraps of this epoch only", {"wrap-log-epoch": always()}, by="wrap_log"),
    Mutant("a log's damaged control words", {"wrap-control-damage": never()}, by="wrap_log"),
    Mutant("ids grow in a bucket", {"wrap-ids-rise": never()}, by="wrap_log"),
    Mutant(
        "a bucket begins again only when X covers it: aliasing for all (SOFTWRAP-2)",
        {"softwrap-id-before-bucket-reuse": succeed()},
        by="softwrap_crash",
    ),
    Mutant(
        "the same, local (SOFTWRAP-2)",
        {"softwrap-local-id-before-bucket-reuse": succeed(inner=True)},
        by="softwrap",
    ),
    Mutant(
        "X is what was quiet at the switch (RETIRE-1)",
        {"softwrap-id-at-switch": instead("house_.low_watermark()", part="argument 1 of 1")},
        by="softwrap_rounds",
    ),
    Mutant(
        "home gets closed wraps' values only (RETIRE-2)",
        {"softwrap-closed-wraps-only": never()},
        by="softwrap_rounds",
    ),
    Mutant(
        "heap lines of wraps are flushed before X (RETIRE-1)",
        {"softwrap-heap-lines-flushed": leave_out()},
        by="softwrap",
    ),
    Mutant(
        "a local wrap's words that have aliases get newer ones",
        {"softwrap-local-beside-aliases": never()},
        by="wrap_options",
    ),
    Mutant(
        "a local wrap's lines are flushed before X (RETIRE-1)",
        {"softwrap-local-lines-flushed": leave_out()},
        by="softwrap_rounds",
    ),
    Mutant(
        "what a wrap streams to the data region is durable with it",
        {"softwrap-streamed-home-durable": succeed()},
        by="softwrap_rounds",
    ),
    Mutant(
        "objects are durable before the close of their wrap (SOFTWRAP-4)",
        {"softwrap-objects-before-close": succeed()},
        by="wrap_options",
    ),
    Mutant(
        "objects are not overwritten by older wraps (SOFTWRAP-4)",
        {"softwrap-objects-not-overwritten": always()},
        by="wrap_options",
    ),
    Mutant(
        "objects leave out where bitmaps may have been",
        {"softwrap-object-beside-bitmaps": never(part="1 of 2")},
        by="wrap_options",
    ),
    Mutant(
        "objects have no older aliases",
        {"softwrap-object-without-aliases": never(part="2 of 2")},
        by="wrap_options",
    ),
    Mutant(
        "a wrap waits at the threshold",
        {"softwrap-waits-at-threshold": never()},
        by="softwrap_rounds",
    ),
    Mutant("spans have no aliases (SOFTWRAP-3)", {"softwrap-spans-drained": never()}),
    Mutant(
        "an aborted wrap's aliases are forgotten (SOFTWRAP-3)",
        {"softwrap-abort-forgets-aliases": leave_out()},
    ),
    Mutant(
        "an aborted wrap's objects are forgotten",
        {"softwrap-abort-forgets-objects": leave_out()},
        by="softwrap_rounds",
    ),
    Mutant(
        "evicted wraps' tables are replayed from the logs",
        {"softwrap-replays-evicted": succeed()},
        by="softwrap_rounds",
    ),
    Mutant(
        "recovery leaves out what X covers (wraps)",
        {"softwrap-recovery-skips-covered": always()},
        by="softwrap",
    ),
    Mutant(
        "closed wraps in the order of their ids",
        {"softwrap-id-order": turned(inner=True)},
        by="softwrap",
    ),
    Mutant(
        "a log durable as it was seen (REDO-4, wraps)",
        {"softwrap-log-rewritten": leave_out()},
        by="softwrap_crash",
    ),
    Mutant(
        "a log's epoch durable before wraps are (WRAPLOG-2)",
        {"wrap-format-fence": succeed()},
        by="wrap_log",
    ),
    Mutant(
        "a log of the first form is none before it changes",
        {"control-word-forget-fence": succeed()},
        by="wrap_log",
    ),
    Mutant(
        "a log's form is that of all of its first words",
        {"control-word-form-of-all": always()},
        by="wrap_log",
    ),
    Mutant(
        "X durable before a bucket begins again (WRAPLOG-3)",
        {"wrap-id-fence": succeed()},
        by="wrap_log",
    ),
    Mutant(
        "a base durable before wraps are streamed behind it: local (WRAPLOG-2)",
        {"softwrap-local-base-fence": succeed()},
        by="softwrap_crash",
        explained=(
            "its owner's next wrap makes it durable with its own fence; only a wrap "
            "of another thread, which takes a shared log between two steps of this "
            "one, needs it"
        ),
    ),
)
