# SPDX-License-Identifier: BSD-3-Clause
"""Shared by Blurred Persistence's figures: the systems by the paper's names, and cells of the
micro-benchmarks over them."""

from .figure import Wanted, point, processes

KIB = 1 << 10
LOG = 1024 * KIB  # V-A
WBINVD = "blurred+wbinvd"
RINGS = 4  # if there are more than threads, each thread has its own log

SYSTEMS = {
    "BASE": "redo-base", "MNE": "redo-mne-sync", "BP(XIL)": "bppm-xil", "BP(VCBP)": "redo-vcbp",
    "BPPM": "bppm", "NP": "volatile/stm"
}
MNE_ASYNC = "redo-mne-async"
# As the paper draws and describes them: BASE with an ordered commit record and pointers, MNE's log
# by movnti alone, XIL without a control word.
AS_DRAWN = {
    **SYSTEMS, "BASE": "redo-base-ordered", "MNE": "redo-mne-past", "BP(XIL)": "bppm-xil-late"
}


def named(*names):
    return {name: SYSTEMS[name] for name in names}


def process_of(system, structure, delays=WBINVD, log=LOG, rings=RINGS, value_bytes=8):
    return Wanted(
        system, structure,
        ("--delays", delays, "--log-size", log, "--rings", rings, "--value-bytes", value_bytes))


def measured(bench, wanted, asked, value=lambda answer: answer["rate"]):
    """wanted: {key: process_of(...)}; asked: {cell: (key, request)}. Returns {cell: [value of each
    round]}."""
    seconds = 0.15 if bench.quick else 0.3
    with processes(bench, wanted) as opened:
        return bench.interleave({
            cell: lambda k=key, r=request: value(opened[k].ask(
                {"seconds": seconds, "warmup": 0.05, **r}))
            for cell, (key, request) in asked.items()
        })


def lines(values, scale=1.0):
    """Returns {(series, x): rounds} as points."""
    return [point(series, x, [v * scale for v in rounds]) for (series, x), rounds in values.items()]
