# SPDX-License-Identifier: BSD-3-Clause
"""The criteria by which DudeTM's figures are reproduced (section 5), and why they differ where they
do."""

from .dudetm_beside import OF_MNEMOSYNE
from .dudetm_cells import DUDE, HASHED, INF, MNEMOSYNE, NVML, SYNC, VOLATILE, WORKLOADS
from .dudetm_log import COMBINED, GROUPS, PACKED, THROUGHPUT
from .dudetm_text import IN_TIME, RATE
from .dudetm_throughput import OF_STM, OF_VOLATILE, SYNC_3500, TABLE_1, WRITES
from .verdict import (CAUSE_UNKNOWN, RATIO, Criterion, all_of, at_least, at_most, between, near,
                      over, share, shares, spreads, y)

_LOSS = (7.4, 24.6)  # %
_PROCESSORS = 6  # four threads that Perform, and those of Persist and Reproduce
_SHORT = [w for w in WORKLOADS if "TATP" in w]
_LONG = [w for w in WORKLOADS if "TPC-C" in w]


def _each(above, below, x, workloads=WORKLOADS):
    """One system's throughput over another's, for each workload."""
    return all_of(*[over(f"{above}, {w}", f"{below}, {w}", x) for w in workloads])


def _below_volatile(points):
    return [100 * (1 - ratio) for w in WORKLOADS for ratio in y(f"{DUDE}, {w}", 1)(points)]


def _below_htm(workload):
    return lambda points: [100 * (1 - ratio) for ratio in y(OF_VOLATILE, workload)(points)]


def _short_over_long(points):
    """The part of DudeTM-Sync's throughput that remains with 3500 cycles: at most for the short
    transactions, at least for the long ones."""
    short, long = (_each(SYNC_3500, SYNC, 1, workloads)(points) for workloads in (_SHORT, _LONG))
    return max(short) / min(long) if short and long else None


_NVML = {DUDE: (2.5, 4.4, 2.1), SYNC: (2.2, 3.0, 1.9)}
_LATENCY = {DUDE: (45, 73, 124), SYNC: (18, 40, 90), NVML: (112, 161, 254)}
_SHARES = ("50 %", "90 %", "99 %")


def _of_nvml_latency(name, x):
    return lambda points: [a / b for a in y(name, x)(points) for b in y(NVML, x)(points)]


CRITERIA = {
    "D-Fig2": Criterion(
        (shares("DudeTM below Volatile-STM at 1 GB/s, every workload, %", *_LOSS, _below_volatile),
         near("DudeTM over DudeTM-Inf at 1 GB/s, every workload", 1, _each(DUDE, INF, 1)),
         at_most("DudeTM-Sync over DudeTM at 1 GB/s, every workload", 1, _each(SYNC, DUDE, 1),
                 "behind"),
         at_most(
             "what 3500 cycles leave of DudeTM-Sync's throughput, short transactions' over long "
             "ones'",
             1, _short_over_long, "more where transactions are short")),
        "One thread Performs, and one processor has both Persist and Reproduce, which had cores "
        "of their own. They keep up; but a transaction of TATP is one store here, 100 ns without "
        "a log: an entry, a promise of room, and lines of the volatile log that come back from "
        "the other processor are a third more.",
        processors=_PROCESSORS, steady=(at_most(
            "slowest round to fastest, DudeTM below Volatile-STM at 1 GB/s, every workload, points",
            _LOSS[1] - _LOSS[0], spreads(100, *[f"{DUDE}, {w}" for w in WORKLOADS],
                                         x=1), "7.4 to 24.6"), )),
    "D-Tab1": Criterion(
        tuple(
            near(f"writes a transaction, {w}", paper, y(WRITES, w))
            for w, (paper, _) in TABLE_1.items()),
        "Our rows of TPC-C have the columns that new order accesses, several in a word: an order "
        "line is six words. Our B+-tree's nodes are of 16 sorted pairs, which an insertion moves. "
        "How the paper's rows and nodes are laid out it does not say.",
        series=(WRITES, )),
    "D-Tab2": Criterion(
        (at_least("DudeTM and DudeTM-Sync over libpmemobj, every workload", 1,
                  all_of(y(DUDE), y(SYNC))),
         at_least("DudeTM and DudeTM-Sync over Mnemosyne's protocol, every workload", 1,
                  all_of(*map(y, OF_MNEMOSYNE.values())), "faster, 1.3 to 2.6 times"), *[
                      near(f"{name} over libpmemobj, {w}", paper, y(name, w))
                      for name, said in _NVML.items() for w, paper in zip(HASHED, said)
                  ]),
        "One thread Performs: nothing is contended, in DudeTM's TM least. libpmemobj waits for "
        "the medium several times in each transaction, 1000 cycles each, DudeTM in none. "
        "The paper moved NVML's allocations out of the transactions; here every system allocates "
        "TPC-C's rows in them.",
        processors=_PROCESSORS, series=tuple(OF_MNEMOSYNE.values())),
    "D-Tab3": Criterion(
        (at_most("DudeTM's and DudeTM-Sync's latency over that of Mnemosyne's protocol, each share",
                 1, all_of(over(DUDE, MNEMOSYNE), over(SYNC, MNEMOSYNE)), "shorter"),
         *[near(f"{name}'s latency over libpmemobj's, {x}", round(mine / theirs, 2),
                _of_nvml_latency(name, x)) for name in (DUDE, SYNC)
           for x, mine, theirs in zip(_SHARES, _LATENCY[name], _LATENCY[NVML])]),
        processors=_PROCESSORS, series=(MNEMOSYNE, )),
    "D-Fig3": Criterion(
        (share("saved by combination in groups of 10, %", 7, y(
            COMBINED, 10)), share("the same in groups of 100,000, %", 93, y(
                COMBINED, 100_000)), share("saved by lz4, any group, %", 69, y(PACKED))),
        "Ten transactions of this workload that write are some 160 bytes of log, in which lz4 "
        "finds little; larger groups have what it looks for."
    ),
    "D-Groups": Criterion(
        (between("throughput with groups, of that without, each but the largest", 1 / RATIO, RATIO,
                 all_of(*[y(THROUGHPUT, n) for n in GROUPS[:-1]]), "no influence"), ),
        CAUSE_UNKNOWN),
    "D-Empty": Criterion((
        at_least("DudeTM, millions a second", 30, y(RATE, DUDE)),
        at_least(
            "DudeTM over libpmemobj", 26.3,
            lambda points: [a / b for a in y(RATE, DUDE)(points) for b in y(RATE, NVML)(points)],
            "more than 30 over at most 1.14"),
    )),
    "D-Next": Criterion((share("durable before the next Perform ends, each workload, %", 99,
                               y(IN_TIME)), )),
    "D-Fig4": Criterion(
        (at_least(
            "hardware paging over software paging, whole shadow", 1,
            all_of(*[
                over(f"hardware paging, {z}", f"software paging, {z}", max)
                for z in ("zipf 0.99", "zipf 1.07")
            ]), "ahead"),
         at_most(
             "the same, smallest shadow", 1,
             all_of(*[
                 over(f"hardware paging, {z}", f"software paging, {z}", min)
                 for z in ("zipf 0.99", "zipf 1.07")
             ]), "behind"),
         at_most(
             "less skew over more, smallest shadow", 1,
             all_of(*[
                 over(f"{how} paging, zipf 0.99", f"{how} paging, zipf 1.07", min)
                 for how in ("hardware", "software")
             ]), "less throughput")),
        "With a shadow as large as the working set the two are nearly level here: software "
        "paging's look-up is little beside a store of 1 KB."
    ),
    "D-Fig5": Criterion((
        near("DudeTM's speed-up over Volatile-STM's", 1, over(DUDE, VOLATILE, max)),
        near(
            "the same, low conflict",
            1, over(f"{DUDE}, low conflict", f"{VOLATILE}, low conflict", max)),
        at_least(
            "DudeTM's speed-up a thread, low conflict", 0.8, lambda points:
            [speed / max(p.x for p in points)
             for speed in y(f"{DUDE}, low conflict", max)(points)], "nearly linear")
    ), "The two threads that Perform have the two processors, which Persist and Reproduce need, "
       "too.",
                        processors=_PROCESSORS),
    "D-Tab4": Criterion(
        (share("DudeTM-HTM below Volatile-HTM, B+-tree, %", 11, _below_htm("B+-tree")),
         shares("the same, HashTable (28 in the text, 37 by the table's own figures)", 28, 37,
                _below_htm("HashTable")),
         share("the same, TATP (B+-tree)", 7, _below_htm("TATP (B+-tree)")),
         near(
             "DudeTM-HTM over DudeTM-STM, most of these three", 1.7, lambda points: max(
                 (ratio for w in ("B+-tree", "HashTable", "TATP (B+-tree)")
                  for ratio in y(OF_STM, w)
                  (points)), default=None))), CAUSE_UNKNOWN, processors=_PROCESSORS),
}
