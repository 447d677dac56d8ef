# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the checksums of pages."""

from operations import instead, leave_out, succeed
from .mutant import Mutant

CHECKSUMS = (
    Mutant(
        "a checkpoint marks the data region (CHECKSUM-1)",
        {"checksum-checkpoint-marks": leave_out()},
    ),
    Mutant(
        "recovery marks the data region (CHECKSUM-1)",
        {"checksum-recovery-marks": leave_out()},
    ),
    Mutant(
        "after an interruption recovery computes checksums anew (CHECKSUM-2)",
        {"checksum-recovery-anew": instead("false")},
    ),
    Mutant(
        "recovery keeps checksums (CHECKSUM-2)",
        {"checksum-recovery-updates": leave_out()},
    ),
    Mutant(
        "recovery keeps the checksums of what it only looks at (CHECKSUM-2)",
        {"checksum-recovery-notes-loads": leave_out()},
    ),
    Mutant(
        "recovery keeps the checksums of bitmaps that it leaves alone (CHECKSUM-2)",
        {"checksum-recovery-notes-bitmaps": leave_out()},
        by="checksums_places",
    ),
    Mutant(
        "a checkpoint subtracts the terms of the old words",
        {"checksum-subtracts-old": leave_out()},
        by="checksums_scrub",
    ),
    Mutant(
        "a checksum is 0 while its page changes (CHECKSUM-3)",
        {"checksum-zero-meanwhile": leave_out()},
        by="checksums_places",
    ),
    Mutant(
        "pages of chunks that become free have no checksums",
        {"checksum-forgets-freed": leave_out()},
        by="checksums_places",
    ),
    Mutant(
        "checksums lie in one section",
        {"header-checksums-in-section": instead('""')},
        by="checksums_places",
    ),
    Mutant(
        "the checksums of a hole are durably none (CHECKSUM-4)",
        {"checksum-forget-flushes": leave_out()},
        by="checksums_places",
    ),
    Mutant(
        "checksums that move are durable before the header names their place",
        {"checksums-moved-durable": succeed()},
        by="checksums_places",
    ),
)
