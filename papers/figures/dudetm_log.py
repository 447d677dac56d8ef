# SPDX-License-Identifier: BSD-3-Clause
"""DudeTM's figures of the log and of paging (sections 5.4, 5.5): figures 3 and 4; groups'
throughput; recovery."""

from .dudetm_cells import DUDE, MIB, SYSTEMS, measured, process_of
from .figure import Figure, median_of, point, ratios

SESSION, GROUPS = "session", (10, 100, 1000, 10_000, 100_000)
COMBINED, PACKED, ALONE = ("saved by combination, %", "saved by lz4 of what is left, %",
                           "saved by lz4 without the filter, %")
TEXT = "text fields: "
# Prefix of the series: the structure, its workload, and options.
CONTENTS = {
    "": (SESSION, "session-99", ()), TEXT: ("ycsb", "ycsb-t", ("--records", 10_000))
}
BIG = ("--volatile-log", 256 << 20)


def _grouping(n, structure=SESSION, more=()):
    """With groups of n; 0: without groups."""
    return process_of(SYSTEMS[DUDE], structure,
                      more=(*(("--persist-group", n, "--compress") if n else
                              ()), *BIG, *more), log=512 << 20)


def _saved(rounds, of, left):
    """The percentage that each round saved of `of`."""
    return [100 * (1 - c[left] / c[of]) for c in rounds]


def combination(bench):
    points = []
    for prefix, (structure, workload, more) in CONTENTS.items():
        wanted = {n: _grouping(n, structure, (*more, "--lz4-alone")) for n in GROUPS}
        found = measured(
            bench, wanted,
            {n: (n, {"run": workload, "seconds": 0.3 if bench.quick else 1.0})
             for n in GROUPS}, lambda answer: answer["counters"], settles=True)
        for n, rounds in found.items():
            # A group may take longer than a round.
            rounds = [c for c in rounds if c["log_came"] > 0]
            points += [
                point(prefix + series, n, _saved(rounds, of, left))
                for series, of, left in ((COMBINED, "log_came", "log_combined"),
                                         (PACKED, "log_combined", "log_written"),
                                         (ALONE, "log_combined", "log_lz4_alone"))
            ]
    return points


def combination_findings(points):
    def at(series):
        return ", ".join(f"{median_of(points, series, n):.0f} % at {n:,}" for n in GROUPS)

    found = [
        f"Combination saves {at(COMBINED)} (paper: 7 % at 10, 93 % at 100,000).",
        f"lz4 saves of what is left {at(PACKED)} (paper: 69 %, whatever the group)."
    ]
    if median_of(points, ALONE) is None:  # kept before it was measured
        return found
    return found + [
        f"Without the filter lz4 saves {at(ALONE)}.",
        f"Of text fields combination saves {at(TEXT + COMBINED)}; lz4 saves of what is left "
        f"{at(TEXT + PACKED)}, without the filter {at(TEXT + ALONE)}."
    ]


THROUGHPUT = "combined and compressed"


def groups(bench):
    wanted = {n: _grouping(n) for n in (0, *GROUPS)}
    values = measured(bench, wanted, {n: (n, {"run": "session-99"}) for n in wanted})
    return [
        point(THROUGHPUT, n, ratios(rounds, values[0]))
        for n, rounds in values.items() if n != 0
    ]


def groups_findings(points):
    return [
        "Throughput with groups, of that without: " + ", ".join(f"{p.y:.2f} at {p.x:,}"
                                                                for p in points) +
        " (paper: no influence, unless the group is too large)."
    ]


# --- figure 4 -------------------------------------------------------------------------------------

def swapping(bench):
    records = 60_000 if bench.quick else 600_000
    full = records * 1056
    shares = (0.125, 0.25, 0.5, 1.0) if not bench.quick else (0.25, 1.0)
    wanted = {0.0: process_of(SYSTEMS[DUDE], "store", more=("--records", records))}
    wanted |= {(how, share): process_of(
                   SYSTEMS[DUDE], "store", more=("--records", records, "--shadow-size",
                                                 int(full * share * 1.1), "--shadow-paging", how))
               for share in shares for how in ("hardware", "software")}
    values = measured(
        bench, wanted, {(key, z): (key, {"run": f"store-{z}", "seconds": 0.5, "warmup": 0.2})
                        for z in (99, 107) for key in wanted})
    return [
        point(f"{key[0]} paging, zipf {z / 100}", key[1], ratios(rounds, values[0.0, z]))
        for (key, z), rounds in values.items() if key != 0.0
    ]


def swapping_findings(points):
    return [
        f"{s}: " +
        ", ".join(f"{median_of(points, s, x):.2f} of the whole shadow's throughput with {x:g} of it"
                  for x in sorted({p.x for p in points}, reverse=True)) + "."
        for s in sorted({p.series for p in points})
    ]


# --- recovery (3.5) -------------------------------------------------------------------------------

SCATTERED, RUNS, HELD = "words", "runs of 64 words", "words, a record a transaction"


def recovery(bench):
    """GB of log per second."""
    sizes = (4, 64) if bench.quick else (1, 4, 16, 64, 256)  # MiB
    kinds = {SCATTERED: (), RUNS: ("--run", 64), HELD: ("--held",)}
    def cell(mib, more, threads):
        return lambda: bench.call("perdure_bench_redo_recovery", "--log-bytes", mib * MIB,
                                  "--threads", threads, "--dir", bench.directory, *more)["gb_s"]

    values = bench.interleave({
        (f"{name}, {threads} thread{'s' if threads > 1 else ''}", mib): cell(mib, more, threads)
        for mib in sizes for name, more in kinds.items() for threads in (1, 2)
    })
    return [point(series, mib, rounds) for (series, mib), rounds in values.items()]


def recovery_findings(points):
    most = max(p.x for p in points)
    one, two = ({
        kind: median_of(points, f"{kind}, {threads}", most) for kind in (SCATTERED, RUNS, HELD)
    } for threads in ("1 thread", "2 threads"))
    return [
        f"Of a log of {most:g} MiB one thread recovers " +
        ", ".join(f"{rate:.2f} GB/s ({kind})" for kind, rate in one.items()) +
        "; two recover this many times as much: " + ", ".join(f"{two[kind] / one[kind]:.2f}"
                                                              for kind in one) + "."
    ]


FIGURES = [
    Figure(
        "D-Fig3", "Log combination and compression",
        "Combination saves 7 % of the writes in groups of 10, 93 % in groups of 100,000; lz4 "
        "saves 69 %.",
        "YCSB's session store: 10,000 records, half updates, Zipf 0.99; bytes of log payload. A "
        "record is an 8-byte counter, as the values of the paper's B+-tree have 8 bytes, and lz4 "
        "has a filter before it: the differences of addresses, in planes of bytes "
        "(`perdure/log/packed.hpp`). Beside it are lz4 without that filter, and both of text "
        "fields: records of ten fields of 100 random characters, as YCSB's client makes them, of "
        "which an update stores one",
        "transactions a group", "saved, %", combination, combination_findings, remark=
        "Only transactions that write are counted to a group. The paper does not say what its "
        "store's records hold, nor of a filter.",
        log_x=True, panel=lambda series: ("text fields", series.removeprefix(TEXT))
        if series.startswith(TEXT) else ("8-byte counters", series)),
    Figure(
        "D-Groups", "Throughput with groups",
        "Log optimisation has no influence on throughput, unless the group is too large (section "
        "5.4).",
        "the same store of 8-byte counters; one thread, ratios within a round to DudeTM without "
        "groups",
        "transactions a group", "throughput, of that without", groups, groups_findings, log_x=True),
    Figure(
        "D-Fig4", "Throughput by the shadow's size",
        "Hardware paging is ahead of software paging while the shadow is large and drops faster "
        "as it shrinks; less skew, less throughput.",
        "B+-tree store of 600,000 records of 1 KB, updates of whole records by Zipf's law; "
        "ratios within a round to a shadow without a limit", "shadow, of the working set",
        "throughput, of the whole shadow's", swapping, swapping_findings),
    Figure(
        "D-Recovery", "Recovery by the log's length and by threads (not in the paper)",
        "none: section 3.5 says that recovery replays the log; no figure.",
        "A log of transactions of 8 runs of a word, or of 64, at places drawn uniformly in 64 "
        "MiB, group committed (records of up to 1 MiB, as `dudetm` writes them) or a record a "
        "transaction (`shadow` on memory, `dudetm-sync`), recovered after its process ended "
        "without closing: recovery alone, by its own clock, on a mapping that nobody has "
        "touched; the array is compared. tmpfs, nothing is charged.",
        "log, MiB", "GB of log a second", recovery, recovery_findings, remark=
        "A word takes 16 bytes of log. Of a small log most of the time is page faults of home; a "
        "team is worth its start from some MiB on, so that by default the library takes one "
        "thread below 4 MiB.",
        log_x=True),
]
