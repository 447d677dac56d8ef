#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Perdure's benchmarks: many systems in turn, in interleaved rounds; medians with their
spread; ratios within a round.

`./dev bench` builds and calls this. What is measured and how to read it: bench/README.md.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from report import (apps, compare, latency_plot, lost, machine, micro, plot, readers, replicated,
                    systems, workloads)
from report import file as file_bench
from report.driver import Failed

IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
# The reports with aims of their own; compare makes all others.
REPORTS = {
    "micro": micro, "file": file_bench, "apps": apps, "readers": readers, "replicated": replicated,
    "lost": lost
}
#            seconds, warm-up, of --quick, threads
USUAL = {
    "micro": (0.25, 0.05, 0.07, 0.02, [1, 2]), "file": (1.0, 0.1, 0.3, 0.05, [1, 2, 16]),
    "apps": (1.0, 0.1, 0.3, 0.05, [1, 4]), "readers": (2.0, 0.0, 0.5, 0.0, [1]),
    "replicated": (2.0, 0.0, 0.3, 0.0, [1]), "lost": (5.0, 0.0, 1.0, 0.0, [1]),
    "": (0.3, 0.05, 0.1, 0.02, [1])
}


def numbers(text):
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1 or found[-1] > 64:
        raise argparse.ArgumentTypeError(
            f"found '{text}', expected numbers from 1 to 64 with commas between them")
    return found


def names(text):
    return [part for part in text.split(",") if part]


def at_least(least, kind):
    def parse(text):
        value = kind(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"found {text}, expected at least {least}")
        return value

    parse.__name__ = kind.__name__
    return parse


def parser():
    root = Path(__file__).resolve().parent.parent
    p = argparse.ArgumentParser(
        prog="./dev bench", description=" ".join(__doc__.split("\n\n")[0].split()),
        formatter_class=argparse.RawDescriptionHelpFormatter, epilog="WHAT is one of\n"
        "  list       the workloads, and the systems that each runs on\n"
        "  WORKLOAD   such as ycsb-a or hash-100,tpccb-1; a structure alone (ycsb) is all of its "
        "workloads\n"
        "  micro      SPS, hash table and red-black tree in memory, beside libpmemobj and the "
        "hardware's bound\n  file       puts on a real file system, beside SQLite, LMDB, RocksDB "
        "and Berkeley DB\n  apps       the three example programs, beside LMDB and SQLite: lines "
        "of code and throughput\n  "
        "readers    a writer beside a process that reads or backs up, beside LMDB and SQLite\n"
        "  replicated updates that wait for a quorum, beside bare appends; what shipping costs\n"
        "  lost       what is lost with a primary, beside SQLite with Litestream and Redis\n\n"
        "Tables go to standard output, progress to standard error; "
        "the JSON and the pictures are written into --out.\nSee bench/README.md for what is "
        "measured and how to read it.")
    p.add_argument("what", metavar="WHAT",
                   help="list, micro, file, apps, readers, replicated, lost, or workloads with "
                   "commas between")
    p.add_argument(
        "--engine", "--systems", type=names, default=[], metavar="A,B", help=
        "only these: engines (shadow), systems whole (shadow/stm:async), peers (lmdb). Unless "
        "told: every engine that isolates, over its own TM, durable, and the peers that wait")
    p.add_argument(
        "--tm", type=names, default=[], metavar="A,B",
        help="the engines over these concurrency controls (stm, none, ...) instead of their own")
    p.add_argument("--mode", type=names, default=[], metavar="A,B",
                   help="in these modes: durable, group, async, blocks, pass, chosen and "
                   "chosen-clang (docs/plain.md), snapshot, archive, backup, checksums (peers': "
                   "nosync, normal, off)")
    p.add_argument(
        "--compare", nargs="?", const="", default=None, metavar="BASE", help=
        "show each system's ratio to BASE (shadow:durable, or the first), taken within a round, "
        "and draw a picture")
    p.add_argument(
        "--latency", action="store_true", help=
        "take each operation's time until its thread knows that it is durable, too: p50, p90, "
        "p99, p99.9 and the longest in a table, and a picture of the percentiles (file: always; "
        "not with micro)")
    p.add_argument(
        "--medium", choices=("emulated", "file"), default=None, help=
        "where pools and stores lie: tmpfs, or a file system on a device (emulated; file and apps: "
        "file)")
    p.add_argument("--page", action="store_true",
                   help="apps: write the tables into docs/programs.md")
    p.add_argument(
        "--delays", default="none", metavar="NAME", help=
        "what the emulated medium, and libpmemobj's flushes and drains, are charged: a paper's "
        "delays (docs/media.md); the other peers are charged nothing")
    p.add_argument("--threads", type=numbers, default=None,
                   help="thread counts (1; micro: 1,2; file: 1,2,16; apps: 1,4)")
    p.add_argument("--rounds", type=at_least(1, int), default=5,
                   help="interleaved rounds (5); fewer are no result")
    p.add_argument(
        "--seconds", type=at_least(0.01, float), default=None, help=
        "measured time of a cell (0.3; micro: 0.25, a third of it for the engines' other "
        "concurrency controls; file and apps: 1)")
    p.add_argument("--warmup", type=at_least(0.0, float), default=None,
                   help="time before that (0.05; file and apps: 0.1)")
    p.add_argument("--quick", action="store_true",
                   help="shorter cells; micro: the engines' own concurrency control only")
    p.add_argument(
        "--log-size", type=at_least(0, int), default=None, metavar="MIB", help=
        "size of a log in MiB, of each thread's where it has its own (0: the default; 16 unless "
        "told on the emulated medium)")
    p.add_argument("--max-resident", type=at_least(0, int), default=0, metavar="MIB",
                   help="what a shadow may take of DRAM (0: no limit)")
    p.add_argument("--records", type=at_least(0, int), default=0,
                   help="how many, in structures that let it vary (0: theirs)")
    p.add_argument("--value-bytes", type=at_least(8, int), default=0,
                   help="a value's size, in structures that let it vary")
    p.add_argument("--json", action="store_true",
                   help="print the JSON report on standard output instead of the tables")
    p.add_argument("--build-dir", type=Path, default=root / "build" / "bench",
                   help="where the bench preset was built (build/bench)")
    p.add_argument(
        "--dir", type=Path, default=None,
        help="where pools and stores are put (emulated: /dev/shm; file: the build directory)")
    p.add_argument("--out", type=Path, default=None,
                   help="where the report is put (default: BUILD_DIR/reports)")
    return p


def arguments():
    args = parser().parse_args()
    args.kind = args.what if args.what in (*REPORTS, "list") else ""
    args.workloads = []
    if not args.kind:
        for name in names(args.what):
            own = workloads.STRUCTURES.get(name)
            try:
                args.workloads += own.workloads if own else [name] * bool(
                    workloads.structure_of(name))
            except ValueError as error:
                raise Failed(f"{error} (or list, micro, file, apps, readers, "
                             "replicated, lost)") from None
    if args.kind == "micro" and args.latency:
        raise Failed(
            "found --latency with micro, which measures rates; expected workloads, such as "
            "./dev bench sps,hash,rb --latency")
    if args.page and args.kind != "apps":
        raise Failed(f"found --page with {args.what}, expected it with apps")
    if args.kind == "apps":
        args.workloads, args.engine = apps.WORKLOADS, args.engine or apps.SYSTEMS
        args.compare = args.compare or apps.BASE
    if args.kind in ("file", "readers", "replicated", "lost"):
        args.medium = "file"
    args.medium = args.medium or ("file" if args.kind == "apps" else "emulated")
    seconds, warmup, quick, quick_warmup, threads = USUAL.get(args.kind, USUAL[""])
    args.seconds = args.seconds or (quick if args.quick else seconds)
    args.warmup = args.warmup if args.warmup is not None else quick_warmup if args.quick else warmup
    args.threads = args.threads or threads
    args.dir = args.dir or (args.build_dir if args.medium == "file" else Path("/dev/shm"))
    if args.log_size is None:
        # In memory: small enough to be filled, and emptied, several times per cell.
        args.log_size = 16 if args.medium == "emulated" else 0
    args.out = args.out or args.build_dir / "reports"
    return args


def print_list(args, found):
    chosen = {
        name: [s.name for s in found if name in s.structures] for name in workloads.STRUCTURES
    }
    if args.json:
        print(
            json.dumps(
                {
                    name: {
                        "workloads": w.workloads, "about": w.about, "source": w.source,
                        "systems": chosen[name]
                    } for name, w in workloads.STRUCTURES.items()
                }, indent=1))
        return
    print("workloads (STRUCTURE-PARAMETER; {} stands for the parameter)")
    for name, w in workloads.STRUCTURES.items():
        print(f"  {name:8} {', '.join(w.workloads)}: {w.about} ({w.source})")
    groups = {}
    for s in found:
        groups.setdefault(tuple(name for name in workloads.STRUCTURES if name in s.structures),
                          []).append(s.name)
    for structures, systems_of in groups.items():
        print(f"\non {', '.join(structures)}:\n  {', '.join(systems_of)}")


def write_report(args, data, report, facts):
    """Returns the paths written."""
    args.out.mkdir(parents=True, exist_ok=True)
    name = args.kind or "-".join(args.workloads[:4])
    written = [args.out / f"{name}.json"]
    written[0].write_text(json.dumps(report, indent=1) + "\n")
    note = (
        f"{facts['cpu']}, {facts['cpus']} CPUs; {facts['kernel']}; {facts['file_system']}; "
        f"delays {args.delays}; {args.rounds} rounds of {args.seconds} s")
    drawn = {
        "micro": [plot.micro_pictures], "file": [plot.file_pictures, latency_plot.file_pictures],
        "readers": [], "replicated": [], "lost": []
    }.get(args.kind, [compare.pictures, *[latency_plot.compare_pictures] * args.latency])
    try:
        for draw in drawn:
            written += draw(data, args.threads, args.out, note)
    except ImportError as error:
        print(
            f"bench: no pictures were drawn: {error}; they need the Debian package "
            "python3-matplotlib (./dev setup bench)", file=sys.stderr)
    return written


def main():
    args = arguments()
    found = systems.find(args.build_dir, args.mode)
    if args.kind == "list":
        print_list(args, found)
        return 0
    bench = REPORTS.get(args.kind, compare)
    args.dir.mkdir(parents=True, exist_ok=True)
    kind, mount = machine.file_system(args.dir)
    if args.medium == "file" and kind in IN_MEMORY:
        raise Failed(
            f"{args.dir} lies on {kind} (at {mount}), where nothing is ever written to a device; "
            "give another one with --dir")
    facts = machine.facts(args.build_dir, args.dir)
    facts["emulated_delays"] = args.delays
    settings = {
        "what": args.what, "quick": args.quick, "rounds": args.rounds, "seconds": args.seconds,
        "warmup": args.warmup, "threads": args.threads, "medium": args.medium,
        "log_size_mib": args.log_size, "max_resident_mib": args.max_resident,
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z")
    }

    scratch = Path(tempfile.mkdtemp(prefix="perdure-bench-", dir=args.dir))
    started = time.monotonic()
    try:
        data = bench.run(args, found, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    settings["took_seconds"] = round(time.monotonic() - started, 1)
    report = {"machine": facts, "settings": settings, **bench.as_json(data, args.threads)}
    written = write_report(args, data, report, facts)
    if args.page:
        written.append(apps.write_page(args, data, facts))

    if args.json:
        print(json.dumps(report, indent=1))
        print("written: " + ", ".join(str(p) for p in written), file=sys.stderr)
    else:
        print("\n".join(machine.lines(facts)))
        print(
            f"run       {args.rounds} rounds of {args.seconds} s after {args.warmup} s of "
            "warm-up, systems in turn; emulated delays: "
            f"{args.delays}; took {settings['took_seconds']:.0f} s")
        bench.print_report(data, args.threads)
        print("\nsystems")
        for text in sorted(set(data["described"].values())):
            print(f"  {text}: {', '.join(n for n, t in data['described'].items() if t == text)}")
        print("written: " + ", ".join(str(p) for p in written))
    if args.rounds < 5:
        print("bench: fewer than 5 rounds: take the figures as a hint only", file=sys.stderr)
    for failure in data["failures"]:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if data["failures"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"bench: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
