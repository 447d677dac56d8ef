#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev demo --replicated`, on a small input."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/support"))
from limits import LimitedCase  # noqa: E402


class ReplicatedDemo(LimitedCase):
    case_limit = 300

    def test_nothing_that_a_quorum_had_is_lost(self):
        with tempfile.TemporaryDirectory(prefix="perdure-demo-") as folder:
            source = Path(folder) / "rows.csv"
            source.write_text("".join(f"key{i:06},{'x' * 200}{i}\n" for i in range(30000)),
                              encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-B", str(TOP / "tools/demo/replicated.py"), "--perdure",
                 os.environ["PERDURE"], "--nats-server", os.environ["PERDURE_NATS_SERVER"],
                 "--input", str(source), "--failovers", "2", "--batch", "4", "--seed", "5",
                 "--out", folder, "--json"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertTrue(result["ok"])
            self.assertEqual([f["ack"] for f in result["failovers"]], ["quorum", "local"])
            self.assertEqual(result["failovers"][0]["lost"], 0)
            self.assertEqual(set(result["checks"]), {"a", "b", "c"})
            self.assertEqual(result["rows"], 30000)


if __name__ == "__main__":
    unittest.main()
