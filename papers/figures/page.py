# SPDX-License-Identifier: BSD-3-Clause
"""Writes the measurements: one CSV and one picture per figure, and a page that compares them with
the paper's claims."""

import csv

from . import kept
from .figure import has_points, points_of
from .picture import picture_file
from .table import note_of, number, place, places_of, series_of
from .verdict import DIFFERS, OURS, judge


def write_csv(figure, points, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([
            "series", figure.x, figure.y, "slowest round" if figure.bars else "low",
            "fastest round" if figure.bars else "high"
        ])
        for p in points:
            rows.writerow([p.series, p.x, f"{p.y:.6g}", f"{p.low:.6g}", f"{p.high:.6g}"])


def _table(figure, points):
    names, found = series_of(points), {(p.series, p.x): p.y for p in points}
    lines = ["| " + figure.x + " | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for x in places_of(figure, points):
        lines.append("| " + place(x) + " | " + " | ".join(
            number(found[name, x]) if (name, x) in found else "" for name in names) + " |")
    return lines


def verdict_lines(figure, document):
    """The verdict in words: each check with the number found."""
    verdict = judge(figure, document)
    if verdict.word == OURS:
        return []
    lines = [f"**Verdict: {verdict.spelt()}.**" + (f" {verdict.partly}" if verdict.partly else "")]
    lines += [
        f"- {'holds' if s.holds else '**does not hold**'}: {s.text}; found {s.found}"
        for s in verdict.seen
    ]
    if verdict.why and (verdict.word != DIFFERS or verdict.why != figure.remark):
        lines += ["", f"Why: {verdict.why}"]
    return [*lines, ""]


def stale_lines(document):
    return [f"**Stale:** {document['stale']}", ""] if document.get("stale") else []


def _section(paper, figure, document, folder):
    text = [
        f"## {figure.row}: {figure.title}", "", f"Paper: {figure.claim}", "",
        f"Here: {figure.setup}", ""
    ]
    if not has_points(document):
        return [
            *text, *(["Not measured.", ""] if document is None else verdict_lines(figure, document))
        ]
    points = points_of(document)
    write_csv(figure, points, folder / f"{figure.row}.csv")
    picture_file(figure, points, folder / f"{figure.row}.png", note_of(document, paper.medium))
    text += [
        f"![{figure.row}](figures/{figure.row}.png)", "",
        *([] if figure.trace else [*_table(figure, points), ""]),
        f"({figure.y}; {note_of(document, paper.medium)})", "",
        "Found: " + " ".join(figure.findings(points)), "", *stale_lines(document),
        *verdict_lines(figure, document)
    ]
    if figure.remark:
        text += [figure.remark, ""]
    if document["quick"]:
        text += ["*A quick run: few rounds, small sizes. A hint only.*", ""]
    return text


def write_page(paper, documents, directory):
    """`documents`: the measurement of each row, if there is one. Where files and page go:
    kept.py."""
    folder = kept.folder_of(directory, paper)
    folder.mkdir(parents=True, exist_ok=True)
    text = [f"# {paper.title}: its figures, measured again", "", *paper.about, ""]
    text += [
        "`./dev figures " + paper.name +
        "` wrote this page, and the pictures and the CSV files in figures/: medians of "
        "interleaved rounds, a ratio",
        "within a round. Only ratios are compared with the paper's, whose machine was another. A "
        "row is stale when the sources of its systems have changed",
        "since it was measured, or when nothing proves that they have not: its numbers are those "
        "of the commit that it names.",
        ""
    ]
    if paper.summary is not None:
        text += [*paper.summary(documents, points_of), ""]
    for figure in paper.figures:
        text += _section(paper, figure, documents.get(figure.row), folder)
    page = kept.page_of(directory, paper)
    page.write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")
    return page
