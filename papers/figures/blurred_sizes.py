# SPDX-License-Identifier: BSD-3-Clause
"""Blurred Persistence's figures of sizes: values (9), transactions (10), the log's throughput (11)
and recovery (12)."""

from .blurred_cells import KIB, lines, measured, named, process_of
from .blurred_systems import WORKLOADS
from .figure import Figure, median_of

SOME = ("BASE", "MNE", "BPPM", "NP")


def value_sizes(bench):
    sizes = (8, 1024) if bench.quick else (8, 64, 256, 1024, 4096)
    wanted = {(name, n): process_of(system, "hashv", value_bytes=n) for n in sizes
              for name, system in named(*SOME).items()}
    return lines(measured(bench, wanted, {key: (key, {"run": "hashv-100"}) for key in wanted}))


def value_sizes_findings(points):
    places = sorted({p.x for p in points})
    least, most = places[0], places[-1]
    growth = most / least * median_of(points, 'BPPM', most) / median_of(points, 'BPPM', least)
    return [
        "BPPM's transactions take this much less time than BASE's: " +
        ", ".join(f"{1 - median_of(points, 'BASE', x) / median_of(points, 'BPPM', x):.0%} at {x:g}"
                  for x in places) + " bytes (paper: 39.7 % at 8, 23.0 % at 4096).",
        "BPPM's bytes a second grow this many times from the smallest value to the largest: "
        f"{growth:.0f}."
    ]


def transaction_sizes(bench):
    sizes = (1, 16) if bench.quick else (1, 2, 4, 8, 16, 32, 64)
    wanted = {name: process_of(system, "hash") for name, system in named(*SOME).items()}
    values = measured(bench, wanted, {(name, n): (name, {"run": "hash-100", "per_transaction": n})
                                      for n in sizes for name in wanted})
    return lines({(name, n): [n * v for v in rounds] for (name, n), rounds in values.items()})


def transaction_sizes_findings(points):
    most = max(p.x for p in points)
    return [
        f"From 1 to {most:g} operations a transaction the operations a second grow this many "
        "times: "
        + ", ".join(f"{name} {median_of(points, name, most) / median_of(points, name, 1):.2f}"
                    for name in SOME) + " (paper: all but NP smoothly, NP hardly)."
    ]


SCATTERED = "words of 8 MiB"
LOGS = {0.125: 128 * KIB, 0.5: 512 * KIB, 1.0: 1024 * KIB, 1.5: 1536 * KIB, 2.0: 2048 * KIB}


def log_sizes(bench):
    sizes = {0.125: LOGS[0.125], 2.0: LOGS[2.0]} if bench.quick else LOGS
    wanted = {(w, mib): process_of("bppm", structure, log=size) for mib, size in sizes.items()
              for w, (structure, _) in WORKLOADS.items()}
    return lines(
        measured(bench, wanted, {(w, mib): ((w, mib), WORKLOADS[w][1]) for w, mib in wanted}))


def log_sizes_findings(points):
    low, high = min(p.x for p in points), max(p.x for p in points)
    return [
        f"From {low:g} to {high:g} MiB the throughput grows this many times: " +
        ", ".join(f"{w} {median_of(points, w, high) / median_of(points, w, low):.2f}"
                  for w in WORKLOADS) + " (paper: slightly)."
    ]


def recovery(bench):
    sizes = {0.125: LOGS[0.125], 2.0: LOGS[2.0]
             } if bench.quick else LOGS | {4.0: 4096 * KIB, 8.0: 8192 * KIB}
    kinds = {
        SCATTERED: (), "a hot 64 KiB": ("--words", 8192),
        "8 MiB, 150 ns a line of home": ("--delays", "blurred")
    }
    def cell(size, more):
        return lambda: bench.call("perdure_bench_blurred_recovery", "--log-size", size, "--dir",
                                  bench.directory, *more)["seconds"]

    return lines(
        bench.interleave({(name, mib): cell(size, more) for mib, size in sizes.items()
                          for name, more in kinds.items()}), 1e3)


def recovery_findings(points):
    places = sorted({p.x for p in points})
    def rate(name, mib):
        return mib * (1 << 20) / (1e-3 * median_of(points, name, mib)) / 1e9

    least, most = places[0], places[-1]
    rates = ', '.join(f'{rate(name, most):.2f} GB ({name})'
                      for name in dict.fromkeys(p.series for p in points))
    growth = median_of(points, SCATTERED, most) / median_of(points, SCATTERED, least)
    return [
        f"Log recovered a second: {rates}, of the largest log; from {least:g} to {most:g} MiB, "
        f"{most / least:g} times, the time grows {growth:.1f} times."
    ]


FIGURES = [
    Figure(
        "B-Fig9", "Hash, value size",
        "the time that BPPM saves falls from 39.7 % to 23.0 %; bytes a second grow.",
        "A hash table with values of so many bytes in its nodes, 1 M keys, half of them present; "
        "an insertion stores all of them.", "bytes of a value", "transactions a second",
        value_sizes, value_sizes_findings, log_x=True, log_y=True, remark=
        "A record of the log holds 8 bytes of 16: with large values most lines written are the "
        "log's, and both write those. MNE's reach the log past the cache."),
    Figure("B-Fig10", "Hash, transaction size",
           "operations a second rise smoothly with the transaction's size; NP flat.",
           "Hash as in B-Fig7.", "operations of a transaction", "operations a second",
           transaction_sizes, transaction_sizes_findings, log_x=True),
    Figure("B-Fig11", "log size, throughput", "slightly up with the log's size, 0.1 to 2 MB.",
           "BPPM on all workloads as in B-Fig7.", "log, MiB", "transactions a second", log_sizes,
           log_sizes_findings, log_y=True),
    Figure(
        "B-Fig12", "log size, recovery",
        "linear in the log; the text says 3.2 microseconds at 0.1 MB to 49.8 at 2 MB, the axis "
        "seconds: 131,072 records in 49.8 microseconds would be 0.4 ns each; milliseconds are "
        "meant, most likely.",
        "A full log of transactions of 8 words in an array of 8 MiB, or in 64 KiB of it, "
        "recovered after its process ended without closing: recovery alone, by its own clock, on "
        "a mapping that nobody has touched. Nothing is charged but in the third series.",
        "log, MiB", "milliseconds", recovery, recovery_findings,
        remark="A record is 16 bytes, so 1 GB/s leaves 16 ns for its checksum, its bounds, its "
               "store "
        "and its share of a flush. Of a small log's time most is page faults: nobody has touched "
        "the mapping. The log itself is flushed, too, before home is stored to: a kill may have "
        "left it visible only (docs/exploring.md)."),
]
