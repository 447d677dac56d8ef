# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench lost`: a client writes rows, each acknowledged before the next; then its machine is
lost: the processes on it are killed at once, and its files are not looked at again. Acknowledged
rows a second; those that the other copy lacks; and how long it takes until that one can be used.
A replicated pool over three NATS servers, by level; SQLite with Litestream; Redis with a replica.
All servers run on this machine, on one disk.
"""

import contextlib
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

from . import table
from .driver import Failed
from .rounds import Progress
from .stats import spread

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/demo"))
from nats_servers import Servers, free_ports  # noqa: E402  pylint: disable=wrong-import-position

CELLS = {
    "pool, local": ("perdure", "local"), "pool, shipped": ("perdure", "shipped"),
    "pool, quorum": ("perdure", "quorum"), "pool, standby(1)": ("perdure", "standby"),
    "SQLite, Litestream": ("sqlite", ""), "Redis, a replica": ("redis", ""),
    "Redis, a replica, WAIT 1": ("redis", "wait")
}
DESCRIBED = {
    "perdure": "medium file, three NATS servers with sync_interval: always, one standby",
    "sqlite": "WAL, synchronous=full; litestream replicate to a folder, as it comes (each second)",
    "redis": "appendonly yes, appendfsync always, of both servers"
}


def until(holds, what):
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"waited in vain until {what}")
        time.sleep(0.02)


class Cell:
    """One store, with another copy, in a folder of its own."""

    def __init__(self, args, folder, store, level, nats):
        self.args, self.folder, self.store, self.level = args, folder.resolve(), store, level
        self.nats = nats
        self.machine, self.others = [], []  # processes: of the machine that is lost, and others
        folder.mkdir()

    def start(self, command, lost, **others):
        process = subprocess.Popen([str(part) for part in command], **others)
        (self.machine if lost else self.others).append(process)
        return process

    def program(self, *options, lost):
        """Starts it, and waits until it is ready; it goes on when it is told to."""
        process = self.start([
            self.args.build_dir / "bench" / "perdure_bench_lost", "--store", self.store,
            "--counter", self.folder / "counter", *options
        ], lost, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if process.stdout.readline() != "ready\n":
            raise Failed(f"perdure_bench_lost ended with status {process.wait()}")
        return process

    @staticmethod
    def go_on(process):
        process.stdin.write("\n")
        process.stdin.flush()

    def acknowledged(self):
        with open(self.folder / "counter", "rb") as file:
            return struct.unpack("<Q", file.read(8))[0]

    def run(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.end)
            writer, last_of_other = getattr(self, self.store)()
            self.go_on(writer)
            time.sleep(self.args.seconds)
            rate = self.acknowledged() / self.args.seconds
            for process in self.machine:
                process.kill()
            begun = time.monotonic()
            for process in self.machine:
                process.wait()
            acknowledged = self.acknowledged()
            last = last_of_other()
            return {
                "rate": rate, "acknowledged": acknowledged, "last": last,
                "lost": max(0, acknowledged - last), "seconds": time.monotonic() - begun
            }

    def end(self):
        for process in self.machine + self.others:
            process.kill()
            process.wait()

    def perdure(self):
        log = self.nats.log(self.folder.name)
        common = ["--log", log, "--backups", self.folder / "backups"]
        writer = self.program(*common, "--path", self.folder / "pool", "--level", self.level,
                              lost=True)
        standby = self.program(*common, "--path", self.folder / "copy", "--follow", lost=False)

        def last():
            self.go_on(standby)
            return int(standby.stdout.readline())

        return writer, last

    def sqlite(self):
        database, replica = self.folder / "db", self.folder / "replica"
        writer = self.program("--path", database, lost=True)
        litestream = ROOT / "build/tools/lost/venv/bin/litestream"
        said = self.folder / "litestream.log"
        with open(said, "wb") as log:
            self.start([litestream, "replicate", database, f"file://{replica}"], True, stdout=log,
                       stderr=log)
        # It begins with a copy of a database that changes.
        with contextlib.closing(sqlite3.connect(database, timeout=5)) as db:

            def has_a_copy():
                with db:
                    db.execute("insert or replace into rows values (0, '0 ')")
                return any(path.is_file() for path in replica.rglob("*"))

            until(has_a_copy, "Litestream has a copy")

        def last():
            restored = self.folder / "restored"
            done = subprocess.run([litestream, "restore", "-o", restored, f"file://{replica}"],
                                  check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise Failed(f"litestream restore says: {done.stdout.decode()}")
            with contextlib.closing(sqlite3.connect(restored)) as db:
                rows = db.execute("select v from rows").fetchall()
            return max((int(v.split(" ")[0]) for (v,) in rows), default=0)

        return writer, last

    def redis(self):
        ports = free_ports(2)

        def ask(port, *words):
            return subprocess.run(["redis-cli", "-p", str(port), *words], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

        for number, port in enumerate(ports):
            folder = self.folder / str(number)
            folder.mkdir()
            config = {
                "bind": "127.0.0.1", "port": port, "dir": folder, "appendonly": "yes",
                "appendfsync": "always", "save": '""'
            }
            config.update({"replicaof": f"127.0.0.1 {ports[0]}"} if number == 1 else {})
            path = folder / "redis.conf"
            path.write_text("".join(f"{key} {value}\n" for key, value in config.items()))
            # The package redis-tools has the server under another name, and starts none.
            self.start(["redis-server", path], number == 0, executable="/usr/bin/redis-check-rdb",
                       stdout=subprocess.DEVNULL)
            until(lambda port=port: ask(port, "ping") == "PONG\n", "Redis answers")
        until(lambda: "state=online" in ask(ports[0], "info", "replication"), "the replica follows")
        writer = self.program("--port", ports[0], "--level", self.level or "local", lost=True)

        def last():
            ask(ports[1], "replicaof", "no", "one")
            rows = ask(ports[1], "mget", *map(str, range(10_000)))
            return max((int(row.split(" ")[0]) for row in rows.splitlines() if row.strip()),
                       default=0)

        return writer, last


def run(args, found, directory):
    del found
    progress, rounds = Progress(), []
    nats = Servers(str(ROOT / "build/tools/nats/venv/bin/nats-server"), str(directory / "nats"), 3)
    try:
        progress("the servers choose their leader")
        time.sleep(10)
        for number in range(args.rounds):
            rounds.append({})
            for name in CELLS if number % 2 == 0 else reversed(CELLS):
                progress(f"round {number + 1} of {args.rounds}: {name}")
                folder = directory / f"{number}-{list(CELLS).index(name)}"
                rounds[-1][name] = Cell(args, folder, *CELLS[name], nats).run()
    finally:
        progress("done", last=True)
        nats.end()
    return {"rounds": rounds, "failures": [], "described": DESCRIBED}


FIGURES = {
    "acknowledged rows a second": "rate", "lost of them": "lost",
    "seconds until the other copy is used": "seconds"
}


def summary(data):
    return {
        name: {
            text: spread([r[name][key] for r in data["rounds"]])
            for text, key in FIGURES.items()
        } for name in CELLS
    }


def print_report(data, threads):
    del threads
    print("\na machine is lost while a client writes rows of 100 bytes: median (spread)")
    rows = []
    for name, figures in summary(data).items():
        row = [name]
        for text, s in figures.items():
            digits = 1 if text.startswith("seconds") else 0
            row.append(f"{s.median:,.{digits}f} ({s.low:,.{digits}f} to {s.high:,.{digits}f})")
        rows.append(row)
    table.show(["", *FIGURES], rows)


def as_json(data, threads):
    del threads
    return {
        "rounds": data["rounds"], "described": data["described"],
        "summary": {
            name: {text: s.as_json() for text, s in figures.items()}
            for name, figures in summary(data).items()
        }
    }
