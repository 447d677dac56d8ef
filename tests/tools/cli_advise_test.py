#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure advise: a program is recorded and replayed; files that are not traces; programs that
leave no trace; nothing stays behind. No time is judged."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest
import xml.etree.ElementTree

from cli import Case, PERDURE, perdure

PROGRAM = os.environ.get("PERDURE_ADVISED", "build/dev/tests/tools/tools_advised_program")
SVG = "{http://www.w3.org/2000/svg}"
SHORT = ["--medium", "emulated", "--seconds", "0.03", "--rounds", "2"]


class Advise(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.path("trace")
        self.scratch = self.path("scratch")
        os.mkdir(self.scratch)
        self.short = [*SHORT, "--dir", self.scratch]

    def record(self, threads=2, transactions=400):
        environment = dict(os.environ, PERDURE_TRACE=self.trace)
        subprocess.run(
            [PROGRAM, self.pool, str(threads), str(transactions)], env=environment, check=True,
            capture_output=True, timeout=60)
        return self.trace

    def advise(self, *arguments):
        return json.loads(self.ok("advise", "--json", *self.short, *arguments))

    def tearDown(self):
        self.assertEqual(os.listdir(self.scratch), [])  # in every case
        super().tearDown()

    def test_a_program_from_its_run_to_the_advice(self):
        n, threads = 400, 2
        j = self.advise("--engine", "shadow,shadow/stm,undo,volatile", "--trace-out", self.trace,
                        "--", PROGRAM, self.pool, str(threads), str(n))
        self.assertEqual(j["trace"]["end"], "closed")
        self.assertEqual((j["trace"]["engine"], j["trace"]["medium"]), ("shadow", "emulated"))
        self.assertEqual(j["trace"]["rolled_back"], 0)
        w = j["workload"]
        each = n + n // 2
        self.assertEqual((w["threads"], w["transactions"], w["updates"], w["views"]),
                         (threads, threads * each, threads * n, threads * n // 2))
        self.assertAlmostEqual(w["allocs_each"], n / 4 / each)
        self.assertAlmostEqual(w["frees_each"], (n / 4 - 1) / each)
        # A note is 100 bytes: 12 whole words and one that is read and written in part; its pointer
        # is read, and written.
        self.assertAlmostEqual(w["written_words_each"], (2 * n + n // 4 * 14) / each)
        self.assertAlmostEqual(w["read_words_each"], (2 * n + n // 4 * 2 + n // 2 * 32) / each)
        self.assertEqual(w["largest_written_words"], 16)

        cells = {(c["engine"], c["mode"]): c for c in j["cells"]}
        self.assertEqual(
            set(cells), {("shadow", "durable"), ("shadow", "async"), ("shadow/stm", "durable"),
                         ("shadow/stm", "async"), ("undo", "durable"), ("volatile", "durable")})
        for name, c in cells.items():
            self.assertNotIn("error", c, name)
            self.assertGreater(c["per_second"], 0, name)
            self.assertLessEqual(0, c["p50_us"], name)
            self.assertLessEqual(c["p50_us"], c["p99_us"], name)
            self.assertEqual(len(c["rounds"]), 2)
            self.assertEqual(c["durable"], name[0] != "volatile")
        shadow = cells["shadow", "durable"]
        self.assertEqual(shadow["ratio"], 1)
        # One per commit; a checkpoint may come in between.
        self.assertAlmostEqual(shadow["fences"], 1, delta=0.02)
        # 24 bytes of header and 16 for each of 2 words; with a note also 2 heap operations, 14
        # words: in lines of 64 bytes.
        self.assertTrue(64 <= shadow["log_bytes"] <= 320, shadow)
        self.assertGreaterEqual(cells["undo", "durable"]["fences"], 3)
        self.assertLess(cells["shadow", "async"]["fences"], 0.9)
        self.assertEqual(
            (cells["volatile", "durable"]["fences"], cells["volatile", "durable"]["lines"]), (0, 0))
        self.assertEqual(j["replay"]["stretches"][0]["threads"], threads)
        self.assertIn("Pool<Root", j["advice"]["durable"]["code"])
        self.assertIn("perdure::async", j["advice"]["async"]["code"])
        # It is never the bound.
        self.assertIn(j["advice"]["durable"]["engine"], {"shadow", "shadow/stm", "undo"})
        self.assertGreater(j["advice"]["async"]["times_durable"], 0)
        self.assertIn("undo", json.dumps(j["advice"]["notes"]))  # has no async
        with open(self.trace, "rb") as f:
            content = f.read()
        self.assertNotIn(b"contents", content)
        self.assertLess(len(content), 16 * threads * each * 30)
        # Again, from the trace, as text.
        text = self.ok("advise", *self.short, "--engine", "shadow,undo,volatile", "--trace",
                       self.trace).decode()
        for words in ("workload: ", "durable\n", "async (latency",
                      "a bound: nothing of it is durable", "take ", "threads: 2 threads",
                      "perdure::Pool<Root"):
            self.assertIn(words, text)

    def test_every_engine_that_is_taken_by_itself_runs(self):
        j = self.advise("--trace", self.record(2, 200), "--mode", "durable,group,async")
        engines = {c["engine"] for c in j["cells"]}
        for name in ("shadow", "shadow/stm", "dudetm", "dudetm-combined", "undo",
                     "rewind-1l-nfp-batch", "bppm", "redo-mne-sync", "softwrap", "volatile"):
            self.assertIn(name, engines)
        for name in engines:
            self.assertFalse(
                name.startswith("rewind-2l") or name.endswith("/none") or
                name.endswith("stand-in") or "simple" in name, name)
        for c in j["cells"]:
            self.assertNotIn("error", c)
            if c["durable"] and c["mode"] == "durable":
                # Engines in which two threads share fences have fewer than one each.
                self.assertGreater(c["fences"], 0.4, c)
                self.assertGreater(c["lines"], 0, c)
        self.assertTrue(any(c["mode"] == "group" and c["engine"] == "shadow" for c in j["cells"]))

    def test_on_a_file(self):
        j = json.loads(
            self.ok("advise", "--json", "--medium", "file", "--dir", self.scratch, "--seconds",
                    "0.1", "--rounds", "1", "--engine", "shadow", "--trace", self.record(1, 4000)))
        self.assertEqual(j["replay"]["medium"], "file")
        durable, a = j["cells"]
        self.assertEqual((durable["mode"], a["mode"]), ("durable", "async"))
        self.assertGreater(durable["syncs"], 0.9)
        self.assertLess(a["syncs"], durable["syncs"])
        self.assertLess(j["replay"]["stretches"][0]["transactions"], 6001)
        self.assertIn("one thread", j["advice"]["threads"]["text"])

    def test_engines_that_isolate_nothing(self):
        trace = self.record(2, 50)
        self.fails(3, "advise", *self.short, "--trace", trace, "--engine", "undo/none",
                   has=["isolates nothing", "2 threads"])
        trace = self.record(1, 50)
        j = self.advise("--trace", trace, "--engine", "undo/none", "--mode", "durable")
        # There is no reference, because shadow was not measured.
        self.assertIsNone(j["cells"][0]["ratio"])
        self.assertIn("undo_none", j["advice"]["durable"]["code"])

    def test_skip(self):
        trace = self.record(1, 100)
        j = self.advise("--trace", trace, "--engine", "shadow", "--skip", "100")
        self.assertEqual(
            (j["replay"]["stretches"][0]["first"], j["replay"]["stretches"][0]["transactions"]),
            (100, 50))
        self.fails(3, "advise", *self.short, "--trace", trace, "--skip", "150",
                   has=["150 transactions", "--skip"])

    def test_programs_that_leave_no_trace(self):
        self.fails(3, "advise", *self.short, "--", "true", has=["true", "perdure.h", "Pool<Root>"])
        self.fails(3, "advise", *self.short, "--", PROGRAM, self.pool, "0", "1",
                   has=["committed no transaction"])
        self.fails(3, "advise", *self.short, "--json", "--", PROGRAM, self.pool, "1", "1", "fail",
                   has=["exit status 7"])
        self.fails(3, "advise", *self.short, "--", "sh", "-c", "kill -SEGV $$", has=["signal 11"])
        self.fails(3, "advise", *self.short, "--", self.path("missing"),
                   has=["missing", "No such file"])

    def test_traces_that_are_none(self):
        with open(self.record(), "rb") as f:
            good = f.read()
        bad = lambda name, content: ["advise", *self.short, "--trace", self.write(name, content)]
        self.fails(3, *bad("empty", b""),
                   has=["an empty file", "expected a workload trace", "PERDURE_TRACE"])
        self.fails(3, *bad("foreign", b"x" * 10000), has=["no workload trace"])
        self.fails(3, *bad("newer", good[:8] + struct.pack("<I", 9) + good[12:]), has=["version 9"])
        self.fails(3, *bad("damaged", good[:1000] + bytes([good[1000] ^ 1]) + good[1001:]),
                   has=["checksum differs", "record it again"])
        self.fails(3, *bad("header", good[:70] + b"\xff" + good[71:]), has=["checksum differs"])
        self.fails(3, "advise", *self.short, "--trace", self.path("missing"),
                   has=["missing", "No such file"])
        self.fails(3, "advise", *self.short, "--trace", self.folder, has=["no regular file"])
        # It was killed while it was written: the whole part is used.
        j = self.advise("--trace", self.write("torn", good[:-100]), "--engine", "shadow", "--mode",
                        "durable")
        self.assertTrue(j["trace"]["torn"])

    def test_command_lines_that_make_no_sense(self):
        trace = self.record(1, 10)
        self.fails(2, "advise", has=["-- PROGRAM", "--trace"])
        self.fails(2, "advise", "--trace", trace, "--", "true", has=["a program and a trace"])
        self.fails(3, "advise", *SHORT, "--trace", trace, "--engine", "none-such",
                   has=["none-such", "shadow/stm"])
        self.fails(3, "advise", *SHORT, "--trace", trace, "--dir", self.path("nowhere"),
                   has=["nowhere"])
        self.fails(3, "advise", *SHORT, "--trace", trace, "--dir", trace, has=["no directory"])
        self.fails(2, "advise", "--trace", trace, "--mode", "fast")
        self.fails(2, "advise", "--trace", trace, "--seconds", "0")
        self.fails(3, "advise", "--trace", trace, "--picture", self.path("p.pdf"), has=[".svg"])

    def test_a_cut_trace_is_said_to_be(self):
        environment = dict(os.environ, PERDURE_TRACE=self.trace, PERDURE_TRACE_MAX="8192")
        subprocess.run([PROGRAM, self.pool, "1", "1000"], env=environment, check=True,
                       capture_output=True, timeout=60)
        j = self.advise("--trace", self.trace, "--engine", "shadow", "--mode", "durable")
        self.assertTrue(j["trace"]["cut"])
        self.assertIn("cut at 8 KiB", json.dumps(j["advice"]["notes"]))
        bad = dict(os.environ, PERDURE_TRACE=self.path("no/such/place"))
        done = subprocess.run([PROGRAM, self.pool, "1", "1"], env=bad, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("PERDURE_TRACE", done.stderr)

    def test_a_signal_leaves_nothing_behind(self):
        trace = self.record(1, 50)
        for what in (signal.SIGINT, signal.SIGTERM):
            advise = subprocess.Popen([
                PERDURE, "advise", "--medium", "emulated", "--dir", self.scratch, "--trace", trace,
                "--seconds", "60"
            ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not any(name.endswith(".pool") for name in os.listdir(self.scratch)):
                self.assertIsNone(advise.poll())
                time.sleep(0.01)
            advise.send_signal(what)
            self.assertEqual(advise.wait(60), -what)
            self.assertEqual(os.listdir(self.scratch), [])

    def test_picture(self):
        trace, picture = self.record(1, 50), self.path("picture.svg")
        j = self.advise("--trace", trace, "--engine", "shadow,undo,volatile", "--picture", picture)
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        panels = root.findall(SVG + "g")
        self.assertEqual([p.find(SVG + "text").text for p in panels],
                         ["durable, medium emulated", "async, medium emulated"])
        for mode, panel in zip(("durable", "async"), panels):
            cells = [c for c in j["cells"] if c["mode"] == mode]
            self.assertEqual([t.text for t in panel.findall(f"{SVG}text[@class='name']")],
                             [c["engine"] for c in cells])
            bars = panel.findall(f"{SVG}rect[@class='bar']")
            longest = max(cells, key=lambda c: c["per_second"])
            scale = float(bars[cells.index(longest)].get("width")) / longest["per_second"]
            for cell, bar in zip(cells, bars, strict=True):
                self.assertAlmostEqual(float(bar.get("width")), scale * cell["per_second"],
                                       delta=0.1)
                taken = j["advice"].get(mode, {}).get("engine") == cell["engine"]
                self.assertEqual(
                    bar.get("fill"),
                    "#228833" if taken else "#4477aa" if cell["durable"] else "#bbbbbb")
            self.assertEqual(len(panel.findall(f"{SVG}path[@class='whisker']")), len(cells))
        self.fails(3, "advise", *self.short, "--trace", trace, "--picture",
                   self.path("no/folder.svg"), has=["folder"])
        self.fails(3, "advise", *self.short, "--trace", trace, "--picture", self.path("p.png"),
                   has=[".svg"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
