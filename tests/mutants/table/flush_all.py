# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the media: what flush_all promises while other threads store."""

from operations import also_here, always, instead, leave_out, never
from .mutant import Mutant

# What flush_all promises while other threads store.
FLUSH_ALL = (
    Mutant(
        "flush_all writes back what another thread has not fenced (MARK-4)",
        {"flush-all-unfenced-lines": never(part=("2 of 2", "2 of 2"))},
        by="flush_all",
    ),
    Mutant(
        "the same, by power cuts under engines that publish after it",
        {"flush-all-unfenced-lines-power-cut": always()},
        by="flush_all_threads",
    ),
    Mutant(
        "one fence begun is no fence over (MARK-3)",
        {"fence-begun-is-not-over": instead("PART + 1", part="argument 2 of 2")},
        by="flush_all",
    ),
    Mutant(
        "a line is marked in flight before its write-back (MARK-2)",
        {
            "in-flight-mark-before-write-back": also_here(
                "in-flight-mark-before-write-back-late", "in-flight-mark-before-write-back-step"
            ),
            "in-flight-mark-before-write-back-late": leave_out(),
        },
        by="flush_all",
    ),
    Mutant(
        "a line is marked dirty after its data (MARK-1)",
        {
            "dirty-mark-after-data": also_here(
                "dirty-mark-after-data-late", "dirty-mark-after-data-step"
            ),
            "dirty-mark-after-data-late": leave_out(),
        },
        by="flush_all",
    ),
    Mutant("flush_all fences (MARK-4)", {"flush-all-fence": leave_out()}, by="flush_all"),
)
