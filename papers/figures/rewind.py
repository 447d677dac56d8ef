# SPDX-License-Identifier: BSD-3-Clause
"""REWIND's figures (papers: REWIND, VLDB '15, section 5)."""

from . import rewind_criteria, rewind_log, rewind_tpcc, rewind_tree
from .figure import Paper
from .verdict import attach

PAPER = Paper(
    name="rewind",
    title="REWIND",
    medium="emulated medium, 150 ns a written line",
    about=[
        "Chatzistergiou, Cintra, Viglas: REWIND (VLDB '15), section 5. The emulated medium "
        "charges 150 ns for each line that is written to NVM, consecutive",
        "writes to one line once, as the paper does; its pools lie on tmpfs."
    ],
    systems=("rewind", "non-recoverable baselines"),
    figures=attach(rewind_criteria.CRITERIA,
                   [*rewind_log.FIGURES, *rewind_tree.FIGURES, *rewind_tpcc.FIGURES]),
)
