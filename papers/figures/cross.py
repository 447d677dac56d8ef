# SPDX-License-Identifier: BSD-3-Clause
"""A comparison that no paper has: all engines, over each TM that isolates, and today's stores, on
all of the papers' workloads, on one medium model."""

from statistics import geometric_mean

from report import systems, workloads
from report.compare import counted
from report.driver import Failed
from report.rounds import Runner, run_structure
from report.stats import Figures, ratio
from report.table import factor

from .figure import Figure, Paper, Point, median_of
from .sources import ENGINES

DELAYS, LOG_MIB, RECORDS = "dudetm", 16, 10_000
BASE = systems.DEFAULT
COUNTERS = {"fences": "fences", "lines": "lines", "log_bytes": "bytes of log"}
# Of each engine the durable mode is compared, and in addition the two modes that acknowledge before
# they are durable.
EARLY = ("shadow:async", "dudetm:async", "dudetm/stm:async")
NOT_DURABLE = ("plain", "volatile", "volatile/stm")
NEAR = 0.05  # on noisy machines, ratios this near to 1 count as equal
QUICK = {"hash": ("hash-100",), "tpccb": ("tpccb-1",), "ycsb": ("ycsb-a", "ycsb-c")}
# Structures and their workloads. kv and store are not the papers'; they show values of many words.
CELLS = {
    "sps": ("sps-1", "sps-8"), "hash": ("hash-100", "hash-10"), "rb": ("rb-100", "rb-10"),
    "bt": ("bt-100", "bt-10"), "kvstore": ("kvstore-100", ), "kv": ("kv-100", ), "ht": ("ht-1", ),
    "bpt": ("bpt-1", ), "tpcch": ("tpcch-1", ), "tpccb": ("tpccb-1", ), "tatph": ("tatph-1", ),
    "tatpb": ("tatpb-1", ), "session": ("session-99", ), "store": ("store-99", ),
    "ycsb": workloads.STRUCTURES["ycsb"].workloads
}


def chosen(found, structure, quick):
    """The durable systems that isolate, those of EARLY, and three systems that are not durable, as
    a bound. REWIND's logs of two layers, which take minutes to fill a structure, only swap words,
    and its simple ones do not even that. The stand-in for a processor's hardware transactions,
    which is for tests, is left out."""
    own = [
        s for s in found if structure in s.structures and
        (s.waits and s.mode == "durable" and
         (s.isolates or s.peer) or s.name in (*EARLY, *NOT_DURABLE))
    ]
    own = [s for s in own if "stand-in" not in s.name]
    own = [
        s for s in own if not s.name.startswith("rewind-2l") or
        structure == "sps" and not s.name.endswith("simple")
    ]
    return [
        s for s in own
        if not quick or not s.tm and "rewind" not in s.name or s.name == "rewind-1l-nfp-batch"
    ]


def measured(structure):
    def measure(bench):
        cells = QUICK.get(structure, CELLS[structure][:1]) if bench.quick else CELLS[structure]
        own = chosen(systems.find(bench.build_dir), structure, bench.quick)
        figures = Figures()
        options = ["--delays", DELAYS, "--log-size", str(LOG_MIB << 20), "--records", str(RECORDS)]
        runners = [
            Runner(s.name, s.executable, s.name, 1, 0.05 if bench.quick else 0.15) for s in own
        ]
        _, bad = run_structure(structure, cells, runners, [1], bench.rounds, 0.05, bench.directory,
                               options, figures, lambda text, last=False: bench.progress(text))
        if bad:
            raise Failed("; ".join(bad))
        points = []
        for workload in cells:
            for s in own:
                found = ratio(figures.rates(workload, s.name, 1), figures.rates(workload, BASE, 1))
                points.append(Point(workload, s.name, found.median, found.low, found.high))
                per = counted(figures, workload, s.name, 1)
                if not s.peer:
                    points += [
                        Point(f"{workload}: {what}", s.name, per[name], per[name], per[name])
                        for name, what in COUNTERS.items() if name in per
                    ]
        first = {p.x: p.y for p in points if p.series == cells[0]}
        return sorted(points, key=lambda p: -first[p.x])
    return measure


def is_bound(name):
    return name.partition("/")[0].partition(":")[0] in (*systems.BOUNDS, "volatile")


def drawn(series):
    return ":" not in series


def durable(points, workload):
    """[(system, ratio)] of the systems whose update is durable when it returns, the fastest
    first."""
    return sorted(
        ((p.x, p.y)
         for p in points if p.series == workload and not is_bound(p.x) and p.x not in EARLY),
        key=lambda found: -found[1])


def _costs(points, workload, system):
    """Returns " (1.0 fences, 5.2 lines, 340 bytes of log)", or an empty text if the system counts
    nothing."""
    found = {what: median_of(points, f"{workload}: {what}", system) for what in COUNTERS.values()}
    said = [
        f"{value:.{0 if what == COUNTERS['log_bytes'] else 1}f} {what}"
        for what, value in found.items() if value is not None
    ]
    return " (" + ", ".join(said) + ")" if said else ""


def _sentence(points, workload):
    order = durable(points, workload)
    ahead = [(name, r) for name, r in order if r > 1 + NEAR]
    counted_here = [(name, r) for name, r in order if _costs(points, workload, name)]
    stores = [(name, r) for name, r in order if not _costs(points, workload, name)]
    said = f"{workload}: {BASE}{_costs(points, workload, BASE)} is " + (
        "at or above all that are durable" if not ahead else "behind " +
        ", ".join(f"{name} {r:.2f}{_costs(points, workload, name)}" for name, r in ahead))
    behind = [(name, r) for name, r in counted_here if name != BASE and r <= 1 + NEAR][:2]
    if behind:
        said += "; next " + ", ".join(f"{name} {r:.2f}{_costs(points, workload, name)}"
                                      for name, r in behind)
    if stores:
        said += f"; of the stores {stores[0][0]} comes nearest, {factor(stores[0][1])}"
    return said + "."


def findings(points):
    return [
        _sentence(points, w) for w in dict.fromkeys(p.series for p in points if drawn(p.series))
    ]


def figure_of(structure):
    w = workloads.STRUCTURES[structure]
    names = ", ".join(
        f"{c}: {workloads.title(c)}"
        for c in CELLS[structure]) if len(CELLS[structure]) < 3 else w.about.format("a to f")
    return Figure(
        row="X-" + structure, title=", ".join(CELLS[structure]),
        claim=f"none: no paper has this comparison. The workload is defined by: {w.source}.", setup=
        f"{names}. One thread; medians of the rounds' ratios to {BASE}. Fences, lines and bytes "
        "of log are the medium's own counts, of a committed transaction.",
        x="system", y=f"throughput, of {BASE}'s", measure=measured(structure), findings=findings,
        bars=True, log_y=True, drawn=drawn)


def table(documents, points_of):
    """Returns the lines of one table: systems x workloads, throughput relative to the default
    engine's; `documents` by row."""
    found = {}
    for document in documents.values():
        for p in points_of(document):
            if drawn(p.series):
                found.setdefault(p.series, {})[p.x] = p.y
    if not found:
        return []

    def place(name):
        own = [column[name] for column in found.values() if name in column]
        return is_bound(name), name in EARLY, -geometric_mean(own)

    best = {
        w: max((r for n, r in column.items() if not is_bound(n) and n not in EARLY), default=0)
        for w, column in found.items()
    }

    def cell(w, name):
        r = found[w].get(name)
        return "" if r is None else f"**{factor(r)}**" if r == best[w] else factor(r)

    lines = [
        f"Throughput, of {BASE}'s on the same workload; the best of those that are durable when "
        "update returns in bold.",
        "", "| system | " + " | ".join(found) + " |", "|---|" + "---:|" * len(found)
    ]
    return lines + [
        f"| {name} | " + " | ".join(cell(w, name) for w in found) + " |"
        for name in sorted({n for c in found.values() for n in c}, key=place)
    ]


PAPER = Paper(
    name="cross",
    title="All engines and today's stores, on all workloads",
    medium="emulated medium, a persist waits max(1000 cycles, bytes / 1 GB/s)",
    about=[
        "All four papers' systems, all of their variants that isolate, the default engine, and "
        "libpmemobj, LMDB, RocksDB, SQLite, Berkeley DB and Tokyo Cabinet, on all of the",
        "papers' workloads and YCSB's. One medium model: DudeTM's, which libpmemobj's flushes "
        "and drains are charged, too; the other stores write files on tmpfs and are",
        "charged nothing for it, so that the comparison is kind to them. A log has 16 MiB. "
        "REWIND's logs of two layers swap words alone (the simple ones nothing): filling takes",
        "them minutes.", "",
        "Where forms of `dudetm` are ahead of the default engine: their Reproduce writes home on "
        "the second processor, which nothing else wants here. `shadow` brings home up to date in "
        "the thread that commits, which",
        "is charged for it (64 bytes a changed line, at 1 GB/s), and leaves the other processors "
        "to the program; with two threads on two processors `dudetm` has less than with one "
        "(D-Fig5). A thread that takes",
        "`shadow`'s checkpoints where a processor is idle would mend it. libpmemobj is ahead on "
        "YCSB's C and E, which read: its reads are plain loads, and on one thread it takes no "
        "lock. `volatile`, which keeps",
        "nothing, has 0.92 and 1.47 there, so it is the way of a read that costs, not "
        "durability: each word asks whether it may be read directly. Views that are compiled "
        "once for direct reads would mend it."
    ],
    systems=(*ENGINES, "non-recoverable baselines"),
    figures=[figure_of(structure) for structure in CELLS],
    summary=table,
)
