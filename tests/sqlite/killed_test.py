#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Databases on pools whose process is killed (SIGKILL) while it works: nothing that was
acknowledged is lost, in either design."""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from case import Case, LOAD

WORKER = """
import sqlite3, sys
memory = sqlite3.connect(":memory:")
memory.enable_load_extension(True)
memory.load_extension(sys.argv[1])
db = sqlite3.connect(sys.argv[2], uri=True, isolation_level=None)
for pragma in sys.argv[3:]:
    db.execute(pragma)
n = db.execute("select n from transfer").fetchone()[0]
while True:
    n += 1
    db.execute("begin")
    db.execute("update account set balance = balance - 1 where id = ?", (1 + n * 7 % 50,))
    db.execute("update account set balance = balance + 1 where id = ?", (1 + n * 13 % 50,))
    db.execute("update transfer set n = ?", (n,))
    if n % 10 == 0:
        db.execute("rollback")
        n -= 1
        db.execute("update transfer set n = n + 0")
        n += 1
        db.execute("update transfer set n = ?", (n,))
    else:
        db.execute("commit")
    print(n, flush=True)
"""

ACROSS = """
import sqlite3, sys
memory = sqlite3.connect(":memory:")
memory.enable_load_extension(True)
memory.load_extension(sys.argv[1])
db = sqlite3.connect(sys.argv[2], uri=True, isolation_level=None)
db.execute("attach ? as other", (sys.argv[3],))
n = db.execute("select n from transfer").fetchone()[0]
while True:
    n += 1
    db.execute("begin")
    db.execute("update main.account set balance = balance - 1, note = zeroblob(3000) where id = ?",
               (1 + n * 7 % 50,))
    db.execute("update other.account set balance = balance + 1, note = zeroblob(3000) where id = ?",
               (1 + n * 13 % 50,))
    db.execute("update transfer set n = ?", (n,))
    db.execute("commit")
    print(n, flush=True)
"""


class Killed(Case):
    def told_before_kills(self, program, *arguments):
        """The last number that a program has printed when it is killed; twelve times."""
        chance = random.Random(3)
        for _ in range(12):
            with subprocess.Popen([sys.executable, "-c", program, LOAD, *arguments],
                                  stdout=subprocess.PIPE, text=True) as worker:
                # However slow the disk is.
                lines = [worker.stdout.readline() for _ in range(chance.randint(1, 24))]
                time.sleep(chance.random() * 0.02)  # the kill hits any part of its work
                worker.send_signal(signal.SIGKILL)
                lines += worker.stdout.readlines()
            yield int([line for line in lines if line.endswith("\n")][-1])

    def test_nothing_that_was_told_is_lost(self):
        self.kill_a_bank()

    # Nothing syncs. A kill leaves whole transactions; in design A, which stores everything at once,
    # all of them.
    def test_synchronous_off(self):
        self.kill_a_bank("pragma synchronous = off", may_lose=not self.design)

    def kill_a_bank(self, *pragmas, may_lose=False):
        db = self.connect()
        db.execute("create table account (id integer primary key, balance integer)")
        db.execute("create table transfer (n integer)")
        db.executemany("insert into account values (?, 100)", [(n,) for n in range(1, 51)])
        db.execute("insert into transfer values (0)")
        db.close()
        for told in self.told_before_kills(WORKER, self.uri(), *pragmas):
            db = self.connect()
            self.sound(db)
            self.assertEqual(db.execute("select sum(balance) from account").fetchone(), (5000,))
            found = db.execute("select n from transfer").fetchone()[0]
            self.assertTrue(found <= told + 1 and (may_lose or found >= told), (found, told))
            db.close()
        self.assertGreater(told, 100)


# The other design: SQLite's own journal, in the pool.
class KilledOnBlocks(Killed):
    design = "&design=a"

    # A super-journal makes one commit of several pools, as of several files, whichever of them is
    # opened first afterwards.
    def test_several_pools_are_one(self):
        paths = {name: os.path.join(self.folder, name) for name in ("main", "other")}
        for path in paths.values():
            db = self.connect(path=path)
            db.execute("create table account (id integer primary key, balance integer, note)")
            db.execute("create table transfer (n integer)")
            db.executemany("insert into account values (?, 100, '')", [(n,) for n in range(1, 51)])
            db.execute("insert into transfer values (0)")
            db.close()
        uris = [self.uri(path=paths[name]) for name in ("main", "other")]
        for kill, told in enumerate(self.told_before_kills(ACROSS, *uris)):
            total = 0
            for name in sorted(paths, reverse=kill % 2 == 0):
                db = self.connect(path=paths[name])
                self.sound(db)
                total += db.execute("select sum(balance) from account").fetchone()[0]
                if name == "main":
                    self.assertIn(
                        db.execute("select n from transfer").fetchone()[0], (told, told + 1))
                db.close()
            self.assertEqual(total, 10000)


if __name__ == "__main__":
    unittest.main()
