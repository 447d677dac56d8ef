#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the papers' figures again and writes CSV, pictures, a page a paper with its claims
beside ours, and the report of all of them.

`./dev figures` builds and calls this. What was measured is kept a row (kept.py), so that an
interrupted run goes on where it was, on another machine if need be (each row names its own), and
one row can be measured again alone (--only). Nothing is measured while the tree has changes that
are not committed: a row names its commit and keeps a hash of its sources (sources.py), and pages
and report mark the rows whose sources have changed since.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "papers")]

from figures import conclusions, kept, page, report, sources, verdicts  # noqa: E402
from figures.figure import Bench, as_json as as_document, has_points  # noqa: E402
from figures.papers import PAPER_OF, PAPERS, QUICK  # noqa: E402
from figures.verdict import judge  # noqa: E402
from report import machine  # noqa: E402
from report.driver import Failed  # noqa: E402
from report.rounds import Progress  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(prog="./dev figures",
                                     description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("papers", nargs="*", metavar="PAPER",
                        help=f"whose figures: {', '.join(PAPERS)}; all of them when none is named")
    parser.add_argument("--only", default="", metavar="ROW,ROW",
                        help="only these rows, such as R-Fig7L, measured anew")
    parser.add_argument("--again", action="store_true",
                        help="measure anew what was measured already")
    parser.add_argument("--pages", action="store_true",
                        help="measure nothing: write pages and report of what is kept")
    parser.add_argument("--list", action="store_true",
                        help="name the rows with their verdicts; measure and write nothing")
    parser.add_argument(
        "--verdicts", action="store_true", help=
        "say of each paper's figures whether its conclusion (papers/conclusions.json) holds, over "
        "what is kept; measure and write nothing")
    parser.add_argument("--against", metavar="COMMIT",
                        help="with --verdicts: and what the conclusions of this commit would say")
    parser.add_argument(
        "--quick", action="store_true", help=
        "3 rounds and smaller sizes of the rows that are soonest done and say most, in under 10 "
        f"minutes: a hint only ({', '.join(QUICK)}; others by --only)")
    parser.add_argument("--rounds", type=int, default=5,
                        help="interleaved rounds (5); fewer are no result")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "bench",
                        help="where the bench preset was built")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where pools are put")
    parser.add_argument(
        "--out", type=Path, default=None, help=
        "where pages, pictures and the kept rows go (papers; of a quick run: "
        "BUILD_DIR/figures)")
    parser.add_argument("--report", type=Path, default=None,
                        help="where the report goes (papers/report; with --out: OUT/report)")
    parser.add_argument("--json", action="store_true",
                        help="print what was measured, with the verdicts, as JSON")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"argument --rounds: found {args.rounds}, expected at least 1")
    if args.against and not args.verdicts:
        parser.error("argument --against: found no --verdicts, expected both")
    if args.quick:
        args.rounds = min(args.rounds, 3)
    for name in args.papers:
        if name not in PAPERS:
            parser.error(f"argument PAPER: found '{name}', expected some of {', '.join(PAPERS)}")
    args.only = [row for row in args.only.split(",") if row]
    for row in args.only:
        if row not in PAPER_OF or PAPER_OF[row].name not in (args.papers or PAPERS):
            parser.error(
                f"argument --only: found row '{row}', expected some of "
                f"{', '.join(r for r, p in PAPER_OF.items() if p.name in (args.papers or PAPERS))}")
    args.papers = [
        PAPERS[name]
        for name in args.papers or dict.fromkeys(PAPER_OF[row].name for row in args.only) or PAPERS
    ]
    args.report = args.report or (args.out / "report" if args.out else args.build_dir /
                                  "report" if args.quick else ROOT / "papers" / "report")
    args.out = args.out or (args.build_dir / "figures" if args.quick else ROOT / "papers")
    return args


class Left:
    """Estimates the time left: for a row that was measured before, its earlier time at this run's
    pace; for a row that was never measured, the average of such rows in this run."""
    def __init__(self, rows, before):
        self._rows, self._before, self._known, self._new = rows, {
            row: before[row] for row in rows if before.get(row)
        }, [], []

    def text(self, row):
        pace = sum(took for _, took in self._known) / sum(
            expected for expected, _ in self._known) if self._known else 1
        usual = sum(self._new) / len(self._new) if self._new else 60
        ahead = self._rows[self._rows.index(row):]
        seconds = sum(self._before[r] * pace if r in self._before else usual for r in ahead)
        return (
            f"row {self._rows.index(row) + 1} of {len(self._rows)}, about "
            f"{max(1, round(seconds / 60))} min left")

    def took(self, row, seconds):
        if row in self._before:
            self._known.append((self._before[row], seconds))
        else:
            self._new.append(seconds)


def wanted(args, documents, facts):
    """[(paper, figure)] to measure. This includes a row that another machine could not run, if this
    one can."""
    if args.pages or args.list:
        return []
    own = args.only or (QUICK if args.quick else None)
    return [(paper, figure) for paper in args.papers for figure in paper.figures
            if own is None or figure.row in own
            if args.only or args.again or figure.row not in documents[paper.name] or
            not has_points(documents[paper.name][figure.row]) and not figure.needs(facts)]


def measure(args, documents):
    """Adds the measurements to `documents`; returns [what failed]."""
    facts, failed, progress = machine.facts(args.build_dir, args.dir), [], Progress()
    todo = wanted(args, documents, facts)
    if not todo:
        return failed
    if changed := sources.changes(ROOT, (*kept.written(args.out, PAPERS.values()), args.report)):
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        raise Failed(
            f"found changes that are not committed in {', '.join(changed[:5])}{more}, expected "
            "none: a row names the commit that it was measured at. Commit them, or put them "
            "aside (git stash -u); --pages writes the pages of what is kept")
    of_systems = sources.hashes(ROOT)
    left = Left([figure.row for _, figure in todo], {} if args.quick else
                {row: d.get("seconds") for own in documents.values() for row, d in own.items()})
    for paper, figure in todo:
        scratch, began = Path(tempfile.mkdtemp(prefix="perdure-figures-",
                                               dir=args.dir)), time.monotonic()
        head = f"{figure.row}: {left.text(figure.row)}"
        try:
            bench = Bench(args.build_dir, scratch, args.rounds, args.quick,
                          lambda text, h=head: progress(f"{h}: {text}"))
            cannot = figure.needs(facts)
            points = [] if cannot else figure.measure(bench)
            document = as_document(
                figure, points,
                time.monotonic() - began, facts, args.rounds, args.quick,
                {name: of_systems[name] for name in (*paper.systems, *figure.systems)}, cannot)
            kept.save(args.out, paper, figure.row, document, args.quick)
            documents[paper.name][figure.row] = document
            progress(
                f"{head}: {len(points)} points in {time.monotonic() - began:.0f} s: "
                f"{judge(figure, document).spelt()}",
                last=True)
        except Failed as error:
            failed.append(f"{figure.row}: {error}")
            progress(f"{figure.row}: {error}", last=True)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        left.took(figure.row, time.monotonic() - began)
    return failed


def print_list(papers, documents):
    for paper in papers:
        print(paper.title)
        for figure in paper.figures:
            document = documents[paper.name].get(figure.row)
            print(
                f"  {figure.row:11} {judge(figure, document).spelt():33} "
                f"{'stale' if document and document['stale'] else '':6} {figure.title}")


def as_json(papers, documents):
    return {
        paper.name: {
            f.row: {
                "verdict": judge(f, documents[paper.name].get(f.row)).as_json(),
                "measured": documents[paper.name].get(f.row)
            } for f in paper.figures
        } for paper in papers
    }


def main():
    args = arguments()
    documents = {paper.name: kept.load(args.out, paper, args.quick) for paper in PAPERS.values()}
    if args.verdicts:
        return verdicts.show(args, documents, ROOT)
    failed = measure(args, documents)
    if args.list and not args.json:
        print_list(args.papers, documents)
        return 0
    written = []
    if not args.list:
        sources.update(ROOT, args.out,
                       [document for own in documents.values() for document in own.values()])
        documents = {
            paper.name: kept.load(args.out, paper, args.quick) for paper in PAPERS.values()
        }
        written = [page.write_page(paper, documents[paper.name], args.out) for paper in args.papers]
        written.append(report.write_report(PAPERS.values(), documents, args.report))
    if args.json:
        print(json.dumps(as_json(args.papers, documents), indent=1))
    else:
        print("written: " + ", ".join(str(path) for path in written))
    for failure in failed:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, conclusions.BadConclusion) as failure:
        sys.exit(f"figures: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
