# SPDX-License-Identifier: BSD-3-Clause
"""Shared by SoftWrAP's figures: the systems by the paper's names, and one measurement of wraps over
an array or of insertions."""

from .figure import median_of, point

NON_ATOMIC, UNDO, SOFTWRAP, LOCAL = "Non-Atomic", "Undo Log", "SoftWrAP", "SoftWrAP, local"
SYSTEMS = {
    NON_ATOMIC: "non-atomic", UNDO: "undo-log", SOFTWRAP: "softwrap/none",
    LOCAL: "softwrap-local/none", "shadow": "shadow/none"
}
THREE = (NON_ATOMIC, UNDO, SOFTWRAP)  # the paper's
MIB = 1 << 20


def wraps(bench, name, **given):
    """Runs one measurement of perdure_bench_softwrap_wraps; returns its output. `given`: its
    options; a value of True is a flag."""
    given = {"array_bytes": 64 * MIB if bench.quick else 1024 * MIB} | given
    return bench.call("perdure_bench_softwrap_wraps", "--system", SYSTEMS[name], "--dir",
                      bench.directory, *options(given))


def objects(bench, system, **given):
    """Runs one measurement of perdure_bench_softwrap_objects; returns its output."""
    return bench.call("perdure_bench_softwrap_objects", "--system", system, "--dir",
                      bench.directory, *options(given))


def options(given):
    return [text for option, value in given.items() if value is not False
            for text in ("--" + option.replace("_", "-"), *(() if value is True else (value,)))]


def measured(bench, cells, value):
    """cells: {(series, x): options of wraps()}, where a series' name begins with a system's;
    value(output). Returns {(series, x): rounds}."""
    return bench.interleave({
        key: lambda k=key, o=given: value(
            wraps(bench, o.get("name", k[0]), **{n: v for n, v in o.items() if n != "name"}))
        for key, given in cells.items()
    })


def lines(values):
    return [point(series, x, rounds) for (series, x), rounds in values.items()]


def response_us(answer):
    """The median of the means of twenty slices of a measurement: a moment in which the machine did
    something else is in few of them."""
    return answer["response_ns"]["typical"] / 1e3


def settled(answer):
    """Wraps per second, until all their stores have been checkpointed."""
    return answer["rate_settled"]


def over(points, above, below, digits=2):
    """`above` relative to `below` at each x that both have."""
    places = sorted({p.x for p in points if p.series == above} &
                    {p.x for p in points if p.series == below})
    return ", ".join(
        f"{median_of(points, above, x) / median_of(points, below, x):.{digits}f} at {x:g}"
        for x in places)


def best(points, series):
    return max(p.y for p in points if p.series == series)
