# SPDX-License-Identifier: BSD-3-Clause
"""The criteria by which Blurred Persistence's figures are reproduced (section V), and why they
differ where they do."""

from .blurred_sizes import SCATTERED
from .blurred_systems import WORKLOADS
from .verdict import (CAUSE_UNKNOWN, Criterion, all_of, at_least, at_most, grown, less_time,
                      mean_of, near, over, share, y)

_PERSISTING = ("BASE", "MNE", "BPPM")


def _overall(why=""):
    return Criterion(
        (near("BPPM over BASE, mean of the workloads", 1.863, mean_of(over("BPPM", "BASE"))),
         near("BPPM over BASE, least", 1.563,
              lambda points: min(over("BPPM", "BASE")(points), default=None)),
         near("BPPM over BASE, most", 2.437,
              lambda points: max(over("BPPM", "BASE")(points), default=None)),
         near("BPPM over MNE, mean", 1.746, mean_of(over("BPPM", "MNE"))),
         near("BP(XIL) over BASE, mean", 1.213, mean_of(over("BP(XIL)", "BASE"))),
         at_least("BP(XIL) over BASE, every workload", 1, over("BP(XIL)", "BASE"), "1.10 to 1.51"),
         near("BP(VCBP) over BASE, mean", 1.635, mean_of(over("BP(VCBP)", "BASE"))),
         at_least("BPPM over BP(VCBP), every workload", 1, over("BPPM", "BP(VCBP)"), "ahead"),
         share("BASE below NP, mean, %", 62.1, mean_of(less_time("NP", "BASE")))), why)


def _steps(series):
    """Each number relative to the previous one."""
    def value(points):
        own = [p.y for p in sorted((p for p in points if p.series == series), key=lambda p: p.x)]
        return [after / before for before, after in zip(own, own[1:])]
    return value


def _over_better(points):
    """BPPM over the better of MNE's two variants."""
    return [
        min(pair)
        for pair in zip(over("BPPM", "MNE-SYNC")(points),
                        over("BPPM", "MNE-ASYNC")(points))
    ]


def _in_proportion(points):
    """From the smallest log to one of 2 MiB: the growth of the time, relative to the log's
    growth."""
    found = []
    for series in dict.fromkeys(p.series for p in points):
        at = {p.x: p.y for p in points if p.series == series}
        if 2.0 in at and min(at) < 2.0:
            found.append(at[2.0] / at[min(at)] / (2.0 / min(at)))
    return found


CRITERIA = {
    "B-Fig7": _overall(CAUSE_UNKNOWN),
    "B-Fig7L": _overall(),
    "B-Fig7N": _overall(CAUSE_UNKNOWN),
    "B-Fig7D": _overall(CAUSE_UNKNOWN),
    "B-Fig8H": Criterion((
        share("time that BPPM saves of BASE's, any number of threads, %", 40,
              less_time("BPPM", "BASE")),
        at_most(
            "throughput of 8 threads over that of 4, systems that persist", 1,
            all_of(*[
                lambda points, name=name:
                [a / b for a in y(name, 8)(points) for b in y(name, 4)(points)]
                for name in _PERSISTING
            ]), "drops")
    ), "Two processors, and hardly an abort (B-Fig8A): more threads than processors take turns "
       "and lose nothing.",
                         processors=4),
    "B-Fig8R": Criterion((
        share("time that BPPM saves of BASE's, any number of threads, %", 43,
              less_time("BPPM", "BASE")),
    ), "Reads and the STM take most of a tree's transaction here (B-Fig7), so that less of it is "
       "persistence.",
                         processors=4),
    "B-Fig8A": Criterion((at_most("Hash, aborted with 4 threads, %", 2,
                                  all_of(y("Hash, BASE", 4), y("Hash, BPPM", 4)), "about 1"),
                          at_least("Hash, aborted with 8 threads, %", 50 - 10,
                                   all_of(y("Hash, BASE", 8), y("Hash, BPPM", 8)), "over 50")),
                         processors=4),
    "B-Fig9": Criterion((share("time that BPPM saves of BASE's, smallest values, %", 39.7,
                               less_time("BPPM", "BASE", min)),
                         share("the same, largest values, %", 23.0, less_time("BPPM", "BASE", max)),
                         at_most(
                             "the second less the first, points", 0, lambda points: [
                                 b - a for a, b in zip(
                                     less_time("BPPM", "BASE", min)(points),
                                     less_time("BPPM", "BASE", max)(points))
                             ], "falls"),
                         at_least(
                             "BPPM's bytes a second, largest values over smallest", 1,
                             lambda points: [
                                 g * max(p.x for p in points) / min(p.x for p in points)
                                 for g in grown("BPPM")(points)
                             ], "grow"))),
    "B-Fig10": Criterion((
        at_least("operations a second, largest transactions over smallest, systems that persist",
                 1.1, all_of(*map(grown, _PERSISTING)), "rise"),
        at_least("the same from each size to the next", 0.9, all_of(*map(_steps, _PERSISTING)),
                 "smoothly"), near("NP, largest transactions over smallest", 1, grown("NP"))
    ), "Where the systems fall at the largest sizes NP falls, too: there it is the STM's own "
       "sets that grow."
                         ),
    "B-Fig11": Criterion((
        near("throughput of the largest log over the smallest, every workload", 1,
             all_of(*map(grown, WORKLOADS))),
        at_least("the same, mean", 1, mean_of(all_of(*map(grown, WORKLOADS))), "slightly up")
    ), "The rounds of a cell lie as far apart as the smallest log and the largest (whiskers): "
       "the machine's drift, more than the log."
                         ),
    "B-Fig12": Criterion(
        (near("growth of the time from the smallest log to 2 MiB, of the log's own, each series",
              0.78, _in_proportion),
         at_least(f"largest log over smallest, {SCATTERED}", 2, grown(SCATTERED), "grows"))),
    "B-Fig13": Criterion(
        (near("BPPM over BASE at the least latency", 1.741, over(
            "BPPM", "BASE", min)), near("BPPM over BASE at the most", 3, over("BPPM", "BASE", max)),
         near("BP(VCBP) over BASE at the most", 5, over("BP(VCBP)", "BASE", max)),
         at_least("BP(VCBP) over BPPM at the most", 1, over("BP(VCBP)", "BPPM", max), "ahead")),
        "At high latency flushed lines decide. All systems flush their log's lines at a commit; "
        "BASE flushes home's and its log's control, too. That relation of lines is the bound, "
        "whatever the latency."
    ),
    "B-Fig14": Criterion((
        at_most("MNE-ASYNC over MNE-SYNC, always busy", 1, over("MNE-ASYNC", "MNE-SYNC", min),
                "behind"),
        at_least("BPPM over the better of MNE's forms, everywhere", 1, _over_better, "ahead")
    ), "Of values of 1,024 bytes most lines written are the log's, two for each of home's; MNE "
       "streams them past the cache (B-Fig9)."
                         ),
}
