# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, a JSON document a row beside the page's pictures: an interrupted run goes on
from there, and pages and report are made of it.

A document that was loaded has "stale" beside what was measured: why the row may say nothing about
the sources as they were when the pages were written last (sources.py), or an empty text.
"""

import json

from . import sources


def path_of(folder, paper, row, quick=False):
    return folder / paper.name / f"{row}{'.quick' if quick else ''}.json"


def load(folder, paper, quick=False):
    """{row: document} of a paper's figures that were measured."""
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
