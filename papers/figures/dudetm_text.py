# SPDX-License-Identifier: BSD-3-Clause
"""What DudeTM's section 5 says in numbers beside its figures and tables: empty transactions
(5.2.2), and when a transaction is durable (5.3)."""

from .dudetm_cells import DUDE, NVML, SYNC, SYSTEMS, VOLATILE, WORKLOADS, measured, process_of
from .figure import Figure, median_of, point

RATE = "empty transactions, millions a second"
EMPTY = {name: SYSTEMS[name] for name in (VOLATILE, DUDE, SYNC, NVML)} | {
    "dudetm, its own TM": "dudetm:async", "shadow": "shadow:durable"
}


def empty(bench):
    wanted = {name: process_of(system, "sps") for name, system in EMPTY.items()}
    values = measured(bench, wanted, {name: (name, {"run": "sps-0"}) for name in wanted})
    return [point(RATE, name, [v / 1e6 for v in rounds]) for name, rounds in values.items()]


def empty_findings(points):
    nvml = median_of(points, RATE, NVML)
    return [
        "Of libpmemobj's: " + ", ".join(f"{name} {median_of(points, RATE, name) / nvml:.1f}"
                                        for name in EMPTY if name != NVML) + " (paper: DudeTM 26)."
    ]


IN_TIME = "durable before the next Perform ends, %"
ONE_THREAD = "one thread for Persist and Reproduce, which naps"


def in_time(bench):
    wanted, asked = {}, {}
    for workload, structure in WORKLOADS.items():
        for series, more in ((IN_TIME, ("--standing", )), (ONE_THREAD, ())):
            cell = series, workload
            wanted[cell] = process_of(SYSTEMS[DUDE], structure, more=more)
            asked[cell] = (cell, {"run": f"{structure}-1", "latency": True})
    found = measured(bench, wanted, asked, lambda answer: answer["counters"]["durable_by_next"])
    return [point(*cell, [100 * v for v in rounds]) for cell, rounds in found.items()]


def in_time_findings(points):
    def said(series):
        return ", ".join(f"{w} {median_of(points, series, w):.1f} %" for w in WORKLOADS)

    return [
        f"Durable before the next Perform ends: {said(IN_TIME)} (paper: about 99 %).",
        f"With {ONE_THREAD}: {said(ONE_THREAD)}."
    ]


SETUP = "one thread; 0.3 s a cell"
FIGURES = [
    Figure(
        "D-Empty", "Empty transactions",
        "More than 30 million a second on one thread with DudeTM, and with Mnemosyne; at most "
        "1.14 million with NVML, which allocates each transaction's undo log.", SETUP +
        "; a transaction that reads one word and stores none", "system",
        "transactions, millions a second", empty, empty_findings, bars=True, log_y=True),
    Figure(
        "D-Next", "How soon a transaction is durable",
        "About 99 % of the transactions are durable before their thread's next one has been "
        "performed.", SETUP +
        "; DudeTM, asynchronous; the durable id is asked for when a transaction has been performed"
        "; Persist and Reproduce have a thread each (DudetmOptions::standing_threads)",
        "workload", "share of transactions, %", in_time, in_time_findings, bars=True, remark=
        "The paper's machine has a core for each of Perform, Persist and Reproduce, and several "
        "Persist threads where one does not keep up; with two cores Perform and Persist share them "
        "with Reproduce."),
]
