# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of REWIND's log structures: lists, buckets and the index."""

from operations import also_here, always, insert, instead, leave_out, never
from .mutant import Mutant

# REWIND's log structures: lists, buckets and the index.
LISTS = (
    Mutant("lastTail before toAppend", {"adll-last-tail-first": leave_out()}, by="pointer_log"),
    Mutant("toAppend before the links", {"adll-to-append-first": leave_out()}, by="pointer_log"),
    Mutant("toRemove before the links", {"adll-to-remove-first": leave_out()}, by="pointer_log"),
    Mutant("toReplace before the links", {"adll-to-replace-first": leave_out()}, by="pointer_log"),
    Mutant(
        "an append done again links to lastTail, not to the tail",
        {"adll-append-last-tail": instead("tail()", part="argument 2 of 2")},
        by="pointer_log",
    ),
    Mutant(
        "the anchor is looked at before it is followed (ADLL-4)",
        {"adll-anchor-check": never()},
        by="pointer_log",
    ),
    Mutant(
        "a node's links are looked at before they are followed (ADLL-4)",
        {"adll-links-check": never()},
        by="pointer_log",
    ),
    Mutant(
        "a bucket's index is looked at (ADLL-4)",
        {"bucket-index-check": never()},
        by="control_words",
    ),
    Mutant(
        "an empty cell is no pointer",
        {"bucket-cell-check": never()},
        by="control_words",
        explained=(
            "a pointer that leads elsewhere leads to no record, whose own words name "
            "its place; asked so that damage is named by its cell"
        ),
    ),
    Mutant("the root of an index is looked at", {"aavlt-root-check": never()}, by="control_words"),
    Mutant(
        "a log's stamp is looked at",
        {"rewind-log-stamp-check": never(part="1 of 2")},
        by="control_words",
    ),
    Mutant(
        "a record before its cell (optimized, PTRLOG-1)",
        {"bucket-record-before-cell": leave_out()},
        by="pointer_log",
    ),
    Mutant(
        "pointers durable when they are appended (optimized)",
        {"bucket-cells-durable": leave_out()},
        by="pointer_log",
    ),
    Mutant(
        "a cell that a crash left empty becomes a gap (PTRLOG-3)",
        {"bucket-hole-becomes-gap": leave_out()},
        by="aavlt",
    ),
    Mutant(
        "a group before its index (batch, PTRLOG-1, PTRLOG-3)",
        {"bucket-group-before-index": leave_out()},
        by="pointer_log",
    ),
    Mutant(
        "a group's cells before its index (batch, PTRLOG-3)",
        {"bucket-cells-before-index": leave_out()},
        by="pointer_log",
    ),
    Mutant(
        "a new bucket's cells are zero (optimized, PTRLOG-2)",
        {"bucket-zeroed-cells": never()},
        by="pointer_log",
    ),
    Mutant(
        "cells above the index do not count (batch)",
        {"bucket-cells-above-index": never()},
        by="pointer_log",
    ),
    Mutant(
        "an index operation's records before its stores (AAVLT-1)",
        {
            "aavlt-records-before-stores": insert(
                "for (const Write& w : writes_) nvm_.start(w.at, w.value);"
            )
        },
        by="aavlt",
    ),
    Mutant(
        "an index operation's stores before its END (AAVLT-2)",
        {
            "aavlt-stores-before-end": also_here("aavlt-stores-before-end-record")
        },
        by="aavlt",
    ),
    Mutant(
        "an index operation's END last (AAVLT-3)",
        {"aavlt-end-removed-last": leave_out()},
        by="aavlt",
    ),
    Mutant(
        "an index operation that has ended is not undone",
        {"aavlt-ended-not-undone": always()},
        by="aavlt",
    ),
    Mutant(
        "old values before the records that have them are gone",
        {"aavlt-old-values-fence": leave_out()},
        by="aavlt",
    ),
)
