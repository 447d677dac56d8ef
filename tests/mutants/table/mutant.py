# SPDX-License-Identifier: BSD-3-Clause
"""An entry of the table of mutants."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    """`name` is unique, and says what is missing or reversed when the mutant is on. `edits` is
    {site: operation} (sites.py, operations.py). `by` is the program of programs.py that must find
    it; `explained` says why none can, if that is so.
    """

    name: str
    edits: dict
    by: str = "explorer"
    explained: str = ""

    @property
    def site(self):
        return next(iter(self.edits))
