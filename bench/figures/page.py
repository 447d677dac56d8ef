# SPDX-License-Identifier: BSD-3-Clause
"""Writes what was measured: a CSV and a picture a figure, and a page that puts them beside the paper's claims."""

import csv

from report.plot import COLOURS, pyplot

from .figure import points_of

MARKS = "os^Dv*Px"


def write_csv(figure, points, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["series", figure.x, figure.y, "slowest round" if figure.bars else "low", "fastest round" if figure.bars else "high"])
        for p in points:
            rows.writerow([p.series, p.x, f"{p.y:.6g}", f"{p.low:.6g}", f"{p.high:.6g}"])


def _series(points):
    return list(dict.fromkeys(p.series for p in points))


def _lines(ax, points):
    for n, name in enumerate(_series(points)):
        own = sorted((p for p in points if p.series == name), key=lambda p: p.x)
        reach = [[p.y - p.low for p in own], [p.high - p.y for p in own]]
        ax.errorbar([p.x for p in own], [p.y for p in own], yerr=reach, label=name, color=COLOURS[n % len(COLOURS)], marker=MARKS[n % len(MARKS)],
                    markersize=4, linewidth=1.2, elinewidth=0.7, capsize=2)


def _trace(ax, points):
    for n, name in enumerate(_series(points)):
        own = sorted((p for p in points if p.series == name), key=lambda p: p.x)
        ax.plot([p.x for p in own], [p.y for p in own], label=name, color=COLOURS[n % len(COLOURS)], linewidth=0.8)


def _bars(ax, points):
    names, groups = _series(points), list(dict.fromkeys(p.x for p in points))
    width = 0.8 / len(names)
    for n, name in enumerate(names):
        own = [p for p in points if p.series == name]
        places = [groups.index(p.x) + (n - (len(names) - 1) / 2) * width for p in own]
        ax.bar(places, [p.y for p in own], width=width, label=name, color=COLOURS[n % len(COLOURS)],
               yerr=[[p.y - p.low for p in own], [p.high - p.y for p in own]], error_kw={"elinewidth": 0.7, "ecolor": "#333333"})
    ax.set_xticks(range(len(groups)), [str(g).replace(", ", ",\n") for g in groups])


def _lying(ax, points):
    """One series, a bar a name, in the order of the points; each says its number."""
    names = [p.x for p in points]
    ax.barh(range(len(names)), [p.y for p in points], color=COLOURS[0], xerr=[[p.y - p.low for p in points], [p.high - p.y for p in points]],
            error_kw={"elinewidth": 0.7, "ecolor": "#333333"})
    for n, p in enumerate(points):
        ax.annotate(_number(p.y), (p.high, n), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)


def draw(figure, points, path, note):
    plt = pyplot()
    points = [p for p in points if figure.drawn(p.series)]
    fig, ax = plt.subplots(figsize=(6.4, 1.0 + 0.19 * len(points) if figure.lying else 4.0))
    (_lying if figure.lying else _bars if figure.bars else _trace if figure.trace else _lines)(ax, points)
    if figure.log_x and (figure.lying or not figure.bars):
        ax.set_xscale("log")
    if figure.log_y:
        ax.set_yscale("log")
    elif not figure.lying:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(figure.y if figure.lying else figure.x)
    if not figure.lying:
        ax.set_ylabel(figure.y)
    ax.set_title(f"{figure.row}: {figure.title}", loc="left", fontsize=9)
    ax.grid(axis="x" if figure.lying else "y", linewidth=0.4, color="#dddddd")
    if not figure.lying:
        ax.legend(frameon=False)
    fig.text(0.01, 0.005, note, fontsize=5.5, color="#555555")
    fig.tight_layout(rect=(0, 0.02, 1, 1))
    fig.savefig(path, dpi=120)
    plt.close(fig)


def _number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(figure, points):
    names, places = _series(points), list(dict.fromkeys(p.x for p in points))
    if not figure.bars:
        places.sort()
    found = {(p.series, p.x): p.y for p in points}
    lines = ["| " + figure.x + " | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for x in places:
        lines.append("| " + (x if isinstance(x, str) else f"{x:g}") + " | " +
                     " | ".join(_number(found[name, x]) if (name, x) in found else "" for name in names) + " |")
    return lines


def note_of(document, medium):
    facts = document["machine"]
    return f"{facts['cpu']}, {facts['cpus']} CPUs; {facts['file_system']}; {medium}; median of {document['rounds']} rounds, load {facts['load']:.1f} at their start; {facts['revision']}"


def write_page(paper, figures, documents, directory):
    """`documents`: of each row what was measured, or absent. Files go to directory/NAME/ROW.csv|png, the page to directory/NAME.md."""
    folder = directory / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    text = [f"# {paper.title}: its figures, measured again", "", *paper.about, ""]
    text += ["`./dev figures " + paper.name + "` wrote this page, the pictures and the CSV files beside them: medians of interleaved rounds, a ratio",
             "within a round. Only ratios are compared with the paper's, whose machine was another.", ""]
    if paper.summary is not None:
        text += [*paper.summary(documents, points_of), ""]
    for figure in figures:
        text += [f"## {figure.row}: {figure.title}", "", f"Paper: {figure.claim}", "", f"Here: {figure.setup}", ""]
        document = documents.get(figure.row)
        if document is None:
            text += ["Not measured.", ""]
            continue
        points = points_of(document)
        write_csv(figure, points, folder / f"{figure.row}.csv")
        draw(figure, points, folder / f"{figure.row}.png", note_of(document, paper.medium))
        text += [f"![{figure.row}]({paper.name}/{figure.row}.png)", "", *([] if figure.trace else [*_table(figure, points), ""]), f"({figure.y}; {note_of(document, paper.medium)})", ""]
        text += ["Found: " + " ".join(figure.findings(points)), ""]
        if figure.remark:
            text += [figure.remark, ""]
        if document["quick"]:
            text += ["*A quick run: few rounds, small sizes. A hint only.*", ""]
    page = directory / f"{paper.name}.md"
    page.write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")
    return page
