# SPDX-License-Identifier: BSD-3-Clause
"""REWIND's figures 3 to 6: the transaction managers alone (section 5.1); bench/rewind/log_main.cpp
measures a point."""

import shutil

from .figure import Figure, crossing, median_of, point, ratios

EXECUTABLE = "perdure_bench_rewind_log"
LOG = {1: 256 << 20, 2: 512 << 20}


def _run(bench, figure, *arguments, layers=1, force=False, log=None):
    folder = bench.directory / "log"
    folder.mkdir()
    try:
        return bench.call(EXECUTABLE, figure, "--layers", layers, *(["--force"] if force else []),
                          "--dir", folder, "--log-size", log or LOG[layers], *arguments)
    finally:
        shutil.rmtree(folder)


def _name(layers, force):
    return f"{layers}L-{'FP' if force else 'NFP'}"


ALL = [(layers, force) for layers in (1, 2) for force in (False, True)]


# --- intensity ------------------------------------------------------------------------------------

def _intensity(bench):
    percents = (10, 50, 100) if bench.quick else (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    updates = 2000 if bench.quick else 10000
    cells = {
        (layers, force, percent): lambda la=layers, f=force, p=percent: _run(
            bench, "intensity", "--updates", updates, "--percent", p, layers=la, force=f)["ratio"]
        for percent in percents for layers, force in ALL
    }
    found = bench.interleave(cells)
    return [
        point(_name(layers, force), percent, values)
        for (layers, force, percent), values in found.items()
    ]


def _intensity_found(points):
    def at(name, x):
        return median_of(points, name, x)

    low, high = min(p.x for p in points), max(p.x for p in points)
    return [
        f"at {low} % 1L-NFP is {at('1L-NFP', low):.1f}x and 2L-NFP {at('2L-NFP', low):.1f}x the "
        f"time without a log, at {high} % "
        f"{at('1L-NFP', high):.1f}x and {at('2L-NFP', high):.1f}x; "
    ] + [
        "force costs "
        f"{min(costs) * 100 - 100:.0f} to {max(costs) * 100 - 100:.0f} % over no-force with {la} "
        f"layer{'s' if la == 2 else ''}{';' if la == 1 else '.'}" for la in (1, 2)
        for xs in [sorted({p.x for p in points})]
        for costs in [ratios([at(f'{la}L-FP', x) for x in xs], [at(f'{la}L-NFP', x) for x in xs])]
    ]


# --- skip records ---------------------------------------------------------------------------------

def _skips(bench):
    return (100, 400, 1000) if bench.quick else (100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)


def _over_skip(figure, value, scale=1.0):
    def measure(bench):
        cells = {(layers, skip): lambda la=layers, s=skip: scale * _run(
                     bench, figure, "--skip", s, layers=la, force=True)[value]
                 for skip in _skips(bench) for layers in (1, 2)}
        return [
            point(_name(layers, True), skip, values)
            for (layers, skip), values in bench.interleave(cells).items()
        ]
    return measure


def _growth(points, name):
    own = sorted((p for p in points if p.series == name), key=lambda p: p.x)
    return own[-1].y / own[0].y


def _grows(points):
    low, high = min(p.x for p in points), max(p.x for p in points)
    return (
        f"from {low:g} to {high:g} skip records 1L-FP grows {_growth(points, '1L-FP'):.1f}-fold, "
        f"2L-FP {_growth(points, '2L-FP'):.1f}-fold; ")


def _crosses(points):
    where = crossing(points, "1L-FP", "2L-FP")
    return [
        _grows(points) +
        (f"they cross near {where:.0f}." if where else "they do not cross in this range.")
    ]


def _recovery_found(points):
    xs = sorted({p.x for p in points})
    factors = ratios([median_of(points, "2L-FP", x) for x in xs],
                     [median_of(points, "1L-FP", x) for x in xs])
    return [_grows(points) + f"2L-FP takes {min(factors):.1f} to {max(factors):.1f} times as long."]


# --- a fraction recovered -------------------------------------------------------------------------

def _mixed(bench):
    percents = (0, 50, 100) if bench.quick else (0, 2, 5, 10, 20, 40, 60, 80, 100)
    cells = {(force, skip, percent): lambda f=force, s=skip, p=percent: _run(
                 bench, "mixed", "--skip", s, "--percent", p, "--updates", 20, force=f, log=64 << 20
             )["us_a_transaction"] for percent in percents for skip in (10, 150, 300)
             for force in (False, True)}
    return [
        point(f"{_name(1, force)}, {skip} skip records", percent, values)
        for (force, skip, percent), values in bench.interleave(cells).items()
    ]


def _mixed_found(points):
    sentences = []
    for skip in (10, 150, 300):
        def y(force, x, s=skip):
            return median_of(points, f"{_name(1, force)}, {s} skip records", x)

        where = crossing(points, f"1L-NFP, {skip} skip records", f"1L-FP, {skip} skip records")
        sentences.append(
            f"{skip} skip records: at 0 % force takes {y(True, 0) / y(False, 0):.2f}x the time "
            f"of no-force, at 100 % {y(True, 100) / y(False, 100):.2f}x"
            + (f", level at {where:.0f} %;" if where else ";"))
    return sentences


# --- checkpoints ----------------------------------------------------------------------------------

VERSIONS = ("simple", "optimized", "batch")


def _checkpoint(bench):
    records = 200_000 if bench.quick else 2_000_000
    periods = (20_000, 100_000) if bench.quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)
    cells = {(version, every): lambda v=version, e=every:
             _run(bench, "checkpoint", "--version", v, "--records", records, "--every", e,
                  "--updates", 10, log=records * 160 + (16 << 20))["seconds"]
             for version in VERSIONS for every in (0, *periods)}
    found = bench.interleave(cells)
    return [
        point(version.capitalize(), every,
              [100 * (r - 1) for r in ratios(found[version, every], found[version, 0])])
        for version in VERSIONS for every in periods
    ]


def _checkpoint_found(points):
    return ["; ".join(f"{v.capitalize()} {max(own):.0f} to {min(own):.0f} %" for v in VERSIONS
                      for own in [[p.y for p in points if p.series == v.capitalize()]]) + "."]


# --- threads: what the paper leaves for later -----------------------------------------------------

def _threads(bench):
    records = 100_000 if bench.quick else 400_000
    cells = {}
    for version in VERSIONS:
        for threads in (1, 2):
            for distributed in (False, True) if threads > 1 else (False,):
                cells[
                    version, threads,
                    distributed] = lambda v=version, t=threads, d=distributed: _run(
                        bench, "threads", "--version", v, "--threads", t,
                        *(["--distributed"]
                          if d else []), "--records", records, "--updates", 10, log=records * 320 +
                        (16 << 20))["records_a_second"] / 1e6
    found = bench.interleave(cells)
    names = {(1, False): "1 thread", (2, False): "2 threads, one log",
             (2, True): "2 threads, a log each"}
    return [
        point(names[threads, distributed], version.capitalize(), values)
        for (version, threads, distributed), values in found.items()
    ]


def _threads_found(points):
    def y(version, series):
        return median_of(points, series, version.capitalize())

    return [
        "; ".join(
            f"{v.capitalize()}: two threads come to "
            f"{y(v, '2 threads, one log') / y(v, '1 thread'):.2f}x one thread's rate with one "
            "log, to "
            f"{y(v, '2 threads, a log each') / y(v, '1 thread'):.2f}x with a log each"
            for v in VERSIONS) + "."
    ]


FIGURES = [
    Figure(
        "R-Fig3L", "logging overhead by update intensity",
        "1L-NFP 1.5x and 2L-NFP 8.5x at 10 %; force costs 2-35 % (1L), 24-74 % (2L) over no-force.",
        "one transaction of 10,000 stores to a table, computation between them that is a "
        "multiple of a plain store's time; log version Optimized; ratio to the same stores and "
        "computation without a log, each store durable.",
        "time spent on updates (%)", "time, relative to no log", _intensity, _intensity_found,
        log_y=True),
    Figure(
        "R-Fig3R", "logging and commit by skip records",
        "1L grows sharply, 2L flat; they cross near 600.",
        "a transaction of 10 stores with so many records of ten other, running transactions "
        "between each two; its logging, commit and clearing, relative to its stores without a "
        "log; Optimized, force.", "skip records", "time, relative to no log",
        _over_skip("skip", "ratio"), _crosses),
    Figure("R-Fig4L", "rollback of one transaction by skip records",
           "1L grows faster; they cross near 400.", "the same transaction, rolled back; force.",
           "skip records", "ms", _over_skip("rollback", "seconds", 1e3), _crosses),
    Figure(
        "R-Fig4R", "recovery that aborts one transaction among committed, uncleared ones",
        "1L clearly faster than 2L.",
        "the same, the other transactions committed and not cleared, the one left unfinished by "
        "a crash; the manager's recovery; force.",
        "skip records", "ms", _over_skip("recovery", "seconds", 1e3), _recovery_found),
    Figure(
        "R-Fig5", "total cost by the fraction of transactions recovered",
        "no-force slightly ahead at ~0 % recovered, force overtakes as the fraction grows.",
        "transactions of 20 stores side by side, so that 10, 150 or 300 records lie between two "
        "of one; a part is left unfinished by a crash; logging, commit and recovery, clearing "
        "left out; 1L, Optimized.", "transactions recovered (%)",
        "us a transaction", _mixed, _mixed_found, log_y=True),
    Figure(
        "R-Fig6", "checkpoint overhead by checkpoint period",
        "Simple 79-60 %, Optimized 32-9 %, Batch 20-3 % (from often to seldom).",
        "2 M log records (the paper: 10 M) of transactions of 10, 1L-NFP, checkpoints by a "
        "second thread each so many records, relative to none.",
        "log records between checkpoints", "more time than without (%)", _checkpoint,
        _checkpoint_found, log_x=True),
    Figure(
        "R-Threads", "one log or a log a thread (not in the paper)",
        "a lock-free append to the log is named as future work.",
        "transactions of 10 records, 1L-NFP, no checkpoints; one log under its lock, or the "
        "distributed log, where threads share nothing: a log without a lock could come to that "
        "at most.", "log version", "million records/s", _threads, _threads_found,
        bars=True),
]
