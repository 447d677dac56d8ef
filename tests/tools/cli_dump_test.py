#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure load --schema: a pool from a dump, end to end; and what a killed load leaves."""

import json
import os
import signal
import subprocess
import time
import unittest

from cli import Case, FOREIGN, PERDURE

SCHEMA = b"names: map<string,u64,15>/1 @0 64\nrest: deque<string>/1 @64 128\n"


class FromDumps(Case):
    FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    @unittest.skipUnless(FOREIGN, "PERDURE_FOREIGN is not set")
    def test_round_trip(self):
        old = self.path("old")
        subprocess.run([FOREIGN, old, "shadow", "close"], timeout=60, check=True)
        schema = self.write("schema", self.ok("schema", "--text", old))
        self.assertEqual(self.ok_json("schema", "--text", old)["text"],
                         "accounts: hash_map<u64,i64,128>/1 @0 64\ntransfers: u64 @64 8\n")
        dump = self.ok("dump", old)
        said = self.ok_json("load", "--schema", schema, self.pool, self.write("dump", dump))
        self.assertEqual(said["entries"], 78)
        self.assertEqual(self.ok("dump", self.pool), dump)
        self.check()
        subprocess.run([FOREIGN, self.pool, "shadow", "close"], timeout=60, check=True)
        self.assertEqual(json.loads(self.ok("dump", self.pool))["transfers"], 400)

        lines, other = self.ok("dump", "--jsonl", old), self.path("other")
        self.ok("load", "--schema", schema, "--jsonl", other, "-", stdin=lines)
        self.assertEqual(self.ok("dump", "--jsonl", other), lines)
        # An existing file is not replaced.
        self.fails(3, "load", "--schema", schema, other, self.path("dump"), "--json",
                   has=["a file of this name"])
        self.assertEqual(self.ok("dump", "--jsonl", other), lines)

    def test_what_does_not_fit(self):
        schema = self.write("schema", SCHEMA)
        wrong = self.write("wrong", b'{"names": {"a": 1,\n "b": -1}, "rest": []}')
        self.fails(3, "load", "--schema", schema, self.pool, wrong, "--json",
                   has=["wrong: line 2: field names: found '-1', expected a value of type u64"])
        named = self.write("named", b"names: theirs/1 @0 64\n")
        self.fails(3, "load", "--schema", named, self.pool, wrong, "--json",
                   has=["[1] names: 'theirs/1' has only a name"])
        self.fails(2, "load", "--jsonl", self.pool, wrong)
        self.fails(2, "load", "--schema", schema, "--key", "1", self.pool, wrong)
        self.assertEqual(sorted(os.listdir(self.folder)), ["named", "schema", "wrong"])

    def test_kill(self):
        schema = self.write("schema", SCHEMA)
        names = ", ".join(f'"{i:06}": {i}' for i in range(30000))
        dump = f'{{"names": {{{names}}}, "rest": ["x", "y"]}}'.encode()
        load = [PERDURE, "load", "--schema", schema, self.pool, "-"]
        with subprocess.Popen(load, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as half:
            half.stdin.write(dump[:len(dump) // 2])
            half.stdin.flush()
            while not os.path.exists(self.pool + ".loading"):
                time.sleep(0.01)
                self.assertIsNone(half.poll())
            self.fails(3, *load[1:], "--json", has=["no load of this pool that is going on"])
            half.send_signal(signal.SIGKILL)
        # What is left is not the pool, and is in nobody's way.
        self.assertFalse(os.path.exists(self.pool))
        self.assertTrue(os.path.exists(self.pool + ".loading"))
        self.ok(*load[1:], stdin=dump)
        self.assertEqual(sorted(os.listdir(self.folder)), ["pool", "schema"])
        self.assertEqual(json.loads(self.ok("dump", self.pool)), json.loads(dump))
        self.check()


if __name__ == "__main__":
    unittest.main(verbosity=2)
