#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The papers' conclusions: the file has every figure of the claims and names only what is measured;
each kind of test holds, does not hold, and is undecided where it must be."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "papers"), str(SOURCE / "tests" / "support")]

from figures.conclusions import (  # noqa: E402
    BETTER, ELSEWHERE, FAILS, HOLDS, NOT_RUN, UNDECIDED, WITHIN, WORSE, BadConclusion, Measured,
    Sample, judge, load)
from figures.papers import PAPER_OF, PAPERS  # noqa: E402
from limits import LimitedCase  # noqa: E402

ROWS = """
    R-Fig3L R-Fig3R R-Fig4L R-Fig4R R-Fig5 R-Fig6 R-Fig7L R-Fig7R R-Fig8L R-Fig8R R-Fig9 R-Fig10
    R-Fig11 D-Fig2 D-Tab1 D-Tab2 D-Tab3 D-Fig3 D-Fig4 D-Fig5 D-Tab4 B-Fig7 B-Fig8 B-Fig9 B-Fig10
    B-Fig11 B-Fig12 B-Fig13 B-Fig14 S-Fig4 S-Tab1 S-Tab2 S-Fig5 S-Fig6 S-Fig7 S-Fig8 S-Fig9 S-Fig10
    S-Fig11 S-Fig12 S-Fig13 S-Fig14 S-Fig16""".split()


def document(**series):
    """A measurement: {series: {place: its rounds}}."""
    points = []
    for name, places in series.items():
        for x, rounds in places.items():
            s = Sample.of(rounds)
            points.append({"series": name, "x": x, "y": s.middle, "low": s.low, "high": s.high,
                           "rounds": list(rounds)})
    return {"points": points}


class Conclusions(LimitedCase):
    def word(self, test, **series):
        """The verdict of a row with this one test."""
        row = {"row": "T", "paper": "P", "section": "1", "claim": "c",
               "tests": [{"says": "s"} | test]}
        return judge(load(json.dumps([row]))[0], Measured({"T": document(**series)})).word

    def magnitude(self, magnitude, **series):
        row = {"row": "T", "paper": "P", "section": "1", "claim": "c",
               "tests": [{"says": "s", "kind": "number", "of": "A", "least": 0}],
               "magnitudes": [{"says": "s"} | magnitude]}
        return judge(load(json.dumps([row]))[0],
                     Measured({"T": document(**series)})).magnitudes[0][1:]

    def test_the_file_has_every_claimed_figure_and_names_what_is_measured(self):
        rows = load()
        self.assertEqual([row["row"] for row in rows], ROWS)
        titles = {paper.title for paper in PAPERS.values()}
        for row in rows:
            self.assertIn(row["paper"], titles)
            for test in (*row["tests"], *row.get("magnitudes", [])):
                self.assertIn(test.get("from", row["row"]), PAPER_OF, test["says"])

    def test_an_order_is_compared_round_by_round(self):
        test = {"kind": "order", "of": ["A", "B"], "least": 1}
        # Each round was ahead, although the slowest of one is behind the fastest of the other.
        self.assertEqual(HOLDS, self.word(test, A={1: [2, 20]}, B={1: [1, 10]}))
        self.assertEqual(FAILS, self.word(test, A={1: [1, 10]}, B={1: [2, 20]}))
        self.assertEqual(UNDECIDED, self.word(test, A={1: [2, 9]}, B={1: [1, 10]}))
        self.assertEqual(FAILS, self.word(test, A={1: [2, 2], 2: [1, 1]}, B={1: [1, 1], 2: [2, 2]}),
                         "at every place")
        self.assertEqual(HOLDS, self.word(test | {"at": "first"}, A={1: [2, 2], 2: [1, 1]},
                                          B={1: [1, 1], 2: [2, 2]}))
        across = {"kind": "order", "of": [{"series": "A", "at": 1}, {"series": "A", "at": 2}],
                  "least": 1}
        self.assertEqual(HOLDS, self.word(across, A={1: [2, 2], 2: [1, 1]}))
        self.assertEqual(FAILS, self.word(across, A={1: [1, 1], 2: [2, 2]}))

    def test_a_shape_is_the_last_place_over_the_first_or_each_step(self):
        rises = {"kind": "shape", "of": "A", "least": 1.5}
        self.assertEqual(HOLDS, self.word(rises, A={1: [1, 1], 2: [5, 5], 4: [2, 2]}))
        self.assertEqual(FAILS, self.word(rises | {"steps": True},
                                          A={1: [1, 1], 2: [5, 5], 4: [2, 2]}))
        self.assertEqual(HOLDS, self.word(rises | {"at": {"to": 2}}, A={1: [1], 2: [5], 4: [1]}))
        self.assertEqual(FAILS, self.word(rises | {"over": "B"}, A={1: [1], 2: [2]},
                                          B={1: [1], 2: [2]}))
        self.assertEqual(HOLDS, self.word(rises | {"of": ["A", "B"]}, A={1: [1], 2: [2]},
                                          B={1: [1], 2: [1]}))

    def test_a_crossing_begins_below_and_ends_above(self):
        test = {"kind": "crossing", "of": ["A", "B"]}
        self.assertEqual(HOLDS, self.word(test, A={1: [1, 1], 3: [5, 5]}, B={1: [2, 2], 3: [3, 3]}))
        self.assertEqual(FAILS, self.word(test, A={1: [3], 3: [5]}, B={1: [2], 3: [3]}))
        self.assertEqual(FAILS, self.word(test, A={1: [1], 3: [2]}, B={1: [2], 3: [3]}))
        self.assertEqual(UNDECIDED, self.word(test, A={1: [1, 3], 3: [5, 5]},
                                              B={1: [2, 2], 3: [3, 3]}))
        place = {"kind": "crossing", "of": ["A", "B"], "paper": 2}
        self.assertEqual((WITHIN, 2), self.magnitude(place, A={1: [1], 3: [5]}, B={1: [2], 3: [4]}))
        self.assertEqual((ELSEWHERE, None), self.magnitude(place, A={1: [1]}, B={1: [2]}))

    def test_what_was_not_measured_is_not_run(self):
        test = {"kind": "number", "of": "A", "least": 1}
        self.assertEqual(NOT_RUN, self.word(test, B={1: [1]}))
        self.assertEqual(NOT_RUN, self.word(test | {"at": 2}, A={1: [1]}))
        self.assertEqual(NOT_RUN, self.word(test | {"from": "R-Fig3L"}, A={1: [1]}))
        self.assertEqual(NOT_RUN, self.word({"kind": "shape", "of": "A", "least": 1}, A={1: [1]}))

    def test_of_many_rounds_the_furthest_are_left_out(self):
        self.assertEqual((1, 5), (Sample.of([1, 2, 3, 4, 5]).low, Sample.of([1, 2, 3, 4, 5]).high))
        nine = Sample.of([100, 1, 2, 3, 4, 5, 6, 7, 0])
        self.assertEqual((4, 1, 7), (nine.middle, nine.low, nine.high))
        with_outlier = {"kind": "number", "of": "A", "most": 2}
        self.assertEqual(UNDECIDED, self.word(with_outlier, A={1: [1, 1, 1, 1, 9]}))
        self.assertEqual(HOLDS, self.word(with_outlier, A={1: [1, 1, 1, 1, 1, 1, 1, 1, 9]}))

    def test_a_magnitude_is_better_or_worse_as_the_file_says(self):
        for better, ours, word in (({"better": "lower"}, 2.4, WITHIN),
                                   ({"better": "lower"}, 1, BETTER),
                                   ({"better": "lower"}, 3, WORSE),
                                   ({"better": "higher"}, 1, WORSE),
                                   ({"better": "higher"}, 3, BETTER), ({}, 3, ELSEWHERE)):
            test = {"kind": "number", "of": "A", "paper": 2} | better
            self.assertEqual((word, ours), self.magnitude(test, A={1: [ours]}), better)
        between = {"kind": "number", "of": "A", "take": "mean", "paper": [2, 8], "better": "higher"}
        self.assertEqual((WITHIN, 5), self.magnitude(between, A={1: [4], 2: [6]}))
        with self.assertRaisesRegex(BadConclusion, "found 2 numbers"):
            self.magnitude({"kind": "number", "of": "A", "paper": 2}, A={1: [4], 2: [6]})

    def test_a_file_that_is_wrong_is_refused(self):
        good = {"row": "T", "paper": "P", "section": "1", "claim": "c",
                "tests": [{"says": "s", "kind": "number", "of": "A", "least": 1}]}
        for change, said in (({"rwo": 1}, "found rwo"), ({"tests": []}, "no test"),
                             ({"tests": [{"says": "s", "kind": "numbr", "of": "A"}]}, "kind numbr"),
                             ({"tests": [{"says": "s", "kind": "number", "of": "A"}]}, "no bound"),
                             ({"tests": [{"kind": "number", "of": "A"}]}, "no says")):
            with self.assertRaisesRegex(BadConclusion, said):
                load(json.dumps([good | change]))
        with self.assertRaisesRegex(BadConclusion, "twice"):
            load(json.dumps([good, good]))

    def test_the_command_counts_them(self):
        command = [sys.executable, "-B", str(SOURCE / "papers/figures/run.py"), "--verdicts"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120,
                              check=True)
        found = json.loads(done.stdout)
        self.assertEqual(len(ROWS), len(found["rows"]))
        self.assertEqual(len(ROWS), sum(found["total"].values()))
        done = subprocess.run([*command, "softwrap"], capture_output=True, text=True, timeout=120,
                              check=True)
        self.assertRegex(done.stdout, r"(?m)^14 conclusions: \d+ hold, \d+ are undecided, ")
        done = subprocess.run([*command, "--against", "no-such-commit"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(2, done.returncode)
        self.assertIn("no-such-commit", done.stderr)


if __name__ == "__main__":
    unittest.main()
