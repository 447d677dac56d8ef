#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows docs/benchmarks.md to the letter: in a copy of the sources its files are made and its
lines replaced; what it adds is built, and run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "support"))

from limits import LimitedCase, limited  # noqa: E402

BLOCK = r"```\w*\n(.*?)```"
NEW = re.compile(r"^New file `([^`]+)`:\n\n" + BLOCK, re.S | re.M)
REPLACE = re.compile(r"[Ii]n `([^`]+)`, replace\n\n" + BLOCK + r"\n\nby\n\n" + BLOCK, re.S)


def run(*command, cwd=None, timeout=800):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True,
                          timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit "
            f"{done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def copy_sources(to):
    """Copies what the build of the benchmarks needs."""
    for name in ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md"):
        shutil.copy2(SOURCE / name, to / name)
    for name in ("cmake", "perdure", "papers", "testing", "bench", "sqlite"):
        shutil.copytree(SOURCE / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))


def follow(page, tree):
    """Returns (files made, lines replaced)."""
    made, replaced = NEW.findall(page), REPLACE.findall(page)
    for path, text in made:
        target = tree / path
        assert not target.exists(), f"{path} is there already"
        target.write_text(text)
    for path, old, new in replaced:
        text = (tree / path).read_text()
        old, new = old.rstrip("\n"), new.rstrip("\n")
        assert text.count(old) == 1, f"{path}: found {text.count(old)} times, expected once: {old}"
        (tree / path).write_text(text.replace(old, new))
    return len(made), len(replaced)


class Adding(LimitedCase):
    case_limit = 300  # two of the cases compile

    @classmethod
    def setUpClass(cls):
        with limited("building what the page adds", 800):
            cls.build()

    @classmethod
    def build(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="perdure-adding-")
        cls.tree = Path(cls.scratch.name) / "perdure"
        cls.tree.mkdir()
        copy_sources(cls.tree)
        cls.followed = follow((SOURCE / "docs" / "benchmarks.md").read_text(), cls.tree)
        # The dev preset's flags, so that ccache has the library; of the benchmarks only what the
        # page adds and one existing workload.
        run("cmake", "--preset", "dev", "-DPERDURE_BUILD_BENCH=ON", "-DPERDURE_BUILD_TESTS=OFF",
            "-DPERDURE_BUILD_TOOLS=OFF", "-DPERDURE_BUILD_EXAMPLES=OFF",
            "-DPERDURE_BUILD_SQLITE=OFF", "-DPERDURE_BENCH_PMEMOBJ=OFF",
            "-DPERDURE_BENCH_STRUCTURES=counters", "-DPERDURE_BENCH_PEERS=memory", cwd=cls.tree)
        cls.built = cls.tree / "build" / "dev"
        run("cmake", "--build", cls.built, "--parallel",
            os.cpu_count() or 2, "--target", "perdure_bench_engines", "--target",
            "perdure_bench_peers")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def cell(self, executable, system, workload, *more):
        out = run(self.built / "bench" / executable, "--system", system, "--workload", workload,
                  "--seconds", "0.05", "--dir", self.scratch.name, *more, "--json")
        found = json.loads(out)
        self.assertGreater(found["operations"], 0)
        self.assertEqual([], found["audit"])
        self.assertEqual([], found["audit_reopened"])
        return found

    def test_the_page_says_what_to_do(self):
        self.assertEqual((3, 5), self.followed)

    def test_the_workload_runs_on_every_engine_that_isolates(self):
        listed = json.loads(run(self.built / "bench" / "perdure_bench_engines", "--list"))
        own = [s["name"] for s in listed if "counters" in s["structures"]]
        for engine in ("shadow:durable", "dudetm/stm:async", "undo", "rewind-1l-nfp-batch", "bppm",
                       "redo-base", "softwrap", "softwrap-local", "volatile"):
            self.assertIn(engine, own)
            found = self.cell("perdure_bench_engines", engine, "counters-8", "--threads", "2")
            self.assertEqual(engine != "volatile", found["reopened"])

    def test_the_store_runs_every_workload_and_the_new_one(self):
        for workload in ("counters-8", "sps-8", "hash-50", "bt-100", "kvstore-50", "kv-100", "ht-1",
                         "bpt-1", "tatpb-1", "session-99", "ycsb-d", "ycsb-e"):
            self.cell("perdure_bench_peers", "memory", workload, "--threads", "2")

    def test_an_audit_can_fail(self):
        """A store that loses data is detected."""
        lossy = self.tree / "bench" / "peers" / "memory.cpp"
        text = lossy.read_text()
        put = "    map_.insert_or_assign(std::string(key), std::string(value));\n"
        self.assertIn(put, text)
        lossy.write_text(
            text.replace(
                put,
                "    if (++puts_ % 4096 != 0) map_.insert_or_assign(std::string(key), "
                "std::string(value));\n"
            ).replace("  std::mutex mutex_;\n", "  std::mutex mutex_;\n  unsigned puts_ = 0;\n"))
        try:
            run("cmake", "--build", self.built, "--target", "perdure_bench_peers")
            with self.assertRaisesRegex(AssertionError, "counters: found a sum"):
                self.cell("perdure_bench_peers", "memory", "counters-8")
        finally:
            lossy.write_text(text)
            run("cmake", "--build", self.built, "--target", "perdure_bench_peers")

    def test_the_commands_know_the_workload(self):
        program = (
            "import sys; sys.path.insert(0, sys.argv[1]); from report import workloads; "
            "print(workloads.title('counters-8'), workloads.by_structure(['counters-1', 'sps-1']))")
        said = run(sys.executable, "-c", program, self.tree / "bench")
        self.assertIn("8 of 1,000 counters", said)
        self.assertIn("'counters': ['counters-1']", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
