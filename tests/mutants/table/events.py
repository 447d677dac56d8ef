# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of events: what of the log is read, and what is kept for consumers."""

from operations import always, instead, leave_out, never
from .mutant import Mutant

EVENTS = (
    Mutant(
        "the pool has the feature before its first event (FEATURE-1)",
        {"notes-feature-first": leave_out()},
        by="events",
    ),
    Mutant(
        "events of durable transactions only (EVENT-1)",
        {"events-durable-only": instead("backup::EventLog::unknown")},
        by="events_durable",
    ),
    Mutant(
        "events that are gone are not left out (EVENT-1)",
        {"events-none-left-out": never()},
        by="events",
    ),
    Mutant(
        "what a consumer has not had is not pruned",
        {"prune-keeps-for-consumers": always(part="2 of 3")},
        by="events",
    ),
)
