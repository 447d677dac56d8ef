#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev bare without a bare system: what it takes from apt (stubs), and what it refuses."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import system  # noqa: E402
from limits import LimitedCase  # noqa: E402

TARGETS = """http://one/debian/|bookworm-updates|main
http://one/debian/|bookworm|main
http://one/debian/|bookworm|contrib
http://two/security/|bookworm-security|main
http://foreign/apt/|cloud-bookworm|main
http://other/|nodistro|main
"""
CONFIGURATION = """APT "";
APT::Architecture "amd64";
Acquire::http::Proxy "http://proxy:3128";
Acquire::Retries "3";
DPkg::Post-Invoke:: "rm /var/cache/apt/*.bin";
"""


class Sources(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-bare-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.says("apt-get", TARGETS)
        self.says("apt-config", CONFIGURATION)
        path = mock.patch.dict(os.environ, {"PATH": f"{self.folder}:/usr/bin:/bin"})
        path.start()
        self.addCleanup(path.stop)

    def says(self, name, text, status=0):
        (self.folder / f"{name}.txt").write_text(text)
        stub = self.folder / name
        stub.write_text(f"#!/bin/sh\ncat {self.folder}/{name}.txt\nexit {status}\n")
        stub.chmod(0o755)

    def test_the_archives_of_this_release_alone(self):
        self.assertEqual(
            system.sources(),
            [
                ("http://one/debian/", "bookworm", ["main", "contrib"]),
                ("http://two/security/", "bookworm-security", ["main"]),
                ("http://one/debian/", "bookworm-updates", ["main"]),
            ],
        )

    def test_no_archive_of_this_release(self):
        self.says("apt-get", "http://one/ubuntu/|noble|main\n")
        with self.assertRaisesRegex(
            system.CannotRun, "no suite 'bookworm', expected the archive of Debian 12"
        ):
            system.sources()
        self.says("apt-get", "broken", status=100)
        with self.assertRaisesRegex(system.CannotRun, "expected a Debian system with apt"):
            system.sources()

    def test_how_the_archives_are_reached(self):
        self.assertEqual(
            system.apt_configuration(),
            'Acquire::http::Proxy "http://proxy:3128";\nAcquire::Retries "3";\n',
        )

    def run_it(self, *arguments, **how):
        """A copy of the command, which another user can read."""
        self.folder.chmod(0o755)
        for name in ("run.py", "system.py"):
            shutil.copy(HERE / name, self.folder)
        return subprocess.run(
            [sys.executable, "-B", self.folder / "run.py", *arguments],
            capture_output=True,
            text=True,
            check=False,
            **how,
        )

    def test_what_is_refused(self):
        done = self.run_it("plain", "windows")
        self.assertEqual(done.returncode, 2)
        self.assertIn("found variant 'windows', expected some of: plain, gtest", done.stderr)
        if os.geteuid() == 0:
            done = self.run_it("plain", user=65534)
            self.assertEqual(done.returncode, 3)
            self.assertIn("found a user that is not root, expected root", done.stderr)
        done = self.run_it("plain", "--command", "package", "--packages", str(self.folder))
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"found no Debian package in {self.folder}", done.stderr)
        self.assertEqual(self.run_it("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
