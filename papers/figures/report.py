# SPDX-License-Identifier: BSD-3-Clause
"""The report: one static page of all figures, each with the paper's claim, ours, and the verdict.
It has no script and loads nothing, and its bytes are the same each time."""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from .figure import has_points, points_of
from .picture import legend, shown
from .report_svg import picture, swatch
from .table import note_of, number, place, places_of, series_of
from .verdict import CANNOT, DIFFERS, MISSING, NEAR, OURS, REPRODUCED, UNDECIDED, judge

HERE = Path(__file__).resolve().parent
CLASSES = {
    REPRODUCED: "reproduced", DIFFERS: "differs", UNDECIDED: "undecided", CANNOT: "cannot",
    MISSING: "missing", OURS: "ours"
}
SIGNS = {REPRODUCED: "✓", DIFFERS: "≠", UNDECIDED: "~", CANNOT: "–", MISSING: "?", OURS: "·"}


def marked(text):
    """Converts `code`, **bold**, and "-- " of the pages' texts to HTML."""
    text = str(Markup.escape(text))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text))


def _rows(figure, points):
    found = {(p.series, p.x): p for p in points}
    return [{"place": place(x), "cells": [found.get((name, x)) for name in series_of(points)]}
            for x in places_of(figure, points)]


def _figure(paper, figure, document):
    verdict = judge(figure, document)
    given = {
        "row": figure.row, "title": figure.title, "claim": figure.claim, "setup": figure.setup,
        "x": figure.x, "y": figure.y, "remark": figure.remark, "verdict": verdict,
        "class": CLASSES[verdict.word], "sign": SIGNS[verdict.word],
        "measured": has_points(document),
        "why": "" if verdict.why == figure.remark else verdict.why, "trace": figure.trace
    }
    given["stale"] = document.get("stale", "") if document is not None else ""
    if not has_points(document):
        return given
    points = points_of(document)
    found = figure.findings(points)
    return given | {
        "svg": Markup(picture(figure, points, " ".join(found))), "found": found,
        "quick": document["quick"], "note": note_of(document, paper.medium), "legend": [
            (name, Markup(swatch(colour, mark)))
            for name, colour, mark in legend(figure, shown(figure, points))
        ], "series": series_of(points), "table": [] if figure.trace else _rows(figure, points)
    }


def _paper(paper, documents):
    figures = [_figure(paper, f, documents.get(f.row)) for f in paper.figures]
    return {
        "name": paper.name, "title": paper.title,
        "about": " ".join(line or "\n" for line in paper.about).split("\n"), "figures": figures,
        "counts": {
            word: n for word in CLASSES if (n := sum(f["verdict"].word == word for f in figures))
        }, "summary": _lines_as_table(paper.summary(documents, points_of))
        if paper.summary is not None and documents else None
    }


def _lines_as_table(lines):
    """Returns {"said", "head", "rows"} of a page's Markdown lines with one table; a cell is (text,
    whether bold)."""
    said = " ".join(line for line in lines if line and not line.startswith("|"))
    cells = [[(c.strip(" *"), "**" in c) for c in line.strip("|").split("|")] for line in lines
             if line.startswith("|") and not line.startswith("|---")]
    return {"said": said, "head": [text
                                   for text, _ in cells[0]], "rows": cells[1:]} if cells else None


def _machines(documents):
    found = {}
    for own in documents.values():
        for row, document in own.items():
            facts = document["machine"]
            found.setdefault(f"{facts['cpu']}, {facts['cpus']} CPUs", []).append(row)
    return sorted(found.items(), key=lambda machine: -len(machine[1]))


def render(papers, documents):
    """Returns the page's text. `documents`: {paper's name: {row: document}}."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True,
                                     trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters |= {"marked": marked, "number": number}
    told = [_paper(paper, documents.get(paper.name, {})) for paper in papers]
    words = {word: sum(p["counts"].get(word, 0) for p in told) for word in CLASSES}
    return environment.get_template("report.html.j2").render(
        papers=told, counts={word: n
                             for word, n in words.items() if n}, classes=CLASSES, signs=SIGNS,
        plural={DIFFERS: "differ"}, near=NEAR, machines=_machines(documents), stale=sum(
            bool(f["stale"]) for p in told
            for f in p["figures"]), kept=sum(len(own) for own in documents.values()), claimed=sum(
                n for word, n in words.items() if word != OURS), style=Markup(
                    (HERE / "report.css").read_text(encoding="utf-8"))) + "\n"


def write_report(papers, documents, directory):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "index.html"
    path.write_text(render(papers, documents), encoding="utf-8")
    return path
