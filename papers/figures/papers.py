# SPDX-License-Identifier: BSD-3-Clause
"""The list of papers whose figures are measured again. To add one, write a module with a PAPER, and
add its name here."""

from . import blurred, cross, dudetm, rewind, softwrap

PAPERS = {
    paper.name: paper
    for paper in (rewind.PAPER, blurred.PAPER, dudetm.PAPER, softwrap.PAPER, cross.PAPER)
}
PAPER_OF = {figure.row: paper for paper in PAPERS.values() for figure in paper.figures}
assert len(PAPER_OF) == sum(len(paper.figures)
                            for paper in PAPERS.values()), "two figures have one row's name"

# The rows of a quick run: about 8 minutes on two cores.
QUICK = ("R-Fig3L", "R-Fig4R", "R-Fig6", "R-Fig7L", "R-Fig8R", "B-Fig7", "B-Fig8H", "B-Fig9",
         "D-Tab1", "D-Tab2", "D-Fig3", "S-Fig4", "S-Tab2", "S-Fig5", "X-hash", "X-ycsb")
