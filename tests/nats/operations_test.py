#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/operations.md says to do where servers or copies are lost, done."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/tools"), str(TOP / "tools/demo")]
from cli import PERDURE, Case, perdure  # noqa: E402
from nats_servers import Servers  # noqa: E402

NATS = os.environ["PERDURE_NATS_SERVER"]


class Operations(Case):
    case_limit = 300

    def setUp(self):
        super().setUp()
        self.backups, self.copy = self.path("backups"), self.path("copy")

    def start(self, count, **options):
        # Its file names are long: not in the case's folder.
        folder = tempfile.mkdtemp(prefix="perdure-nats-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.servers = Servers(NATS, folder, count, **options)
        self.addCleanup(self.servers.end)
        self.log = self.servers.log("shop")

    def begin(self):
        """A replicated pool, a backup and a standby's copy."""
        self.comes("put", self.pool, "a", "1", *self.with_log())
        self.ok("backup", self.pool, self.backups)
        self.follow(self.copy)

    def with_log(self, *more):
        return ["--replicate", self.log, *more]

    def follow(self, copy, *more):
        self.ok("standby", copy, "--log", self.log, "--backups", self.backups, "--once",
                "--patience", "60", *more)

    def comes(self, *arguments):
        """The command succeeds, at the latest when the servers have chosen their leader."""
        end = time.monotonic() + 120
        while (done := perdure(*arguments))[0] != 0:
            self.assertLess(time.monotonic(), end, done)
            time.sleep(0.2)

    def same(self, *pools):
        self.assertEqual(len({self.ok("export", pool) for pool in pools}), 1)

    def test_a_server_of_the_log_is_lost_and_then_the_majority(self):
        self.start(3)
        self.begin()
        self.servers.kill(0)
        self.comes("put", self.pool, "b", "2", *self.with_log("--ack", "quorum"))
        self.servers.kill(1)
        self.fails(3, "put", self.pool, "c", "3", *self.with_log(), has=["no answer"])
        self.assertEqual(self.ok("get", self.pool, "b"), b"2")  # reading needs no log
        # It comes back with what it had on disk.
        self.servers.start(1)
        self.comes("put", self.pool, "c", "3", *self.with_log("--ack", "quorum"))
        self.follow(self.copy)
        self.same(self.pool, self.copy)

    def test_the_primary_is_lost(self):
        self.start(1)
        rows = self.write("rows.csv", b"".join(b"k%d,1\n" % i for i in range(100_000)))
        self.kill_a_load(10, self.pool, rows, *self.with_log("--ack", "shipped"))
        # What the log lacks of it is appended by the next opening: then a backup fits the log.
        self.ok("put", self.pool, "first", "1", *self.with_log())
        self.ok("backup", self.pool, self.backups)
        self.follow(self.copy)
        loader = subprocess.Popen([PERDURE, "load", self.pool, rows, "--batch", "1",
                                   *self.with_log("--ack", "shipped")], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while perdure("get", self.pool, "k500")[0] != 0:
            self.assertLess(time.monotonic(), end)
        loader.kill()
        loader.communicate()
        self.ok("promote", self.copy, "--log", self.log)
        self.assertEqual(self.ok("get", self.copy, "k499"), b"k499,1\n")
        self.ok("put", self.copy, "later", "later,1", *self.with_log())
        # The lost one comes back as a standby; what only it had is kept beside.
        self.follow(self.pool, "--remake")
        self.same(self.pool, self.copy)

    def test_the_log_is_full(self):
        self.start(1, max_file="8M")
        self.begin()
        value = "x" * 100_000
        for i in range(200):
            code, _, why = perdure("put", self.pool, f"k{i}", value, *self.with_log())
            if code != 0:
                break
        self.assertEqual(code, 3)
        self.assertIn("resources", why)  # what the server says of it
        # Nothing is lost: the pool has it, and the log gets it when it has room.
        self.ok("backup", self.pool, self.backups)
        self.assertGreater(
            self.ok_json("replicate", "trim", self.backups, "--log", self.log)["removed"], 5)
        self.comes("put", self.pool, "after", "1", *self.with_log())
        self.follow(self.copy, "--remake")
        self.same(self.pool, self.copy)

    def test_the_log_is_gone(self):
        self.start(1)
        self.begin()
        self.ok("put", self.pool, "b", "2", *self.with_log())
        before, self.servers = self.servers, None
        before.end()
        self.start(1)  # servers with empty disks
        self.fails(3, "put", self.pool, "c", "3", *self.with_log(), has=["lost"])
        self.ok("replicate", "leave", self.pool)
        self.ok("put", self.pool, "c", "3", *self.with_log())
        # Backups and copies of before belong to the log of before.
        self.backups = self.path("backups-2")
        self.ok("backup", self.pool, self.backups)
        os.remove(self.copy)
        self.follow(self.copy)
        self.same(self.pool, self.copy)
        self.assertEqual(self.ok("get", self.copy, "b"), b"2")

    def test_a_backup_was_restored(self):
        self.start(1)
        self.begin()
        self.ok("put", self.pool, "b", "2", *self.with_log())
        restored = self.path("restored")
        self.ok("restore", self.backups, restored)
        self.assertEqual(self.ok("get", restored, "a"), b"1")
        self.fails(3, "put", restored, "c", "3", *self.with_log(),
                   has=["an empty one", "name another log"])
        log = self.servers.log("shop-2")
        self.ok("put", restored, "c", "3", "--replicate", log)
        self.ok("put", self.pool, "c", "4", *self.with_log())


if __name__ == "__main__":
    unittest.main()
