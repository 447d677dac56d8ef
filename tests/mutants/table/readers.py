# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of what a writer tells readers in other processes, and of what these look at."""

from operations import always, instead, leave_out, succeed
from .mutant import Mutant

READERS = (
    Mutant(
        "a checkpoint tells readers (READER-1)",
        {"checkpoint-tells-readers": leave_out()},
        by="readers",
    ),
    Mutant(
        "home_clock rises before the data region changes (READER-1)",
        {"home-clock-first": leave_out()},
        by="readers_gate",
    ),
    Mutant(
        "a reader that is too slow is waited for once",
        {"gate-expels": leave_out()},
        by="readers_gate",
    ),
    Mutant(
        "an opening tells readers (READER-2)",
        {"opening-tells-readers": leave_out()},
        by="readers",
    ),
    Mutant(
        "a trim tells readers (READER-2)",
        {"trim-tells-readers": leave_out()},
        by="readers",
    ),
    Mutant(
        "a read looks at home_clock (FOLLOW-2)",
        {"follower-looks-at-home-clock": always(part="1 of 2")},
        by="readers",
    ),
    Mutant(
        "a read looks at sequence (FOLLOW-2)",
        {"follower-looks-at-sequence": always(part="2 of 2")},
        by="readers",
    ),
    Mutant(
        "pages are made private in time (FOLLOW-1)",
        {
            "follower-copies-in-time": always(part="2 of 2"),
            "follower-copies-in-time-ahead": always(part="3 of 3"),
        },
        by="readers",
    ),
    Mutant(
        "a page is given back when the state has its records (FOLLOW-3)",
        {"follower-gives-back-known-pages": instead("file_.told().checkpoint_id.load()")},
        by="readers",
    ),
    Mutant(
        "a reader shows what the writer calls durable (FOLLOW-4)",
        {"follower-shows-durable-only": instead("no_limit")},
        by="readers_durable",
    ),
    Mutant(
        "a reader makes durable what it shows (FOLLOW-4)",
        {"follower-makes-durable": succeed()},
        by="readers_durable",
    ),
)
