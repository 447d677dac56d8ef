# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of blocks of plain code: what is logged, and what a block leaves behind."""

from operations import instead, leave_out
from .mutant import Mutant

PLAIN = (
    Mutant(
        "a block's store to the pool is logged",
        {"plain-store-is-logged": instead("void(*reinterpret_cast<std::uint64_t*>(at) = word)")},
        by="plain_explore",
    ),
    Mutant(
        "a block that rolls back stores memory back (PLAIN-1)",
        {"plain-stores-back": leave_out()},
        by="plain",
    ),
    Mutant(
        "an attempt begins with memory as it was (PLAIN-1)",
        {"plain-undoes-before-an-attempt": leave_out()},
        by="plain",
    ),
    Mutant(
        "a block frees memory when it has committed (PLAIN-2)",
        {"plain-frees-later": instead("free(block)")},
        by="plain",
    ),
)
