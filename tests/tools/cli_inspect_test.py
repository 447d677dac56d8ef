#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands that read the containers of any pool, sound or damaged: schema, dump, get, check."""

import json
import os
import random
import signal
import subprocess
import unittest

from cli import Case, FOREIGN, packages, perdure


@unittest.skipUnless(FOREIGN, "PERDURE_FOREIGN is not set")
class Inspecting(Case):
    FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def setUp(self):
        super().setUp()
        self.make("close")

    def make(self, how):
        done = subprocess.run([FOREIGN, self.pool, "shadow", how], capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL if how == "kill" else 0, done.stderr)

    def test_schema(self):
        fields = self.ok_json("schema", self.pool, "--count")["root"]["fields"]
        self.assertEqual([f["name"] for f in fields], ["accounts", "transfers"])
        self.assertEqual([f["kind"] for f in fields], ["hash_map", "number"])
        self.assertEqual(fields[0]["count"], 78)
        self.assertEqual(fields[0]["value"]["type"], "i64")
        self.assertIn(b"transfers: number u64 @64 8", self.ok("schema", self.pool))

    def test_dump(self):
        whole = json.loads(self.ok("dump", self.pool))
        self.assertEqual(whole["transfers"], 200)
        self.assertEqual(len(whole["accounts"]), 78)
        self.assertEqual(sum(value for _, value in whole["accounts"]), 0)
        self.assertEqual(json.loads(self.ok("dump", self.pool, "transfers")), {"transfers": 200})
        lines = [json.loads(line) for line in self.ok("dump", "--jsonl", self.pool).splitlines()]
        self.assertEqual([[line["key"], line["value"]] for line in lines[:-1]], whole["accounts"])
        self.assertEqual(lines[-1], {"field": "transfers", "value": 200})
        self.fails(3, "dump", self.pool, "nobody", "--json", has=["accounts, transfers"])

    def test_get(self):
        for key, value in json.loads(self.ok("dump", self.pool))["accounts"]:
            self.assertEqual(self.ok("get", self.pool, "accounts", str(key)), b"%d\n" % value)
        self.assertEqual(self.ok_json("get", self.pool, "accounts", "5")["found"], True)
        self.fails(1, "get", self.pool, "accounts", "500", has=["500"])
        self.fails(1, "get", self.pool, "accounts", "500", "--json")
        self.fails(3, "get", self.pool, "accounts", "x", has=["u64"])
        self.fails(3, "get", self.pool, "transfers", "5", has=["no elements"])

    def test_after_a_kill(self):
        self.make("kill")
        self.assertEqual(json.loads(self.ok("dump", self.pool))["transfers"], 400)
        self.check()

    def test_pools_of_load(self):
        pool = self.path("rows")
        self.ok("load", pool, self.write("Packages", packages(300)))
        self.assertIn("rows", [f["name"] for f in self.ok_json("schema", pool)["root"]["fields"]])
        self.assertEqual(len(self.ok("dump", "--jsonl", pool, "rows").splitlines()), 300)
        self.assertIn("versions", self.ok_json("schema", pool, "--versions"))

    def root(self):
        """Where the program's root object lies in the file: the catalog begins with its address."""
        info = self.ok_json("info", self.pool)
        with open(self.pool, "rb") as f:
            f.seek(info["log_bytes"] + info["root_offset"])
            address = int.from_bytes(f.read(8), "little")
        return info["log_bytes"] + address - int(info["base"], 16)

    def flip(self, offset, n):
        """Inverts n bytes; returns what was there."""
        with open(self.pool, "r+b") as f:
            f.seek(offset)
            good = f.read(n)
            f.seek(offset)
            f.write(bytes(b ^ 0xff for b in good))
        return good

    def put_back(self, offset, good):
        with open(self.pool, "r+b") as f:
            f.seek(offset)
            f.write(good)

    def test_check_finds_a_damaged_container(self):
        root = self.root()
        for field in (0, 16, 32):  # the number of segments, the directory, the count
            good = self.flip(root + field, 8)
            self.fails(1, "check", self.pool, has=["accounts"])
            self.fails(1, "dump", self.pool, has=["accounts"])
            # What is not damaged is there.
            document = json.loads(perdure("dump", self.pool)[1])
            self.assertEqual(document["transfers"], 200)
            self.assertIn("$damaged", json.dumps(document["accounts"]))
            self.put_back(root + field, good)
        self.check()

    def test_check_finds_a_leak(self):
        root = self.root()
        with open(self.pool, "r+b") as f:
            f.seek(root)
            accounts = f.read(64)
            f.seek(root)
            f.write(bytes(64))  # an empty map: its blocks are nobody's
        self.fails(1, "check", self.pool, has=["a leak"])
        self.put_back(root, accounts)
        self.check()

    def test_check_says_what_it_does_not_know(self):
        self.pool = self.path("vault")
        self.make("vault")
        answer = self.check()  # the block of `theirs` is nobody's, as far as is known
        self.assertTrue(any("field theirs: theirs/1" in note for note in answer["notes"]), answer)
        self.assertNotIn("leaked_blocks", answer["summary"])
        self.assertEqual(json.loads(self.ok("dump", self.pool, "theirs"))["theirs"]["?"],
                         "theirs/1")
        self.assertIn(b"theirs: ? theirs/1", self.ok("schema", self.pool))

    def test_whatever_is_damaged_no_command_crashes(self):
        root = self.root()
        rng = random.Random(26)
        answers = []
        for _ in range(60):
            # Blocks of one size lie in a chunk of 64 KiB.
            at = [(root + rng.randrange(4) * 65536 + rng.randrange(3000), rng.randrange(1, 9))
                  for _ in range(rng.randrange(1, 4))]
            good = [(offset, self.flip(offset, n)) for offset, n in at]
            for command in (["check"], ["dump"], ["dump", "--jsonl", "--indexes"],
                            ["schema", "--count"]):
                status, _, err = perdure(*command, self.pool)
                self.assertIn(status, (0, 1, 3), f"{command} {at}: {err}")
                self.assertNotIn("signal", err, f"{command} {at}")
                answers.append(status)
            for offset, bytes_there in reversed(good):
                self.put_back(offset, bytes_there)
        self.assertGreater(answers.count(1), 10)
        self.check()


if __name__ == "__main__":
    unittest.main(verbosity=2)
