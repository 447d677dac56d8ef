# SPDX-License-Identifier: BSD-3-Clause
"""SoftWrAP's ways to the data region that its paper names and does not measure: words that are
streamed or scattered (sections IV-A, IV-D), objects by a pointer (section V-C.2)."""

from .figure import Figure, median_of, point
from .softwrap_cells import LOCAL, SOFTWRAP, lines, measured, objects, options, over, settled

STORED, STREAMED = "stored and written back", "streamed"
BY = {STORED: {}, STREAMED: {"stream_home": True}}


def home(bench):
    count = 5000 if bench.quick else 50_000
    tws = (0, 1000) if bench.quick else (0, 300, 1000)
    found = measured(
        bench, {(f"{name}, {how}", tw): {"name": name, "tw": tw, "wraps": count} | given
                for name in (SOFTWRAP, LOCAL) for how, given in BY.items() for tw in tws}, settled)
    return lines(found)


def home_findings(points):
    return [
        f"{name}: streamed words give "
        f"{over(points, f'{name}, {STREAMED}', f'{name}, {STORED}')} ns times the wraps a second "
        "of stored ones." for name in (SOFTWRAP, LOCAL)
    ]


WAYS = {STORED: "store", "past the cache": "words", "wide scatter, written back": "scatter"}


def scatter(bench):
    tws = (0, 1000)
    stores = 6400 if bench.quick else 64_000
    cells = {(series, tw): {"by": by, "tw": tw, "group": 64, "stores": stores}
             for series, by in WAYS.items() for tw in tws}
    found = bench.interleave({
        key: lambda g=given: bench.call("perdure_bench_softwrap_ntstore", "--dir", bench.directory,
                                        *options(g))["fenced_ns"]
        for key, given in cells.items()
    })
    return lines(found)


def scatter_findings(points):
    return [
        f"{series}: {over(points, series, STORED)} ns times the time of words that are stored and "
        "written back one by one." for series in WAYS if series != STORED
    ]


WRITE, FLIP = "through log and aliases", "by a pointer"
ENGINES = {SOFTWRAP: "softwrap", LOCAL: "softwrap-local"}


def sizes(bench):
    counts = (256, 4096) if bench.quick else (256, 1024, 4096, 16384)
    cells = {(f"{name}, {how}", n): (engine, {"bytes": n, "by": by,
                                              "wraps": 500 if bench.quick else 3000})
             for name, engine in ENGINES.items()
             for how, by in ((WRITE, "write"), (FLIP, "flip")) for n in counts}
    found = bench.interleave({
        key: lambda c=cell: objects(bench, c[0], **c[1])["settled_us"]
        for key, cell in cells.items()
    })
    return [point(series, n, rounds) for (series, n), rounds in found.items()]


def sizes_findings(points):
    most = max(p.x for p in points)
    return [
        f"{name}: an object by a pointer takes "
        f"{over(points, f'{name}, {FLIP}', f'{name}, {WRITE}')} bytes times the time of one that "
        f"is written; {median_of(points, f'{name}, {FLIP}', most):.0f} us for {most:g} bytes."
        for name in ENGINES
    ]


NOT_MEASURED = "none: the paper names it, and gives no figure."

FIGURES = [
    Figure(
        "S-Home", "how values reach the data region", NOT_MEASURED,
        "Wraps of 10 stores to random words of an array of 1 GiB, alias tables of 8192 entries, "
        "one after the other; wraps a second until all stores are home. Stored and written back: "
        "as SoftWrAP does unless SoftwrapOptions::stream_home says otherwise.", "Tw, ns",
        "wraps a second", home, home_findings),
    Figure(
        "S-Scatter", "a word at a random place", NOT_MEASURED,
        "Groups of 64 words at random lines of 256 MiB, with the fence behind them.", "Tw, ns",
        "ns a word", scatter, scatter_findings, log_y=True, remark=
        "Scatter stores eight words by one instruction, through the cache: each line must be "
        "fetched and written back, which words past the cache need not. So retirement streams "
        "words, and has no scatter."),
    Figure(
        "S-Object", "objects that change as a whole", NOT_MEASURED,
        "One of 1,024 objects gets new bytes in each wrap, one wrap after the other, Tw = 1 us, "
        "alias tables of 8192 entries; time a wrap until all stores are home.",
        "bytes of an object",
        "us a wrap", sizes, sizes_findings, log_x=True, log_y=True, remark=
        "By a pointer an object's lines are written once, to a block of their own, and no log has "
        "them; a second fence waits for them. Written, they are in the log and then go home."),
]
