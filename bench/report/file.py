# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench file`: puts (16-byte keys, 100-byte values, one per transaction) on a real file
system, compared with other embedded stores.

Waiting: a put returns when it would survive a power cut. Not waiting: each store's own mode that
does not sync for each commit; Perdure's waits for its last puts before its clock stops, the others
promise nothing. Latencies (p50 to p99.9): until the thread knows that its put is durable, or, for
the other stores when they do not wait, until the put returns.
"""

from . import latency, table
from .rounds import Progress, Runner, run_structure
from .stats import Figures, ratio, spread

WORKLOAD = "kv-100"
WAITING, RECEIPTS = "shadow:durable", "shadow:async"
GROUP = 65536
RAW = {4096: "log, 4 KiB groups", GROUP: "log, 64 KiB groups"}


def split(found):
    """Returns (waiting, not waiting): Systems, Perdure's default engine first."""
    own = [s for s in found if s.name in (WAITING, RECEIPTS)]
    every = own + [s for s in found if s.peer and s.max_threads > 1 and "kv" in s.structures]
    return [s for s in every if s.waits], [s for s in every if not s.waits]


def is_own(name):
    return name in (WAITING, RECEIPTS)


def best_other(figures, runners, threads):
    """Returns {round: the best rate of the systems that are not Perdure}."""
    best = {}
    for r in runners:
        if not is_own(r.name):
            for n, rate in figures.rates(WORKLOAD, r.name, threads).items():
                best[n] = max(best.get(n, 0.0), rate)
    return best


def log_bytes_a_put(figures, threads):
    total = figures.counters(WORKLOAD, RECEIPTS, threads)
    return total["log_bytes"] / total["commits"] if total.get("commits") and total.get(
        "log_bytes") else None


def allowed(figures, threads):
    """Returns {round: puts per second that the log's own rate in 64 KiB groups would allow}."""
    size = log_bytes_a_put(figures, threads)
    return {} if size is None else {
        n: rate * GROUP / size for n, rate in figures.rates(WORKLOAD, RAW[GROUP], 1).items()
    }


def judge(data, threads):
    """Returns [(text, wanted, spread or None)]."""
    figures, verdicts = data["figures"], []
    for count in threads:
        if count in (1, 16):
            found = ratio(figures.rates(WORKLOAD, WAITING, count),
                          best_other(figures, data["waiting"], count))
            verdicts.append(
                (f"waiting, {count} thread{'s' if count > 1 else ''}: times the best of the others",
                 {1: 1.0, 16: 1.5}[count], found))
    for count in threads:
        found = ratio(figures.rates(WORKLOAD, RECEIPTS, count), allowed(figures, count))
        verdicts.append((
            f"with receipts, {count} thread{'s' if count > 1 else ''}: of what the log's rate in "
            "64 KiB groups allows",
            0.5, found))
    return verdicts


def print_part(figures, runners, threads, title):
    print(f"\n{title}")
    head = [
        "", *(c for t in threads
              for c in ((f"{t} thread{'s' if t > 1 else ''}", "k puts/s (min..max)"),
                        ("x best", "other")))
    ]
    rows = []
    for r in runners:
        row = [r.name]
        for t in threads:
            better = ratio(figures.rates(WORKLOAD, r.name, t), best_other(
                figures, runners, t)) if is_own(r.name) else None
            row += [table.thousands(figures.rate(WORKLOAD, r.name, t)), table.times(better, "x")]
        rows.append(row)
    table.show(head, rows)
    latency.print_table(figures, WORKLOAD, [r.name for r in runners], threads)


def print_report(data, threads):
    figures = data["figures"]
    print(
        "\nthe log's own rate: groups written one after the other with O_DIRECT|O_DSYNC into a "
        "prewritten file")
    rows = []
    for size, name in RAW.items():
        rate = figures.rate(WORKLOAD, name, 1)
        if rate:
            rows.append([
                name,
                table.short(rate.median), f"{1e6 / rate.median:.0f}",
                table.short(rate.median * size / 1e6)
            ])
    table.show(["", "groups/s", "us each", "MB/s"], rows)
    print_part(figures, data["waiting"], threads, "waiting: a put is durable when it returns")
    print_part(figures, data["running"], threads,
               "not waiting: each store's own mode, apart (see README.md for what each promises)")
    for t in threads:
        size, top = log_bytes_a_put(figures, t), spread(allowed(figures, t).values())
        if top:
            print(
                f"  {RECEIPTS}, {t} thread{'s' if t > 1 else ''}: {size:.0f} log bytes a put; "
                f"the log in 64 KiB groups allows {table.thousands(top)} k puts/s, half of that "
                f"is {table.short(top.median / 2e3)} k")
    print("\naims: medians of the rounds' ratios")
    table.show_aims(judge(data, threads))


def run(args, found, directory):
    waits, runs = split(found)
    progress, figures, described, failures = Progress(), Figures(), {}, []
    by_name = {s.name: s for s in found}
    raw = [
        Runner(name, by_name["raw"].executable, "raw", 1, args.seconds,
               rename={WORKLOAD: f"raw-{size}"}) for size, name in RAW.items()
    ]
    keep = args.engine or [s.name for s in (*waits, *runs)]
    parts = {
        part: [
            Runner(s.name, s.executable, s.name, 64, args.seconds) for s in of
            if s.name in keep or s.engine in keep
        ] for part, of in (("waiting", waits), ("running", runs))
    }
    options = ["--max-threads", str(max(args.threads)), "--medium", "file"]
    if args.log_size:
        options += ["--log-size", str(args.log_size << 20)]
    for part in parts.values():
        told, bad = run_structure("kv", [WORKLOAD], [*raw, *part], args.threads, args.rounds,
                                  args.warmup, directory, options, figures, progress, parallel=1,
                                  latency=True)
        described.update(told)
        failures += bad
    return {"figures": figures, "described": described, "failures": failures, **parts}


def as_json(data, threads):
    figures = data["figures"]
    return {
        "systems": data["described"], "cells": figures.as_json(),
        "latencies": latency.as_json(figures, WORKLOAD,
                                     [r.name for r in (*data["waiting"], *data["running"])],
                                     threads),
        "log_bytes_a_put": {t: log_bytes_a_put(figures, t) for t in threads}, "log_allows_puts": {
            t: top.as_json() for t in threads
            if (top := spread(allowed(figures, t).values())) is not None
        }, "aims": [{
            "aim": text, "wanted": wanted, "found": found.as_json() if found else None,
            "met": found.median >= wanted if found else None
        } for text, wanted, found in judge(data, threads)], "failures": data["failures"]
    }
