#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every row that the papers claim has a figure and a verdict; a verdict follows from the points,
and says why it differs."""

import copy
import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "papers"), str(SOURCE / "tests" / "support")]

from figures import kept  # noqa: E402
from figures.papers import PAPER_OF, PAPERS  # noqa: E402
from figures.verdict import (  # noqa: E402
    CANNOT, CAUSE_UNKNOWN, DIFFERS, MISSING, OURS, REPRODUCED, UNDECIDED, judge)
from limits import LimitedCase  # noqa: E402

# The papers' figures and tables, with the rows that represent each.
CLAIMED = {
    "R-Fig3L": 1, "R-Fig3R": 1, "R-Fig4L": 1, "R-Fig4R": 1, "R-Fig5": 1, "R-Fig6": 1, "R-Fig7L": 1,
    "R-Fig7R": 1, "R-Fig8L": 1, "R-Fig8R": 1, "R-Fig9": 1, "R-Fig10": 1, "R-Fig11": 1, "D-Fig2": 1,
    "D-Tab1": 1, "D-Tab2": 1, "D-Tab3": 1, "D-Fig3": 1, "D-Groups": 1, "D-Fig4": 1, "D-Fig5": 1,
    "D-Tab4": 1, "B-Fig7": 4, "B-Fig8": 3, "B-Fig9": 1, "B-Fig10": 1, "B-Fig11": 1, "B-Fig12": 1,
    "B-Fig13": 1, "B-Fig14": 1, "S-Fig4": 1, "S-Tab2": 1, "S-Fig5": 1, "S-Fig6": 2, "S-Fig7": 1,
    "S-Fig8": 1, "S-Fig9": 1, "S-Fig10": 1, "S-Fig11": 1, "S-Fig12": 1, "S-Fig13": 1, "S-Fig14": 2,
    "S-Fig16": 1
}


def rows_of(claim):
    """B-Fig8: B-Fig8H, B-Fig8R, ...; not B-Fig81."""
    return [
        row for row in PAPER_OF if row == claim or
        row.startswith(claim) and not row[len(claim)].isdigit() and not claim[-1].isalpha()
    ]


def figure_of(row):
    return next(f for f in PAPER_OF[row].figures if f.row == row)


class Verdicts(LimitedCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = {
            row: d for paper in PAPERS.values()
            for row, d in kept.load(SOURCE / "papers", paper).items()
        }

    def test_every_claimed_row_has_a_verdict(self):
        for claim, count in CLAIMED.items():
            rows = [row for row in rows_of(claim) if figure_of(row).criterion is not None]
            self.assertEqual(count, len(rows), f"{claim}: {rows}")
            for row in rows:
                self.assertIn(
                    judge(figure_of(row), self.documents.get(row)).word,
                    (REPRODUCED, DIFFERS, CANNOT, UNDECIDED, MISSING), row)

    def test_what_differs_says_why(self):
        for row, document in self.documents.items():
            verdict = judge(figure_of(row), document)
            if verdict.word == DIFFERS:
                self.assertTrue(verdict.why.strip(), f"{row} differs and does not say why")
                self.assertTrue(any(not s.holds for s in verdict.seen), row)

    def test_a_verdict_follows_the_points(self):
        """Of each reproduced row: when its series' numbers are changed one by one, a check
        fails."""
        reproduced = [
            row for row, d in self.documents.items() if judge(figure_of(row), d).word == REPRODUCED
        ]
        self.assertTrue(reproduced)
        for row in reproduced:
            words = set()
            for series in {p["series"] for p in self.documents[row]["points"]}:
                for change in (lambda y: y / 100, lambda y: 100 * y, lambda y: 1):
                    changed = copy.deepcopy(self.documents[row])
                    for p in changed["points"]:
                        p["y"] = change(p["y"]) if p["series"] == series else p["y"]
                    words.add(judge(figure_of(row), changed).word)
            self.assertIn(DIFFERS, words, f"{row}: nothing makes it differ")

    def test_what_was_not_measured_is_not_judged(self):
        self.assertEqual(MISSING, judge(figure_of("R-Fig4R"), None).word)
        self.assertEqual(OURS, judge(figure_of("B-KV"), None).word)

    def test_pages_are_made_of_what_is_kept(self):
        for row, document in self.documents.items():
            self.assertTrue(figure_of(row).findings([p for p in kept_points(document)]), row)


# Rows whose causes were once guessed: the guess contradicted the code or its counters, and no cause
# has been measured.
NO_CAUSE = ("R-Fig3R", "R-Fig4L", "R-Fig5", "R-Fig6", "R-Fig8L", "R-Fig8R", "B-Fig7", "B-Fig7N",
            "S-Fig10", "S-Fig11", "S-Tab2")


def made(row, points, **more):
    """A document of `row` with these points, [(series, x, y)] or [(series, x, y, low, high)]."""
    as_points = [{
        "series": p[0], "x": p[1], "y": p[2], "low": p[3 if len(p) > 3 else 2],
        "high": p[4 if len(p) > 4 else 2]
    } for p in points]
    return {
        "row": row, "points": as_points, "seconds": 1, "machine": {"cpu": "a processor", "cpus": 2},
        "rounds": 5, "quick": False, **more
    }


def trace_of(switches, wraps_between=50, prelude=True):
    """S-Fig8's points: one wrap per 0.02 ms. A switch writes its logs' buckets, waits for the open
    wraps, and writes the table to the data region, 20 lines per wrap."""
    one = ([4, 0, 0] if prelude else []) + [20] * 51
    lines = [0] * 10
    for _ in range(switches):
        lines += one + [0] * wraps_between
    return [
        p for n, count in enumerate(lines)
        for p in (("response time, us", n * 0.02, 20.0 if count == 4 else 5.0),
                  ("lines going home meanwhile", n * 0.02, count))
    ]


class Corrected(LimitedCase):
    """Errors that single verdicts once had."""

    @classmethod
    def setUpClass(cls):
        cls.documents = {
            row: d for paper in PAPERS.values()
            for row, d in kept.load(SOURCE / "papers", paper).items()
        }

    def seen(self, row, document, text):
        return next(s for s in judge(figure_of(row), document).seen if text in s.text)

    def test_a_switch_of_the_tables_is_counted_once(self):
        for prelude in (True, False):
            points = trace_of(6, prelude=prelude)
            length = points[-1][1]
            found = self.seen("S-Fig8", made("S-Fig8", points), "switches of the tables")
            self.assertAlmostEqual(6 / length, float(found.found), places=2,
                                   msg=f"prelude {prelude}")
        self.assertIn(
            "6 times",
            " ".join(figure_of("S-Fig8").findings(kept_points(made("S-Fig8", trace_of(6))))))
        kept_row = self.documents["S-Fig8"]
        self.assertAlmostEqual(6 / 12,
                               float(self.seen("S-Fig8", kept_row, "switches of the tables").found),
                               places=2, msg="six switches in 12 ms")
        self.assertEqual(DIFFERS, judge(figure_of("S-Fig8"), kept_row).word)

    def test_spikes_are_those_of_switches(self):
        """A slow wrap between two switches is not a spike of the switches."""
        points = [(s, x, 5.0 if s.startswith("response") else y) for s, x, y in trace_of(6)]
        slow = [(s, x,
                 50.0 if s.startswith("response") and n % 20 == 0 and points[n + 1][2] == 0 else y)
                for n, (s, x, y) in enumerate(points)]
        self.assertFalse(self.seen("S-Fig8", made("S-Fig8", slow), "longest response").holds)
        self.assertTrue(self.seen("S-Fig8", made("S-Fig8", trace_of(6)), "longest response").holds)

    def test_rounds_that_lie_far_apart_decide_nothing(self):
        kept_row = self.documents["D-Fig2"]
        self.assertEqual(UNDECIDED, judge(figure_of("D-Fig2"), kept_row).word)
        near = copy.deepcopy(kept_row)
        for p in near["points"]:
            p["low"], p["high"] = p["y"] * 0.98, p["y"] * 1.02
        self.assertIn(judge(figure_of("D-Fig2"), near).word, (REPRODUCED, DIFFERS))

    def test_a_share_keeps_its_sign(self):
        """No tolerance is as wide as the claimed effect: DudeTM ahead of Volatile-STM is not 7.4 %
        below it."""
        document = copy.deepcopy(self.documents["D-Fig2"])
        for p in document["points"]:
            if p["series"].startswith("DudeTM, ") and p["x"] == 1:
                p["y"] = p["low"] = p["high"] = 1.01
        self.assertFalse(self.seen("D-Fig2", document, "DudeTM below Volatile-STM").holds)

    def test_figure_10_has_the_transactions_of_figure_7(self):
        """One operation per transaction; rows of 200 alone do not decide it."""
        figure = figure_of("R-Fig10")
        verdict = judge(figure, self.documents["R-Fig10"])
        self.assertEqual(MISSING, verdict.word)
        self.assertIn("Optimized, single", verdict.why)
        slow = {"Optimized": 5, "Batch 8": 1.63, "Batch 16": 1.32, "Batch 32": 1.18}
        points = [(f"{name}, single", ns, 1 + (y - 1) * ns / 1000) for name, y in slow.items()
                  for ns in (0, 1000, 2000)]
        self.assertEqual(REPRODUCED, judge(figure, made("R-Fig10", points)).word)
        long_ones = [(name.removesuffix(", single"), x, y) for name, x, y in points]
        self.assertEqual(
            REPRODUCED,
            judge(figure, made("R-Fig10",
                               points + [(name, x, 1.0) for name, x, _ in long_ones])).word)
        self.assertEqual(MISSING, judge(figure, made("R-Fig10", long_ones)).word)

    def test_what_needs_rtm_is_decided_by_the_processor(self):
        figure = figure_of("D-Tab4")
        self.assertEqual(MISSING, judge(figure, None).word)
        self.assertEqual("", figure.needs({"cpu": "with it", "rtm": "yes"}))
        without = figure.needs({"cpu": "some processor", "rtm": "no"})
        self.assertIn("some processor", without)
        self.assertIn("RTM", without)
        refused = judge(figure, made("D-Tab4", [], cannot=without))
        self.assertEqual((CANNOT, without), (refused.word, refused.why))
        self.assertIsNotNone(figure.measure)
        losses = {
            "B+-tree": 11, "HashTable": 28, "TATP (B+-tree)": 7, "TATP (hash)": 7,
            "TPC-C (hash)": 10, "TPC-C (B+-tree)": 10
        }
        points = [("DudeTM-HTM, of Volatile-HTM's", w, 1 - loss / 100)
                  for w, loss in losses.items()]
        points += [("DudeTM-HTM, of DudeTM-STM's", w, y)
                   for w, y in (("B+-tree", 1.75), ("HashTable", 1.45), ("TATP (B+-tree)", 1.13))]
        self.assertEqual(REPRODUCED, judge(figure, made("D-Tab4", points)).word)
        self.assertEqual(DIFFERS,
                         judge(figure, made("D-Tab4", [(s, x, y / 2) for s, x, y in points])).word)

    def test_causes_that_were_not_measured_are_not_named(self):
        for row in NO_CAUSE:
            verdict = judge(figure_of(row), self.documents[row])
            self.assertEqual((DIFFERS, CAUSE_UNKNOWN), (verdict.word, verdict.why), row)
        for row in ("R-Fig8L", "R-Fig8R", "B-Fig7"):
            self.assertEqual("", figure_of(row).remark, row)


def kept_points(document):
    from figures.figure import points_of
    return points_of(document)


if __name__ == "__main__":
    unittest.main(verbosity=2)
