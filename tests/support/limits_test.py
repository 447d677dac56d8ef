#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The limit of Python cases: what a case that hangs prints, and that no process of it remains."""

import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

from limits import LimitedCase, limited

HANGS = """
import subprocess, sys, threading, unittest
sys.path.insert(0, sys.argv.pop(1))
from limits import LimitedCase

def waits_for_an_event():
    threading.Event().wait()

def waits_for_a_child():
    subprocess.run(["sleep", "1000"])

class Hangs(LimitedCase):
    def test_hangs(self):
        threading.Thread(target=waits_for_an_event, daemon=True).start()
        waits_for_a_child()

unittest.main()
"""


def runs(process):
    """Whether `process` has not ended yet: a zombie has, it only waits to be collected."""
    try:  # the process may end between any two looks at it: one read decides
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


class Limits(LimitedCase):
    def hang(self, limit):
        return subprocess.run(
            [sys.executable, "-c", HANGS, str(Path(__file__).parent)], capture_output=True,
            text=True, check=False, env={**os.environ, "PERDURE_CASE_LIMIT": limit})

    def test_prints_all_threads_and_ends_children(self):
        done = self.hang("0.5")
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in ("Hangs.test_hangs: still running after 0.5 s", "in waits_for_an_event",
                     "in waits_for_a_child"):
            self.assertIn(text, done.stderr)
        child = re.search(r"child process (\d+), now ended: sleep 1000", done.stderr)
        self.assertIsNotNone(child, done.stderr)
        while runs(child[1]):  # SIGKILL was sent; a busy machine acts on it later
            time.sleep(0.01)   # a process that never ends runs into the limit of this case

    def test_a_case_within_its_limit_ends(self):
        with limited("nothing", 60):
            pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
