# SPDX-License-Identifier: BSD-3-Clause
"""Blurred Persistence's figures (papers: Blurred Persistence, MSST '15, section V)."""

import re

from . import blurred_criteria, blurred_sizes, blurred_systems
from .figure import Paper
from .verdict import attach


def _place(figure):
    """The paper's order; figures that are not in the paper come last."""
    number = re.match(r"B-Fig(\d+)", figure.row)
    return int(number[1]) if number else 100


PAPER = Paper(
    name="blurred",
    title="Blurred Persistence",
    medium="emulated medium, 150 ns a flushed line unless the figure says otherwise",
    about=[
        "Lu, Shu, Sun: Blurred Persistence in Transactional Persistent Memory (MSST '15), "
        "section V. The emulated medium charges 150 ns for each line that is",
        "flushed or streamed, nothing for what the cache evicts; its pools lie on tmpfs. How the "
        "paper charged `wbinvd` it does not say: as one flush operation",
        "here (`blurred+wbinvd`), except in B-Fig7L, where each line that bulk persistence "
        "writes is charged. A log has 1 MiB."
    ],
    systems=("bppm", "volatile"),
    figures=attach(blurred_criteria.CRITERIA,
                   sorted([*blurred_systems.FIGURES, *blurred_sizes.FIGURES], key=_place)),
)
