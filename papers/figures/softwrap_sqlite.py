# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's figure 16: TPC-C in SQLite (section V-E), and SQLite on a disk; bench/sqlite/main.cpp
measures a point."""

from .figure import Figure, median_of, point, ratios
from .softwrap_cells import NON_ATOMIC, SOFTWRAP, UNDO, options

BLOCKS, JOURNAL, WAL = "SCM VFS", "journal on disk", "WAL on disk"
PAGES, KEEPS_ONE = "SCM VFS, no journal", "SoftWrAP, SQLite's journal in DRAM"
OFF = {"no_journal": True}
ON_SCM = {
    NON_ATOMIC: OFF | {"database": "b-non-atomic"}, UNDO: OFF | {"database": "b-undo-log"},
    SOFTWRAP: OFF | {"database": "b", "engine": "softwrap/none"},
    KEEPS_ONE: {"database": "b", "engine": "softwrap/none"},
    "undo": OFF | {"database": "b", "engine": "undo/none"}, BLOCKS: {"database": "a"},
    PAGES: OFF | {"database": "a"}
}
ON_DISK = {JOURNAL: {"database": "journal"}, WAL: {"database": "wal"}}
POOLS = {
    "pool, shadow": {"database": "b"}, "pool, softwrap": {"database": "b", "engine": "softwrap"}
}


def _sqlite(bench, given, directory):
    return bench.call("perdure_bench_sqlite", "--dir", directory, *options(given), timeout=1800)


def _disk(bench):
    return bench.build_dir  # a file system on a disk, where the sources are


def _tpcc(bench):
    return {
        "workload": "tpcc", "commits": 300 if bench.quick else 3000,
        "divisor": 10 if bench.quick else 1
    }


def throughput(bench):
    tws = (0, 1000) if bench.quick else (0, 300, 600, 1000, 2000)
    cells = {(name, tw): (given | {"medium": "emulated", "tw": tw}, bench.directory)
             for name, given in ON_SCM.items() for tw in tws}
    cells |= {(name, "disk"): (given, _disk(bench)) for name, given in ON_DISK.items()}
    found = bench.interleave({
        key: lambda c=cell: _sqlite(bench,
                                    _tpcc(bench) | c[0], c[1])["rate"]
        for key, cell in cells.items()
    })
    return [
        point(series, x, rounds) for (series, at), rounds in found.items()
        for x in (tws if at == "disk" else (at, ))
    ]


def throughput_findings(points):
    tws = sorted({p.x for p in points})

    def over(name, below):
        return ", ".join(
            f"{median_of(points, name, tw) / median_of(points, below, tw):.2f} at {tw:g} ns"
            for tw in tws)

    journal = "" if not any(p.series == KEEPS_ONE for p in points) else (
        f" It has {over(SOFTWRAP, KEEPS_ONE)} times the throughput that it has where SQLite keeps "
        "a journal.")
    return [
        f"SoftWrAP has {over(SOFTWRAP, NON_ATOMIC)} of Non-Atomic's throughput, "
        f"{over(SOFTWRAP, UNDO)} times the Undo Log's, {over(SOFTWRAP, BLOCKS)} times the SCM "
        f"VFS's.{journal}",
        f"It has {over(SOFTWRAP, JOURNAL)} times that of SQLite's rollback journal on this disk "
        f"(paper: over 30, on a hard disk at 20 transactions/s), {over(SOFTWRAP, WAL)} times "
        "that of its WAL there."
    ]


WHAT = {"rate": "commits/s", "log_bytes": "log bytes", "device_bytes": "device bytes"}


def _beside(workload):
    def measure(bench):
        given = _tpcc(bench) if workload == "tpcc" else {
            "workload": "rows", "commits": 500 if bench.quick else 3000
        }
        cells = {name: given | own for name, own in (ON_DISK | POOLS).items()}
        found = bench.interleave(
            {name: lambda c=cell: _sqlite(bench, c, _disk(bench)) for name, cell in cells.items()})
        return [
            point(name, text, ratios([a[what] for a in answers], [a[what] for a in found[WAL]]))
            for name, answers in found.items()
            for what, text in WHAT.items() if what != "log_bytes" or name != JOURNAL
        ] + [
            point(name, "us a commit", [a["us"] for a in answers])
            for name, answers in found.items()
        ]
    return measure


def beside_findings(points):
    said = []
    for name in POOLS:
        rate, log, device = (median_of(points, name, text) for text in WHAT.values())
        said.append(
            f"{name}: {rate:.2f} times the WAL's commits/s (aim: 1.5 for one-row commits, ahead "
            f"on TPC-C), {100 * log:.1f} % of its bytes in the log (aim: 25), {100 * device:.0f} "
            "% of "
            f"its bytes to the device (aim: 100); {median_of(points, name, 'us a commit'):.0f} "
            f"us a commit, the WAL's {median_of(points, WAL, 'us a commit'):.0f}.")
    return said


TPCC = (
    "TPC-C's five transactions in SQL, one warehouse, one connection, synchronous=FULL, 3,000 "
    "transactions behind the load; departures from TPC-C are listed in "
    "bench/sqlite/tpcc_schema.hpp. Its "
    "consistency conditions and SQLite's integrity check hold after each run, and again in the "
    "reopened database."
)

DISK = "A virtual disk (ext4)."

FIGURES = [
    Figure(
        "S-Fig16", "SQLite, TPC-C, throughput",
        "SoftWrAP close to Non-Atomic; over 30 times SQLite's journal on a hard disk (under 20 "
        "transactions/s).",
        TPCC +
        " SoftWrAP, Undo Log, Non-Atomic: design B, where a commit is one wrap of the words that "
        "differ, and SQLite has no journal (journal_mode=off; the two baselines are those of the "
        "other figures, bench/sqlite/baseline_store.hpp). Undo: the library's recoverable engine "
        "in design B. SCM VFS: design A, whole pages of SQLite's and its journal, in the pool; "
        "without the journal a crash may leave it damaged. On the emulated medium, Tw swept; on "
        "disk SQLite itself, a rollback journal and a WAL.",
        "Tw, ns", "transactions a second", throughput, throughput_findings, log_y=True,
        systems=("the SQLite VFS", "undo"), remark=
        "The disk is a virtual one (ext4), which takes 0.1 ms for a durable write: no hard disk."
    ),
    Figure(
        "S-WalRows", "SQLite on one disk: one-row commits, relative to its WAL",
        "none; an aim of ours: 1.5 times the commits, a quarter of the log's bytes, no more "
        "bytes to the device.",
        "Rows of a number and 100 bytes, each inserted by a commit of its own, one connection, "
        "synchronous=FULL. A pool is a file on the same file system. Bytes to the device are the "
        "kernel's count for the process.",
        "relative to SQLite's WAL", "ratio", _beside("rows"), beside_findings, bars=True,
        log_y=True, systems=("the SQLite VFS", "shadow"), remark=DISK +
        " A durable write of 4 KiB takes 92 us on it, by O_DIRECT and O_DSYNC as by a buffered "
        "write and fdatasync (medians of five turns of 1,500, taken beside this figure), so no "
        "commit can take less; "
        "the WAL's has that one sync, too, and its checkpoints' beside.."),
    Figure(
        "S-WalTpcc", "SQLite on one disk: TPC-C, relative to its WAL",
        "none; an aim of ours: ahead of the WAL.", TPCC, "relative to SQLite's WAL", "ratio",
        _beside("tpcc"), beside_findings, bars=True, log_y=True,
        systems=("the SQLite VFS", "shadow"), remark=DISK +
        " softwrap takes its tables home often, page for page by syncs of the file, beside its "
        "commits; shadow in rare checkpoints."
    ),
]
