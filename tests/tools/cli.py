# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of the perdure command: they run its own binary (environment PERDURE)."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from limits import LimitedCase  # noqa: E402

PERDURE = os.environ.get("PERDURE", "build/dev/tools/perdure")
FOREIGN = os.environ.get("PERDURE_FOREIGN")  # makes pools with another root type (foreign_pool.cpp)
COMMANDS = [
    "load", "export", "get", "put", "del", "scan", "schema", "dump", "info", "check", "recover",
    "scrub", "compact", "backup", "restore", "verify", "prune", "replicate", "standby",
    "promote", "follow", "log", "doctor", "stat", "lag", "advise", "sqlite"
]


def perdure(*arguments, stdin=b""):
    """(exit status, standard output, standard error)"""
    done = subprocess.run([PERDURE, *arguments], input=stdin, capture_output=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Case(LimitedCase):
    FOLDER = None  # the place of the case's folder; None: the folder for temporary files

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdure-cli-",
                                       dir=os.environ.get("PERDURE_TEST_DIR", self.FOLDER))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.pool = self.path("pool")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content)
        return self.path(name)

    def ok(self, *arguments, stdin=b""):
        status, out, err = perdure(*arguments, stdin=stdin)
        self.assertEqual(status, 0, f"{arguments}: {err}")
        return out

    def ok_json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json"))

    def kill_a_load(self, rows, pool, source, *options):
        """A load that is killed when it has reported this number of rows."""
        loader = subprocess.Popen(
            [PERDURE, "load", pool, source, "--batch", "5", *options, "--progress", "json"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in loader.stderr:
            if json.loads(line)["rows"] >= rows:
                break
        loader.kill()
        loader.communicate()

    def fails(self, status, *arguments, has=()):
        """The command exits with this status; its message contains every string of `has`. With
        --json, standard output says the same."""
        found, out, err = perdure(*arguments)
        self.assertEqual(found, status, f"{arguments}: {out!r} {err}")
        for text in has:
            self.assertIn(text, err)
        if "--json" in arguments:
            json.loads(out)
        return err

    def check(self, pool=None):
        answer = self.ok_json("check", pool or self.pool)
        self.assertEqual(answer["problems"], [])
        return answer


def packages(n, seed=1):
    """A control file of n stanzas."""
    rng = random.Random(seed)
    stanzas = []
    for i in range(n):
        text = (f"Package: p{i:05d}\nVersion: {rng.randrange(9)}.{i}\nArchitecture: amd64\n"
                "Description: ") + "x" * rng.randrange(300)
        stanzas.append(text + "\n more\n .\n\n")
    return "".join(stanzas).encode()
