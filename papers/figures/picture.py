# SPDX-License-Identifier: BSD-3-Clause
"""Draws a figure: lines with whiskers from the slowest to the fastest round, horizontal bars, or,
if there are too many bars, one row per series with a mark for each place.

plot() is the one drawing; picture_file() makes a PNG of it, report_svg.py the picture inside the
report.
"""

import math
import textwrap

from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from report.plot import pyplot
from report.table import factor

from .table import series_of

# The contrast to white is at least 3:1.
COLOURS = ["#33689e", "#d04a5c", "#1f7a33", "#a17a00", "#0b87aa", "#8a2a6b", "#6b6b6b", "#c2571a"]
MARKS = "os^Dv*PX<>dhp"
MOST_BARS = 8  # series; beyond that, one row each
MANY_PLACES = 12  # of bars in more than one series; beyond that, a number in a coloured cell each


def shown(figure, points):
    """The points that the picture shows."""
    return [p for p in points if figure.drawn(p.series)]


def is_grid(figure, points):
    return figure.bars and len(series_of(points)) > 1 and len(dict.fromkeys(
        p.x for p in points)) > MANY_PLACES


def style(n):
    return COLOURS[n % len(COLOURS)], MARKS[n % len(MARKS)]


def rows_a_series(figure, points):
    return figure.bars and not is_grid(figure, points) and len(series_of(points)) > MOST_BARS


def panels(figure, points):
    """Returns [(title, [(line's name, its points)])]."""
    found = {}
    for name in series_of(points):
        title, line = figure.panel(name) if figure.panel else ("", name)
        found.setdefault(title, []).append((line, [p for p in points if p.series == name]))
    return list(found.items())


def legend(figure, points):
    """Returns [(name, colour, mark or None)] of the lines that need a name; a single line does
    not."""
    if is_grid(figure, points):
        return []
    if rows_a_series(figure, points):
        names = list(dict.fromkeys(str(p.x) for p in points))
    else:
        names = list(dict.fromkeys(line for _, lines in panels(figure, points)
                                   for line, _ in lines))
    return [
        (name, style(n)[0],
         None if figure.trace or figure.bars and not rows_a_series(figure, points) else style(n)[1])
        for n, name in enumerate(names)
    ]


def _whiskers(points):
    return [[max(0, p.y - p.low) for p in points], [max(0, p.high - p.y) for p in points]]


def _lines(ax, lines, colours, trace):
    for name, points in lines:
        colour, mark = colours[name]
        own = sorted(points, key=lambda p: p.x)
        xs, ys = [p.x for p in own], [p.y for p in own]
        if trace:
            ax.plot(xs, ys, color=colour, linewidth=0.7, label=name)
        else:
            ax.errorbar(xs, ys, yerr=_whiskers(own), label=name, color=colour, marker=mark,
                        markersize=4, linewidth=1.2, elinewidth=0.7, capsize=2)


def _bars(ax, points):
    names, groups = series_of(points), list(dict.fromkeys(p.x for p in points))
    height = 0.84 / len(names)
    for n, name in enumerate(names):
        own = [p for p in points if p.series == name]
        places = [groups.index(p.x) + (n - (len(names) - 1) / 2) * height for p in own]
        ax.barh(places, [p.y for p in own], height=height * 0.92, label=name,
                color=COLOURS[n % len(COLOURS)], xerr=_whiskers(own),
                error_kw={"elinewidth": 0.7, "ecolor": "#222222"})
    ax.set_yticks(range(len(groups)),
                  [textwrap.fill(str(g), 16, break_long_words=False) for g in groups])
    ax.set_ylim(len(groups) - 0.5, -0.5)


def _rows(ax, points):
    names, groups = series_of(points), list(dict.fromkeys(p.x for p in points))
    for n, group in enumerate(groups):
        own = [p for p in points if p.x == group]
        colour, mark = style(n)
        ax.errorbar([p.y for p in own], [names.index(p.series) for p in own], xerr=_whiskers(own),
                    label=str(group), color=colour, marker=mark, markersize=4, linestyle="none",
                    elinewidth=0.7)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", linewidth=0.4, color="#dddddd")


def _grid(ax, points, log):
    """Places below each other, series beside each other; blue is above 1 (or the middle), red
    below."""
    names, groups = series_of(points), list(dict.fromkeys(p.x for p in points))
    values = {(p.x, p.series): p.y for p in points}
    reach = max(
        (abs(math.log(v))
         for v in values.values() if v > 0), default=1) if log else max(values.values(), default=1)

    def shade(v):
        return 0.5 + 0.36 * max(-1, min(
            1,
            math.log(v) / min(reach, math.log(20)))) if log and v > 0 else 0.5 + 0.36 * v / reach

    ax.imshow([[shade(values[g, n]) if (g, n) in values else math.nan for n in names]
               for g in groups], cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    for (group, name), value in values.items():
        ax.text(names.index(name), groups.index(group), factor(value), ha="center", va="center")
    ax.set_xticks(range(len(names)), names)
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(groups)), groups)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _spell(value, _=None):
    """The text of a tick, without exponents."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (10 if letter == "k" else 1):
            return f"{value / size:g}{letter}"
    return f"{value:,g}" if abs(value) >= 1000 else f"{value:g}"


def _ticks(axis, log, low, high):
    axis.set_minor_formatter(NullFormatter())
    if not log:
        axis.set_major_locator(MaxNLocator(6))
    elif high / low < 30:  # little more than a decade: ticks within it, too
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        axis.set_major_locator(LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(_spell))


def _measured_places(ax, points, log, width):
    """Puts ticks at the places that were measured, as far as their names fit into a width of this
    many letters."""
    places = sorted({p.x for p in points})
    at = [math.log(x) if log else x for x in places]
    reach, kept = (at[-1] - at[0]) or 1, []
    # The last place always has a name.
    for x, position in sorted(zip(places, at), key=lambda pair: pair[1], reverse=True):
        if not kept or (kept[-1][1] - position
                        ) / reach * width > (len(_spell(x)) + len(_spell(kept[-1][0]))) / 2 + 1:
            kept.append((x, position))
    ax.set_xticks([x for x, _ in reversed(kept)])


def plot(ax, figure, lines, names, width):
    """Draws one panel. lines: [(name, points)]; names: the legend of the whole; width: the number
    of letters that fit below it."""
    points = [p for _, own in lines for p in own]
    if is_grid(figure, points):
        return _grid(ax, points, figure.log_y)
    ys = [value for p in points for value in (p.low, p.y, p.high) if value > 0]
    low, high = min(ys, default=1), max(ys, default=1)
    if figure.bars:
        (_rows if rows_a_series(figure, points) else _bars)(ax, points)
        if figure.log_y:
            ax.set_xscale("log")
        else:
            ax.set_xlim(left=0)
        _ticks(ax.xaxis, figure.log_y, low, high)
        ax.grid(axis="x", linewidth=0.4, color="#dddddd")
        return
    colours = {name: style(n) for n, (name, _, _) in enumerate(names)}
    _lines(ax, lines, colours, figure.trace)
    if figure.log_x:
        ax.set_xscale("log")
    if figure.log_y:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]) if min(p.low for p in points) < 0 else 0)
    _ticks(ax.yaxis, figure.log_y, low, high)
    _ticks(ax.xaxis, figure.log_x, 1, 1000)
    if not figure.trace:
        ax.xaxis.set_minor_locator(NullLocator())
        _measured_places(ax, points, figure.log_x, width)
    ax.grid(axis="y", linewidth=0.4, color="#dddddd")


def height_of(figure, points):
    """The inches that the axes need in addition to one panel's usual 2.4."""
    if is_grid(figure, points):
        return 0.17 * len(list(dict.fromkeys(p.x for p in points))) + 0.2
    if rows_a_series(figure, points):
        return 0.165 * len(series_of(points)) + 0.3
    if figure.bars:
        return max(
            1.2,
            len(list(dict.fromkeys(p.x for p in points))) * (0.105 * len(series_of(points)) + 0.1) +
            0.2)
    return 2.3


def canvas(plt, figure, points, width, each=None):
    """Draws the figure's panels. Returns (matplotlib's figure, the axes in use)."""
    parts = panels(figure, points)
    columns = 2 if len(parts) > 1 else 1
    rows = -(-len(parts) // columns)
    high = each or (height_of(figure, points) if rows == 1 else 1.5) + (0.62 if rows == 1 else 0.45)
    fig, axes = plt.subplots(rows, columns, figsize=(width, rows * high), squeeze=False, sharex=rows
                             > 1)
    used = list(axes.flat[:len(parts)])
    for ax in axes.flat[len(parts):]:
        ax.axis("off")
    for ax, (title, lines) in zip(used, parts):
        plot(ax, figure, lines, legend(figure, points), width * 10 / columns)
        if title:
            ax.set_title(title, loc="left", fontsize="medium")
    return fig, used


def picture_file(figure, points, path, note):
    """Writes a PNG that contains everything that belongs to the figure."""
    plt, points = pyplot(), shown(figure, points)
    fig, axes = canvas(plt, figure, points, 6.4, None if figure.bars or figure.panel else 4.0)
    for ax in axes:
        ax.set_xlabel("" if is_grid(figure, points) else figure.y if figure.bars else figure.x)
        if not figure.bars:
            ax.set_ylabel(figure.y)
    if legend(figure, points)[1:] or not figure.bars:
        axes[0].legend(frameon=False)
    title = f"{figure.row}: {figure.title}"
    if len(axes) == 1 and not is_grid(figure, points):
        axes[0].set_title(title, loc="left", fontsize=9)
    else:
        fig.suptitle(title, x=0.01, ha="left", fontsize=9)
    fig.text(0.01, 0.005, note, fontsize=5.5, color="#555555")
    fig.tight_layout(rect=(0, 0.02, 1, 1))
    fig.savefig(path, dpi=120)
    plt.close(fig)
