# SPDX-License-Identifier: BSD-3-Clause
"""DudeTM beside other systems (sections 5.2.2, 5.3): tables 2 and 3."""

from .dudetm_cells import (DUDE, HASHED, MNEMOSYNE, NVML, SYNC, SYSTEMS, WORKLOADS, measured,
                           process_of)
from .figure import Figure, median_of, point, ratios

OF_MNEMOSYNE = {name: f"{name}, of Mnemosyne's (its protocol, ours)" for name in (DUDE, SYNC)}
# The paper's table 2: throughput relative to NVML's, and to Mnemosyne's.
_NVML = {DUDE: "2.5, 4.4, 2.1", SYNC: "2.2, 3.0, 1.9"}
_MNEMOSYNE = {DUDE: "2.6, 2.4, 2.5, 2.2, 2.3, 1.7", SYNC: "2.3, 1.3, 1.7, 1.7, 2.0, 1.5"}
_WHAT = (
    f"; {MNEMOSYNE} is `{SYSTEMS[MNEMOSYNE]}`: Mnemosyne is in no package, so that its protocol "
    "takes its place, as papers/blurred has it: a private write set, a torn-bit log per thread "
    "that is written past the cache, and each commit flushes the data region and then truncates "
    "its log. It has neither Mnemosyne's compiler nor its code")


def others(bench):
    points = []
    for workload, structure in WORKLOADS.items():
        names = (DUDE, SYNC, MNEMOSYNE, *((NVML, ) if workload in HASHED else ()))
        wanted = {name: process_of(SYSTEMS[name], structure) for name in names}
        values = measured(bench, wanted,
                          {name: (name, {"run": f"{structure}-1"}) for name in wanted})
        points += [
            point(name, workload, ratios(values[name], values[NVML]))
            for name in (DUDE, SYNC, MNEMOSYNE) if NVML in values
        ]
        points += [
            point(series, workload, ratios(values[name], values[MNEMOSYNE]))
            for name, series in OF_MNEMOSYNE.items()
        ]
    return points


def others_findings(points):
    found = [
        f"{name} has, of libpmemobj's throughput: " +
        ", ".join(f"{w} {median_of(points, name, w):.1f}"
                  for w in HASHED) + f" (paper, of NVML's: {said})." for name, said in _NVML.items()
    ]
    if median_of(points, MNEMOSYNE) is None:  # kept before it was measured
        return found
    return found + [
        f"{name} has, of the throughput of Mnemosyne's protocol: " +
        ", ".join(f"{w} {median_of(points, OF_MNEMOSYNE[name], w):.1f}"
                  for w in WORKLOADS) + f" (paper, of Mnemosyne's: {said})."
        for name, said in _MNEMOSYNE.items()
    ]


# --- table 3 --------------------------------------------------------------------------------------

SHORT = "DudeTM, volatile log of 8 KiB"
LATENCIES = {
    DUDE: SYSTEMS[DUDE], SHORT: SYSTEMS[DUDE], SYNC: SYSTEMS[SYNC],
    "dudetm/stm, durable": "dudetm/stm:durable", "shadow, durable": "shadow:durable",
    MNEMOSYNE: SYSTEMS[MNEMOSYNE], NVML: SYSTEMS[NVML]
}


def latencies(bench):
    wanted = {
        name: process_of(system, "tpcch", more=("--volatile-log", 8192) if name == SHORT else ())
        for name, system in LATENCIES.items()
    }
    found = measured(bench, wanted,
                     {name: (name, {"run": "tpcch-1", "latency": True}) for name in wanted},
                     lambda answer: answer["counters"])
    return [
        point(name, f"{p} %", [c[f"latency_p{p}_us"] for c in rounds])
        for name, rounds in found.items() for p in (50, 90, 99)
    ]


def latencies_findings(points):
    mid = {
        name: median
        for name in LATENCIES if (median := median_of(points, name, "50 %")) is not None
    }
    def of(other):
        return ", ".join(f"{name} {mid[name] / mid[other]:.2f}" for name in mid if name != other)

    found = [
        f"Median of the durable latency, of libpmemobj's: {of(NVML)} (paper, of NVML's: DudeTM "
        "0.40, DudeTM-Sync 0.16, Mnemosyne 0.55)."
    ]
    if MNEMOSYNE in mid:
        found.append(
            f"Of that of Mnemosyne's protocol: {of(MNEMOSYNE)} (paper, of Mnemosyne's: DudeTM "
            "0.73, DudeTM-Sync 0.29, NVML 1.81).")
    return found


FIGURES = [
    Figure(
        "D-Tab2", "Beside Mnemosyne and libpmemobj",
        "DudeTM has 2.1 to 4.4 times NVML's throughput, DudeTM-Sync 1.9 to 3.0; 1.7 to 2.6 and "
        "1.3 to 2.3 times Mnemosyne's (four threads).",
        "one thread; 0.3 s a cell; libpmemobj on hash tables, as in the paper, without a lock, and "
        "with one snapshot of each object that a transaction changes" + _WHAT, "workload",
        "throughput, relative", others, others_findings, remark=
        "The paper moved NVML's allocations out of the transactions; here every system allocates "
        "TPC-C's rows in them. DudeTM and DudeTM-Sync without a further name are relative to "
        "libpmemobj, as is Mnemosyne's protocol.",
        bars=True,
        panel=lambda series: ("of Mnemosyne's (its protocol, ours)", series.split(",")[0])
        if series in OF_MNEMOSYNE.values() else
        ("of libpmemobj's", "Mnemosyne's protocol" if series == MNEMOSYNE else series)),
    Figure(
        "D-Tab3", "Durable latency of TPC-C (hash)",
        "DudeTM 45, 73, 124 us (50, 90, 99 %), DudeTM-Sync 18, 40, 90, Mnemosyne 62, 87, 126, "
        "NVML 112, 161, 254.",
        "one thread; from the begin to the thread's knowing that the transaction is durable; "
        "libpmemobj with one snapshot of each object" + _WHAT, "share of transactions",
        "latency, us", latencies, latencies_findings, bars=True, log_y=True, remark=
        "One core has both Persist and Reproduce, one thread that takes turns: a group is "
        "persisted, a slice of the log replayed, a slice of the data region written back. A "
        "transaction waits for what is left of a turn, and when the core is wanted elsewhere, for "
        "what the volatile log holds by then: that is the tail, which a volatile log of 8 KiB "
        "cuts."),
]
