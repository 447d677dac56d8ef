# SPDX-License-Identifier: BSD-3-Clause
"""REWIND's figures of a B+-tree (section 5.2): logging, rollback, recovery, threads, the memory
fence's latency.

The tree is bench/workloads/bplus_tree.hpp; perdure_bench_engines runs cells of it,
perdure_bench_rewind_tree what a cell does not offer.
"""

import tempfile

from report.driver import Failed

from .figure import Figure, Wanted, median_of, point, processes, ratios

REWIND = {
    "Simple": "rewind-1l-nfp-simple/none", "Optimized": "rewind-1l-nfp-optimized/none",
    "Batch": "rewind-1l-nfp-batch/none"
}
BATCH = REWIND["Batch"]
OPERATIONS = 200_000
MIB = 1 << 20
LOG = 256 * MIB  # no checkpoint in a run, as in the paper


def _tree(bench, system, experiment, medium=("--delays", "rewind"), directory=None, log=LOG,
          **arguments):
    """Runs one measurement; returns its seconds."""
    given = [
        text for name, value in arguments.items() for text in ("--" + name.replace("_", "-"), value)
    ]
    return bench.call("perdure_bench_rewind_tree", "--system", system, "--experiment", experiment,
                      "--dir", directory or bench.directory, "--log-size", log, *medium,
                      *given)["seconds"]


# --- figure 7 -------------------------------------------------------------------------------------

MANY = 200  # operations of a long transaction
LONG = f"Batch, {MANY} operations a transaction"


def logging(bench):
    systems = {"DRAM": "plain", "NVM": "nvm", **REWIND}
    shares = (0, 50, 100) if bench.quick else (0, 20, 40, 60, 80, 100)
    seconds = 0.2 if bench.quick else 0.4
    options = ("--delays", "rewind", "--log-size", LOG, "--rings", 1)
    with processes(bench, {name: Wanted(system, "bt", options)
                           for name, system in systems.items()}) as opened:
        def cell(name, share):
            def once():
                answer = opened[name].ask(
                    {"run": f"bt-{share}", "seconds": seconds, "warmup": 0.05})
                # The log is empty afterwards.
                looked = opened[name].ask({"audit": True, "reopen": True})
                if looked["problems"]:
                    raise Failed(f"{name}: {looked['problems'][0]}")
                return OPERATIONS / answer["rate"]
            return once

        cells = {(name, share): cell(name, share) for share in shares for name in systems}
        few = 20_000 if bench.quick else OPERATIONS  # the tree is made anew for each
        cells |= {(LONG, share): lambda s=share: _tree(bench, BATCH, "run", operations=few, percent=
                                                       s, per_transaction=MANY) * OPERATIONS / few
                  for share in shares}
        values = bench.interleave(cells)
    return [point(name, share, v) for (name, share), v in values.items()]


def logging_findings(points):
    y = {name: median_of(points, name, 100) for name in ("NVM", *REWIND)}
    found = [
        f"At 100 % updates Optimized takes {1 - y['Optimized'] / y['Simple']:.0%} less time than "
        f"Simple and Batch {1 - y['Batch'] / y['Simple']:.0%} less (paper: 27 % and 37 %)."
    ]
    shares = sorted({p.x for p in points if p.x > 0})
    def over(series):
        return ", ".join(
            f"{median_of(points, series, x) / median_of(points, 'NVM', x):.1f} at {x:g} %"
            for x in shares)

    return [
        *found,
        f"Batch takes this many times NVM's time: {over('Batch')}; with {MANY} operations a "
        f"transaction {over(LONG)} (paper: within 1.5)."
    ]


def against_berkeley(bench):
    shares = (0, 100) if bench.quick else (0, 25, 50, 75, 100)
    # Each takes half a minute, because the tree is made there, too.
    on_disk_shares = (100,) if bench.quick else (50, 100)
    with tempfile.TemporaryDirectory(prefix="perdure-figures-", dir=bench.build_dir) as disk:
        def cell(system, share, on_disk):
            def once():
                operations = (300 if bench.quick else 1000) if on_disk else (
                    40_000 if bench.quick else OPERATIONS)
                place = {"medium": ("--medium", "file"), "directory": disk, "log": 128 *
                         MIB} if on_disk else {}
                return _tree(bench, system, "run", operations=operations, percent=share, **
                             place) / operations * 1e6
            return once

        values = bench.interleave({
            (f"{name}, {'disk' if on_disk else 'tmpfs'}", share): cell(system, share, on_disk)
            for on_disk in (False, True) for share in (on_disk_shares if on_disk else shares)
            for name, system in (("REWIND Batch", BATCH), ("Berkeley DB", "berkeleydb"))
        })
    return [point(name, share, v) for (name, share), v in values.items()]


def _times(points, above, below, x):
    return median_of(points, above, x) / median_of(points, below, x)


def against_berkeley_findings(points):
    return [
        "At 100 % updates Berkeley DB takes "
        f"{_times(points, 'Berkeley DB, tmpfs', 'REWIND Batch, tmpfs', 100):.1f} times as long "
        "as REWIND on tmpfs, 150 ns a "
        "written line charged to both (paper: 105), and "
        f"{_times(points, 'Berkeley DB, disk', 'REWIND Batch, disk', 100):.1f} times on a file "
        "system, durable at "
        "each commit. Look-ups alone: "
        f"{_times(points, 'Berkeley DB, tmpfs', 'REWIND Batch, tmpfs', 0):.1f} times."
    ]


# --- figure 8 -------------------------------------------------------------------------------------

def _beside_berkeley(bench, places, once):
    """once(system, x) measures seconds; the figure shows milliseconds."""
    systems = {"REWIND Batch": BATCH, "Berkeley DB": "berkeleydb"}
    values = bench.interleave({(name, x): lambda s=system, x=x: 1e3 * once(s, x) for x in places
                               for name, system in systems.items()})
    return [point(name, x, v) for (name, x), v in values.items()]


def rollback(bench):
    return _beside_berkeley(bench, (1000, 5000) if bench.quick else
                            (2000, 5000, 10_000, 20_000, 50_000),
                            lambda system, n: _tree(bench, system, "rollback", operations=n))


def recovery(bench):
    each = 200
    return _beside_berkeley(
        bench, (40, 400) if bench.quick else (400, 1000, 2000, 4000),
        lambda system, n: _tree(bench, system, "recovery", transactions=n, per_transaction=each, log
                                =16 * MIB + n * each * 560 // MIB * MIB))


def beside_berkeley_findings(paper):
    def findings(points):
        places = sorted({p.x for p in points})
        text = ", ".join(f"{_times(points, 'Berkeley DB', 'REWIND Batch', x):.2f} at {x:g}"
                         for x in places)
        return [f"Berkeley DB takes this many times REWIND's time: {text} (paper: {paper})."]
    return findings


# --- figure 9 -------------------------------------------------------------------------------------

def threads(bench):
    systems = {
        "REWIND Batch": "rewind-1l-nfp-batch", "REWIND Batch, stm": "rewind-1l-nfp-batch/stm",
        "Berkeley DB": "berkeleydb", "shadow": "shadow"
    }
    operations = 10_000 if bench.quick else 100_000
    counts = (1, 2, 4) if bench.quick else (1, 2, 4, 8)
    values = bench.interleave({(name, n): lambda s=system, n=n: _tree(
                                   bench, s, "threads", operations=operations, threads=n, log=LOG)
                               for n in counts for name, system in systems.items()})
    return [point(name, n, v) for (name, n), v in values.items()]


def threads_findings(points):
    most = max(p.x for p in points)
    grown = ", ".join(f"{name} {_times_x(points, name, most):.1f}"
                      for name in dict.fromkeys(p.series for p in points))
    return [
        f"From one thread to {most:g}, each with as much to do, the time grows this many times: "
        f"{grown}.",
        f"At {most:g} Berkeley DB takes "
        f"{_times(points, 'Berkeley DB', 'REWIND Batch', most):.1f} times as long as REWIND."
    ]


def _times_x(points, series, x, first=1):
    return median_of(points, series, x) / median_of(points, series, first)


# --- figure 10 ------------------------------------------------------------------------------------

FENCED = ("Optimized", "Batch 8", "Batch 16", "Batch 32")


def single(name):
    """The series with one operation per transaction, as in R-Fig7L."""
    return f"{name}, single"


def fences(bench):
    latencies = (0, 1000, 4000) if bench.quick else (0, 500, 1000, 2000, 3000, 4000)
    operations = 20_000 if bench.quick else 100_000
    groups_of = {name: int(name.partition(" ")[2] or 0) for name in FENCED}
    kinds = {shape(name): (BATCH if group else REWIND[name], group, many)
             for shape, many in ((single, 1), (str, MANY)) for name, group in groups_of.items()}

    def cell(kind, ns):
        system, group, many = kinds[kind]
        return lambda: _tree(bench, system, "run", ("--delays", f"rewind+fence={ns}"), operations=
                             operations, percent=100, per_transaction=many, log_group=group)

    values = bench.interleave({(kind, ns): cell(kind, ns) for ns in latencies for kind in kinds})
    return [
        point(kind, ns, ratios(v, values[kind, latencies[0]])) for (kind, ns), v in values.items()
    ]


def _at(points, series, x):
    """The series' y at x, interpolated linearly between its points; beyond them, along the last
    two."""
    own = sorted((p.x, p.y) for p in points if p.series == series)
    n = next((n for n in range(1, len(own)) if own[n][0] >= x), len(own) - 1)
    (x0, y0), (x1, y1) = own[n - 1], own[n]
    return y0 + (x - x0) * (y1 - y0) / (x1 - x0)


def fences_findings(points):
    there = {p.series for p in points}
    return [
        _fences_sentence(points, what, [name for name in map(shape, FENCED) if name in there])
        for shape, what in ((single, "one operation"), (str, f"{MANY} operations"))
        if shape(FENCED[0]) in there
    ]


def _fences_sentence(points, what, names):
    own = sorted((p.x, p.y) for p in points if p.series == names[0])
    last, slowest = own[-1]
    where = last
    for (x0, y0), (x1, y1) in zip(own, own[1:]):
        if y0 < 5 <= y1:
            where = x0 + (x1 - x0) * (5 - y0) / (y1 - y0)
            break
    slow = _at(points, names[0], where)
    others = ", ".join(f"{name} {_at(points, name, where):.2f}" for name in names[1:])
    reached = ("" if slowest >= 5 else
               f" (5 is not reached: the largest latency measured is {last:g} ns)")
    return (
        f"With {what} a transaction: where a fence takes {where:.0f} ns more {names[0]} is "
        f"{slow:.1f} times slower{reached}; then {others} (paper: 5, and 1.63, 1.32 and 1.18 for "
        "groups of 8, 16 and 32).")


# --- group size: what the paper leaves for later --------------------------------------------------

GROUPS = (8, 16, 32, 64, 128)


def groups(bench):
    operations = 20_000 if bench.quick else 100_000
    many = (1, MANY) if bench.quick else (1, 10, MANY)
    values = bench.interleave({
        (m, g): lambda m=m, g=g: _tree(bench, BATCH, "run", operations=operations, percent=100,
                                       per_transaction=m, log_group=g) for m in many for g in GROUPS
    })
    return [
        point(f"{m} operation{'s' if m > 1 else ''} a transaction", g,
              ratios(v, values[m, GROUPS[0]])) for (m, g), v in values.items()
    ]


def groups_findings(points):
    best = {
        series: min((p.y, p.x) for p in points if p.series == series)
        for series in dict.fromkeys(p.series for p in points)
    }
    return [
        "; ".join(
            f"{series}: the best group is {x:g}, {y:.2f} of the time of 8, and 32 takes "
            f"{median_of(points, series, 32):.2f}"
            for series, (y, x) in best.items()) + "."
    ]


# --- the list -------------------------------------------------------------------------------------

TREE = (
    "A B+-tree of 100,000 records of 32 bytes (8-byte key, 24 bytes; leaves of 32 slots, not "
    "sorted) of 200,000 keys. An update inserts where the key is absent and removes where it is "
    "present; one operation a transaction. One layer, no-force, no checkpoint in a run; single "
    "threads without isolation."
)
BERKELEY = (
    "Berkeley DB 5.3, its own B-tree, the same records, log synced at commit, no locking on one "
    "thread; on tmpfs 150 ns are charged for each 64-byte line that it writes with a system "
    "call, not for its cache.")

FIGURES = [
    Figure(
        "R-Fig7L", "B+-tree, against no recovery",
        "Optimized 27 % and Batch 37 % better than Simple; within 1.5x of non-recoverable NVM.",
        TREE + " DRAM: plain memory. NVM: every store written back and fenced, nothing else.",
        "updates, % of the operations", "seconds for 200,000 operations", logging, logging_findings,
        remark=
        "An insertion logs six records, a removal two, END among them, a line each; NVM writes "
        "two lines, or one. That alone is more than 1.5 times where updates prevail. Our commit "
        "is durable when it returns, so a group ends with its transaction; the paper does not "
        "say how many operations one of its transactions has."
    ),
    Figure(
        "R-Fig7R", "B+-tree, against Berkeley DB",
        "105x faster than Berkeley DB at 100 % updates (Stasis 85x, Shore-MT 205x).",
        TREE + " " + BERKELEY +
        " Disk: both on one file system, durable at each commit, REWIND on the file medium.",
        "updates, % of the operations", "microseconds an operation", against_berkeley,
        against_berkeley_findings, log_y=True),
    Figure(
        "R-Fig8L", "B+-tree, rollback of one transaction",
        "12x faster than Berkeley DB (Stasis 30x, Shore-MT 4x).",
        TREE.replace("one operation a transaction", "all in one "
                     "transaction, which is then rolled back") + " " + BERKELEY, "operations",
        "milliseconds", rollback, beside_berkeley_findings("12"), log_y=True),
    Figure(
        "R-Fig8R", "B+-tree, recovery",
        "14x faster than Berkeley DB (Stasis 20x, Shore-MT 8x), 400 to 4,000 transactions of 200 "
        "operations.",
        TREE.replace("one operation a transaction", "200 operations a transaction") + " " +
        BERKELEY + " The process ends without closing; the time is that of the next opening. "
        "REWIND's log is as large as the transactions need.", "transactions", "milliseconds",
        recovery, beside_berkeley_findings("14"), log_y=True),
    Figure(
        "R-Fig9", "B+-tree, threads",
        "REWIND scales significantly better than the others after 3 threads.",
        "100,000 operations a thread (10,000 in a quick run), each a look-up or an insert/delete "
        "pair, two transactions; of a thread's 20 to 80 % are look-ups. "
        "REWIND: a log a thread, the pool's one lock, or transactional memory (stm). Berkeley DB: "
        "updates under a mutex, look-ups read uncommitted, as in the paper. shadow: Perdure's "
        "default engine. Where there are more threads than processors they take turns.", "threads",
        "seconds", threads, threads_findings, systems=("shadow", )),
    Figure(
        "R-Fig10", "B+-tree, the memory fence's latency",
        "Optimized 5x slower; groups of 8, 16 and 32 1.63x, 1.32x and 1.18x.",
        TREE.replace(
            "one operation a transaction",
            "one operation a transaction ('single'), as in R-Fig7L, which the paper repeats "
            f"here, and beside it {MANY}"
        ) + " 100 % updates; each fence takes so long in addition.", "added latency of a fence, ns",
        "slow-down", fences, fences_findings, remark=
        "A transaction's last group is in the log when its commit returns, so with one operation "
        "a transaction a group has no more records than that: what larger groups are for shows "
        "in longer transactions."),
    Figure(
        "R-Group", "B+-tree, Batch's group (not in the paper)",
        "the group size is to be tuned by itself: named as future work.",
        TREE.replace("; one operation a transaction", "") +
        " 100 % updates; time relative to a group of 8.", "records a group",
        "time, relative to a group of 8", groups, groups_findings, log_x=True),
]
