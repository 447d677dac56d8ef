# SPDX-License-Identifier: BSD-3-Clause
"""What no paper has: all engines, over each TM that isolates, and today's stores, on all of the papers' workloads, on one medium model."""

from report import systems, workloads
from report.compare import counted
from report.driver import Failed
from report.rounds import Runner, run_structure
from report.stats import Figures, ratio

from .figure import Figure, Paper, Point, median_of

DELAYS, LOG_MIB = "dudetm", 16
BASE = systems.DEFAULT
THROUGHPUT = "throughput"
COUNTERS = {"fences": "fences a transaction", "lines": "lines a transaction", "log_bytes": "log bytes a transaction", "aborts": "aborts a transaction"}
# Of an engine's modes the durable one is compared; beside it the two that acknowledge before they are durable.
EARLY = ("shadow:async", "dudetm:async", "dudetm/stm:async")
NEAR = 0.05  # ratios this near to 1 are the same, on machines as noisy as these
QUICK = ("hash-100", "tpccb-1", "ycsb-a")


def chosen(found, structure):
    """The durable systems that isolate, those of EARLY, and the two that are not durable for a bound."""
    return [s for s in found if structure in s.structures and
            (s.waits and s.mode == "durable" and (s.isolates or s.peer) or s.name in EARLY or s.name in ("plain", "volatile", "volatile/stm"))]


def measured(workload):
    def measure(bench):
        structure = workloads.structure_of(workload).name
        if bench.quick and workload not in QUICK:
            raise Failed("left out of a quick run")
        own = chosen(systems.find(bench.build_dir), structure)
        if bench.quick:
            own = [s for s in own if not s.tm]
        figures = Figures()
        options = ["--delays", DELAYS, "--log-size", str(LOG_MIB << 20)]
        seconds = 0.1 if bench.quick else 0.3
        runners = [Runner(s.name, s.executable, s.name, 1, seconds) for s in own]
        _, bad = run_structure(structure, [workload], runners, [1], bench.rounds, 0.05, bench.directory, options, figures, bench.progress)
        if bad:
            raise Failed("; ".join(bad))
        points = []
        for s in own:
            found = ratio(figures.rates(workload, s.name, 1), figures.rates(workload, BASE, 1))
            points.append(Point(THROUGHPUT, s.name, found.median, found.low, found.high))
            per = counted(figures, workload, s.name, 1)
            points += [Point(series, s.name, per[name], per[name], per[name]) for name, series in COUNTERS.items() if name in per and not s.peer]
        return sorted(points, key=lambda p: (p.series != THROUGHPUT, -p.y if p.series == THROUGHPUT else 0))
    return measure


def is_bound(name):
    return name.partition("/")[0].partition(":")[0] in (*systems.BOUNDS, "volatile")


def durable(points):
    """[(system, ratio)] of those whose update is durable when it returns, the fastest first."""
    return [(p.x, p.y) for p in points if p.series == THROUGHPUT and not is_bound(p.x) and p.x not in EARLY]


def _costs(points, system):
    """"1.0 fences, 5.2 lines and 340 bytes of log", or nothing where the system counts nothing."""
    found = {name: median_of(points, series, system) for name, series in COUNTERS.items() if any(p.series == series and p.x == system for p in points)}
    if not found:
        return ""
    said = [f"{found['fences']:.2f} fences"] if "fences" in found else []
    said += [f"{found['lines']:.1f} lines"] if "lines" in found else []
    said += [f"{found['log_bytes']:.0f} bytes of log"] if "log_bytes" in found else []
    return " (" + ", ".join(said) + " a transaction)" if said else ""


def findings(points):
    order = durable(points)
    ahead = [(name, r) for name, r in order if r > 1 + NEAR and name != BASE]
    peers = [(name, r) for name, r in order if not _costs(points, name)]
    said = [f"Durable when update returns: {BASE}{_costs(points, BASE)} is " + ("at or above all others." if not ahead else "behind " + ", ".join(
        f"{name} {r:.2f}x{_costs(points, name)}" for name, r in ahead) + ".")]
    behind = [(name, r) for name, r in order if name != BASE and r <= 1 + NEAR and _costs(points, name)]
    if behind:
        said.append("Of its throughput have " + ", ".join(f"{name} {r:.2f}{_costs(points, name)}" for name, r in behind[:4]) +
                    (f", and {len(behind) - 4} more down to {behind[-1][0]} with {behind[-1][1]:.2f}{_costs(points, behind[-1][0])}." if len(behind) > 4 else "."))
    if peers:
        said.append("Stores beside it: " + ", ".join(f"{name} {r:.3g}" for name, r in peers) + ".")
    early = [(p.x, p.y) for p in points if p.series == THROUGHPUT and p.x in EARLY]
    if early:
        said.append("Acknowledged before they are durable: " + ", ".join(f"{name} {r:.2f}" for name, r in early) + ".")
    bounds = [(p.x, p.y) for p in points if p.series == THROUGHPUT and is_bound(p.x)]
    if bounds:
        said.append("Not durable: " + ", ".join(f"{name} {r:.2f}" for name, r in bounds) + ".")
    return said


REMARKS = {}  # by workload: what explains a loss of the default engine, and would mend it


def figure_of(workload):
    w = workloads.structure_of(workload)
    return Figure(
        row="X-" + workload, title=workload, claim=f"none: no paper has this comparison. The workload: {w.source}.",
        setup=f"{workloads.title(workload)}. One thread; medians of the rounds' ratios to {BASE}; every engine that isolates, durable; fences, lines and log bytes are "
              "the medium's own counts, a committed transaction's.",
        x="system", y=f"throughput, of {BASE}'s", measure=measured(workload), findings=findings, remark=REMARKS.get(workload, ""), bars=True, lying=True,
        log_x=True, drawn=lambda series: series == THROUGHPUT)


WORKLOADS = ["sps-1", "sps-8", "hash-100", "rb-100", "bt-100", "kvstore-100", "kv-100", "ht-1", "bpt-1", "tpcch-1", "tpccb-1", "tatph-1", "tatpb-1",
             "session-99", "store-99", *workloads.STRUCTURES["ycsb"].workloads]


def table(documents, points_of):
    """Lines of one table: systems x workloads, throughput of the default engine's; `documents` by row."""
    found = {w: {p.x: p.y for p in points_of(documents["X-" + w]) if p.series == THROUGHPUT} for w in WORKLOADS if "X-" + w in documents}
    if not found:
        return []
    names = sorted({n for column in found.values() for n in column}, key=lambda n: (is_bound(n), n in EARLY, -sum(n in c for c in found.values()), n))
    lines = [f"Throughput, of {BASE}'s on the same workload; the best durable one of each column in bold.", "", "| system | " + " | ".join(found) + " |", "|---|" + "---:|" * len(found)]
    best = {w: max((r for n, r in column.items() if not is_bound(n) and n not in EARLY), default=0) for w, column in found.items()}

    def cell(w, name):
        r = found[w].get(name)
        return "" if r is None else f"**{r:.2f}**" if r == best[w] else f"{r:.2f}" if r >= 0.095 else f"{r:.3f}"

    return lines + [f"| {name} | " + " | ".join(cell(w, name) for w in found) + " |" for name in names]


PAPER = Paper(
    name="cross",
    title="All engines and today's stores, on all workloads",
    medium="emulated medium, a persist waits max(1000 cycles, bytes / 1 GB/s)",
    about=["All four papers' systems, all of their variants that isolate, the default engine, and libpmemobj, LMDB, RocksDB, SQLite, Berkeley DB and Tokyo Cabinet, on all of the",
           "papers' workloads and YCSB's. One medium model: DudeTM's, which libpmemobj's flushes and drains are charged, too; the other stores write files on tmpfs and are",
           "charged nothing for it, so that the comparison is kind to them. A log has 16 MiB."],
    figures=[figure_of(w) for w in WORKLOADS],
    summary=table,
)
