# SPDX-License-Identifier: BSD-3-Clause
"""DudeTM's figures of throughput (sections 5.2, 5.6, 5.7): figures 2 and 5, tables 1 and 4."""

from .dudetm_cells import DUDE, INF, SYNC, SYSTEMS, VOLATILE, WORKLOADS, measured, process_of
from .figure import Figure, median_of, point, ratios

# --- figure 2 -------------------------------------------------------------------------------------

FOUR = (VOLATILE, INF, DUDE, SYNC)
SYNC_3500 = "DudeTM-Sync, 3500 cycles"


def _of_volatile(bench, workload, systems, delays_of):
    """Returns {(system, x): ratios to Volatile-STM's throughput}, measuring one workload's
    processes at a time."""
    structure = WORKLOADS[workload]
    wanted = {
        key: process_of(SYSTEMS[key[0].split(",")[0]], structure, delays_of(*key))
        for key in systems
    }
    return measured(bench, wanted, {key: (key, {"run": f"{structure}-1"}) for key in wanted})


def throughput(bench):
    places = (1, 16) if bench.quick else (1, 2, 4, 8, 16)
    points = []
    for workload in WORKLOADS:
        cells = [(VOLATILE, 1)] + [(name, x) for x in places
                                   for name in (INF, DUDE, SYNC, SYNC_3500)
                                   if name in (SYNC, SYNC_3500) or x in (1, 16)]
        values = _of_volatile(
            bench, workload, cells,
            lambda name, x: f"dudetm{'-3500' if name == SYNC_3500 else ''}+bandwidth={x}")
        points += [
            point(f"{name}, {workload}", x, ratios(rounds, values[VOLATILE, 1]))
            for (name, x), rounds in values.items() if name != VOLATILE
        ]
    return points


def _losses(points, name, x):
    return {w: 100 * (1 - median_of(points, f"{name}, {w}", x)) for w in WORKLOADS}


def _spelt(losses):
    return ", ".join(f"{w} {loss:.1f} %" for w, loss in losses.items())


def throughput_findings(points):
    inf = {
        w: median_of(points, f"{DUDE}, {w}", 1) / median_of(points, f"{INF}, {w}", 1)
        for w in WORKLOADS
    }
    return [
        f"DudeTM is below Volatile-STM by, at 1 GB/s: {_spelt(_losses(points, DUDE, 1))} (paper: "
        "7.4 to 24.6 %).",
        f"DudeTM has {min(inf.values()):.2f} to {max(inf.values()):.2f} times DudeTM-Inf's "
        "throughput (paper: almost the same).",
        f"DudeTM-Sync is below by, at 1 GB/s: {_spelt(_losses(points, SYNC, 1))}; with 3500 "
        f"cycles: {_spelt(_losses(points, SYNC_3500, 1))}."
    ]


OWN = {
    VOLATILE: "volatile", DUDE: "dudetm:async", SYNC: "dudetm-sync:durable",
    "shadow": "shadow:durable"
}


def own_tm(bench):
    points = []
    for workload, structure in WORKLOADS.items():
        wanted = {name: process_of(system, structure) for name, system in OWN.items()}
        values = measured(bench, wanted,
                          {name: (name, {"run": f"{structure}-1"}) for name in wanted})
        points += [
            point(name, workload, ratios(rounds, values[VOLATILE]))
            for name, rounds in values.items() if name != VOLATILE
        ]
    return points


def own_tm_findings(points):
    return [
        f"{name} has, of the volatile engine's throughput: " +
        ", ".join(f"{w} {median_of(points, name, w):.2f}" for w in WORKLOADS) + "." for name in OWN
        if name != VOLATILE
    ]


# --- table 1 --------------------------------------------------------------------------------------

WRITES, WRITTEN = "writes a transaction", "writes, millions a second"
ENTRIES, RATE, SHARE = ("16-byte log entries a transaction", "transactions, thousands a second",
                        "log, MB a second")
# The paper's: writes of a transaction, and millions of writes a second with four threads.
TABLE_1 = {
    "HashTable": (3.0, 15.5), "B+-tree": (15.8, 28.9), "TPC-C (hash)": (156.5, 30.5),
    "TPC-C (B+-tree)": (183.5, 17.2), "TATP (hash)": (1.0, 5.77), "TATP (B+-tree)": (1.0, 4.87)
}


def writes(bench):
    points = []
    for workload, structure in WORKLOADS.items():
        wanted = {
            DUDE: process_of(SYSTEMS[DUDE], structure),
            WRITES: process_of(SYSTEMS[DUDE], structure, more=("--count-writes", ))
        }
        found = measured(bench, wanted, {name: (name, {"run": f"{structure}-1"})
                                         for name in wanted}, lambda answer: answer)
        def each(name, counter):
            return [a["counters"][counter] / a["counters"]["commits"] for a in found[name]]

        stored, logged = each(WRITES, "writes"), each(DUDE, "log_bytes")
        rates = [a["rate"] for a in found[DUDE]]
        points += [
            point(WRITES, workload, stored),
            point(WRITTEN, workload, [n * rate / 1e6 for n, rate in zip(stored, rates)]),
            point(ENTRIES, workload, [n / 16 for n in logged]),
            point(RATE, workload, [rate / 1000 for rate in rates]),
            point(SHARE, workload, [n * rate / 1e6 for n, rate in zip(logged, rates)])
        ]
    return points


def writes_findings(points):
    def said(series, of_paper):
        return ", ".join(f"{w} {median_of(points, series, w):.1f}" +
                         (f" (paper: {of_paper[w]:g})" if of_paper else "") for w in WORKLOADS)

    found = [f"Log entries a transaction: {said(ENTRIES, None)}."]
    if median_of(points, WRITES) is None:  # kept before writes were counted
        return found
    return [
        f"Writes a transaction: {said(WRITES, {w: n for w, (n, _) in TABLE_1.items()})}.",
        f"Millions of writes a second: {said(WRITTEN, {w: m for w, (_, m) in TABLE_1.items()})}, "
        "the paper's with four threads.", *found
    ]


# --- table 4 --------------------------------------------------------------------------------------

OF_VOLATILE, OF_STM = "DudeTM-HTM, of Volatile-HTM's", "DudeTM-HTM, of DudeTM-STM's"
HTM = {
    "DudeTM-HTM": "dudetm/htm:async", "Volatile-HTM": "volatile/htm", "DudeTM-STM": SYSTEMS[DUDE]
}


def lacks_rtm(facts):
    """Why a machine can't run hardware transactions."""
    if facts.get("rtm") == "yes":
        return ""
    return (f"{facts['cpu']} has no RTM, Intel's hardware transactions, or has it switched off: "
            "`dudetm/htm` and `volatile/htm` are refused without it.")


def hardware(bench):
    points = []
    for workload, structure in WORKLOADS.items():
        wanted = {name: process_of(system, structure) for name, system in HTM.items()}
        values = measured(bench, wanted,
                          {name: (name, {"run": f"{structure}-1"}) for name in wanted})
        points += [
            point(series, workload, ratios(values["DudeTM-HTM"], values[other]))
            for series, other in ((OF_VOLATILE, "Volatile-HTM"), (OF_STM, "DudeTM-STM"))
        ]
    return points


def hardware_findings(points):
    return [
        f"{series}: " + ", ".join(f"{w} {median_of(points, series, w):.2f}"
                                  for w in WORKLOADS) + "." for series in (OF_VOLATILE, OF_STM)
    ]


# --- figure 5 -------------------------------------------------------------------------------------

def threads(bench):
    wanted = {name: process_of(SYSTEMS[name], "tpccb") for name in (VOLATILE, DUDE)}
    kinds = {"": 1, ", low conflict": 2}
    values = measured(
        bench, wanted,
        {(name, kind, n): (name, {"run": f"tpccb-{kinds[kind]}", "threads": n, "seconds": 0.15})
         for n in (1, 2) for kind in kinds for name in wanted})
    return [
        point(name + kind, n, ratios(rounds, values[name, kind, 1]))
        for (name, kind, n), rounds in values.items()
    ]


def threads_findings(points):
    return [
        "With two threads, of one thread's throughput: " +
        ", ".join(f"{s} {median_of(points, s, 2):.2f}"
                  for s in sorted({p.series for p in points})) +
        " (two cores, one of which Persist and Reproduce need too)."
    ]


SETUP = "one thread; 0.3 s a cell"
FIGURES = [
    Figure(
        "D-Fig2", "Throughput by bandwidth, of Volatile-STM's",
        "DudeTM is 7.4 % (TPC-C, B+-tree) to 24.6 % (HashTable) below Volatile-STM, DudeTM-Inf "
        "the same as DudeTM; DudeTM-Sync is behind, more at 3500 cycles where transactions are "
        "short.", SETUP + "; each ratio within a round",
        "bandwidth, GB/s", "throughput, of Volatile-STM's", throughput, throughput_findings,
        log_x=True, panel=lambda series: tuple(reversed(series.rsplit(", ", 1)))),
    Figure(
        "D-OwnTM", "The same over the library's own TM", "(not in the paper)", SETUP +
        "; `volatile`, `dudetm`, `dudetm-sync` over biased concurrency control, and the default "
        "engine",
        "workload", "throughput, of volatile's", own_tm, own_tm_findings, bars=True),
    Figure(
        "D-Tab1", "Writes",
        "HashTable 3.0 writes a transaction, B+-tree 15.8, TPC-C (hash) 156.5, TPC-C (B+-tree) "
        "183.5, TATP 1.0 over either; 15.5, 28.9, 30.5, 17.2, 5.77 (hash) and 4.87 million a "
        "second with four threads.", SETUP +
        "; DudeTM. A write is an 8-byte word that a committed transaction stores through the TM, "
        "in rows that it makes, too; what the allocator stores is none. They are counted exactly, "
        "in a process of their own, so that counting takes nothing of the throughput",
        "workload", "as the series says", writes, writes_findings, remark=
        "A row that is stored as a whole is one run in our log: a key and its words, so that "
        "TPC-C's entries are fewer than its writes.",
        bars=True, log_y=True),
    Figure("D-Fig5", "Threads, TPC-C (B+-tree)",
           "DudeTM's speed-up is the TM's; nearly linear where each thread has a district.",
           "1 and 2 threads; 0.15 s a cell", "threads", "throughput, of one thread's", threads,
           threads_findings),
    Figure(
        "D-Tab4", "STM and HTM",
        "DudeTM over hardware transactions is 11, 28 and 7 % below a volatile HTM (B+-tree, "
        "HashTable, TATP (B+-tree); the table's own figures for the hash table give 37 %), and "
        "up to 1.7 times as fast as over an STM.", SETUP +
        "; `dudetm/htm`, asynchronous, `volatile/htm`, `dudetm/stm`, asynchronous; on processors "
        "with RTM",
        "workload", "throughput, relative", hardware, hardware_findings, bars=True,
        needs=lacks_rtm),
]
