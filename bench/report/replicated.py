# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench replicated`: an update that waits for a quorum, or for a standby, beside a bare
append to the same three servers, which run on this machine; and updates that wait for this copy
alone, with nothing behind them, with a log that keeps nothing, and with those servers.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from . import table
from .readers import Program
from .rounds import Progress
from .stats import spread

CELLS = ["append", "quorum", "quorum-file", "standby", "alone", "nowhere", "shipped"]
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/demo"))
from nats_servers import Servers  # noqa: E402  pylint: disable=wrong-import-position


def run(args, found, directory):
    del found
    progress, rounds = Progress(), []
    memory = Path(tempfile.mkdtemp(prefix="perdure-bench-", dir="/dev/shm"))
    servers = Servers(str(ROOT / "build/tools/nats/venv/bin/nats-server"), str(directory), 3)
    try:
        progress("the servers choose their leader")
        time.sleep(10)
        program = Program([
            args.build_dir / "bench" / "perdure_bench_replicated", "--log", servers.log("bench"),
            "--dir", directory, "--memory", memory, "--seconds", args.seconds
        ])
        program.ready()
        for number in range(args.rounds):
            rounds.append({})
            for cell in CELLS if number % 2 == 0 else reversed(CELLS):
                progress(f"round {number + 1} of {args.rounds}: {cell}")
                rounds[-1][cell] = program.run(cell)
        program.close()
    finally:
        progress("done", last=True)
        servers.end()
        shutil.rmtree(memory, ignore_errors=True)
    return {"rounds": rounds, "failures": [], "described": {}}


FIGURES = {
    "a bare append, p50, us": lambda r: r["append"]["p50_us"],
    "an update that waits for a quorum, p50, us": lambda r: r["quorum"]["p50_us"],
    "of the append": lambda r: r["quorum"]["p50_us"] / r["append"]["p50_us"],
    "on a file, p50, us": lambda r: r["quorum-file"]["p50_us"],
    "on a file, of the append": lambda r: r["quorum-file"]["p50_us"] / r["append"]["p50_us"],
    "one that waits for a standby on a file, p50, us": lambda r: r["standby"]["p50_us"],
    "a standby, of the append": lambda r: r["standby"]["p50_us"] / r["append"]["p50_us"],
    "p99 of the append's": lambda r: r["quorum"]["p99_us"] / r["append"]["p99_us"],
    "updates of one thread alone, a second": lambda r: r["alone"]["rate"],
    "with a log that keeps nothing, of that": lambda r: r["nowhere"]["rate"] / r["alone"]["rate"],
    "with the servers on this machine, of that":
        lambda r: r["shipped"]["rate"] / r["alone"]["rate"],
}


def summary(data):
    return {text: spread([value(r) for r in data["rounds"]]) for text, value in FIGURES.items()}


def print_report(data, threads):
    del threads
    print("\na replicated pool, three NATS servers on this machine: median (spread)")
    rows = []
    for text, s in summary(data).items():
        digits = 0 if s.median >= 100 else 2
        rows.append([text, f"{s.median:,.{digits}f} ({s.low:,.{digits}f} to {s.high:,.{digits}f})"])
    table.show(["", "measured"], rows)


def as_json(data, threads):
    del threads
    return {
        "rounds": data["rounds"],
        "summary": {text: s.as_json() for text, s in summary(data).items()}
    }
