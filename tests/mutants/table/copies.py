# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of version 2: how objects behind pointers are copied."""

from operations import always, leave_out, never
from .mutant import Mutant

COPIES = (
    Mutant(
        "the list owns the old objects from the switch on (MOVE-2)",
        {"list-owns-old-objects": leave_out()},
        by="copies",
    ),
    Mutant(
        "a block that is freed leaves the list of copies (MOVE-2)",
        {"freed-copies-leave-the-list": never()},
        by="copies",
    ),
    Mutant(
        "copies lead to copies (MOVE-1)",
        {"copies-lead-to-copies": leave_out()},
        by="copies",
    ),
    Mutant(
        "containers lead to the copies before the old objects are freed (MOVE-1)",
        {"containers-before-old-objects": leave_out()},
        by="copies",
    ),
    Mutant(
        "only blocks are copied as objects",
        {"copied-objects-are-blocks": always()},
        by="pointers",
    ),
    Mutant(
        "a block that is copied has one owner",
        {"copied-objects-have-one-owner": never()},
        by="pointers",
    ),
    Mutant(
        "a block that is copied holds one object",
        {"copied-blocks-hold-one-object": never()},
        by="pointers",
    ),
    Mutant(
        "the objects of a hooked_list are known",
        {"hooked-objects-are-known": never()},
        by="pointers",
    ),
    Mutant(
        "copies that do not fit are freed",
        {"copies-without-room": leave_out()},
        by="pointers",
    ),
    Mutant(
        "the feature comes before the first copy (FEATURE-1)",
        {"copies-feature-first": leave_out()},
        by="pointers",
    ),
)
