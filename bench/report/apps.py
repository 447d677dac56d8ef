# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench apps`: the three example programs on Perdure, LMDB and SQLite: length, and
throughput at equal durability: a call that changes something is durable when it returns.

--page writes both tables into docs/programs.md: the figures of the medium that was measured, and
the lines. The test bench_lines_test holds the page's lines to those of the tree.
"""

import textwrap
from pathlib import Path

from . import compare, table
from .driver import Failed
from .stats import ratio

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "programs.md"
SYSTEMS = ["shadow:durable", "shadow/stm:durable", "lmdb", "sqlite"]
NAMES = {"sessions-90": "session store", "jobs-5": "job queue", "book-40": "order book"}
WORKLOADS = list(NAMES)
BASE = "shadow:durable"
STORES = ("Perdure", "LMDB", "SQLite")
# Per program its files on each store, and what the three programs share there.
FILES = {
    "session store": ("examples/sessions.hpp", "bench/apps/sessions_lmdb.hpp",
                      "bench/apps/sessions_sqlite.hpp"),
    "job queue": ("examples/jobs.hpp", "bench/apps/jobs_lmdb.hpp", "bench/apps/jobs_sqlite.hpp"),
    "order book": ("examples/order_book.hpp", "bench/apps/order_book_lmdb.hpp",
                   "bench/apps/order_book_sqlite.hpp"),
}
SHARED = ((), ("bench/lmdb/environment.hpp", "bench/apps/bytes.hpp"),
          ("bench/sqlite/connection.hpp", "bench/sqlite/connections.hpp", "bench/apps/sqlite.hpp",
           "bench/apps/bytes.hpp"))


def code_lines(text):
    """The lines that are neither blank nor only a comment (//)."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


def line_counts(root=ROOT):
    """{program: {store: lines}}, what they share as the last program."""
    def of(paths):
        return sum(code_lines((root / path).read_text(encoding="utf-8")) for path in paths)

    found = {
        name: {store: of([path])
               for store, path in zip(STORES, paths)} for name, paths in FILES.items()
    }
    found["shared by the three"] = {store: of(paths) for store, paths in zip(STORES, SHARED)}
    return found


def run(args, found, directory):
    data = compare.run(args, found, directory)
    if args.page and data["failures"]:
        raise Failed("the page is left as it is: " + "; ".join(data["failures"]))
    return data


def print_report(data, threads):
    print("\nlines of code")
    table.show(["", *STORES], [[name, *map(str, lines.values())]
                              for name, lines in line_counts().items()])
    compare.print_report(data, threads)


def as_json(data, threads):
    return {"lines": line_counts(), **compare.as_json(data, threads)}


def lines_table():
    """The page's table of lines."""
    rows = [f"| program | {' | '.join(STORES)} |", "|---|--:|--:|--:|"]
    rows += [f"| {name} | {' | '.join(map(str, lines.values()))} |"
             for name, lines in line_counts().items()]
    return "\n".join(rows)


def figures_table(data, threads):
    """The page's table of figures: thousands per second, and what they are of Perdure's."""
    figures, rows = data["figures"], []
    for workload, own in data["systems"].items():
        for t in threads:
            cells = []
            for s in own:
                rate = figures.rate(workload, s.name, t)
                if rate is None:
                    cells.append("")
                    continue
                of = ratio(figures.rates(workload, s.name, t), figures.rates(workload, BASE, t))
                cells.append(table.thousands(rate) +
                             (f", {table.factor(of.median)}x" if s.name != BASE and of else ""))
            rows.append(f"| {NAMES.get(workload, workload)} | {t} | {' | '.join(cells)} |")
    names = [s.name for s in next(iter(data["systems"].values()))]
    return "\n".join([
        f"| program | threads | {' | '.join(names)} |", "|---|--:|" + "--:|" * len(names), *rows
    ])


def _put(text, part, content):
    """The page's text with another content between a part's two markers."""
    begin, end = f"<!-- {part}:begin -->\n", f"<!-- {part}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise Failed(f"{PAGE}: found no part {part}, expected it once between {begin.strip()} and "
                     f"{end}")
    before, rest = text.split(begin)
    return before + begin + "\n" + content + "\n\n" + end + rest.split(end)[1]


def write_page(args, data, facts):
    """Returns the path written."""
    where = ("on " + facts["file_system"].split()[0] if args.medium == "file" else
             "in memory (tmpfs, without emulated delays)")
    said = [
        f"Thousands per second, {where}: the median of {args.rounds} interleaved rounds of",
        f"{args.seconds} s, with the slowest and the fastest one; x: of {BASE}, round by round.",
        f"{facts['cpu']}, {facts['cpus']} CPUs{' (virtual)' * (facts['hypervisor'] == 'yes')};",
        f"{facts['kernel']}; {facts['compiler'].split(';')[0]}; revision {facts['revision']}.",
    ]
    text = PAGE.read_text(encoding="utf-8")
    text = _put(text, f"figures-{args.medium}",
                textwrap.fill(" ".join(said), 100) + "\n\n" + figures_table(data, args.threads))
    PAGE.write_text(_put(text, "lines", lines_table()), encoding="utf-8")
    return PAGE
