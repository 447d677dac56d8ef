#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure standby and perdure promote, over a folder."""

import json
import os
import signal
import subprocess
import time
import unittest

from cli import PERDURE, Case


class Standby(Case):
    def setUp(self):
        super().setUp()
        self.log, self.backups = self.path("log"), self.path("backups")
        self.copy = self.path("copy")
        rows = b"".join(b"k%04d,%d\n" % (i, i) for i in range(500))
        self.ok("load", self.pool, self.write("rows.csv", rows), "--replicate", self.log)
        self.ok("backup", self.pool, self.backups)

    def follow(self, *options):
        return ["standby", self.copy, "--log", self.log, "--backups", self.backups, *options]

    def test_a_copy_follows_is_read_and_takes_over(self):
        process = subprocess.Popen([PERDURE, *self.follow("--every", "0.1", "--json")],
                                   stdout=subprocess.PIPE)
        try:
            first = json.loads(process.stdout.readline())
            self.assertTrue(first["follows"])
            self.ok("put", self.pool, "later", "1", "--replicate", self.log)
            end = time.monotonic() + 60
            while self.ok("export", self.copy) != self.ok("export", self.pool):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            # Beside the process: reads, and no second standby.
            self.assertEqual(self.ok("get", self.copy, "later"), b"1")
            self.check(self.copy)
            self.fails(3, "promote", self.copy, "--log", self.log, has=["open"])
            self.assertEqual(self.ok_json("replicate", "status", self.copy)["own_term"], False)
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 0)
        self.assertEqual({json.loads(line)["problem"] for line in said.splitlines()} - {""}, set())
        promoted = self.ok_json("promote", self.copy, "--log", self.log)
        self.assertEqual(promoted["term"], 3)
        self.ok("put", self.copy, "mine", "2", "--replicate", self.log)
        # The first one lacks that now; as a standby it gets it, and may take over again.
        self.fails(3, "put", self.pool, "x", "1", "--replicate", self.log, has=["has more"])
        self.ok("standby", self.pool, "--log", self.log, "--once")
        self.assertEqual(self.ok("export", self.pool), self.ok("export", self.copy))
        self.assertIn(b"is the primary of term 5", self.ok("promote", self.pool, "--log", self.log))
        self.ok("put", self.pool, "x", "1", "--replicate", self.log)
        self.check(self.pool)

    def test_a_trimmed_log(self):
        self.ok(*self.follow("--once"))
        for i in range(5):
            self.ok("put", self.pool, "later", str(i), "--replicate", self.log)
        # The newest backup does not need more than the copy does.
        self.ok("backup", self.pool, self.backups)
        gone = self.ok_json("replicate", "trim", self.backups, "--log", self.log)
        self.assertGreater(gone["removed"], 10)
        self.assertEqual(
            self.ok_json("replicate", "trim", self.backups, "--log", self.log)["removed"], 0)
        another = self.path("another")
        self.ok("standby", another, "--log", self.log, "--backups", self.backups, "--once")
        self.assertEqual(self.ok("export", another), self.ok("export", self.pool))
        # The copy was not as far.
        self.fails(3, *self.follow("--once"), has=["no message", "make this copy anew"])
        self.ok(*self.follow("--once", "--remake"))
        self.assertEqual(self.ok("export", self.copy), self.ok("export", self.pool))
        self.assertTrue(os.path.exists(self.copy + ".old-1"))
        self.ok("put", self.pool, "last", "1", "--replicate", self.log)
        self.ok(*self.follow("--once"))
        self.assertEqual(self.ok("get", self.copy, "last"), b"1")

    def test_what_cannot_be_followed(self):
        self.fails(3, "standby", self.path("none"), "--log", self.log, has=["no such file"])
        self.fails(3, *self.follow()[:2], "--log", self.path("no log"), has=["no"])
        self.fails(3, "replicate", "trim", self.path("empty"), "--log", self.log)
        self.ok("put", self.path("alone"), "a", "1")
        self.fails(3, "standby", self.path("alone"), "--log", self.log, has=["not replicated"])


if __name__ == "__main__":
    unittest.main()
