# SPDX-License-Identifier: BSD-3-Clause
"""A measure, and the error that says that one can't be made."""

import collections
import dataclasses


class CannotMeasure(Exception):
    """Says what was found, what was expected, and what to do."""


@dataclasses.dataclass
class Measure:
    """One number of the tree, with its parts in `details`.

    `target` is the highest acceptable value; a measure without one is only watched.
    """

    title: str
    value: float
    target: float | None = None
    details: dict = dataclasses.field(default_factory=dict)

    @property
    def met(self):
        return None if self.target is None else self.value <= self.target

    def document(self):
        return {"title": self.title, "value": self.value, "target": self.target,
                "met": self.met, "details": self.details}


def counted(names):
    """How often each name occurs, the most frequent first."""
    return descending(collections.Counter(names))


def descending(numbers):
    """A dict of numbers with the highest first."""
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))
