# SPDX-License-Identifier: BSD-3-Clause
"""The papers' conclusions: what each of their figures shows, as tests of order, shape and crossing,
and what it says in numbers. They are data, ../conclusions.json, written before anything was
measured; this module reads them and judges them over what was measured.

A row of the file is a figure or table of a paper (`row`, as in the list of claims), with the
section, the claim in our words, the tests of its conclusion, and its magnitudes. A test names
what it looks at (`of`), where (`at`), and between which bounds the number must lie (`least`,
`most`):

  order     [A, B]: A's number over B's, at each place
  number    A's number, at each place
  shape     of A, or of A over B: the number at the last place over that at the first; with
            `steps`, at each place over that at the place before. `over` divides it by the same of
            another series, or of two
  crossing  [A, B]: A is below B at the first place and above it at the last one. As a magnitude:
            the place where it passes B
  spike     of a trace: the longest response of each switch of the tables over the usual one

`at` is `all` (which is meant without it), `first`, `last`, a place, a list of places, or
{"from": A, "to": B}. A series is a name, or {"series": NAME, "at": PLACE} where two places are
compared. `from` names the measurement, where it is not the row's own. `take` is `mean`, `least` or
`most`, for one number of several.

A test holds where its number's whole spread lies between the bounds, does not hold where all of it
lies outside, and is undecided otherwise. The spread is that of the rounds, compared round by round,
without those that lie furthest away where there are eight or more (SURE). A conclusion holds when
all its tests do. A magnitude compares our number with the paper's: it is within 1.25 of it, or
further away, and that is better or worse where the file says which is better.
"""

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from .figure import crossing, has_points, points_of

FILE = Path(__file__).resolve().parents[1] / "conclusions.json"
HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "undecided", "not run"
WITHIN, BETTER, WORSE, ELSEWHERE = "within 1.25", "better", "worse", "elsewhere"
FACTOR = 1.25
# How sure it is that a number's median lies in the spread of its rounds: of 5 rounds, all have to
# be looked at for it; of 9, the lowest and the highest can be left out.
SURE = 0.93
KINDS = ("order", "number", "shape", "crossing", "spike")
_ROW = {"row", "paper", "section", "claim", "tests", "magnitudes", "processors"}
_TEST = {"says", "kind", "of", "at", "from", "least", "most", "take", "steps", "over"}
_MAGNITUDE = _TEST - {"least", "most"} | {"paper", "better"}


class BadConclusion(Exception):
    """The file is not as it must be."""


class Missing(Exception):
    """Nothing was measured of a series, or a place."""


# --- the file -------------------------------------------------------------------------------------

def load(text=None):
    """Returns the rows of the file, or of its text. Raises BadConclusion."""
    rows = json.loads(FILE.read_text(encoding="utf-8") if text is None else text)
    for row in rows:
        name = row.get("row", "a row without a name")
        _expect(name, row, _ROW, {"row", "paper", "section", "claim", "tests"})
        if not row["tests"]:
            raise BadConclusion(f"{name}: found no test, expected one or more")
        for test in row["tests"]:
            _expect(name, test, _TEST, {"says", "kind", "of"})
            bounds = {"least", "most"} & set(test)
            if (test["kind"] == "crossing") == bool(bounds):
                raise BadConclusion(
                    f"{name}, '{test['says']}': found {' and '.join(sorted(bounds)) or 'no bound'}"
                    ", expected `least` or `most`, and neither for a crossing")
        for magnitude in row.get("magnitudes", []):
            _expect(name, magnitude, _MAGNITUDE, {"says", "kind", "of", "paper"})
    if len({row["row"] for row in rows}) != len(rows):
        raise BadConclusion("found a row twice")
    return rows


def _expect(name, found, known, needed):
    if unknown := set(found) - known:
        raise BadConclusion(f"{name}: found {', '.join(sorted(unknown))}, expected some of "
                            f"{', '.join(sorted(known))}")
    if missing := needed - set(found):
        raise BadConclusion(f"{name}: found no {', '.join(sorted(missing))}")
    if found.get("kind", KINDS[0]) not in KINDS:
        raise BadConclusion(f"{name}: found kind {found['kind']}, expected {', '.join(KINDS)}")


# --- numbers, with their spread -------------------------------------------------------------------

@dataclass(frozen=True)
class Sample:
    """A number: the median of the rounds with their spread, and each round's if it is known."""

    middle: float
    low: float
    high: float
    rounds: tuple = ()

    @staticmethod
    def of(rounds):
        ordered, n, left_out = sorted(rounds), len(rounds), 0
        # The median lies outside of what is left if so few of the rounds lie on one of its sides;
        # each lies on either with the same chance.
        while 1 - 2 * sum(math.comb(n, i) for i in range(left_out + 2)) / 2**n >= SURE:
            left_out += 1
        return Sample(statistics.median(rounds), ordered[left_out], ordered[n - 1 - left_out],
                      tuple(rounds))

    def __truediv__(self, other):
        """Round by round; without the rounds, the widest spread that both allow."""
        if self.rounds and len(self.rounds) == len(other.rounds):
            return Sample.of([_over(a, b) for a, b in zip(self.rounds, other.rounds)])
        return Sample(_over(self.middle, other.middle), _over(self.low, other.high),
                      _over(self.high, other.low))


def _over(a, b):
    return a / b if b else 1.0 if not a else math.inf


def _one(take, samples):
    """One sample of several."""
    if take == "mean":
        if all(len(s.rounds) == len(samples[0].rounds) > 0 for s in samples):
            return Sample.of([statistics.mean(each) for each in zip(*[s.rounds for s in samples])])
        return Sample(*[statistics.mean(getattr(s, part) for s in samples)
                        for part in ("middle", "low", "high")])
    return (min if take == "least" else max)(samples, key=lambda s: s.middle)


class Measured:
    """The points of all rows that were measured."""

    def __init__(self, documents):
        """documents: {row: document}."""
        self._points = {
            row: points_of(document) for row, document in documents.items() if has_points(document)
        }

    def points(self, row):
        if row not in self._points:
            raise Missing(row)
        return self._points[row]

    def series(self, row, name):
        """Returns {place: Sample} of a series."""
        found = {
            p.x: Sample(p.y, p.low, p.high, tuple(p.rounds)) for p in self.points(row)
            if p.series == name
        }
        if not found:
            raise Missing(f"{row}: {name}")
        return found


# --- a test's number ------------------------------------------------------------------------------

def _chosen(places, at):
    if at == "all":
        return places
    if at in ("first", "last"):
        ordered = sorted(places)
        return ordered[:1] if at == "first" else ordered[-1:]
    if isinstance(at, dict):
        return [x for x in places if at.get("from", -math.inf) <= x <= at.get("to", math.inf)]
    wanted = at if isinstance(at, list) else [at]
    if absent := [x for x in wanted if x not in places]:
        raise Missing(f"place {absent[0]}")
    return wanted


def _by_place(measured, row, of, at):
    """{place: Sample} of a series, or of one over another; a series at one place of its own is the
    same at each place."""
    operands = of if isinstance(of, list) else [of]
    found, fixed = [], []
    for operand in operands:
        own = isinstance(operand, dict)
        series = measured.series(row, operand["series"] if own else operand)
        if own and operand["at"] not in series:
            raise Missing(f"{row}: {operand['series']} at {operand['at']}")
        found.append(series[operand["at"]] if own else series)
        fixed.append(own)
    if all(fixed):
        places = ["both"]
    else:
        open_ = [f for f, own in zip(found, fixed) if not own]
        places = _chosen([x for x in open_[0] if all(x in other for other in open_)], at)
    if not places:
        raise Missing(f"{row}: no place of {of}")
    columns = [{x: f for x in places} if own else f for f, own in zip(found, fixed)]
    return {x: columns[0][x] if len(columns) == 1 else columns[0][x] / columns[1][x]
            for x in places}


def _changes(found, steps):
    ordered = [found[x] for x in sorted(found)]
    if len(ordered) < 2:
        raise Missing("a second place")
    if steps:
        return [after / before for before, after in zip(ordered, ordered[1:])]
    return [ordered[-1] / ordered[0]]


def _spikes(points):
    from .softwrap_wraps import switches, trace_of  # pylint: disable=import-outside-toplevel
    trace = trace_of(points)
    usual = statistics.median(us for _, us, _ in trace)
    longest = [max(us for ms, us, _ in trace if first <= ms <= last) / usual
               for first, last in switches(points)]
    if not longest:
        raise Missing("a switch of the tables")
    return [Sample(ratio, ratio, ratio) for ratio in longest]


def numbers(test, row, measured):
    """The samples that a test, or a magnitude, is about. Raises Missing."""
    source, kind, at = test.get("from", row), test["kind"], test.get("at", "all")
    if kind == "spike":
        found = _spikes(measured.points(source))
    elif kind == "crossing":
        by_place = _by_place(measured, source, test["of"], at)
        return [by_place[min(by_place)], by_place[max(by_place)]]
    else:
        by_place = _by_place(measured, source, test["of"], at)
        found = list(by_place.values())
        if kind == "shape":
            found = _changes(by_place, test.get("steps", False))
            if "over" in test:
                other = _changes(_by_place(measured, source, test["over"], at),
                                 test.get("steps", False))
                found = [a / b for a, b in zip(found, other)]
    return [_one(test["take"], found)] if "take" in test else found


# --- verdicts -------------------------------------------------------------------------------------

def _between(sample, least, most):
    if sample.low >= least and sample.high <= most:
        return HOLDS
    return FAILS if sample.high < least or sample.low > most else UNDECIDED


def _all(words):
    return FAILS if FAILS in words else UNDECIDED if UNDECIDED in words else HOLDS


def judge_test(test, row, measured):
    """(word, the samples). Raises Missing."""
    found = numbers(test, row, measured)
    if test["kind"] == "crossing":
        return _all([_between(found[0], -math.inf, 1), _between(found[1], 1, math.inf)]), found
    least, most = test.get("least", -math.inf), test.get("most", math.inf)
    return _all([_between(sample, least, most) for sample in found]), found


def judge_magnitude(magnitude, row, measured):
    """(word, our number or None). Raises Missing."""
    if magnitude["kind"] == "crossing":
        ours = crossing(measured.points(magnitude.get("from", row)), *magnitude["of"])
        if ours is None:
            return ELSEWHERE, None
    else:
        found = numbers(magnitude, row, measured)
        if len(found) != 1:
            raise BadConclusion(f"{row}, '{magnitude['says']}': found {len(found)} numbers, "
                                "expected one; `take` or `at` chooses it")
        ours = found[0].middle
    paper = magnitude["paper"]
    low, high = paper if isinstance(paper, list) else (paper, paper)
    nearest = min(max(ours, low), high)
    if nearest / FACTOR <= ours <= nearest * FACTOR:
        return WITHIN, ours
    better = magnitude.get("better")
    if better is None:
        return ELSEWHERE, ours
    return BETTER if (ours > nearest) == (better == "higher") else WORSE, ours


@dataclass(frozen=True)
class Judged:
    """A row of the file with its verdict."""

    row: dict
    word: str
    why: str  # of a row that is not run
    tests: tuple  # (test, word, samples)
    magnitudes: tuple  # (magnitude, word, our number)
    measurements: tuple  # the rows that it was judged over


def judge(row, measured):
    name = row["row"]
    sources = tuple(dict.fromkeys(t.get("from", name)
                                  for t in (*row["tests"], *row.get("magnitudes", []))))
    try:
        tests = tuple((test, *judge_test(test, name, measured)) for test in row["tests"])
    except Missing as missing:
        return Judged(row, NOT_RUN, f"not measured: {missing}", (), (), sources)
    magnitudes = []
    for magnitude in row.get("magnitudes", []):
        try:
            magnitudes.append((magnitude, *judge_magnitude(magnitude, name, measured)))
        except Missing:
            magnitudes.append((magnitude, NOT_RUN, None))
    return Judged(row, _all([word for _, word, _ in tests]), "", tests, tuple(magnitudes), sources)
