# SPDX-License-Identifier: BSD-3-Clause
"""REWIND's figure 11: TPC-C's new order (papers: REWIND, VLDB '15, section 5.3)."""

from .figure import Figure, median_of, point

NVM, REWIND = "not recoverable", "REWIND"
NAIVE, OPTIMISED, DISTRIBUTED = "naive", "optimised layout", "optimised, distributed log"
INSTANCE = "rewind-1l-nfp-batch/none"
STM = "optimised, distributed log, transactional memory"

# (series, x): the arguments of perdure_bench_tpcc
CELLS = {
    (NVM, NAIVE): ("--system", "nvm", "--layout", "naive"),
    (REWIND, NAIVE): ("--system", INSTANCE, "--layout", "naive"),
    (NVM, OPTIMISED): ("--system", "nvm", "--layout", "optimised"),
    (REWIND, OPTIMISED): ("--system", INSTANCE, "--layout", "optimised"),
    (REWIND, DISTRIBUTED): ("--system", INSTANCE, "--layout", "optimised", "--log", "distributed"),
    (REWIND, STM): ("--system", "rewind-1l-nfp-batch/stm", "--layout", "optimised", "--log",
                    "distributed"),
}


def measure(bench):
    seconds = 1 if bench.quick else 4

    def cell(options):
        return lambda: bench.call("perdure_bench_tpcc", *options, "--threads", 10, "--seconds",
                                  seconds, "--delays", "rewind", "--log-size", "64m", "--dir", bench
                                  .directory)["tpm"] / 1000

    values = bench.interleave({key: cell(options) for key, options in CELLS.items()})
    return [point(series, x, values[series, x]) for series, x in CELLS]


def findings(points):
    naive, optimised = median_of(points, NVM, NAIVE), median_of(points, NVM, OPTIMISED)
    if not naive or not optimised:
        return []
    said = [
        f"The optimised layout alone, without recovery, is {optimised / naive:.2f} times as fast "
        "as the naive one."
    ]
    for x in (NAIVE, OPTIMISED, DISTRIBUTED, STM):
        tpm = median_of(points, REWIND, x)
        if tpm:
            said.append(
                f"REWIND, {x}: {naive / tpm:.2f}x slower than the naive layout without recovery, "
                f"{optimised / tpm:.2f}x than the optimised one.")
    return said


FIGURES = [
    Figure(
        row="R-Fig11",
        title="TPC-C new order, ten terminals",
        claim=
        "Non-recoverable 273k tpm; over REWIND naive B+-trees 37k (7.37x slower), an optimised "
        "layout 197k (1.39x), and with a distributed log 262k (1.05x). All against the "
        "non-recoverable naive layout, which ignores aborts.",
        setup=
        "One warehouse; ten threads enter new orders as fast as they can, 1 % of them with an "
        "unused item. Naive: a B+-tree a table, order tables on (warehouse, district, order), a "
        "lock on each table that is written. Optimised: ten trees for each order table, one a "
        "district, and locks a district and a stock row. Locks are held from before a "
        "transaction until after it, with and without REWIND; in the last row there are none: "
        "transactional memory isolates. Not recoverable: every line "
        "written back and charged when the next one is stored to, a fence a transaction, no "
        "rollback. REWIND: one layer, no-force, batch; 64 MiB of log, "
        "filled several times over, so checkpoints are in the figure. The non-recoverable "
        "optimised layout is ours, so that the layout's gain can be told "
        "from the log's cost. Ten threads had two processors; the paper's had four. Every run "
        "ends with TPC-C's consistency conditions, before and after opening the pool again.",
        x="layout",
        y="thousand transactions a minute",
        measure=measure,
        findings=findings,
        bars=True,
    ),
]
