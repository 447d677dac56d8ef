# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a report: bars are medians, whiskers reach from the slowest to the fastest round."""

from . import file as file_bench
from . import micro
from .stats import spread
from .workloads import title as titled

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"]


def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True
    })
    return plt


def _bars(ax, names, series, scale, label):
    """Horizontal bars: `series` is [(title, {name: Spread})]."""
    high = 0.8 / len(series)
    for n, (title, found) in enumerate(series):
        places = [
            i + (n - (len(series) - 1) / 2) * high for i, name in enumerate(names)
            if found.get(name)
        ]
        values = [found[name] for name in names if found.get(name)]
        middles = [v.median / scale for v in values]
        reach = [[(v.median - v.low) / scale for v in values],
                 [(v.high - v.median) / scale for v in values]]
        ax.barh(places, middles, height=high, xerr=reach, color=COLOURS[n % len(COLOURS)],
                label=title, error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(label)
    ax.grid(axis="x", linewidth=0.4, color="#dddddd")


def _micro_figure(plt, data, threads, names, path, note):
    workloads, figures = data["workloads"], data["figures"]
    columns = min(3, len(workloads))
    rows = -(-len(workloads) // columns)
    fig, axes = plt.subplots(
        rows, columns,
        figsize=(4.6 * columns, rows * (0.9 + 0.17 * len(names) * max(1,
                                                                      len(threads) * 0.7))),
        squeeze=False)
    for ax in axes.flat[len(workloads):]:
        ax.axis("off")
    for ax, workload in zip(axes.flat, workloads):
        series = [(f"{t} thread{'s' if t > 1 else ''}",
                   {n: figures.rate(workload, n, t) for n in names}) for t in threads]
        _bars(ax, names, series, 1e6, "million transactions/s")
        ax.set_title(workload)
        bound = figures.rate(workload, "bound", 1)
        ceiling = figures.rate(workload, "ceiling", 1)
        top = max((s.high for _, found in series
                   for n, s in found.items() if s and not n.startswith("plain")), default=0)
        top = 1.15 * max(top, bound.median if bound else 0)  # plain may exceed the picture
        for line, style, label in ((bound, "--", "bound, 1 thread"), (ceiling, ":",
                                                                      "ceiling, 1 thread")):
            if line and (not top or line.median < top or workload == workloads[0]):
                top = max(top, 1.05 * line.median)
                ax.axvline(line.median / 1e6, color="#333333", linewidth=0.9, linestyle=style,
                           label=label)
        if top:
            ax.set_xlim(0, top / 1e6)
    fig.legend(*axes.flat[0].get_legend_handles_labels(), loc="upper right", frameon=False, ncols=4)
    fig.suptitle(note, fontsize=7, color="#555555", x=0.01, ha="left")
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def micro_pictures(data, threads, directory, note):
    plt = pyplot()
    # Ceiling and bound are lines in the picture.
    names = [r.name for r in data["runners"] if r.name not in ("ceiling", "bound")]
    core = [n for n in names if micro.is_core(n)]
    paths = [directory / "micro.png"]
    _micro_figure(plt, data, threads, core, paths[0], note)
    if len(core) < len(names):
        paths.append(directory / "micro-all.png")
        _micro_figure(plt, data, threads, names, paths[1], note)
    return paths


def file_pictures(data, threads, directory, note):
    plt = pyplot()
    figures = data["figures"]
    fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.2))
    for ax, part, title in ((axes[0], "waiting", "waiting: durable when put returns"),
                            (axes[1], "running", "not waiting")):
        names = [r.name for r in data[part]]
        series = [(f"{t} thread{'s' if t > 1 else ''}",
                   {n: figures.rate(file_bench.WORKLOAD, n, t) for n in names}) for t in threads]
        _bars(ax, names, series, 1e3, "thousand puts/s")
        ax.set_title(title)
    top = spread(file_bench.allowed(figures, threads[0]).values())
    if top:
        axes[1].axvline(top.median / 2e3, color="#333333", linewidth=0.9, linestyle="--",
                        label="half of what the log's rate\nin 64 KiB groups allows")
    for ax in axes:
        ax.legend(loc="lower right", frameon=False)
    fig.suptitle(note, fontsize=7, color="#555555", x=0.01, ha="left")
    fig.tight_layout()
    path = directory / "file.png"
    fig.savefig(path, dpi=120)
    plt.close(fig)
    return [path]


def compare_pictures(data, threads, directory, note):
    """One picture per workload: throughput of every system, the fastest first."""
    plt, figures, paths = pyplot(), data["figures"], []
    for workload, own in data["systems"].items():
        series = [(f"{t} thread{'s' if t > 1 else ''}",
                   {s.name: figures.rate(workload, s.name, t) for s in own}) for t in threads]
        names = sorted((n for n, found in series[0][1].items() if found),
                       key=lambda n: -series[0][1][n].median)
        if not names:
            continue
        fig, ax = plt.subplots(figsize=(6.4, 1.1 + 0.2 * len(names) * max(1, 0.7 * len(threads))))
        _bars(ax, names, series, 1e3,
              "thousand operations a second; whiskers: slowest and fastest round")
        base = series[0][1].get(data["base"][workload])
        if base:
            ax.axvline(base.median / 1e3, color="#333333", linewidth=0.8, linestyle="--",
                       label=data["base"][workload])
        most, least = (pick(series[0][1][n].median for n in names) for pick in (max, min))
        if most > 50 * least:
            ax.set_xscale("log")
        ax.legend(frameon=False)
        ax.set_title(f"{workload}: {titled(workload)}", loc="left", fontsize=8, wrap=True)
        fig.text(0.01, 0.005, note, fontsize=5.5, color="#555555")
        fig.tight_layout(rect=(0, 0.03, 1, 1))
        paths.append(directory / f"{workload}.png")
        fig.savefig(paths[-1], dpi=120)
        plt.close(fig)
    return paths
