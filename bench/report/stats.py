# SPDX-License-Identifier: BSD-3-Clause
"""Figures over rounds: the median with its spread (min..max), and ratios computed round by round.

A machine's speed drifts over minutes; two systems that ran one after the other in the same round
saw the same machine. A ratio is therefore the median of the rounds' ratios, not the ratio of two
medians.
"""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median of several rounds with their minimum and maximum."""

    median: float
    low: float
    high: float
    rounds: int

    def as_json(self):
        return {"median": self.median, "min": self.low, "max": self.high, "rounds": self.rounds}


def spread(values):
    values = [v for v in values if v is not None]
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values), len(values))


class Figures:
    """The measurements: (workload, system, threads) -> one outcome per round."""

    def __init__(self):
        self._outcomes = {}

    def add(self, workload, system, threads, round_number, outcome):
        self._outcomes.setdefault((workload, system, threads), {})[round_number] = outcome

    def keys(self):
        return self._outcomes.keys()

    def rates(self, workload, system, threads):
        """Operations per second by round."""
        return {
            r: o["rate"] for r, o in self._outcomes.get((workload, system, threads), {}).items()
        }

    def rate(self, workload, system, threads):
        return spread(self.rates(workload, system, threads).values())

    def counters(self, workload, system, threads):
        """Every counter's sum over the rounds (including warm-ups)."""
        total = {}
        for outcome in self._outcomes.get((workload, system, threads), {}).values():
            for name, value in outcome["counters"].items():
                total[name] = total.get(name, 0) + value
        return total

    def counter_median(self, workload, system, threads, name):
        found = [
            o["counters"].get(name)
            for o in self._outcomes.get((workload, system, threads), {}).values()
        ]
        return spread(found)

    def put_off(self):
        """(cells, total): one-thread cells whose thread had the processor for less than 95 % of its
        time, because the machine was busy."""
        shares = [
            o["cpu_seconds"] / o["seconds"] for (_, _, threads), rounds in self._outcomes.items()
            if threads == 1 for o in rounds.values() if o["seconds"]
        ]
        return sum(s < 0.95 for s in shares), len(shares)

    def as_json(self):
        return [{
            "workload": w, "system": s, "threads": t, "rate": self.rate(w, s, t).as_json(),
            "rounds": [{"round": r, **o} for r, o in sorted(rounds.items())]
        } for (w, s, t), rounds in self._outcomes.items()]


def ratio(above, below):
    """The spread of above/below, round by round; both are {round: rate}."""
    return spread(above[r] / below[r] for r in sorted(above.keys() & below.keys()) if below[r])
