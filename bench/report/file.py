# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench file`: puts (16-byte keys, 100-byte values, one a transaction) on a real file system, beside other embedded stores.

Waiting: a put returns when it would survive a power cut. Not waiting: each store's own mode that does not sync for each commit;
Perdure's keeps a receipt for every put and the wait for the last ones is in its time, the others promise nothing.
"""

from . import table
from .rounds import Progress, Runner, run_structure
from .stats import Figures, ratio, spread

WORKLOAD = "kv-100"
WAITING, RECEIPTS = "perdure", "perdure-receipts"
GROUP = 65536
RAW = {4096: "log, 4 KiB groups", GROUP: "log, 64 KiB groups"}


def split(listed):
    """(waiting, not waiting): runners' (executable, name, about), Perdure first."""
    every = [(exe, s["name"], s["about"]) for exe, systems in listed for s in systems if s["name"] != "raw"]
    every.sort(key=lambda e: not e[1].startswith("perdure"))
    waits = [e for e in every if "-" not in e[1]]
    return waits, [e for e in every if e not in waits]


def best_other(figures, runners, threads):
    """{round: the best rate of the systems that are not Perdure}."""
    best = {}
    for r in runners:
        if not r.name.startswith("perdure"):
            for n, rate in figures.rates(WORKLOAD, r.name, threads).items():
                best[n] = max(best.get(n, 0.0), rate)
    return best


def log_bytes_a_put(figures, threads):
    total = figures.counters(WORKLOAD, RECEIPTS, threads)
    return total["log_bytes"] / total["commits"] if total.get("commits") and total.get("log_bytes") else None


def allowed(figures, threads):
    """{round: puts a second that the log's own rate in 64 KiB groups would allow}."""
    size = log_bytes_a_put(figures, threads)
    return {} if size is None else {n: rate * GROUP / size for n, rate in figures.rates(WORKLOAD, RAW[GROUP], 1).items()}


def judge(data, threads):
    """[(text, wanted, spread or None)]"""
    figures, verdicts = data["figures"], []
    for count in threads:
        if count in (1, 16):
            found = ratio(figures.rates(WORKLOAD, WAITING, count), best_other(figures, data["waiting"], count))
            verdicts.append((f"waiting, {count} thread{'s' if count > 1 else ''}: times the best of the others", {1: 1.0, 16: 1.5}[count],
                             found))
    for count in threads:
        found = ratio(figures.rates(WORKLOAD, RECEIPTS, count), allowed(figures, count))
        verdicts.append((f"with receipts, {count} thread{'s' if count > 1 else ''}: of what the log's rate in 64 KiB groups allows", 0.5,
                         found))
    return verdicts


def print_part(figures, runners, threads, title):
    print(f"\n{title}")
    head = ["", *(c for t in threads for c in ((f"{t} thread{'s' if t > 1 else ''}", "k puts/s (min..max)"), ("p50", "us"), ("p99", "us"),
                                               ("x best", "other")))]
    rows = []
    for r in runners:
        row = [r.name]
        for t in threads:
            p50, p99 = (figures.counter_median(WORKLOAD, r.name, t, q) for q in ("p50_us", "p99_us"))
            better = ratio(figures.rates(WORKLOAD, r.name, t), best_other(figures, runners, t)) if r.name.startswith("perdure") else None
            row += [table.thousands(figures.rate(WORKLOAD, r.name, t)), table.short(p50.median) if p50 else "",
                    table.short(p99.median) if p99 else "", table.times(better, "x")]
        rows.append(row)
    table.show(head, rows)


def print_report(data, threads):
    figures = data["figures"]
    print("\nthe log's own rate: groups written one after the other with O_DIRECT|O_DSYNC into a prewritten file")
    rows = []
    for size, name in RAW.items():
        rate = figures.rate(WORKLOAD, name, 1)
        if rate:
            rows.append([name, table.short(rate.median), f"{1e6 / rate.median:.0f}", table.short(rate.median * size / 1e6)])
    table.show(["", "groups/s", "us each", "MB/s"], rows)
    print_part(figures, data["waiting"], threads, "waiting: a put is durable when it returns")
    print_part(figures, data["running"], threads, "not waiting: each store's own mode, apart (see README.md for what each promises)")
    for t in threads:
        size, top = log_bytes_a_put(figures, t), spread(allowed(figures, t).values())
        if top:
            print(f"  {RECEIPTS}, {t} thread{'s' if t > 1 else ''}: {size:.0f} log bytes a put; the log in 64 KiB groups allows "
                  f"{table.thousands(top)} k puts/s, half of that is {table.short(top.median / 2e3)} k")
    print("\naims: medians of the rounds' ratios")
    table.show_aims(judge(data, threads))


def run(args, listed, directory):
    waits, runs = split(listed)
    progress, figures, described, failures = Progress(), Figures(), {}, []

    def runner(entry):
        exe, name, _ = entry
        return Runner(name, exe, name, 64, args.seconds)

    raw_exe = next(exe for exe, systems in listed for s in systems if s["name"] == "raw")
    raw = [Runner(name, raw_exe, "raw", 1, args.seconds, rename={WORKLOAD: f"raw-{size}"}) for size, name in RAW.items()]
    parts = {"waiting": [runner(e) for e in waits], "running": [runner(e) for e in runs]}
    if args.systems:
        keep = args.systems.split(",")
        parts = {k: [r for r in rs if any(r.name.startswith(s) for s in keep)] for k, rs in parts.items()}
    options = ["--max-threads", str(max(args.threads))]
    if args.log_size:
        options += ["--log-size", str(args.log_size << 20)]
    for part in parts.values():
        found, bad = run_structure("kv", [WORKLOAD], [*raw, *part], args.threads, args.rounds, args.warmup, directory, options, figures,
                                   progress, parallel=1)
        described.update(found)
        failures += bad
    return {"figures": figures, "described": described, "failures": failures, **parts}


def as_json(data, threads):
    figures = data["figures"]
    return {"systems": data["described"], "cells": figures.as_json(),
            "log_bytes_a_put": {t: log_bytes_a_put(figures, t) for t in threads},
            "log_allows_puts": {t: top.as_json() for t in threads if (top := spread(allowed(figures, t).values())) is not None},
            "aims": [{"aim": text, "wanted": wanted, "found": found.as_json() if found else None,
                      "met": found.median >= wanted if found else None} for text, wanted, found in judge(data, threads)],
            "failures": data["failures"]}
