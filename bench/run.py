#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Perdure's benchmarks: many systems in turn, in interleaved rounds; medians with their spread; ratios within a round.

`./dev bench micro` and `./dev bench file` build and call this. What is measured and how to read it: bench/README.md.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from report import file as file_bench
from report import machine, micro
from report.driver import Failed, list_systems

EXECUTABLES = {"micro": ["perdure_bench_micro", "perdure_bench_pmemobj"], "file": ["perdure_bench_file", "perdure_bench_peers"]}
IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}


def numbers(text):
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1 or found[-1] > 64:
        raise argparse.ArgumentTypeError(f"found '{text}', expected numbers from 1 to 64 with commas between them")
    return found


def at_least(least, kind):
    def parse(text):
        value = kind(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"found {text}, expected at least {least}")
        return value

    parse.__name__ = kind.__name__
    return parse


def arguments():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0],
                                     epilog="Tables go to standard output, progress to standard error; the JSON and the pictures are "
                                            "written into --out. See bench/README.md for what is measured and how to read it.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="micro|file")
    for kind, text in (("micro", "transactions in memory: SPS, hash table, red-black tree, beside libpmemobj and the hardware's bound"),
                       ("file", "puts on a real file system, beside SQLite, LMDB, RocksDB and Berkeley DB")):
        p = kinds.add_parser(kind, help=text, description=text)
        p.add_argument("--quick", action="store_true", help="shorter cells; micro: the engines' default concurrency control only")
        p.add_argument("--json", action="store_true", help="print the JSON report on standard output instead of the tables")
        p.add_argument("--rounds", type=at_least(1, int), default=5, help="interleaved rounds (5); fewer are no result")
        p.add_argument("--seconds", type=at_least(0.01, float), default=None,
                       help="measured time of a cell (micro: 0.25, a third of it for the engines' other concurrency controls; file: 1)")
        p.add_argument("--warmup", type=at_least(0.0, float), default=None, help="time before that (micro: 0.05, file: 0.1)")
        p.add_argument("--threads", type=numbers, default=[1, 2] if kind == "micro" else [1, 2, 16],
                       help="thread counts (micro: 1,2; file: 1,2,16)")
        p.add_argument("--systems", default="", metavar="A,B", help="only these systems (names as in the tables; 'shadow' takes all of "
                                                                  "its modes); what ratios need stays in")
        p.add_argument("--workloads", default="", metavar="A,B", help="micro: only these, such as sps-1,hash-100")
        p.add_argument("--log-size", type=at_least(0, int), default=0, metavar="MIB",
                       help="size of a log in MiB, of each thread's where it has its own (micro: 16 unless told; file: 0: the default)")
        p.add_argument("--delays", default="none", metavar="NAME",
                       help="micro: the delays of a paper that Perdure's emulated medium charges (docs/media.md); the ceiling and "
                            "libpmemobj know none, so ratios to them mean nothing then")
        p.add_argument("--build-dir", type=Path, default=root / "build" / "bench", help="where the bench preset was built (build/bench)")
        p.add_argument("--dir", type=Path, default=None, help="where pools and stores are put (micro: /dev/shm; file: the build directory)")
        p.add_argument("--out", type=Path, default=None, help="where the report is put (default: BUILD_DIR/reports)")
    args = parser.parse_args()
    defaults = {"micro": (0.25, 0.05), "file": (1.0, 0.1)}[args.kind]
    quick = {"micro": (0.07, 0.02), "file": (0.3, 0.05)}[args.kind]
    args.seconds = args.seconds or (quick if args.quick else defaults)[0]
    args.warmup = args.warmup if args.warmup is not None else (quick if args.quick else defaults)[1]
    args.dir = args.dir or (Path("/dev/shm") if args.kind == "micro" else args.build_dir)
    if args.kind == "micro" and not args.log_size:
        args.log_size = 16  # small enough that it is filled, and emptied, several times in a cell
    args.out = args.out or args.build_dir / "reports"
    return args


def find_executables(args):
    """[(path, systems)] of those that were built; the first of each kind has to be."""
    listed = []
    for n, name in enumerate(EXECUTABLES[args.kind]):
        path = args.build_dir / "bench" / name
        if path.exists():
            listed.append((path, list_systems(path)))
        elif n == 0:
            raise Failed(f"{path} is not there; build it first: ./dev build --preset bench --target bench/all")
        else:
            print(f"bench: {path} was not built (its library was missing): left out", file=sys.stderr)
    return listed


def main():
    args = arguments()
    bench = micro if args.kind == "micro" else file_bench
    args.dir.mkdir(parents=True, exist_ok=True)
    kind, mount = machine.file_system(args.dir)
    if args.kind == "file" and kind in IN_MEMORY:
        raise Failed(f"{args.dir} lies on {kind} (at {mount}), where nothing is ever written to a device; give another one with --dir")
    listed = find_executables(args)
    facts = machine.facts(args.build_dir, args.dir)
    facts["emulated_delays"] = args.delays
    settings = {"kind": args.kind, "quick": args.quick, "rounds": args.rounds, "seconds": args.seconds, "warmup": args.warmup,
                "threads": args.threads, "log_size_mib": args.log_size, "started": time.strftime("%Y-%m-%d %H:%M:%S %z")}

    scratch = Path(tempfile.mkdtemp(prefix="perdure-bench-", dir=args.dir))
    started = time.monotonic()
    try:
        data = bench.run(args, listed, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    settings["took_seconds"] = round(time.monotonic() - started, 1)

    report = {"machine": facts, "settings": settings, **bench.as_json(data, args.threads)}
    args.out.mkdir(parents=True, exist_ok=True)
    written = [args.out / f"{args.kind}.json"]
    written[0].write_text(json.dumps(report, indent=1) + "\n")
    try:
        from report import plot

        pictures = plot.micro_pictures if args.kind == "micro" else plot.file_pictures
        note = f"{facts['cpu']}, {facts['cpus']} CPUs; {facts['kernel']}; {facts['file_system']}; {args.rounds} rounds of {args.seconds} s"
        written += pictures(data, args.threads, args.out, note)
    except ImportError as error:
        print(f"bench: no pictures: {error} (Debian: python3-matplotlib)", file=sys.stderr)

    if args.json:
        print(json.dumps(report, indent=1))
    else:
        print("\n".join(machine.lines(facts)))
        print(f"run       {args.rounds} rounds of {args.seconds} s after {args.warmup} s of warm-up, systems in turn; emulated delays: "
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
