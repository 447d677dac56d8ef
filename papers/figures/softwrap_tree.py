# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's figures 13 and 14: insertions into a B+-tree like STX's (section V-D);
bench/softwrap/tree_main.cpp measures a point."""

from .figure import Figure, median_of, point
from .softwrap_cells import LOCAL, NON_ATOMIC, SOFTWRAP, SYSTEMS, THREE, UNDO, options

ORDERS = {"sequential": False, "random": True}
PAPER_US = {NON_ATOMIC: 7.4, UNDO: 24.4, SOFTWRAP: 7.8}  # sequential
PAPER_COUNTS = {("sequential", "reads"): 61.6, ("sequential", "writes"): 8.1,
                ("random", "reads"): 74.8, ("random", "writes"): 20.0}


def _inserts(bench):
    return 20_000 if bench.quick else 1_000_000


def _tree(bench, name, **given):
    return bench.call("perdure_bench_softwrap_tree", "--system", SYSTEMS[name], "--dir",
                      bench.directory, *options(given))


def growing(bench):
    n = _inserts(bench)
    found = bench.interleave(
        {name: lambda s=name: _tree(bench, s, random=True, inserts=n)["part_ns"] for name in THREE})
    return [
        point(name,
              n * (part + 1) / 10, [1e9 / ns[part] for ns in rounds])
        for name, rounds in found.items() for part in range(10)
    ]


def growing_findings(points):
    last = max(p.x for p in points)
    def at(name):
        return median_of(points, name, last)

    return [
        f"In the last tenth SoftWrAP has {at(SOFTWRAP) / at(NON_ATOMIC):.2f} times Non-Atomic's "
        f"throughput and {at(SOFTWRAP) / at(UNDO):.2f} times the Undo Log's."
    ]


def insertions(bench):
    n = _inserts(bench)
    found = bench.interleave({(name, order): lambda s=name, r=random: _tree(
                                  bench, s, random=r, inserts=n)["settled_ns"] / 1e3
                              for order, random in ORDERS.items()
                              for name in (*THREE, LOCAL, "shadow")})
    return [point(name, order, rounds) for (name, order), rounds in found.items()]


def insertions_findings(points):
    def ratios(name, order):
        return median_of(points, name, order) / median_of(points, NON_ATOMIC, order)

    said = [
        f"Sequential: the Undo Log takes {ratios(UNDO, 'sequential'):.2f} times Non-Atomic's "
        f"time (paper: {PAPER_US[UNDO] / PAPER_US[NON_ATOMIC]:.2f}), SoftWrAP "
        f"{ratios(SOFTWRAP, 'sequential'):.2f} (paper: "
        f"{PAPER_US[SOFTWRAP] / PAPER_US[NON_ATOMIC]:.2f})."
    ]
    return [*said, f"Random: {ratios(UNDO, 'random'):.2f} and {ratios(SOFTWRAP, 'random'):.2f}."]


SHAPES = {"nodes of 256 bytes": False, "as many slots as of ints": True}


def accesses(bench):
    n = _inserts(bench)
    found = bench.interleave({(shape, order): lambda i=ints, r=random: _tree(
                                  bench, NON_ATOMIC, random=r, inserts=n, slots_of_ints=i, tw=0)
                              for order, random in ORDERS.items()
                              for shape, ints in SHAPES.items()})
    kinds = {"reads": "reads", "writes": "writes", "write_lines": "lines written"}
    points = [
        point(shape, f"{order}, {text}", [a[kind] for a in answers])
        for (shape, order), answers in found.items() for kind, text in kinds.items()
    ]
    return points + [
        point("paper", f"{order}, {what}", [value])
        for (order, what), value in PAPER_COUNTS.items()
    ]


def accesses_findings(points):
    def at(shape, what):
        return ", ".join(f"{order} {median_of(points, shape, f'{order}, {what}'):.1f}"
                         for order in ORDERS)
    shape = next(iter(SHAPES))
    return [
        f"Nodes of 256 bytes: reads {at(shape, 'reads')} (paper: 61.6 and 74.8), writes "
        f"{at(shape, 'writes')} (paper: 8.1 and 20); those to one line in a row counted once "
        f"{at(shape, 'lines written')} lines (paper: 5 sequential)."
    ]


TREE = (
    "A tree with STX's shape, written for this: sorted slots, searched from the first; of 8-byte "
    "words 16 pairs in a leaf and 16 keys in an inner node, which are the 256 bytes of STX's "
    "default. 1 M keys are inserted into an empty tree, a wrap each, Tw = 1 us, alias tables of "
    "4096 entries. Every word of a node that is read or written goes through the wrap."
)

FIGURES = [
    Figure("S-Fig13", "B+-tree, random insertions, throughput by size",
           "SoftWrAP above Undo Log and close to Non-Atomic, all falling with the tree's size.",
           TREE + " Each tenth of the insertions.", "keys in the tree", "insertions a second",
           growing, growing_findings),
    Figure(
        "S-Fig14", "B+-tree, time of an insertion",
        "sequential: 7.4 us Non-Atomic, 24.4 us Undo Log, 7.8 us SoftWrAP.",
        TREE + " The time ends when all is home. shadow: Perdure's default engine.",
        "order of the keys", "us an insertion", insertions, insertions_findings, bars=True,
        systems=("shadow", ), remark=
        "Nodes come from the pool's heap in SoftWrAP and shadow, which log and store its "
        "bitmaps, too; the baselines cut them off the end of memory, and where that is they "
        "don't keep."
    ),
    Figure(
        "S-Fig14N", "B+-tree, reads and writes of an insertion",
        "61.6 M reads and 8.1 M writes for 1 M sequential keys, 74.8 M and 20 M for random ones; "
        "5 lines a sequential insertion.",
        TREE +
        " Exact counts of reads and writes of 8 bytes; lines: writes that follow one another in "
        "a line counted once. Beside it nodes of 32 pairs and 21 keys, what STX has for 4-byte "
        "integers.",
        "of an insertion", "count", accesses, accesses_findings, bars=True, remark=
        "The counts don't depend on the system below. How STX was instrumented for the paper is "
        "not said; reads depend on it, and on how a node is searched, more than writes do."
    ),
]
