# SPDX-License-Identifier: BSD-3-Clause
"""The list of papers whose figures are measured again: a new one is a module with a PAPER, and its name here."""

from . import blurred, cross, dudetm, rewind, softwrap

PAPERS = {paper.name: paper for paper in (rewind.PAPER, blurred.PAPER, dudetm.PAPER, softwrap.PAPER, cross.PAPER)}
PAPER_OF = {figure.row: paper for paper in PAPERS.values() for figure in paper.figures}
assert len(PAPER_OF) == sum(len(paper.figures) for paper in PAPERS.values()), "two figures have one row's name"
