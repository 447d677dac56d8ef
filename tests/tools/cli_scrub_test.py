#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure scrub: damage named with what it holds, pools that get checksums, refusals."""

import json
import os
import signal
import subprocess
import unittest

from cli import Case, FOREIGN, packages, perdure

PAGE = 4096


@unittest.skipUnless(FOREIGN, "PERDURE_FOREIGN is not set")
class Scrub(Case):
    FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def make(self, engine="shadow", how="close"):
        done = subprocess.run([FOREIGN, self.pool, engine, how], capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL if how == "kill" else 0, done.stderr)

    def scrub(self, *options):
        """The report, of a pool with damage or without."""
        status, out, err = perdure("scrub", self.pool, "--json", *options)
        report = json.loads(out)
        self.assertEqual(status, 0 if report["ok"] else 1, err)
        return report

    def flip(self, offset):
        data = self.ok_json("info", self.pool)["log_bytes"]
        with open(self.pool, "r+b") as f:
            f.seek(data + offset)
            byte = f.read(1)[0]
            f.seek(data + offset)
            f.write(bytes([byte ^ 4]))

    def test_a_pool_without_checksums_gets_them(self):
        self.make()
        self.assertEqual(self.scrub()["has_checksums"], False)
        self.assertIn(b"--fill", self.ok("scrub", self.pool))
        filled = self.ok_json("scrub", self.pool, "--fill")
        self.assertEqual(filled["had"] + filled["accepted"], 0)
        self.assertGreater(filled["got"], 3)
        report = self.scrub()
        self.assertEqual((report["ok"], report["has_checksums"]), (True, True))
        self.assertEqual(report["pages"], filled["got"])
        self.assertIn("data checksums", str(self.ok_json("info", self.pool)["features"]))
        again = self.ok_json("scrub", self.pool, "--fill")
        self.assertEqual((again["had"], again["got"]), (filled["got"], 0))
        self.check()
        self.assertIn(b"no damage found", self.ok("scrub", self.pool))
        self.assertEqual(json.loads(self.ok("dump", self.pool))["transfers"], 200)

    def test_damage_is_named_with_its_keys(self):
        self.ok("load", self.pool, self.write("Packages", packages(2000)))
        self.ok("scrub", self.pool, "--fill")
        keys = [json.loads(line)["key"] for line in
                self.ok("dump", "--jsonl", self.pool, "rows").splitlines()]
        with open(self.pool, "rb") as f:
            data = self.ok_json("info", self.pool)["log_bytes"]
            f.seek(data)
            region = f.read()
        name = f"{keys[1000]}".encode()
        at = region.index(b"Package: " + name if b"Package: " + name in region else name)
        self.flip(at)
        report = self.scrub()
        self.assertEqual([page["offset"] for page in report["damaged"]], [at // PAGE * PAGE])
        fields = report["damaged"][0]["holds"]["fields"]
        held = next(field for field in fields if "first_key" in field)
        self.assertIn(held["field"], ("rows", "index"))
        self.assertGreater(held["parts"], 0)
        status, out, err = perdure("scrub", self.pool)
        self.assertEqual(status, 1)
        self.assertIn("it holds", err)
        self.assertIn(b"damaged pages: 1", out)
        # The other commands see it, too.
        self.fails(1, "check", self.pool, has=["its checksum is"])
        self.fails(3, "backup", self.pool, self.path("backups"), has=["damaged pages"])
        # It is not blessed unless that is asked for.
        self.fails(3, "scrub", self.pool, "--fill", has=["1 damaged pages"])
        self.assertFalse(self.scrub()["ok"])
        self.assertEqual(self.ok_json("scrub", self.pool, "--accept")["accepted"], 1)
        self.assertTrue(self.scrub()["ok"])

    def test_the_directory_and_the_first_page(self):
        self.make()
        self.ok("scrub", self.pool, "--fill")
        for offset in 4000, PAGE + 4000:
            self.flip(offset)
            damaged = self.scrub()["damaged"]
            self.assertEqual([page["offset"] for page in damaged], [offset // PAGE * PAGE])
            self.flip(offset)
        self.assertTrue(self.scrub()["ok"])

    def test_after_a_kill(self):
        self.make()
        self.ok("scrub", self.pool, "--fill")
        self.make(how="kill")
        report = self.scrub()
        self.assertTrue(report["ok"])
        self.ok("recover", self.pool)
        self.assertTrue(self.scrub()["ok"])

    def test_refusals(self):
        self.make("undo")
        self.assertEqual(self.scrub()["has_checksums"], False)
        self.fails(3, "scrub", self.pool, "--fill", has=["shadow"])
        self.fails(3, "scrub", self.path("nothing"), has=["no such file"])
        self.fails(2, "scrub", self.pool, "--rate", "fast")


if __name__ == "__main__":
    unittest.main()
