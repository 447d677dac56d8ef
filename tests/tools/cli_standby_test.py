#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure standby and perdure promote, over a folder."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from cli import PERDURE, Case, perdure


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
            self.ok("put", self.pool, "both", "1", "--replicate", self.log, "--ack", "standby:1")
            self.assertEqual(self.ok("get", self.copy, "both"), b"1")
            self.fails(2, "put", self.pool, "x", "1", "--ack", "standby:1", has=["--replicate"])
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
        self.assertEqual(promoted["term"], 4)
        self.ok("put", self.copy, "mine", "2", "--replicate", self.log)
        # The first one lacks that now; as a standby it gets it, and may take over again.
        self.fails(3, "put", self.pool, "x", "1", "--replicate", self.log, has=["has more"])
        self.ok("standby", self.pool, "--log", self.log, "--once")
        self.assertEqual(self.ok("export", self.pool), self.ok("export", self.copy))
        self.assertIn(b"is the primary of term 6", self.ok("promote", self.pool, "--log", self.log))
        self.ok("put", self.pool, "x", "1", "--replicate", self.log)
        self.check(self.pool)

    def test_it_takes_over_by_itself(self):
        self.ok("put", self.pool, "later", "1", "--replicate", self.log, "--beat", "0.02")
        then = f"'{PERDURE}' put '{self.copy}' mine 2 --replicate '{self.log}'"
        self.ok(*self.follow("--take-over-after", "0.2", "--then", then))
        self.assertEqual(self.ok("get", self.copy, "later"), b"1")
        self.assertEqual(self.ok("get", self.copy, "mine"), b"2")
        # That one gave no signs: nobody takes over from it, until it is told to.
        self.ok("standby", self.pool, "--log", self.log, "--once", "--take-over-after", "0.001")
        self.assertEqual(self.ok("export", self.pool), self.ok("export", self.copy))
        self.ok("put", self.pool, "x", "1", "--replicate", self.log, "--beat", "0.02")
        told = self.ok("standby", self.copy, "--log", self.log, "--take-over-after", "0.1",
                       "--json").splitlines()[-1]
        self.assertTrue(json.loads(told)["took_over"])
        self.assertEqual(self.ok("get", self.copy, "x"), b"1")
        self.fails(2, "put", self.pool, "a", "1", "--replicate", self.log, "--beat", "61")

    def test_how_far_a_copy_is(self):
        # A primary on the same machine: each copy has its own counters.
        self.pool, self.log = self.path("big"), self.path("log-2")
        self.backups, self.copy = self.path("backups-2"), self.path("copy-2")
        rows = self.write("big.csv", b"".join(b"k%06d,%d\n" % (i, i) for i in range(100_000)))
        loader = subprocess.Popen(
            [PERDURE, "load", self.pool, rows, "--replicate", self.log, "--beat", "1", "--batch",
             "1", "--ack", "shipped"], stdout=subprocess.DEVNULL)
        standby = None
        try:
            end = time.monotonic() + 60
            while json.loads(perdure("lag", self.pool, "--json")[1] or b"{}").get("id", 0) < 20:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            found = self.ok_json("lag", self.pool)
            self.assertEqual((found["role"], found["term"], found["ok"]), ("primary", 1, True))
            self.check_metrics(self.ok("stat", self.pool, "--prometheus", "-").decode(), "primary")
            self.assertIn(b"replication: primary in term 1", self.ok("stat", self.pool))
            self.fails(3, "lag", self.copy, has=["No such file"])
            self.ok("backup", self.pool, self.backups)
            standby = subprocess.Popen([PERDURE, *self.follow("--every", "0.1", "--json")],
                                       stdout=subprocess.PIPE)
            standby.stdout.readline()
            lag = self.ok_json("lag", self.copy, "--log", self.log)
            self.assertEqual((lag["role"], lag["term"]), ("standby", 1))
            self.assertEqual(lag["lag_messages"], lag["log_message"] - lag["message"])
            self.assertIn(b"standby in term 1", self.ok("lag", self.copy, "--at-most", "1000"))
            self.fails(1, "lag", self.copy, "--at-most", "0.000000001")
            self.assertIn(b"replication: standby", self.ok("stat", self.copy))
            written = self.path("metrics.prom")
            self.ok("stat", self.copy, "--prometheus", written)
            with open(written, encoding="utf-8") as file:
                self.check_metrics(file.read(), "standby")
            self.assertEqual(self.ok_json("lag", self.pool)["role"], "primary")
        finally:
            loader.kill()
            loader.communicate()
            if standby is not None:
                standby.send_signal(signal.SIGTERM)
                standby.communicate(timeout=60)
        self.assertEqual(standby.returncode, 0)
        self.fails(1, "lag", self.pool)  # it was killed
        self.fails(1, "stat", self.copy, "--prometheus", written)
        with open(written, encoding="utf-8") as file:
            self.assertRegex(file.read(), r'\nperdure_up{pool="[^"]*"} 0\n$')

    def check_metrics(self, text, role):
        """The text is as Prometheus reads it: each metric has a type, and is there once."""
        types, seen = {}, set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, types)
                types[name] = kind
            elif not line.startswith("# HELP "):
                match = re.fullmatch(r'([a-z_]+)\{pool="[^"]+"(,role="[a-z]+")?\} (\S+)', line)
                self.assertTrue(match, line)
                name, state, value = match.groups()
                self.assertEqual(name.endswith("_total"), types[name] == "counter", line)
                self.assertNotIn((name, state), seen)
                seen.add((name, state))
                self.assertGreaterEqual(float(value), 0)
                if state == f',role="{role}"':
                    self.assertEqual(value, "1")
        self.assertIn(("perdure_replication_lag_seconds", None), seen)
        self.assertEqual(("perdure_replication_lag_bytes", None) in seen, role == "primary")

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
