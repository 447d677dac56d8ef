# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench micro`: SPS, hash table and red-black tree in memory, on every system, compared with
the hardware's ceiling and the bound.

The ceiling is one 64-byte non-temporal record and one fence per transaction, nothing else. The
bound (systems/bound.cpp) is the least that a durable transaction on a copy in DRAM can cost: the
same loads and stores in the same memory, its record, its checksum, one fence, and the lines that a
checkpoint writes. It is measured as a system of its own, with as many threads, each on a structure
of its own; without updates it is raw loads.
"""

from dataclasses import dataclass

from . import table, workloads
from .rounds import Progress, Runner, run_structure
from .stats import Figures, ratio

STRUCTURES = {name: list(workloads.STRUCTURES[name].workloads) for name in ("sps", "hash", "rb")}

BEFORE = ["plain", "plain-huge", "ceiling", "bound", "pmemobj"]  # shown first, in this order


@dataclass(frozen=True)
class Aim:
    """On `workload` with `threads`, shadow's durable rate should be at least `wanted` times a
    reference rate."""

    workload: str
    threads: int
    against: str  # "bound", "pmemobj", "own" (its own single thread)
    wanted: float

    def text(self):
        what = {"bound": "of the bound", "pmemobj": "times libpmemobj",
                "own": "times its own one thread"}
        return (
            f"{self.workload}, {self.threads} thread{'s' if self.threads > 1 else ''}: "
            f"{what[self.against]}")


AIMED = "shadow:durable"
OF_THE_BOUND = {"sps-1": 0.92, "sps-8": 0.85, "sps-64": 0.90, "hash-0": 0.80, "rb-0": 0.80}
AIMS = ([
    Aim("sps-1", 1, "pmemobj", 7),
    Aim("sps-64", 1, "pmemobj", 20),
    Aim("hash-100", 1, "pmemobj", 4.5),
    Aim("rb-100", 1, "pmemobj", 2.2)
] + [Aim(w, 1, "bound", OF_THE_BOUND.get(w, 0.95)) for ws in STRUCTURES.values() for w in ws] + [
    Aim("sps-1", 2, "own", 1.3),
    Aim("sps-8", 2, "own", 0.95),
    Aim("hash-100", 2, "own", 1.5),
    Aim("hash-10", 2, "own", 1.3),
    Aim("rb-100", 2, "own", 1.45),
    Aim("hash-0", 2, "own", 1.8),
    Aim("rb-0", 2, "own", 1.8)
])


def is_core(name):
    """Systems shown in --quick and measured longer: all but the engines' other concurrency
    controls."""
    return "/" not in name


def make_runners(found, args):
    """Runners of the systems that were found, without peers other than libpmemobj, in the order in
    which they are shown."""
    runners = []
    for s in found:
        if "sps" not in s.structures or s.peer and s.name != "pmemobj":
            continue
        seconds = args.seconds if is_core(s.name) else args.seconds / 3
        runners.append(Runner(s.name, s.executable, s.name, s.max_threads, seconds))
        if s.name == "plain":
            # The same in huge pages, which the engines' shadow memory has if the system provides
            # them. It is not the plain memory of the bound.
            runners.append(
                Runner("plain-huge", s.executable, "plain", 1, seconds,
                       {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}))
    if args.quick:
        runners = [r for r in runners if is_core(r.name)]
    if args.engine:
        wanted = [*BEFORE, *args.engine]
        runners = [
            r for r in runners
            if any(r.name == w or r.name.startswith((w + ":", w + "/")) for w in wanted)
        ]
    rank = {name: n for n, name in enumerate(BEFORE)}
    return sorted(runners, key=lambda r: (rank.get(r.name, len(rank)), not is_core(r.name)))


def against(figures, aim_or_name, workload, system, threads):
    """The ratio of a system's rate to "own" (its own single thread) or another system's rate on the
    same number of threads."""
    rates = figures.rates(workload, system, threads)
    if aim_or_name == "own":
        return ratio(rates, figures.rates(workload, system, 1))
    return ratio(rates, figures.rates(workload, aim_or_name, threads))


def workload_table(figures, workload, names, threads):
    head = [
        "", *(c for t in threads
              for c in ((f"{t} thread{'s' if t > 1 else ''}", "M/s (min..max)"), *extra_heads(t))),
        ("per", "fences"), ("commit", "log bytes"), ("check-", "points"), ("", "aborts")
    ]
    rows = []
    for name in names:
        if not any((workload, name, t) in figures.keys() for t in threads):
            continue
        row = [name]
        for t in threads:
            row.append(table.millions(figures.rate(workload, name, t)))
            other = "pmemobj" if t == 1 else "own"
            row += [table.times(against(figures, "bound", workload, name, t)),
                    table.times(against(figures, other, workload, name, t), "x")]
        total = {}
        for t in threads:
            for key, value in figures.counters(workload, name, t).items():
                total[key] = total.get(key, 0) + value
        commits = total.get("commits", 0)
        row += [
            table.per(total.get("fences"), commits, 2),
            table.per(total.get("log_bytes"), commits, 0),
            table.count(total.get("checkpoints")),
            table.percent(total.get("aborts"), commits + total.get("aborts", 0))
        ]
        rows.append(row)
    return head, rows


def extra_heads(threads):
    return [("of the", "bound"), ("x pm-", "emobj") if threads == 1 else ("x own", "1 thread")]


def judge(figures):
    """Returns [(aim, spread or None)]."""
    return [(aim, against(figures, aim.against, aim.workload, AIMED, aim.threads)) for aim in AIMS]


def print_report(data, threads):
    figures, names = data["figures"], [r.name for r in data["runners"]]
    for workload in data["workloads"]:
        print(f"\n{workload}: {workloads.title(workload)}")
        table.show(*workload_table(figures, workload, names, threads))
    put_off, cells = figures.put_off()
    if put_off * 20 > cells:
        print(
            f"\nthe machine was busy: in {put_off} of {cells} one-thread cells other programs "
            "had the processor for 5 % of the time or more: read these figures as a hint")
    verdicts = [(aim.text(), aim.wanted, found) for aim, found in judge(figures)
                if aim.workload in data["workloads"] and aim.threads in threads]
    if any(found for _, _, found in verdicts):
        print(f"\naims of {AIMED}: medians of the rounds' ratios")
        table.show_aims(verdicts)


def run(args, found, directory):
    """Measures; returns the report's data."""
    runners = make_runners(found, args)
    wanted = [w for ws in STRUCTURES.values() for w in ws]
    figures, progress, described, failures = Figures(), Progress(), {}, []
    options = [
        "--log-size",
        str(args.log_size << 20), "--max-threads",
        str(max(args.threads)), "--delays", args.delays
    ]
    for structure, chosen in STRUCTURES.items():
        told, bad = run_structure(structure, chosen, runners, args.threads, args.rounds,
                                  args.warmup, directory, options, figures, progress)
        described.update(told)
        failures += bad
    return {
        "figures": figures, "runners": runners, "described": described, "failures": failures,
        "workloads": wanted
    }


def as_json(data, threads):
    figures = data["figures"]
    aims = [{"aim": aim.text(), "wanted": aim.wanted, "found": found.as_json() if found else None,
             "met": found.median >= aim.wanted if found else None} for aim, found in judge(figures)
            if aim.workload in data["workloads"] and aim.threads in threads]
    ratios = []
    for workload, system, count in figures.keys():
        ratios.append({
            "workload": workload, "system": system, "threads": count, **{
                "of_" + name: r.as_json() for name in ("bound", "ceiling", "pmemobj", "own")
                if (r := against(figures, name, workload, system, count)) is not None
            }
        })
    bounds = {
        w: b.as_json() for w in data["workloads"]
        if (b := figures.rate(w, "bound", 1)) is not None
    }
    return {
        "systems": data["described"], "cells": figures.as_json(), "bounds": bounds,
        "ratios": ratios, "aims": aims, "failures": data["failures"]
    }
