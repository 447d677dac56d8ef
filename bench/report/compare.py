# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench WORKLOAD`: any workload on any engines, concurrency controls and modes, and on the
peers; one table for each, with --compare the ratios to a base and a picture, and with --latency the
percentiles until an operation is durable and a picture of them."""

from . import latency, plot, systems, table, workloads
from .driver import Failed
from .rounds import Progress, Runner, run_structure
from .stats import Figures, ratio

PER_COMMIT = (("fences", "fences", 2), ("lines", "lines", 1), ("log_bytes", "log bytes", 0),
              ("device_bytes", "device bytes", 0))


def counted(figures, workload, system, threads):
    """{"fences": per committed transaction, ...} over all rounds; {} if the system counts
    nothing."""
    total = figures.counters(workload, system, threads)
    commits = total.get("commits") or total.get("operations")
    if not commits:
        return {}
    found = {
        name: total[name] / commits for name in ("fences", "log_bytes", "device_bytes", "aborts")
        if name in total
    }
    if "flushed_lines" in total:
        found["lines"] = (total["flushed_lines"] + total.get("streamed_lines", 0)) / commits
    return found


def base_of(args, chosen):
    """The system to which ratios are computed."""
    names = [s.name for s in chosen]
    if args.compare in (None, ""):
        return systems.DEFAULT if systems.DEFAULT in names else names[0]
    if args.compare not in names:
        raise Failed(
            f"found --compare {args.compare}, expected one of what is measured: {', '.join(names)}")
    return args.compare


def options_of(args):
    options = ["--max-threads", max(args.threads), "--medium", args.medium, "--delays", args.delays]
    for flag, value in (("--log-size", args.log_size << 20), ("--records", args.records),
                        ("--value-bytes", args.value_bytes),
                        ("--shadow-size", args.max_resident << 20)):
        if value:
            options += [flag, value]
    return [str(o) for o in options]


def run(args, found, directory):
    """Measures; returns the report's data."""
    chosen = systems.choose(found, args.engine, args.tm, args.mode)
    figures, progress, described, failures, shown = Figures(), Progress(), {}, [], {}
    for structure, names in workloads.by_structure(args.workloads).items():
        own = [s for s in chosen if structure in s.structures]
        if not own:
            raise Failed(
                f"none of {', '.join(s.name for s in chosen)} has the workload {names[0]}; ./dev "
                "bench list says which has it")
        runners = [Runner(s.name, s.executable, s.name, s.max_threads, args.seconds) for s in own]
        told, bad = run_structure(structure, names,
                                  runners, args.threads, args.rounds, args.warmup, directory,
                                  options_of(args), figures, progress, latency=args.latency)
        described.update(told)
        failures += bad
        shown |= {name: own for name in names}
    return {
        "figures": figures, "described": described, "failures": failures, "systems": shown,
        "base": {w: base_of(args, own) for w, own in shown.items()}, "compare": args.compare
        is not None, "latency": args.latency
    }


def _row(data, workload, system, threads):
    figures, base = data["figures"], data["base"][workload]
    row = [system.name]
    for t in threads:
        rate = figures.rate(workload, system.name, t)
        row.append(table.thousands(rate))
        if data["compare"]:
            row.append(
                table.times(
                    ratio(figures.rates(workload, system.name, t), figures.rates(workload, base,
                                                                                 t)), "x"))
    per = counted(figures, workload, system.name, threads[0])
    return row + [
        f"{per[name]:.{digits}f}" if name in per else "" for name, _, digits in PER_COMMIT
    ] + [f"{per['aborts']:.1%}" if "aborts" in per else ""]


def print_report(data, threads):
    for workload, own in data["systems"].items():
        print(f"\n{workload}: {workloads.title(workload)}" +
              (f"; x: of {data['base'][workload]}, round by round" if data["compare"] else ""))
        head = [""]
        for t in threads:
            head.append((f"{t} thread{'s' if t > 1 else ''}", "k/s (min..max)"))
            head += [("", "x")] if data["compare"] else []
        head += [("per" if n == 0 else "commit" if n == 1 else "", name)
                 for n, (_, name, _) in enumerate(PER_COMMIT)] + [("", "aborts")]
        ordered = sorted(
            own, key=lambda s: -(data["figures"].rate(workload, s.name, threads[0]).median
                                 if data["figures"].rate(workload, s.name, threads[0]) else 0))
        table.show(head, [_row(data, workload, s, threads) for s in ordered])
        if data["latency"]:
            latency.print_table(data["figures"], workload, [s.name for s in ordered], threads)


def as_json(data, threads):
    figures = data["figures"]
    ratios = [{
        "workload": w, "system": s.name, "threads": t, "base": data["base"][w],
        "ratio": found.as_json()
    } for w, own in data["systems"].items() for s in own for t in threads
              if (found := ratio(figures.rates(w, s.name, t), figures.rates(w, data["base"][w], t))
                  ) is not None]
    return {
        "systems": data["described"], "cells": figures.as_json(), "ratios": ratios,
        "latencies": [
            row for w, own in data["systems"].items()
            for row in latency.as_json(figures, w, [s.name for s in own], threads)
        ], "failures": data["failures"]
    }


def pictures(data, threads, directory, note):
    return plot.compare_pictures(data, threads, directory, note) if data["compare"] else []
