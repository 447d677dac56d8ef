# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's model of memory and the numbers of its Tables (section V-B): figures 4 and 5, Tables I
and II, and whether threads share the write buffer."""

from .figure import Figure, median_of, point
from .softwrap_cells import (LOCAL, MIB, NON_ATOMIC, SOFTWRAP, SYSTEMS, THREE, UNDO, lines,
                             measured, over, response_us, wraps)

# --- figure 4 -------------------------------------------------------------------------------------

TW = 1000  # ns
PLACES = {"random": (), "sequential": ("--sequential",)}
BACKING = {"Tw 1 us": TW, "DRAM": 0}


def stores(bench):
    groups = (1, 8, 64) if bench.quick else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    count = 4000 if bench.quick else 20_000

    def cell(group, tw, how):
        return lambda: bench.call("perdure_bench_softwrap_ntstore", "--group", group, "--tw", tw,
                                  "--stores", count, "--dir", bench.directory, *how)

    found = bench.interleave({(f"{place}, {backing}", group): cell(group, tw, how)
                              for group in groups for backing, tw in BACKING.items()
                              for place, how in PLACES.items()})
    points = []
    for (series, group), answers in found.items():
        points.append(point(series, group, [a["ns"] for a in answers]))
        if "Tw" in series:
            points.append(
                point(series + ", with the fence", group, [a["fenced_ns"] for a in answers]))
    return points


def stores_findings(points):
    most = max(p.x for p in points)
    def at(series):
        return median_of(points, series, most)

    return [
        f"In groups of {most:g} a random store takes {at('random, Tw 1 us') / TW:.2f} Tw (paper: "
        f"1), a sequential one {at('sequential, Tw 1 us') / TW:.3f} Tw "
        "(paper: 1/16 = 0.063; of our words 8 fill a line: 1/8 = 0.125). DRAM: "
        f"{at('random, DRAM'):.0f} ns a random one (paper: about 100), "
        f"{at('sequential, DRAM'):.1f} ns a sequential one."
    ]


# --- tables I and II, figure 5 --------------------------------------------------------------------

SIZES = (10, 15, 20)
UNDO_LINES = {10: 23, 15: 33, 20: 43}  # S-Fig5
PAPER_US = {
    NON_ATOMIC: (10.226, 15.223, 20.251), UNDO: (25.653, 37.198, 48.701),
    SOFTWRAP: (6.043, 7.956, 11.049)
}


def times(bench):
    count = 1000 if bench.quick else 20_000
    values = measured(
        bench, {(name, f"n = {n}"): {"elements": n, "rate": 10_000, "wraps": count} for n in SIZES
                for name in (*THREE, LOCAL)}, response_us)
    return lines(values)


def times_findings(points):
    def us(name):
        return ", ".join(f"{median_of(points, name, f'n = {n}'):.1f}" for n in SIZES)
    def ratio(name):
        found = ", ".join(
            f"{median_of(points, name, f'n = {n}') / median_of(points, NON_ATOMIC, f'n = {n}'):.2f}"
            for n in SIZES)
        paper = ", ".join(f"{mine / theirs:.2f}"
                          for mine, theirs in zip(PAPER_US[name], PAPER_US[NON_ATOMIC]))
        return f"{name} takes {found} times Non-Atomic's time (paper: {paper})"

    return [
        f"{ratio(UNDO)}; {ratio(SOFTWRAP)}. In us: " + "; ".join(f"{name} {us(name)}"
                                                                 for name in (*THREE, LOCAL)) + ".",
        _predicted(points)
    ]


def _predicted(points):
    """Predicts the times in the way in which the paper's Table II follows from its Table I: a
    pcommit's own time from Non-Atomic at n = 10, an alias's from SoftWrAP there; the rest is
    computed."""
    def at(name, n):
        return median_of(points, name, f"n = {n}")
    tw = TW / 1e3
    ts = at(NON_ATOMIC, 10) - 10 * tw
    alias = (at(SOFTWRAP, 10) - tw - ts) / 10
    told = {
        NON_ATOMIC: [n * tw + ts for n in SIZES],
        UNDO: [UNDO_LINES[n] * tw + (n + 1) * ts for n in SIZES],
        SOFTWRAP: [n * alias + tw + ts for n in SIZES]
    }
    text = "; ".join(f"{name} " + ", ".join(f"{us:.1f}" for us in foretold)
                     for name, foretold in told.items())
    return (
        f"By Table I, with Ts = {ts * 1e3:.0f} ns and Talias = {alias * 1e3:.0f} ns solved from "
        f"n = 10 as the paper does (220 and 450 ns), in us: {text}.")


KINDS = {"fences": "pcommits", "lines": "lines"}


def _a_wrap(bench, name, elements):
    """The medium's counters for one wrap itself: so few wraps that no table is checkpointed
    meanwhile."""
    answer = wraps(bench, name, elements=elements, wraps=100, warm=0, alias_entries=1 << 16,
                   array_bytes=16 * MIB)
    counts = answer["counts"]
    return {
        "fences": counts["fences"] / answer["wraps"],
        "lines": (counts["streamed_lines"] + counts["flushed_lines"]) / answer["wraps"]
    }


def _going_home(bench, elements):
    """The counters of the thread that checkpoints tables, divided by the number of wraps."""
    answer = wraps(bench, SOFTWRAP, elements=elements, wraps=1000 if bench.quick else 10_000,
                   rate=10_000, array_bytes=64 * MIB)
    count, counts = answer["wraps"], answer["settled"]
    return {"fences": counts["fences"] / count - 1, "lines": counts["flushed_lines"] / count}


def counters(bench):
    found = bench.interleave({
        **{
            (name, n): lambda s=name, e=n: _a_wrap(bench, s, e)
            for n in SIZES for name in (*THREE, LOCAL)
        }, **{("SoftWrAP, going home", n): lambda e=n: _going_home(bench, e) for n in SIZES}
    })
    return [
        point(name, f"{text}, n = {n}", [a[kind] for a in answers]) for kind, text in KINDS.items()
        for (name, n), answers in found.items()
    ]


def counters_findings(points):
    def row(kind, name):
        return ", ".join(f"{median_of(points, name, f'{kind}, n = {n}'):g}" for n in SIZES)
    logged = ", ".join(f"{12 * n / 64:.2f}" for n in SIZES)
    return [
        f"pcommits of a wrap: Non-Atomic {row('pcommits', NON_ATOMIC)} (paper: 1), Undo Log "
        f"{row('pcommits', UNDO)} (n + 1), SoftWrAP {row('pcommits', SOFTWRAP)} (1). "
        f"Lines: Non-Atomic {row('lines', NON_ATOMIC)} (n), Undo Log {row('lines', UNDO)} (about "
        f"2n), SoftWrAP {row('lines', SOFTWRAP)} (12n/64: {logged}, "
        "and a close's 8 bytes)."
    ]


# --- the write buffer -----------------------------------------------------------------------------

def buffers(bench):
    rates = (10_000, 50_000) if bench.quick else (10_000, 20_000, 40_000, 60_000, 80_000)
    kinds = {
        NON_ATOMIC: {}, "SoftWrAP, a buffer each": {"name": SOFTWRAP},
        "SoftWrAP, one buffer": {"name": SOFTWRAP, "one_buffer": True}
    }
    values = measured(
        bench,
        {(series, rate): {"rate": rate, "wraps": rate // 5 if bench.quick else rate // 2, **given}
         for rate in rates for series, given in kinds.items()}, response_us)
    return lines(values)


def buffers_findings(points):
    return [
        "SoftWrAP's response time relative to Non-Atomic's, a buffer each: "
        f"{over(points, 'SoftWrAP, a buffer each', NON_ATOMIC)} wraps/s; one buffer: "
        f"{over(points, 'SoftWrAP, one buffer', NON_ATOMIC)}."
    ]


assert set((*THREE, LOCAL)) <= set(SYSTEMS)

FIGURES = [
    Figure(
        "S-Fig4", "a non-temporal store by group size",
        "settles at Tw (1 us) random, at Tw/16 sequential; on DRAM about 100 ns random; a group "
        "of up to 8 random ones fits the buffer.",
        "Groups of so many 8-byte stores (the paper's have 4), random ones each a streamed line "
        "of its own in 256 MiB, sequential ones gathered into streamed lines. As in the paper "
        "without the fence that makes them durable; for the emulated memory with it, too.",
        "stores in a group", "ns a store", stores, stores_findings, log_x=True, log_y=True,
        remark="Behind a full buffer a group's first 8 stores are free and its last 8 are not "
               "waited "
        "for: without the fence the mean comes to Tw from below."),
    Figure(
        "S-Tab2", "time of a wrap at 10,000 wraps/s",
        "10.2, 15.2, 20.3 us Non-Atomic; 25.7, 37.2, 48.7 us Undo Log; 6.0, 8.0, 11.0 us "
        "SoftWrAP, for 10, 15 and 20 elements.",
        "20,000 wraps (the paper: 100,000) of n stores to random words of an array of 1 GiB; "
        "response time. Alias tables of 8192 entries, which go home from 1024 on (the paper says "
        "500, and an eighth elsewhere).", "elements", "us a wrap", times, times_findings,
        bars=True),
    Figure(
        "S-Fig5", "what a wrap asks of the medium",
        "pcommits 1, n + 1, 1; lines n, about 2n, 12n/64; a table's way home n lines a wrap and "
        "1 pcommit a table.",
        "Exact counts of fences and of lines flushed or streamed. A wrap by itself: 100 wraps, "
        "no table goes home. Going home: 10,000 wraps at 10,000 a second, what is beyond that, a "
        "wrap.", "of a wrap", "count", counters, counters_findings, bars=True, remark=
        "The Undo Log's records of 12 bytes lie one behind the other from a line's start: one in "
        "five lies in two lines, which are both written; its end marker is one more. "
        "A table's way home has three fences here: one for the log's next bucket, one for home, "
        "one for the id up to which home is complete. SoftWrAP, local, stores its values home "
        "unflushed; they are written back in bulk when a log is full."),
    Figure(
        "S-Buffer", "a write buffer each, or one (not in the paper)",
        "the paper does not say whether the thread that takes tables home shares the wraps' "
        "write buffer.",
        "Wraps of 10 elements arrive at this rate. One buffer: a wrap's pcommit waits for lines "
        "of the table that is going home, too. All other figures: a buffer each thread.",
        "arrival rate, wraps a second", "response time, us", buffers, buffers_findings, log_y=True,
        remark=
        "With one buffer a wrap that closes while a table goes home waits for up to eight lines "
        "that are not its own, and wraps and tables together can't write more than a line a Tw: "
        "SoftWrAP could not respond in 6.6 us at Tw = 1.5 us and 50,000 wraps/s, as the paper "
        "measured (S-Fig10). So we take it that each thread had a buffer."),
]
