# SPDX-License-Identifier: BSD-3-Clause
"""Whether the claim of a row of the papers is reproduced: computed from its points by a Criterion.

A Criterion is a short list of checks. A check is a number, or one for each place of the figure,
that must lie between two bounds; it says so in words. A row is reproduced when all its checks hold.
The allowed distance of our number from the paper's is the same everywhere: it is NEAR, and the
report prints it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from .figure import crossing, median_of, points_of

REPRODUCED, DIFFERS, CANNOT, OURS, MISSING, UNDECIDED = ("reproduced", "differs",
                                                         "can't be run here", "ours",
                                                         "not measured", "not decided")
WORDS = (REPRODUCED, DIFFERS, UNDECIDED, CANNOT, MISSING, OURS)
CAUSE_UNKNOWN = "Cause not known: it has not been measured."

RATIO, PLACE, SHARE = 1.25, 1.5, 10
NEAR = (
    f"A ratio is reproduced when ours is within a factor of {RATIO} of the paper's, a place on "
    f"an axis (where two lines cross) within a factor of {PLACE}, a share within {SHARE} points "
    "of a hundred and within half of itself, so that it keeps its sign; what is ahead has to be "
    "ahead at every place. Where the rounds lie further apart than what the paper claims, "
    "nothing is decided.")


@dataclass(frozen=True)
class Check:
    what: str
    value: Callable  # (points) -> a number, several, or None
    low: float = -math.inf
    high: float = math.inf
    paper: str = ""  # the paper's number


@dataclass(frozen=True)
class Criterion:
    checks: tuple = ()
    why: str = ""  # why it differs; it does not repeat the figure's remark
    processors: int = 0  # the number of the paper's processors for it, if that matters
    # Checks of the rounds' spread: if one does not hold, the row decides nothing.
    steady: tuple = ()
    # Without all of these series the row was measured in another way than the paper's: not
    # measured.
    series: tuple = ()


@dataclass(frozen=True)
class Seen:
    """A check with its result."""

    text: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Verdict:
    word: str
    seen: tuple = ()
    why: str = ""
    partly: str = ""

    def spelt(self):
        if self.word == DIFFERS:
            return f"{DIFFERS}, {sum(s.holds for s in self.seen)} of {len(self.seen)} checks hold"
        return self.word

    def as_json(self):
        return {
            "word": self.word, "why": self.why, "partly": self.partly,
            "checks": [{"text": s.text, "found": s.found, "holds": s.holds} for s in self.seen]
        }


# --- checks ---------------------------------------------------------------------------------------

def near(what, paper, value, factor=RATIO):
    return Check(what, value, paper / factor, paper * factor, f"{paper:,g}")


def _within(percent):
    """The allowed distance of a share: a tolerance as wide as the share itself would accept any
    sign."""
    return min(SHARE, percent / 2)


def share(what, paper, value):
    """A check of a percentage."""
    return Check(what, value, paper - _within(paper), paper + _within(paper), f"{paper:g} %")


def shares(what, low, high, value):
    """A check of a percentage for which the paper has a range."""
    return Check(what, value, low - _within(low), high + _within(high), f"{low:g} to {high:g}")


def between(what, low, high, value, paper=""):
    return Check(what, value, low, high, paper)


def exactly(what, wanted, value):
    return Check(what, value, wanted, wanted)


def at_least(what, low, value, paper=""):
    return Check(what, value, low=low, paper=paper)


def at_most(what, high, value, paper=""):
    return Check(what, value, high=high, paper=paper)


# --- values: functions of the points --------------------------------------------------------------

def _places(points, x, *series):
    """The places that all these series have, or those of them that x chooses: x is a place, or a
    function of the sorted places such as min."""
    own = [dict.fromkeys(p.x for p in points if p.series == name) for name in series]
    both = [place for place in own[0] if all(place in other for other in own)]
    if x is None:
        return both
    if callable(x):
        chosen = x(sorted(both)) if both else []
        return chosen if isinstance(chosen, list) else [chosen]
    return [x] if x in both else []


def y(series, x=None):
    """The series' numbers, at every place or at x (_places)."""
    return lambda points: [median_of(points, series, at) for at in _places(points, x, series)]


def over(above, below, x=None):
    """One series relative to another."""
    return lambda points: [
        median_of(points, above, at) / median_of(points, below, at)
        for at in _places(points, x, above, below)
    ]


def grown(series):
    """The series' number at the last place, relative to that at the first."""
    return lambda points: [
        median_of(points, series, last) / median_of(points, series, first)
        for first in _places(points, min, series) for last in _places(points, max, series)
        if first != last
    ]


def crosses(one, other):
    return lambda points: crossing(points, one, other)


def less_time(fast, slow, x=None):
    """From two throughputs: the percentage by which `fast`'s transactions take less time."""
    return lambda points: [100 * (1 - 1 / ratio) for ratio in over(fast, slow, x)(points)]


def all_of(*values):
    return lambda points: [number for value in values for number in _numbers(value(points))]


def mean_of(value):
    return lambda points: (lambda found: sum(found) / len(found) if found else None)(value(points))


def times(factor, value):
    return lambda points: [factor * number for number in _numbers(value(points))]


def spreads(factor, *series, x=None):
    """The spread of a series' rounds at x, times the factor."""
    return lambda points: [
        factor * (p.high - p.low) for p in points if p.series in series and (x is None or p.x == x)
    ]


def where(series, level, other):
    """The other series' number at the place where this series, which rises, reaches the level; None
    if it never does."""
    def value(points):
        xs, ys = zip(*sorted((p.x, p.y) for p in points if p.series == series))
        if ys[-1] < level:
            return None
        place = numpy.interp(level, ys, xs)
        return float(
            numpy.interp(place, *zip(*sorted((p.x, p.y) for p in points if p.series == other))))
    return value


# --- the verdict ----------------------------------------------------------------------------------

def _numbers(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def short(number):
    """Formats a number with three digits and no exponent."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{float(f'{number:.3g}'):g}"


def _bounds(check):
    if check.low == check.high:
        return f"exactly {short(check.low)}"
    if math.isinf(check.high):
        return f"at least {short(check.low)}"
    if math.isinf(check.low):
        return f"at most {short(check.high)}"
    return f"{short(check.low)} to {short(check.high)}"


def see(check, points):
    found = _numbers(check.value(points))
    text = f"{check.what}: {_bounds(check)}" + (f" (paper: {check.paper})" if check.paper else "")
    if not found:
        return Seen(text, "none", False)
    low, high = min(found), max(found)
    spelt = short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"
    return Seen(text, spelt, check.low <= low and high <= check.high)


def judge(figure, document):
    """The verdict of a figure on its measurement (its JSON document, or None)."""
    criterion = figure.criterion
    if criterion is None:
        return Verdict(OURS)
    if document is None:
        return Verdict(MISSING)
    if document.get("cannot"):
        return Verdict(CANNOT, why=document["cannot"])
    points = points_of(document)
    if missing := [name for name in criterion.series if all(p.series != name for p in points)]:
        return Verdict(
            MISSING, why=
            "What is kept was measured in another way than the paper's: it lacks "
            f"{', '.join(missing)}. `./dev figures --only {figure.row}` measures it.")
    seen = tuple(see(check, points) for check in (*criterion.checks, *criterion.steady))
    had = document["machine"]["cpus"]
    partly = (
        f"Run in part: the paper's machine had {criterion.processors} processors for it, this "
        f"one has {had}."
        if criterion.processors > had else "")
    if not all(s.holds for s in seen[len(criterion.checks):]):
        return Verdict(
            UNDECIDED, seen,
            "The rounds lie further apart than the paper's claim is wide, so that another run "
            "may come to another verdict.",
            partly)
    held = all(s.holds for s in seen)
    return Verdict(REPRODUCED if held else DIFFERS, seen,
                   "" if held else criterion.why or figure.remark, partly)


def attach(criteria, figures):
    """Gives each figure its criterion; figures without one are not in the papers."""
    rows = {figure.row for figure in figures}
    if unknown := criteria.keys() - rows:
        raise ValueError(
            f"found criteria for {', '.join(sorted(unknown))}, expected some of the figures: "
            f"{', '.join(sorted(rows))}")
    for figure in figures:
        figure.criterion = criteria.get(figure.row)
    return figures
