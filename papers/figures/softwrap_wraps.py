# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's micro-benchmarks (section V-C): figures 6 to 12; bench/softwrap/wraps_main.cpp
measures a point."""

import statistics

from .figure import Figure, Point, crossing, median_of
from .softwrap_cells import (LOCAL, MIB, NON_ATOMIC, SOFTWRAP, THREE, UNDO, best, lines, measured,
                             over, response_us, settled, wraps)

# --- figure 6 -------------------------------------------------------------------------------------

def _arrivals(value):
    def measure(bench):
        rates = (10_000, 60_000,
                 200_000) if bench.quick else (10_000, 20_000, 30_000, 40_000, 60_000, 80_000,
                                               100_000, 150_000, 200_000)
        seconds = 0.1 if bench.quick else 0.5
        return lines(
            measured(
                bench, {(name, rate): {"rate": rate, "wraps": int(rate * seconds)} for rate in rates
                        for name in (*THREE, LOCAL)}, value))
    return measure


def response_findings(points):
    return [
        "SoftWrAP's response time relative to Non-Atomic's: "
        f"{over(points, SOFTWRAP, NON_ATOMIC)} wraps/s; the Undo Log's: "
        f"{over(points, UNDO, NON_ATOMIC)}."
    ]


def throughput_findings(points):
    most = {name: best(points, name) for name in (*THREE, LOCAL)}
    return [
        "At most " + ", ".join(f"{name} {rate / 1000:.0f}k" for name, rate in most.items()) +
        " wraps/s (paper: SoftWrAP and Non-Atomic just under 100k, Undo Log 39k): "
        f"SoftWrAP has {most[SOFTWRAP] / most[NON_ATOMIC]:.2f} times Non-Atomic's and "
        f"{most[SOFTWRAP] / most[UNDO]:.2f} times the Undo Log's."
    ]


# --- figures 7 and 8 ------------------------------------------------------------------------------

GOES_ON = "SoftWrAP, goes on"
WAITS = {"wait_at_threshold": True}  # as in the paper


def table_sizes(bench):
    powers = (10, 16, 22) if bench.quick else range(10, 23)
    count = 5000 if bench.quick else 100_000
    given = {"wraps": count, "log_size": 64 * MIB, "name": SOFTWRAP}
    return lines(
        measured(
            bench, {(series, power): given | {"alias_entries": 1 << power} | how
                    for power in powers for series, how in ((SOFTWRAP, WAITS), (GOES_ON, {}))},
            settled))


def table_sizes_findings(points):
    top = best(points, SOFTWRAP)
    near = [p.x for p in points if p.series == SOFTWRAP and p.y > 0.9 * top]
    ends = [median_of(points, SOFTWRAP, edge(p.x for p in points)) / top for edge in (min, max)]
    waits = over(points, SOFTWRAP, GOES_ON)
    return [
        f"Within 10 % of the best from 2^{min(near):g} to 2^{max(near):g} entries (paper: 2^12 "
        f"to 2^20); the smallest table has {ends[0]:.2f} of the best, the largest {ends[1]:.2f}."
    ] + ([f"It has {waits} of the throughput that it has where wraps go on."] if waits else [])


RESPONSE, HOME = "response time, us", "lines going home meanwhile"


def trace(bench):
    count, shown = (2000, 200) if bench.quick else (20_000, 600)
    rounds = bench.interleave(
        {SOFTWRAP: lambda: wraps(bench, SOFTWRAP, rate=50_000, wraps=count, trace=shown, **WAITS)}
    )[SOFTWRAP]
    # The trace is of one round, because the tables of two rounds never switch at the same times.
    middle = sorted(rounds, key=response_us)[len(rounds) // 2]["trace"]
    first = middle[0][0]
    return [
        Point(series, ms - first, y, y, y) for ms, us, flushed in middle
        for series, y in ((RESPONSE, us), (HOME, flushed))
    ]


# Lines that are checkpointed with pauses shorter than this belong to one switch: first its logs'
# buckets and then, when open wraps have closed, the table.
QUIET_MS = 0.1
TABLE = 1024  # entries of a table that is checkpointed: an eighth of 8,192


def trace_of(points):
    """Returns [(ms, us, lines checkpointed)]."""
    home = {p.x: p.y for p in points if p.series == HOME}
    return [(p.x, p.y, home[p.x]) for p in points if p.series == RESPONSE]


def switches(points):
    """Returns [(first ms, last ms)] of each switch of the tables; a switch of which the trace has
    less than half is left out."""
    found = []
    for ms, _, lines_home in trace_of(points):
        if not lines_home:
            continue
        if found and ms - found[-1][1] < QUIET_MS:
            found[-1][1:] = ms, found[-1][2] + lines_home
        else:
            found.append([ms, ms, lines_home])
    return [(first, last) for first, last, total in found if total >= TABLE / 2]


def trace_findings(points):
    response = [p.y for p in points if p.series == RESPONSE]
    home = [p.y for p in points if p.series == HOME]
    during = [us for us, flushed in zip(response, home) if flushed]
    else_ = [us for us, flushed in zip(response, home) if not flushed]
    text = (
        f"{len(switches(points))} times a table goes home. The median response time is "
        f"{statistics.median(response):.1f} us, the longest {max(response):.1f}")
    if during and else_:
        text += (
            f"; the median is {statistics.median(during):.1f} us while lines go home, "
            f"{statistics.median(else_):.1f} otherwise")
    return [text + "."]


# --- figure 9 -------------------------------------------------------------------------------------

RUNNING = "SoftWrAP, while wraps run"


def threads(bench):
    counts = (1, 2) if bench.quick else (1, 2, 3, 4)
    size = 2000 if bench.quick else 20_000
    found = measured(
        bench, {(name, n): {
                    "threads": n, "alias_entries": 1 << 19, "wraps": size,
                    "array_bytes": n * 8 * MIB, "log_size": 64 * MIB
                } for n in counts for name in THREE}, lambda answer: answer)
    values = {(name, n): [settled(answer) for answer in answers]
              for (name, n), answers in found.items()}
    return lines(
        values | {(RUNNING, n): [answer["rate"] for answer in answers]
                  for (name, n), answers in found.items() if name == SOFTWRAP})


def threads_findings(points):
    return [
        f"SoftWrAP's throughput relative to Non-Atomic's: {over(points, SOFTWRAP, NON_ATOMIC)} "
        f"threads, while the wraps run {over(points, RUNNING, NON_ATOMIC)}; to the Undo "
        f"Log's: {over(points, SOFTWRAP, UNDO)}, while they run {over(points, RUNNING, UNDO)}."
    ]


# --- figures 10 and 11 ----------------------------------------------------------------------------

def write_times(bench):
    steps = (0, 600, 1500) if bench.quick else (0, 100, 200, 400, 600, 800, 1000, 1250, 1500)
    count = 2000 if bench.quick else 25_000
    return lines(
        measured(bench, {(name, tw): {"tw": tw, "rate": 50_000, "wraps": count} for tw in steps
                         for name in THREE}, response_us))


def _ahead(points, unit):
    where = crossing(points, NON_ATOMIC, SOFTWRAP)
    return ("SoftWrAP does not respond faster than Non-Atomic here" if where is None else
            f"SoftWrAP responds faster than Non-Atomic from {where:.3g} {unit} on")


def write_times_findings(points):
    most = max(p.x for p in points)
    return [
        f"{_ahead(points, 'ns')} (paper: from 600); at {most:g} ns in "
        f"{median_of(points, SOFTWRAP, most):.2f} us (paper: 6.64 at 1500)."
    ]


def elements(bench):
    sizes = (1, 2, 10, 50) if bench.quick else (1, 2, 3, 5, 10, 20, 30, 40, 50)
    count = 200 if bench.quick else 1000
    return lines(
        measured(
            bench, {(name, n): {"elements": n, "rate": 1000, "wraps": count, "warm": 100}
                    for n in sizes for name in THREE}, response_us))


def elements_findings(points):
    return [
        f"{_ahead(points, 'elements')} (paper: equal at 2, ahead beyond). Its time relative to "
        f"Non-Atomic's: {over(points, SOFTWRAP, NON_ATOMIC)} elements."
    ]


# --- figure 12 ------------------------------------------------------------------------------------

def reuse(bench):
    shares = (0, 50, 90) if bench.quick else tuple(range(0, 100, 10))
    count = 5000 if bench.quick else 30_000
    return lines(
        measured(bench, {(name, share): {"reuse": share, "wraps": count} for share in shares
                         for name in THREE}, settled))


def reuse_findings(points):
    most = max(p.x for p in points)
    def gain(name):
        return f"{median_of(points, name, most) / median_of(points, name, 0):.2f}"

    return [
        f"From 0 to {most:g} % the throughput grows this many times: " +
        ", ".join(f"{name} {gain(name)}" for name in THREE) +
        " (paper: SoftWrAP in proportion, the others 1). SoftWrAP's relative to Non-Atomic's: "
        f"{over(points, SOFTWRAP, NON_ATOMIC)} %."
    ]


# --- the list -------------------------------------------------------------------------------------

WRAPS = (
    "Wraps of 10 stores to random words of an array of 1 GiB, Tw = 1 us, alias tables of 8192 "
    "entries."
)
DUE = (
    " A wrap is due at fixed intervals whether or not the one before has ended, and its response "
    "time counts from then."
)
HOME_TOO = " The time ends when all stores are home."
FILLS = (
    "Here a wrap goes on filling the active table while the other one is being retired, up to "
    "7/8 of it; the paper's waits from the threshold, 1/8, on. So switches are no wait of their "
    "own until wraps fill tables faster than they can be retired, and then each wait is longer."
)

THRESHOLD = (
    " As in the paper a wrap waits where the active table is at its threshold, 1/8 of its entries, "
    "until the other one is home (SoftwrapOptions::wait_at_threshold)."
)

FIGURES = [
    Figure(
        "S-Fig6R", "response time by arrival rate",
        "slightly more than 10 us Non-Atomic, more than double Undo Log, SoftWrAP much the "
        "fastest before its knee; knees just under 100k wraps/s, at 39k for Undo Log.",
        WRAPS + DUE + " Half a second each; behind the knee it grows with how long one measures.",
        "arrival rate, wraps a second", "response time, us", _arrivals(response_us),
        response_findings, log_x=True, log_y=True, remark=FILLS),
    Figure(
        "S-Fig6T", "throughput by arrival rate",
        "just under 100k wraps/s for SoftWrAP and Non-Atomic, 39k for Undo Log.",
        WRAPS + DUE + HOME_TOO, "arrival rate, wraps a second", "wraps a second",
        _arrivals(settled), throughput_findings, log_x=True, log_y=True, remark=
        "What is left in the tables when the last wrap has ended is taken home within the "
        "measured time, half a second: that is part of SoftWrAP's figure at every rate."
    ),
    Figure(
        "S-Fig7", "throughput by the alias tables' size",
        "falls off below 2^12 and above 2^20 entries.",
        WRAPS.replace(", alias tables of 8192 entries", "") + " One wrap after the other." +
        HOME_TOO + THRESHOLD, "entries of an alias table, as a power of two", "wraps a second",
        table_sizes, table_sizes_findings, remark="An entry has 16 bytes here, 24 in the paper."),
    Figure(
        "S-Fig8", "response time over time",
        "a spike at each switch of the tables, about every millisecond.",
        WRAPS + " 50,000 wraps/s; one round's last wraps, each at the time when it was due, "
        "and the lines that were written home since the wrap before." + THRESHOLD, "ms",
        "us, or lines", trace, trace_findings, trace=True),
    Figure(
        "S-Fig9", "threads", "SoftWrAP far above Undo Log, close to Non-Atomic; 6 cores.",
        "Each thread wraps 10 stores to random words of an object of its own, 8 MiB, one wrap "
        "after the "
        "other; nothing isolates them. Alias tables of 2^19 entries. Wraps a second of all "
        "threads until all stores are home; of SoftWrAP also while the wraps run. The machine's "
        "processors are named below; where there are more threads they take turns, with the "
        "thread that takes tables home besides.",
        "threads", "wraps a second", threads, threads_findings, remark=
        "Tables as large as these take in most of what a cell's wraps store before they must "
        "wait. One thread takes them home, a line a Tw: with wraps of ten lines that is at most "
        "100,000 wraps/s of all threads together, while each of Non-Atomic's has a write buffer "
        "of its own. Which of the two the paper shows it does not say."
    ),
    Figure(
        "S-Fig10", "response time by the memory's write time",
        "behind Non-Atomic below Tw = 600 ns, equal there, ahead beyond: 6.64 us at 1.5 us.",
        WRAPS.replace("Tw = 1 us, ", "") + DUE + " 50,000 wraps/s.", "Tw, ns", "response time, us",
        write_times, write_times_findings, log_y=True, remark=
        "Where a system can't do 50,000 wraps/s at this Tw (Undo Log, with 23 lines a wrap, from "
        "about 600 ns on) its time is that of a growing queue."
    ),
    Figure("S-Fig11", "response time by the size of a wrap",
           "equal at 2 elements, ahead of Non-Atomic beyond.",
           WRAPS.replace("of 10 stores", "of so many stores") + DUE + " 1,000 wraps/s.", "elements",
           "response time, us", elements, elements_findings),
    Figure(
        "S-Fig12", "throughput by reuse across wraps",
        "SoftWrAP gains in proportion, the others are flat.",
        WRAPS + " Each element is with this probability the one that the wrap before had in its "
        "place. One wrap after the other." + HOME_TOO, "elements reused, %", "wraps a second",
        reuse, reuse_findings),
]
