#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demo itself on small inputs: it succeeds, counts its kills, cleans up, and fails where it
must."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from limits import LimitedCase  # noqa: E402

PERDURE = os.environ.get("PERDURE", "build/dev/tools/perdure")
DEMO = os.path.join(os.environ.get("PERDURE_SOURCE", "."), "tools/demo/demo.py")


class Demo(LimitedCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdure-demo-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_demo(self, perdure, *arguments):
        done = subprocess.run([
            sys.executable, DEMO, "--perdure", perdure, "--out", self.folder, "--json", *arguments
        ], capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, json.loads(done.stdout), done.stderr

    def source(self, rows):
        path = os.path.join(self.folder, "rows.tsv")
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(f"key{i}\t{'v' * (i % 97)}\n" for i in range(rows))
        return path

    def test_succeeds(self):
        status, result, log = self.run_demo(PERDURE, "--input", self.source(4000), "--kills", "6",
                                            "--seed", "1")
        self.assertEqual(status, 0, log)
        self.assertTrue(result["ok"])
        self.assertEqual(result["killed"]["kills"], 6)
        rows = [backup["rows"] for backup in result["backups"]["made"]]
        self.assertEqual(rows, sorted(set(rows)))
        self.assertEqual(len(rows), 3)
        self.assertEqual([point["to"] for point in result["backups"]["restored"]],
                         ["backup", "transaction", "time"])
        self.assertEqual(
            sorted(n for n in os.listdir(self.folder) if n.startswith("perdure-demo-")), [])
        self.assertTrue(os.path.exists(os.path.join(self.folder, "demo.json")))
        self.assertTrue(result["plot"] is None or os.path.getsize(result["plot"]) > 1000)

    def test_small_inputs_are_loaded_again_until_the_kills_are_spent(self):
        status, result, log = self.run_demo(PERDURE, "--input", self.source(5), "--kills", "3")
        self.assertEqual(status, 0, log)
        self.assertEqual(result["killed"]["kills"], 3)

    def fails_with(self, lie, rows):
        """The demo's failure with a command that lies in one case of the shell."""
        liar = os.path.join(self.folder, "liar")
        with open(liar, "w", encoding="utf-8") as out:
            out.write(f'#!/bin/sh\ncase "$1 $2" in {lie};; *) exec "{PERDURE}" "$@";; esac\n')
        os.chmod(liar, stat.S_IRWXU)
        status, result, _ = self.run_demo(liar, "--input", self.source(rows), "--kills", "1")
        self.assertEqual(status, 1)
        return result["failure"]

    def test_a_command_that_loses_a_row_fails(self):
        lie = f'"export "*) "{PERDURE}" "$@" && sed -i 3d "$3"'
        self.assertIn("export differs", self.fails_with(lie, 100))

    def test_a_backup_of_another_moment_fails(self):
        lie = f'"export "*restored-1.perdure) "{PERDURE}" "$@" && sed -i 1d "$3"'
        self.assertIn("restored-1.perdure differs", self.fails_with(lie, 4000))

    def test_cannot_run(self):
        self.assertEqual(
            self.run_demo(PERDURE, "--input", os.path.join(self.folder, "missing"))[0], 3)
        self.assertEqual(self.run_demo(os.path.join(self.folder, "nothing"))[0], 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
