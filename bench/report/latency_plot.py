# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of latencies: percentiles from p50 to p99.9 on a scale of 1/(1-p), so that each further
nine is as far as the last; microseconds on a logarithmic scale; one line per system, with a band
from the lowest to the highest round. A panel for each number of threads."""

import textwrap

from . import file as file_bench
from . import latency
from .plot import COLOURS, pyplot
from .workloads import title as titled

STYLES = ("-", "--", ":", "-.")
MARKS = "os^Dv*PX"
X = {name: 1 / (1 - share) for name, share, _ in latency.PERCENTILES}


def _style(n):
    """Each system has a colour and a mark; if there are more systems than colours, the line's style
    differs, too."""
    return {
        "color": COLOURS[n % len(COLOURS)], "marker": MARKS[n % len(MARKS)],
        "linestyle": STYLES[n // len(COLOURS) % len(STYLES)]
    }


def _line(ax, row, style):
    own = [(X[name], spread) for name, spread in row.percentiles.items()]
    xs = [x for x, _ in own]
    ax.fill_between(xs, [s.low for _, s in own], [s.high for _, s in own], color=style["color"],
                    alpha=0.15, linewidth=0)
    return ax.plot(xs, [s.median for _, s in own], markersize=3.5, linewidth=1.2, **style)[0]


def _axes(ax, count):
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(X.values())))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: min(X, key=lambda n: abs(X[n] - x))))
    ax.xaxis.set_minor_locator(NullLocator())
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, ) if high > 300 * low else (1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(linewidth=0.4, color="#dddddd")
    ax.set_title(f"{count} thread{'s' if count > 1 else ''}")


def _picture(groups, threads, path, title, note):
    """`groups`: [(label of a row of panels, its [Row])]."""
    plt = pyplot()
    most = max(len({row.system for row in rows}) for _, rows in groups)
    fig, axes = plt.subplots(
        len(groups), len(threads), squeeze=False, sharey="row",
        figsize=(2.2 + 3.1 * len(threads), 0.6 + len(groups) * max(2.9, 0.9 + 0.16 * most)))
    for (label, rows), panels in zip(groups, axes):
        names = list(dict.fromkeys(row.system for row in rows))
        lines, ends = {}, {}
        for ax, count in zip(panels, threads):
            for row in rows:
                if row.threads == count:
                    lines[row.system] = _line(ax, row, _style(names.index(row.system)))
                    ends[row.system] = list(row.percentiles.values())[-1].median
        for ax, count in zip(panels, threads):
            _axes(ax, count)
        panels[0].set_ylabel(label)
        ordered = sorted(names, key=lambda name: -ends[name])  # as the lines end on the right
        panels[-1].legend([lines[name] for name in ordered], ordered, loc="upper left",
                          bbox_to_anchor=(1.02, 1.0), borderaxespad=0, frameon=False)
    columns = int(18 * fig.get_figwidth())  # of text in font size 8
    fig.suptitle("\n".join(textwrap.wrap(title, columns)), fontsize=8, x=0.01, ha="left")
    fig.text(0.01, 0.005, f"bands: lowest and highest round; {note}", fontsize=5.5,
             color="#555555")
    fig.tight_layout(rect=(0, 0.02, 1, 1))
    fig.savefig(path, dpi=120)
    plt.close(fig)
    return path


def compare_pictures(data, threads, directory, note):
    """One picture per workload that has latencies."""
    paths = []
    for workload, own in data["systems"].items():
        rows = latency.rows(data["figures"], workload, [s.name for s in own], threads)
        if rows:
            paths.append(
                _picture([("latency, us", rows)], _counts(rows),
                         directory / f"{workload}-latency.png", f"{workload}: {titled(workload)}",
                         note))
    return paths


def file_pictures(data, threads, directory, note):
    groups = []
    for part, label in (("waiting", "waiting: until durable, us"),
                        ("running", f"not waiting, us\n({file_bench.RECEIPTS}: until durable)")):
        rows = latency.rows(data["figures"], file_bench.WORKLOAD, [r.name for r in data[part]],
                            threads)
        if rows:
            groups.append((label, rows))
    if not groups:
        return []
    every = [row for _, rows in groups for row in rows]
    return [
        _picture(groups, _counts(every), directory / "file-latency.png",
                 f"{file_bench.WORKLOAD}: {titled(file_bench.WORKLOAD)}", note)
    ]


def _counts(rows):
    return sorted({row.threads for row in rows})
