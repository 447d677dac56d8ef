#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latencies of `./dev bench`: from a made-up result to the table, the JSON and the picture; what is
said of a system without latencies, and where matplotlib is missing."""

import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "tests" / "support")]

import run  # noqa: E402
from limits import LimitedCase  # noqa: E402
from report import compare, latency, latency_plot  # noqa: E402
from report import file as file_bench  # noqa: E402
from report.stats import Figures  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"
WAITING = ("shadow:durable", "lmdb")


def outcome(microseconds=None, operations=5000):
    """One round's outcome; `microseconds`: p50, p90, p99, p99.9, the longest."""
    counters = {"operations": operations}
    if microseconds:
        names = [counter for _, _, counter in latency.PERCENTILES] + [latency.MAX]
        counters |= dict(zip(names, microseconds)) | {latency.OPERATIONS: operations}
    return {"rate": operations / 2, "seconds": 2.0, "cpu_seconds": 2.0, "counters": counters}


def made_up():
    """Three rounds: two systems with latencies, one of them on 1 thread alone, and one without."""
    figures = Figures()
    for number, factor in enumerate((1.0, 0.5, 3.0)):
        for threads in (1, 16):
            figures.add("kv-100", "shadow:durable", threads, number,
                        outcome([factor * v for v in (100, 200, 400, 800, 5000)]))
        figures.add("kv-100", "lmdb", 1, number, outcome([7, 8, 9, 10.25, 1234], 900 + number))
        figures.add("kv-100", "raw", 1, number, outcome())
    return figures


def data_of(figures, workload="kv-100", names=(*WAITING, "raw")):
    systems = [types.SimpleNamespace(name=name) for name in names]
    return {
        "figures": figures, "described": {}, "failures": [], "systems": {workload: systems},
        "base": {workload: names[0]}, "compare": False, "latency": True, "waiting": systems[:2],
        "running": systems[2:]
    }


def printed(call, *arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call(*arguments)
    return out.getvalue().splitlines()


class Latency(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-latency-")
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def picture(self, paths, name):
        self.assertEqual([self.scratch / name], paths)
        content = paths[0].read_bytes()
        self.assertEqual(PNG, content[:len(PNG)])
        self.assertGreater(len(content), 5000)

    def test_the_table_has_the_rounds_medians_and_the_longest_of_all(self):
        lines = printed(latency.print_table, made_up(), "kv-100", WAITING, (1, 16))
        title, _, heads, *rows = [line.split() for line in lines]
        self.assertEqual("latency,", title[0])
        self.assertEqual("threads p50 p90 p99 p99.9 (min..max) max a round".split(), heads)
        self.assertEqual([
            "shadow:durable 1 100 200 400 800 (400..2400) 15000 5000".split(),
            "lmdb 1 7.00 8.00 9.00 10.2 (10.2..10.2) 1234 901".split(),
            "shadow:durable 16 100 200 400 800 (400..2400) 15000 5000".split()
        ], rows[:3])

    def test_a_round_of_few_operations_is_named(self):
        said = printed(latency.print_table, made_up(), "kv-100", WAITING, (1, 16))[-1]
        self.assertIn("fewer than 1,000 operations", said)
        self.assertTrue(said.endswith(": lmdb (1)"), said)

    def test_a_system_without_latencies_has_no_row_and_is_named(self):
        figures = made_up()
        lines = printed(latency.print_table, figures, "kv-100", (*WAITING, "raw"), (1, 16))
        self.assertEqual("  no latencies: raw", lines[-1])
        self.assertFalse([line for line in lines if line.split()[0] == "raw"])
        rows = compare.as_json(data_of(figures), (1, ))["latencies"]
        self.assertEqual(list(WAITING), [row["system"] for row in rows])
        self.assertEqual(["  no latencies: raw"],
                         printed(latency.print_table, figures, "kv-100", ("raw", ), (1, 16)))

    def test_the_json_has_every_percentile_with_its_spread(self):
        first = latency.as_json(made_up(), "kv-100", WAITING, (1, 16))[0]
        self.assertEqual(("kv-100", "shadow:durable", 1),
                         tuple(first[key] for key in ("workload", "system", "threads")))
        self.assertEqual(["p50", "p90", "p99", "p99.9", "max"], list(first["us"]))
        self.assertEqual({"median": 800, "min": 400, "max": 2400, "rounds": 3},
                         first["us"]["p99.9"])
        self.assertEqual(5000, first["operations"]["median"])

    def test_the_reports_of_workloads_and_of_file_have_them(self):
        figures = made_up()
        for bench in (compare, file_bench):
            with self.subTest(bench=bench.__name__):
                data = data_of(figures)
                self.assertEqual(3, len(bench.as_json(data, (1, 16))["latencies"]))
                lines = printed(bench.print_report, data, (1, 16))
                self.assertIn("  no latencies: raw", lines)
                self.assertTrue([line for line in lines if "(400..2400)" in line])

    def test_the_picture_of_a_workload(self):
        self.picture(
            latency_plot.compare_pictures(data_of(made_up()), (1, 16), self.scratch, "note"),
            "kv-100-latency.png")

    def test_the_picture_of_file(self):
        self.picture(
            latency_plot.file_pictures(data_of(made_up()), (1, 16), self.scratch, "note"),
            "file-latency.png")

    def test_nothing_is_drawn_of_systems_without_latencies(self):
        data = data_of(made_up(), names=("raw", ))
        for draw in (latency_plot.compare_pictures, latency_plot.file_pictures):
            self.assertEqual([], draw(data, (1, 16), self.scratch, "note"))
        self.assertEqual([], list(self.scratch.iterdir()))

    def write_report(self, data):
        args = types.SimpleNamespace(kind="", workloads=["kv-100"], out=self.scratch, delays="none",
                                     rounds=3, seconds=2.0, threads=[1, 16],
                                     latency=data["latency"])
        facts = {"cpu": "a processor", "cpus": 2, "kernel": "Linux", "file_system": "ext4 at /"}
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            written = run.write_report(args, data, {"cells": []}, facts)
        return [path.name for path in written], errors.getvalue()

    def test_the_picture_is_one_of_the_files_that_the_command_names(self):
        self.assertEqual((["kv-100.json", "kv-100-latency.png"], ""),
                         self.write_report(data_of(made_up())))
        self.assertEqual((["kv-100.json"], ""),
                         self.write_report({**data_of(made_up()), "latency": False}))

    def test_without_matplotlib_the_rest_is_written_and_the_package_named(self):
        with mock.patch.dict(sys.modules, {"matplotlib": None}):
            written, said = self.write_report(data_of(made_up()))
        self.assertEqual(["kv-100.json"], written)
        self.assertIn("no pictures were drawn", said)
        self.assertIn("python3-matplotlib", said)

    def test_micro_refuses_the_option(self):
        with mock.patch.object(sys, "argv", ["bench", "micro", "--latency"]):
            with self.assertRaisesRegex(run.Failed, "--latency with micro"):
                run.arguments()


if __name__ == "__main__":
    unittest.main(verbosity=2)
