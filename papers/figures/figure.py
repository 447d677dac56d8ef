# SPDX-License-Identifier: BSD-3-Clause
"""A figure: a row of the papers' claims, how it is measured here, and what the measurement says
about the claim.

A Figure's measure(bench) returns points; bench runs cells in interleaved rounds. findings(points)
returns sentences made from the points alone. `remark` is what a reader must know where the two
differ; it is written by hand.
"""

import json
import statistics
import subprocess
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from report.driver import Failed, Process
from report.stats import spread


@dataclass(frozen=True)
class Point:
    """A median with the slowest and the fastest round; x is a number, or a name if the figure has
    bars. `rounds`: what each round measured, in their order, so that two points can be compared
    round by round; none of a trace, and of what was kept before they were."""

    series: str
    x: float | str
    y: float
    low: float
    high: float
    rounds: tuple = ()


@dataclass
class Figure:
    row: str  # as in the list of claims: "R-Fig3L"
    title: str
    claim: str  # what the paper measured
    setup: str  # what was run here, with its parameters
    x: str  # the axes, with their units
    y: str
    measure: Callable  # (Bench) -> [Point]
    findings: Callable  # ([Point]) -> [str]
    remark: str = ""
    bars: bool = False
    log_x: bool = False
    log_y: bool = False
    trace: bool = False  # the points are single events over time: thin lines, and no table
    drawn: Callable = lambda series: True  # which series the picture has; the table has all
    # (series) -> (a panel's title, the line's name in it), if one picture has too many lines.
    panel: Callable | None = None
    criterion: object = None  # verdict.py's; None: not in the papers
    systems: tuple = ()  # of sources.py, beside the paper's
    # (report/machine.py's facts) -> why the machine can't run it, or an empty text.
    needs: Callable = lambda facts: ""


@dataclass
class Paper:
    name: str
    title: str
    medium: str  # what is emulated, for the notes
    about: list
    figures: list
    systems: tuple  # of whose sources (sources.py) a row is made
    # ({row: document}, points_of) -> lines of the page before its figures.
    summary: Callable | None = None


@dataclass
class Bench:
    """The tools with which a figure measures."""

    build_dir: Path  # of the bench preset
    directory: Path  # the directory for pools: a directory of this run's own, on tmpfs
    rounds: int
    quick: bool
    progress: Callable[[str], None]
    environment: dict = field(default_factory=dict)

    def executable(self, name):
        path = self.build_dir / "bench" / name
        if not path.exists():
            raise Failed(
                f"{path} is not there; build it first: ./dev build --preset bench --target "
                "bench/all")
        return path

    def call(self, name, *arguments, timeout=600):
        """Runs an executable that prints one JSON document; returns the document."""
        command = [str(self.executable(name)), *map(str, arguments), "--json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                                  check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}: no answer within {timeout} s") from None
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(done.stdout)

    def interleave(self, cells):
        """cells: {key: function that measures once and returns a number}. Runs all of them in turn,
        forwards and backwards, round after round. Returns {key: [number of each round]}."""
        values = {key: [] for key in cells}
        for number in range(self.rounds):
            order = list(cells) if number % 2 == 0 else list(reversed(cells))
            for n, key in enumerate(order, 1):
                self.progress(f"round {number + 1} of {self.rounds}, {n} of {len(order)}: {key}")
                values[key].append(cells[key]())
        return values


class Wanted(NamedTuple):
    """A system with one structure, as bench/harness/serve.cpp opens it."""

    system: str
    structure: str
    options: tuple = ()
    executable: str = "perdure_bench_engines"
    directory: str | None = None  # None: the figure's


@contextmanager
def processes(bench, wanted):
    """wanted: {key: Wanted}. Opens and fills them one after the other; yields {key: Process}. At
    the end each structure is audited, closed, opened and audited again."""
    opened = {}
    try:
        for n, (key, w) in enumerate(wanted.items(), 1):
            bench.progress(f"fills {n} of {len(wanted)}: {key}")
            opened[key] = Process(bench.executable(w.executable), w.system, w.structure,
                                  w.directory or bench.directory, w.options)
            opened[key].wait_ready()
        yield opened
        for key, process in opened.items():
            for reopen in (False, True):
                looked = process.ask({"audit": True, "reopen": reopen})
                if looked["problems"]:
                    raise Failed(f"{key}: {looked['problems'][0]}")
    finally:
        for process in opened.values():
            process.close()


def point(series, x, values):
    s = spread(values)
    return Point(series, x, s.median, s.low, s.high, tuple(values))


def ratios(above, below):
    """Ratios round by round: both ran in the same round, on the same machine in the same state."""
    return [a / b for a, b in zip(above, below)]


def median_of(points, series, x=None):
    """The y of a series at x; without x, the median over the series. None if there is no point."""
    found = [p.y for p in points if p.series == series and (x is None or p.x == x)]
    return statistics.median(found) if found else None


def crossing(points, one, other):
    """The x from which `one` is above `other`, interpolated linearly between the points; None if it
    never is."""
    a = {p.x: p.y for p in points if p.series == one}
    b = {p.x: p.y for p in points if p.series == other}
    before = None
    for x in sorted(a.keys() & b.keys()):
        gap = a[x] - b[x]
        if gap >= 0:
            return x if before is None or gap == before[1] else before[0] + (
                x - before[0]) * -before[1] / (gap - before[1])
        before = (x, gap)
    return None


def as_json(figure, points, seconds, facts, rounds, quick, sources, cannot=""):
    found = {
        "row": figure.row, "points": [asdict(p) for p in points], "seconds": seconds,
        "machine": facts, "sources": sources, "rounds": rounds, "quick": quick
    }
    return found | ({"cannot": cannot} if cannot else {})


def has_points(document):
    """Whether the row has points: a row that the machine can't run is kept without any."""
    return document is not None and not document.get("cannot")


def points_of(document):
    return [Point(**p) for p in document["points"]]
