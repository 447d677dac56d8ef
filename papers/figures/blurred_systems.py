# SPDX-License-Identifier: BSD-3-Clause
"""Blurred Persistence's figures that compare systems: 7, 8, 13, 14; KVStore and Tokyo Cabinet; the
variants of flush_all."""

import statistics
import tempfile

from .blurred_cells import (AS_DRAWN, LOG, MNE_ASYNC, SYSTEMS, WBINVD, lines, measured, named,
                            process_of)
from .figure import Figure, Wanted, median_of, point, ratios

# --- figure 7 -------------------------------------------------------------------------------------

IN_ONE = 4  # operations per transaction of the B+-tree
WORKLOADS = {
    "SPS": ("sps", {"run": "sps-1"}), "Hash": ("hash", {"run": "hash-100"}),
    "RBTree": ("rb", {"run": "rb-100"}),
    "B+Tree": ("bp", {"run": "bp-100",
                      "per_transaction": IN_ONE}), "KVStore": ("tchash", {"run": "tchash-100"})
}


def _overall(delays, alone=False, systems=SYSTEMS):
    """alone: without isolation."""
    def measure(bench):
        those = {name: system.removesuffix("/stm") + "/none"
                 for name, system in systems.items()} if alone else systems
        wanted = {(name, w): process_of(system, structure, delays)
                  for w, (structure, _) in WORKLOADS.items() for name, system in those.items()}
        values = measured(bench, wanted,
                          {(name, w): ((name, w), WORKLOADS[w][1]) for name, w in wanted})
        return [
            point(name, w, ratios(rounds, values["BASE", w]))
            for (name, w), rounds in values.items()
        ]
    return measure


def _gains(points, above, below):
    gains = [median_of(points, above, w) / median_of(points, below, w) for w in WORKLOADS]
    return f"{min(gains):.2f} to {max(gains):.2f}, {statistics.mean(gains):.2f} on average"


def overall_findings(points):
    np = statistics.mean(1 - 1 / median_of(points, "NP", w) for w in WORKLOADS)
    return [
        f"BPPM has this many times BASE's throughput: {_gains(points, 'BPPM', 'BASE')} (paper: "
        f"1.56 to 2.44, 1.86); over MNE {_gains(points, 'BPPM', 'MNE')} "
        f"(paper: 1.75). XIL alone {_gains(points, 'BP(XIL)', 'BASE')} (1.10 to 1.51, 1.21), "
        f"VCBP alone {_gains(points, 'BP(VCBP)', 'BASE')} (1.52 to 1.85, 1.64).",
        f"BASE is {np:.0%} below NP on average (paper: 62 %)."
    ]


# --- figure 8 -------------------------------------------------------------------------------------

def _threads(structure):
    def measure(bench):
        wanted = {
            name: process_of(system, structure, rings=10)
            for name, system in named("BASE", "MNE", "BPPM", "NP").items()
        }
        counts = (1, 2) if bench.quick else (1, 2, 4, 8)
        return lines(
            measured(
                bench, wanted, {(name, n): (name, {"run": f"{structure}-100", "threads": n})
                                for n in counts for name in wanted}))
    return measure


def threads_findings(points):
    return [
        "BPPM's transactions take this much less time than BASE's: " + ", ".join(
            f"{1 - median_of(points, 'BASE', n) / median_of(points, 'BPPM', n):.0%} with {n:g}"
            for n in sorted({p.x for p in points})) + " threads (paper: about 40 % throughout)."
    ]


def aborts(bench):
    wanted = {(structure, name): process_of(system, structure, rings=10)
              for structure in ("hash", "rb") for name, system in named("BASE", "BPPM").items()}
    counts = (1, 2) if bench.quick else (1, 2, 4, 8)
    def share(answer):
        c = answer["counters"]
        return 100 * c["aborts"] / (c["aborts"] + c["commits"])
    label = {"hash": "Hash", "rb": "RBTree"}
    return lines(
        measured(
            bench, wanted,
            {(f"{label[s]}, {name}", n): ((s, name), {"run": f"{s}-100", "threads": n})
             for n in counts for s, name in wanted}, share))


def aborts_findings(points):
    return [
        "Of all attempts are aborted, with the most threads: " +
        ", ".join(f"{s} {median_of(points, s, max(p.x for p in points)):.1f} %"
                  for s in dict.fromkeys(p.series for p in points)) + "."
    ]


# --- figure 13 ------------------------------------------------------------------------------------

def latency(bench):
    steps = (35, 150, 2000) if bench.quick else (35, 95, 150, 1000, 2000)
    systems = named("BASE", "MNE", "BP(XIL)", "BP(VCBP)", "BPPM")
    wanted = {(name, ns): process_of(system, "hash", f"{WBINVD}+write={ns}") for ns in steps
              for name, system in systems.items()}
    return lines(measured(bench, wanted, {key: (key, {"run": "hash-100"}) for key in wanted}))


def latency_findings(points):
    places = sorted({p.x for p in points})
    def over(name):
        return ", ".join(
            f"{median_of(points, name, x) / median_of(points, 'BASE', x):.2f} at {x:g} ns"
            for x in places)

    return [
        f"BPPM has this many times BASE's throughput: {over('BPPM')} (paper: 1.74 at 35 ns, "
        f"about 3 at 2000 ns). BP(VCBP): {over('BP(VCBP)')} (paper: nearly 5 at 2000 ns)."
    ]


# --- figure 14 ------------------------------------------------------------------------------------

def idle(bench):
    shares = (90, 50, 0) if bench.quick else (90, 70, 50, 30, 10, 0)
    systems = {
        "BASE": SYSTEMS["BASE"], "MNE-SYNC": SYSTEMS["MNE"], "MNE-ASYNC": MNE_ASYNC,
        **named("BPPM", "NP")
    }
    wanted = {
        name: process_of(system, "hashv", value_bytes=1024) for name, system in systems.items()
    }
    return lines(
        measured(
            bench, wanted,
            {(name, x): (name,
                         {"run": "hashv-100", "idle": x, "seconds": 0.3 if bench.quick else 1})
             for x in shares for name in wanted}))


def idle_findings(points):
    places = sorted({p.x for p in points}, reverse=True)
    def over(name, other):
        return ", ".join(
            f"{median_of(points, name, x) / median_of(points, other, x):.2f} at {x:g} %"
            for x in places)

    def better(x):
        return max(median_of(points, 'MNE-ASYNC', x), median_of(points, 'MNE-SYNC', x))

    return [
        f"ASYNC has this many times SYNC's throughput: {over('MNE-ASYNC', 'MNE-SYNC')} of idle "
        "time (paper: behind when busy). BPPM's over the better of the two: " + ", ".join(
            f"{median_of(points, 'BPPM', x) / better(x):.2f} at {x:g} %"
            for x in places) + " (paper: ahead throughout)."
    ]


# --- KVStore beside Tokyo Cabinet -----------------------------------------------------------------

TREE, HASH = "Tokyo Cabinet", "Tokyo Cabinet in memory"


def kv(bench):
    with tempfile.TemporaryDirectory(prefix="perdure-figures-", dir=bench.build_dir) as disk:
        wanted = {(name, "tmpfs"): process_of(SYSTEMS.get(name, name), "tchash")
                  for name in ("BPPM", "BASE", "shadow:durable", "NP")}
        wanted |= {
            (name, "disk"): Wanted(SYSTEMS.get(name, name), "tchash", ("--medium", "file"),
                                   directory=disk)
            for name in ("BPPM", "shadow:durable")
        }
        wanted[HASH, "tmpfs"] = Wanted("tokyocabinet-memory", "tchash", (), "perdure_bench_peers")
        # The same operations on a store that has a tree of its own.
        wanted |= {(TREE, where): Wanted("tokyocabinet", "kvstore", (), "perdure_bench_peers",
                                         directory)
                   for where, directory in (("tmpfs", None), ("disk", disk))}
        # A harness's batch of 16 takes long on a disk.
        return lines(
            measured(
                bench, wanted, {
                    key: (key, {"run": f"{w.structure}-100",
                                **({"seconds": 3} if key[1] == "disk" else {})})
                    for key, w in wanted.items()
                }))


def kv_findings(points):
    def over(name, where, other=TREE):
        return median_of(points, name, where) / median_of(points, other, where)

    found = [
        "Tokyo Cabinet's B+-tree takes this many times as long as BPPM: "
        f"{over('BPPM', 'tmpfs'):.1f} on tmpfs, where 150 ns a line are charged to BPPM and "
        "nothing to it, and "
        f"{over('BPPM', 'disk'):.2f} on one file system; as long as Perdure's default engine: "
        f"{over('shadow:durable', 'tmpfs'):.1f} and {over('shadow:durable', 'disk'):.1f}."
    ]
    if median_of(points, HASH, "tmpfs") is not None:  # kept rows have been measured without it
        found.append(
            "Its in-memory database, whose calls are no transactions, takes this many times as "
            f"long as NP, whose are: {over('NP', 'tmpfs', HASH):.2f}.")
    return found


# --- flush_all's forms ----------------------------------------------------------------------------

FORMS = {
    "lines marked": ("lines", None), "pages marked": ("pages", None), "every line": ("all", None),
    "msync, disk": ("msync", True)
}


def forms(bench):
    stores = (1024, 32768) if bench.quick else (256, 1024, 4096, 32768, 262144)
    with tempfile.TemporaryDirectory(prefix="perdure-figures-", dir=bench.build_dir) as disk:
        def cell(form, on_disk, n):
            def once():
                found = bench.call("perdure_bench_flush_all", "--form", form, "--stores", n,
                                   "--dir", disk if on_disk else bench.directory, "--rounds", 3)
                return found["store_ns"] + found["flush_ns"]
            return once

        return lines(
            bench.interleave({(name, n): cell(form, on_disk, n) for n in stores
                              for name, (form, on_disk) in FORMS.items()}))


def forms_findings(points):
    places = sorted({p.x for p in points})
    return [
        "Lines marked take this share of the time: " + "; ".join(f"of {name} " + ", ".join(
            f"{median_of(points, 'lines marked', x) / median_of(points, name, x):.2g} at {x:g}"
            for x in places) for name in FORMS if name != "lines marked") + "."
    ]


# --- the list -------------------------------------------------------------------------------------

SET_UP = (
    "One thread; the systems over the same write-back STM, NP over an STM on memory without any "
    "log. SPS: one swap of 1 M words a transaction; Hash, RBTree: an insertion or removal of 1 "
    f"M keys; B+Tree: nodes of 4 KiB, 200 pairs, {IN_ONE} insertions or removals a transaction, "
    "of 200,000 keys; KVStore: Tokyo Cabinet's in-memory hash database made anew over each "
    "system's transactions (eight maps of buckets that are trees, each with a list of its "
    "records), 16-byte keys, 100-byte values, an insertion or removal of 200,000 keys. MNE "
    "truncates its log at once (SYNC).")
CLAIM = (
    "BPPM 56.3 to 143.7 % (86.3 % on average) over BASE, 74.6 % over MNE; XIL 9.7 to 50.5 % "
    "(21.3), VCBP 52.2 to 84.8 % (63.5); BASE 62.1 % below NP."
)

FIGURES = [
    Figure("B-Fig7", "throughput, normalised to BASE", CLAIM, SET_UP, "workload",
           "times BASE's throughput", _overall(WBINVD), overall_findings, bars=True),
    Figure(
        "B-Fig7L", "the same, each line of bulk persistence charged", CLAIM,
        SET_UP + " As a program pays that has no wbinvd: 150 ns for each line that "
        "bulk persistence writes, though a cache would have evicted many before.", "workload",
        "times BASE's throughput", _overall("blurred"), overall_findings, bars=True, remark=
        "Words are drawn uniformly, so a log of 1 MiB is full before many lines were stored to "
        "twice: bulk persistence writes nearly as many lines as BASE does, and saves "
        "the fences and the log's control line."),
    Figure(
        "B-Fig7N", "the same as B-Fig7, nothing isolates", CLAIM,
        SET_UP.replace("over the same write-back STM, NP over an STM on memory without any log",
                       "without any concurrency control, NP "
                       "plain memory and a heap") +
        " The paper runs one thread to leave the effects of concurrency control out; its systems "
        "have their STM there, too.",
        "workload", "times BASE's throughput", _overall(WBINVD,
                                                        alone=True), overall_findings, bars=True),
    Figure(
        "B-Fig7D", "the same as B-Fig7, the systems as they are drawn", CLAIM,
        SET_UP + " BASE: the commit record behind a fence, then the tail pointer, the head pointer "
        "at the end, as in Figure 2 (b). MNE: all of its log past the cache. BP(XIL): no word says "
        "what the data region has, until the log is full.", "workload",
        "times BASE's throughput", _overall(WBINVD, systems=AS_DRAWN), overall_findings, bars=True),
    Figure(
        "B-Fig8H", "Hash, threads",
        "persistence overhead down about 40 % throughout; throughput drops from 4 to 8 threads, "
        "on 4 cores.",
        "Hash as in B-Fig7. Where there are more threads than processors they take turns.",
        "threads", "transactions a second", _threads("hash"), threads_findings),
    Figure("B-Fig8R", "RBTree, threads", "persistence overhead down about 43 % throughout.",
           "RBTree as in B-Fig7.", "threads", "transactions a second", _threads("rb"),
           threads_findings),
    Figure(
        "B-Fig8A", "threads, aborts", "about 1 % with 4 threads, over 50 % with 8 (Hash).",
        "Hash and RBTree as in B-Fig7.", "threads", "aborted, % of all attempts", aborts,
        aborts_findings, remark=
        "Two processors, 1 M keys and a conflict only where two transactions meet in a word: "
        "there is little to abort. The paper's 8 threads had 4 cores, and its STM is not named."
    ),
    Figure(
        "B-Fig13", "Hash, memory latency",
        "BPPM over BASE 74.1 % at 35 ns, about 3x at 2000 ns; BP(VCBP) nearly 5x there, so BPPM "
        "falls below it.",
        "Hash as in B-Fig7; a flushed line takes so long in addition.",
        "added latency of a line, ns", "transactions a second", latency, latency_findings,
        log_x=True, log_y=True),
    Figure(
        "B-Fig14", "idle time", "MNE-ASYNC falls behind MNE-SYNC when busy; BPPM ahead throughout.",
        "A hash table with values of 1024 bytes, 1 M keys, half of them present; the thread "
        "sleeps for so much of its time, a millisecond or more each time. ASYNC's thread has a "
        "processor of its own.",
        "idle time, %", "transactions a second", idle, idle_findings),
    Figure(
        "B-KV", "KVStore beside Tokyo Cabinet (not in the paper)",
        "the paper runs Tokyo Cabinet itself on each system; no figure against the original.",
        "KVStore as in B-Fig7. Tokyo Cabinet 1.4.48 from Debian: its B+-tree database, a "
        "transaction an operation, BDBOTSYNC. On disk both are durable when the operation "
        "returns. Beside them its in-memory hash database, after which KVStore is made: nothing is "
        "durable, and no call is a transaction. The paper does not say which of Tokyo Cabinet's "
        f"databases it runs. Log of {LOG >> 20} MiB on tmpfs, the default on disk.", "where",
        "transactions a second", kv, kv_findings, bars=True, log_y=True, systems=("shadow", )),
    Figure(
        "B-Forms", "flush_all without wbinvd (not in the paper)",
        "none: the paper has wbinvd, which a program can't use.",
        "Random word stores to 64 MiB, then a flush of everything; nothing is added for a line. "
        "Lines marked: a mark a line and a byte a page, what the emulated and dax media do. "
        "Pages marked: all 64 lines of a page that was stored to. Every line: no marks. msync: "
        "the kernel's marks, on a file system.",
        "stores between two flushes", "ns a store, the flush included", forms, forms_findings,
        log_x=True, log_y=True, remark=
        "So the medium marks lines. A program that stores to most lines of its memory between "
        "two flushes would do as well with pages; none of the papers' does. The same marks "
        "tell a checkpoint what REWIND's no-force has to write."),
]
