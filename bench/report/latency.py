# SPDX-License-Identifier: BSD-3-Clause
"""Latencies of the operations, where they were measured (--latency, and always in `file`): from the
percentiles that each round's counters hold (bench/harness/latency.hpp) to a table and to JSON.
latency_plot.py draws them.

A percentile is computed within a round, over the operations of all threads; a row has the median of
the rounds, with the lowest and the highest round.
"""

from dataclasses import dataclass

from . import table
from .stats import Spread

# Name, the share of the operations that take no longer, the counter that has it.
PERCENTILES = (("p50", 0.5, "latency_p50_us"), ("p90", 0.9, "latency_p90_us"),
               ("p99", 0.99, "latency_p99_us"), ("p99.9", 0.999, "latency_p999_us"))
MAX, OPERATIONS = "latency_max_us", "latency_samples"
FEW = 1000  # of fewer operations, p99.9 is the longest


@dataclass(frozen=True)
class Row:
    """One system on a number of threads, in microseconds."""

    system: str
    threads: int
    percentiles: dict  # name -> Spread
    longest: Spread = None
    operations: Spread = None  # per round, with the warm-up's

    def as_json(self):
        found = {**self.percentiles, "max": self.longest}
        return {
            "system": self.system, "threads": self.threads, "us": {
                name: spread.as_json() for name, spread in found.items() if spread
            }, "operations": self.operations.as_json() if self.operations else None
        }


def rows(figures, workload, names, threads):
    """A Row for each of the systems on each number of threads, without those that have no
    latencies."""
    found = []
    for count in threads:
        for name in names:
            def of(counter, name=name, count=count):
                return figures.counter_median(workload, name, count, counter)

            percentiles = {p: s for p, _, counter in PERCENTILES if (s := of(counter)) is not None}
            if percentiles:
                found.append(Row(name, count, percentiles, of(MAX), of(OPERATIONS)))
    return found


def as_json(figures, workload, names, threads):
    return [{"workload": workload, **row.as_json()}
            for row in rows(figures, workload, names, threads)]


def _cells(row):
    last = row.percentiles.get(PERCENTILES[-1][0])
    return [
        row.system,
        str(row.threads), *(table.short(row.percentiles[name].median)
                            if name in row.percentiles else "" for name, _, _ in PERCENTILES),
        f"({table.short(last.low)}..{table.short(last.high)})" if last else "",
        table.short(row.longest.high) if row.longest else "",
        table.count(row.operations.median if row.operations else None)
    ]


def print_table(figures, workload, names, threads):
    found = rows(figures, workload, names, threads)
    if found:
        print("  latency, us: medians of the rounds' percentiles; max: of all rounds")
        table.show([
            "", "threads", *(name for name, _, _ in PERCENTILES), "(min..max)", "max",
            ("operations", "a round")
        ], [_cells(row) for row in found])
    if few := [
            f"{row.system} ({row.threads})" for row in found
            if row.operations and row.operations.low < FEW
    ]:
        print(f"  fewer than {FEW:,} operations in a round, of which p99.9 is the longest: "
              f"{', '.join(few)}")
    have = {row.system for row in found}
    if without := [name for name in names if name not in have]:
        print(f"  no latencies: {', '.join(without)}")
