# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's figures (papers: SoftWrAP, MSST '15, section V)."""

import re

from . import (softwrap_criteria, softwrap_home, softwrap_model, softwrap_sqlite, softwrap_tree,
               softwrap_wraps)
from .figure import Paper
from .verdict import attach


def _place(figure):
    """The paper's order; figures that are not in the paper come last."""
    number = re.match(r"S-(?:Fig|Tab)(\d+)", figure.row)
    return 100 if number is None else 4.5 if figure.row.startswith("S-Tab") else int(number[1])


PAPER = Paper(
    name="softwrap",
    title="SoftWrAP",
    medium="emulated medium, 8-line write buffers, Tw 1 us unless the figure says otherwise",
    about=[
        "Doshi, Giles, Varman: SoftWrAP: A Lightweight Framework for Transactional Support of "
        "Storage Class Memory (MSST '15), section V. The emulated medium has the",
        "paper's write buffer: 8 lines, one leaves it every Tw, a line that waits absorbs "
        "another write to it, a fence (the paper's pcommit) waits for the last. Each thread",
        "has one (S-Buffer says why). The paper's elements have 4 bytes, ours 8, a log entry 12 "
        "bytes in both.",
        "",
        "SoftWrAP is the library's engine `softwrap/none`: aliases in tables that all wraps "
        "share, nothing isolated by the library, as in the paper; SoftWrAP, local, is",
        "`softwrap-local/none` (IV-D). The paper's two other methods are in the benchmarks only, "
        "as cost baselines. **Non-Atomic is not crash atomic**: each store goes home and is",
        "written back, with one fence a wrap. **The Undo Log is no recoverable system either**: "
        "before each store the old value is logged and fenced, with one fence more at the",
        "end, as the paper counts; its end marker shares that fence with the stores. Neither has "
        "code that recovers.",
        "",
        "A response time is that of a cell's wraps in twenty slices, in order: the median of the "
        "slices' means. What a system does all the time is in each slice, its tables'",
        "switches for one; a moment in which the machine did something else is in few. The "
        "wraps' thread and the one that takes tables home need a processor each."
    ],
    systems=("softwrap", "SoftWrAP's baselines"),
    figures=attach(
        softwrap_criteria.CRITERIA,
        sorted([
            *softwrap_model.FIGURES, *softwrap_wraps.FIGURES, *softwrap_tree.FIGURES,
            *softwrap_sqlite.FIGURES, *softwrap_home.FIGURES
        ], key=_place)),
)
