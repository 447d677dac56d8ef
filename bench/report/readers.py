# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench readers`: a process that writes rows, each durable before the next, beside another
that reads all rows in one transaction, or makes a backup; and when a reader sees what was written.
Perdure, LMDB and SQLite (WAL) in turn.
"""

import json
import subprocess

from . import table
from .driver import Failed
from .rounds import Progress
from .stats import spread

SYSTEMS = ["perdure", "lmdb", "sqlite"]
CELLS = ["alone", "scan", "backup", "staleness"]
DESCRIBED = {
    "perdure": "durable, medium file; the reader: a snapshot of a pool opened read_only",
    "lmdb": "a durable commit for each row; the reader: one read transaction",
    "sqlite": "WAL, synchronous=full; the reader: one read transaction; the backup: vacuum into",
}


class Program:
    """A program that runs the cells that it is told, and answers in JSON."""

    def __init__(self, command):
        self._process = subprocess.Popen([str(part) for part in command], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ready(self):
        self._answer()

    def run(self, cell):
        self._process.stdin.write(cell + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"it ended with status {self._process.wait()}")
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


class Store(Program):
    """The program, with one store open."""

    def __init__(self, args, name, folder):
        command = [
            args.build_dir / "bench" / "perdure_bench_readers", "--system", name, "--dir", folder,
            "--seconds", args.seconds
        ]
        command += ["--rows", args.records] if args.records else []
        command += ["--value-bytes", args.value_bytes] if args.value_bytes else []
        super().__init__(command)


def run(args, found, directory):
    del found
    chosen = [name for name in SYSTEMS if not args.engine or name in args.engine]
    progress, stores, failures = Progress(), {}, []
    rounds = {name: [] for name in chosen}
    try:
        for name in chosen:
            progress(f"{name}: loads its rows")
            stores[name] = Store(args, name, directory / name)
            stores[name].ready()
        for number in range(args.rounds):
            for name, store in list(stores.items()):
                try:
                    rounds[name].append({})
                    for cell in CELLS:
                        progress(f"round {number + 1} of {args.rounds}: {name}, {cell}")
                        rounds[name][-1][cell] = store.run(cell)
                except Failed as error:
                    failures.append(f"{name}: {error}")
                    stores.pop(name).close()
    finally:
        progress("done", last=True)
        for store in stores.values():
            store.close()
    return {
        "rounds": rounds, "failures": failures,
        "described": {name: DESCRIBED[name] for name in chosen}
    }


def _over(rounds, value):
    return spread([value(r) for r in rounds if len(r) == len(CELLS)])


def summary(data):
    """{system: {figure: Spread}}"""
    figures = {
        "rows written a second, alone": lambda r: r["alone"]["rate"],
        "beside a scan, of that": lambda r: r["scan"]["rate"] / r["alone"]["rate"],
        "rows scanned a second": lambda r: r["scan"]["rows_read"],
        "file before a scan, MB": lambda r: r["scan"]["bytes_before"] / 1e6,
        "after it, of that": lambda r: r["scan"]["bytes_after"] / r["scan"]["bytes_before"],
        "beside a backup, of alone": lambda r: r["backup"]["rate"] / r["alone"]["rate"],
        "a backup, seconds": lambda r: r["backup"]["backup_seconds"],
        "a put, p50, ms": lambda r: r["staleness"]["put_ms"]["p50"],
        "until a reader sees it, p50, ms": lambda r: r["staleness"]["seen_ms"]["p50"],
        "p99, ms": lambda r: r["staleness"]["seen_ms"]["p99"],
    }
    return {
        name: {text: _over(rounds, value) for text, value in figures.items()}
        for name, rounds in data["rounds"].items()
    }


def _text(found):
    if found is None:
        return "-"
    digits = 0 if found.median >= 100 else 2
    return f"{found.median:,.{digits}f} ({found.low:,.{digits}f} to {found.high:,.{digits}f})"


def print_report(data, threads):
    del threads
    found = summary(data)
    print("\none writer, one reader process: median (spread)")
    table.show(["", *found], [[text, *(_text(found[name][text]) for name in found)]
                              for text in next(iter(found.values()), {})])


def as_json(data, threads):
    del threads
    return {
        "rounds": data["rounds"],
        "summary": {
            name: {text: s and s.as_json() for text, s in rows.items()}
            for name, rows in summary(data).items()
        }
    }
