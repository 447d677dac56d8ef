#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every row that the papers claim has a figure and a verdict; a verdict follows the points, and says why where it differs."""

import copy
import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "tests" / "support")]

from figures import kept  # noqa: E402
from figures.papers import PAPER_OF, PAPERS  # noqa: E402
from figures.verdict import CANNOT, DIFFERS, MISSING, OURS, REPRODUCED, judge  # noqa: E402
from limits import LimitedCase  # noqa: E402

# The papers' figures and tables, by the rows that stand for each.
CLAIMED = {
    "R-Fig3L": 1, "R-Fig3R": 1, "R-Fig4L": 1, "R-Fig4R": 1, "R-Fig5": 1, "R-Fig6": 1, "R-Fig7L": 1, "R-Fig7R": 1, "R-Fig8L": 1, "R-Fig8R": 1, "R-Fig9": 1, "R-Fig10": 1,
    "R-Fig11": 1, "D-Fig2": 1, "D-Tab1": 1, "D-Tab2": 1, "D-Tab3": 1, "D-Fig3": 1, "D-Fig4": 1, "D-Fig5": 1, "D-Tab4": 1, "B-Fig7": 3, "B-Fig8": 3, "B-Fig9": 1, "B-Fig10": 1,
    "B-Fig11": 1, "B-Fig12": 1, "B-Fig13": 1, "B-Fig14": 1, "S-Fig4": 1, "S-Tab2": 1, "S-Fig5": 1, "S-Fig6": 2, "S-Fig7": 1, "S-Fig8": 1, "S-Fig9": 1, "S-Fig10": 1, "S-Fig11": 1,
    "S-Fig12": 1, "S-Fig13": 1, "S-Fig14": 2, "S-Fig16": 1}


def rows_of(claim):
    """B-Fig8: B-Fig8H, B-Fig8R, ...; not B-Fig81."""
    return [row for row in PAPER_OF if row == claim or row.startswith(claim) and not row[len(claim)].isdigit() and not claim[-1].isalpha()]


def figure_of(row):
    return next(f for f in PAPER_OF[row].figures if f.row == row)


class Verdicts(LimitedCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = {row: d for paper in PAPERS.values() for row, d in kept.load(SOURCE / "docs" / "figures", paper).items()}

    def test_every_claimed_row_has_a_verdict(self):
        for claim, count in CLAIMED.items():
            rows = [row for row in rows_of(claim) if figure_of(row).criterion is not None]
            self.assertEqual(count, len(rows), f"{claim}: {rows}")
            for row in rows:
                self.assertIn(judge(figure_of(row), self.documents.get(row)).word, (REPRODUCED, DIFFERS, CANNOT), row)

    def test_what_differs_says_why(self):
        for row, document in self.documents.items():
            verdict = judge(figure_of(row), document)
            if verdict.word == DIFFERS:
                self.assertTrue(verdict.why.strip(), f"{row} differs and does not say why")
                self.assertTrue(any(not s.holds for s in verdict.seen), row)
        self.assertIn("RTM", judge(figure_of("D-Tab4"), None).why)

    def test_a_verdict_follows_the_points(self):
        """Of each reproduced row: with its series' numbers changed one by one some check fails."""
        reproduced = [row for row, d in self.documents.items() if judge(figure_of(row), d).word == REPRODUCED]
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


def kept_points(document):
    from figures.figure import points_of
    return points_of(document)


if __name__ == "__main__":
    unittest.main(verbosity=2)
