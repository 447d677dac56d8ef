# SPDX-License-Identifier: BSD-3-Clause
"""The measurements, one JSON document per row, beside the page's pictures: an interrupted run
continues from there, and pages and report are made from it.

Below a folder, papers/ unless told: PAPER/figures/ROW.json with ROW.csv and ROW.png, the page
PAPER/figures.md, and sources.FILE.

A document that was loaded has "stale" in addition to the measurement: why the row may say nothing
about the sources as they were when the pages were last written (sources.py), or an empty text.
"""

import json

from . import sources


def folder_of(folder, paper):
    return folder / paper.name / "figures"


def page_of(folder, paper):
    return folder / paper.name / "figures.md"


def written(folder, papers):
    """The files and folders that a run writes."""
    return [folder / sources.FILE,
            *(of(folder, paper) for paper in papers for of in (folder_of, page_of))]


def path_of(folder, paper, row, quick=False):
    return folder_of(folder, paper) / f"{row}{'.quick' if quick else ''}.json"


def load(folder, paper, quick=False):
    """Returns {row: document} of a paper's figures that were measured."""
    found, known = {}, sources.load(folder)
    for figure in paper.figures:
        path = path_of(folder, paper, figure.row, quick)
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            found[figure.row] = document | {
                "stale": sources.stale(document, (*paper.systems, *figure.systems), known)
            }
    return found


def save(folder, paper, row, document, quick=False):
    path = path_of(folder, paper, row, quick)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
