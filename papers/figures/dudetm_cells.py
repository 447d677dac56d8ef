# SPDX-License-Identifier: BSD-3-Clause
"""Shared by DudeTM's figures: the systems by the paper's names, the workloads, and cells over
them."""

import itertools

from .figure import Wanted, processes

MIB = 1 << 20
LOG = 64 * MIB
DELAYS = "dudetm"
VOLATILE, INF, DUDE, SYNC, NVML = ("Volatile-STM", "DudeTM-Inf", "DudeTM", "DudeTM-Sync",
                                   "libpmemobj")
MNEMOSYNE = "Mnemosyne (its protocol, ours)"
SYSTEMS = {
    VOLATILE: "volatile/stm", INF: "dudetm-inf/stm:async", DUDE: "dudetm/stm:async",
    SYNC: "dudetm-sync/stm:durable", NVML: "pmemobj", MNEMOSYNE: "redo-mne-past"
}
WORKLOADS = {
    "HashTable": "ht", "B+-tree": "bpt", "TPC-C (hash)": "tpcch", "TPC-C (B+-tree)": "tpccb",
    "TATP (hash)": "tatph", "TATP (B+-tree)": "tatpb"
}
HASHED = [name for name in WORKLOADS if name == "HashTable" or "hash" in name]


def process_of(system, structure, delays=DELAYS, more=(), log=LOG):
    executable = "perdure_bench_pmemobj" if system == "pmemobj" else "perdure_bench_engines"
    options = ("--delays", delays) if system == "pmemobj" else ("--delays", delays, "--log-size",
                                                                log, *more)
    return Wanted(system, structure, options, executable)


def measured(bench, wanted, asked, value=lambda answer: answer["rate"], settles=False):
    """wanted: {key: process_of(...)}; asked: {cell: (key, request)}. Returns {cell: [value of each
    round]}. With `settles` each cell runs once before the rounds: a cell ends when its transactions
    are durable, so that no round counts what filling has left to the log's writer."""
    seconds = 0.1 if bench.quick else 0.3
    # With one seed a process would insert its first round's keys again, and change nothing.
    seeds = itertools.count(1)
    with processes(bench, wanted) as opened:
        def ask(key, request):
            return opened[key].ask(
                {"seconds": seconds, "warmup": 0.05, "seed": next(seeds), **request})

        if settles:
            for key, request in asked.values():
                ask(key, request | {"seconds": 0.01})
        return bench.interleave({
            cell: lambda k=key, r=request: value(ask(k, r))
            for cell, (key, request) in asked.items()
        })
