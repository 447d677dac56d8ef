#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures a paper's figures again and writes CSV, pictures and a page with the paper's claims beside ours.

`./dev figures PAPER` builds and calls this. What was measured is kept a row (--kept), so that an interrupted run goes on where it was, on
another machine if need be (each row names its own), and one row can be measured again alone (--only).
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from figures import blurred, cross, dudetm, page, rewind, softwrap  # noqa: E402
from figures.figure import Bench, as_json  # noqa: E402
from report import machine  # noqa: E402
from report.driver import Failed  # noqa: E402
from report.rounds import Progress  # noqa: E402

PAPERS = {paper.name: paper for paper in (rewind.PAPER, blurred.PAPER, softwrap.PAPER, dudetm.PAPER, cross.PAPER)}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev figures", description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=sorted(PAPERS), help="whose figures")
    parser.add_argument("--only", default="", metavar="ROW,ROW", help="only these rows, such as R-Fig7L, measured anew")
    parser.add_argument("--again", action="store_true", help="measure anew what was measured already")
    parser.add_argument("--list", action="store_true", help="name the rows and whether they were measured; measure nothing")
    parser.add_argument("--quick", action="store_true", help="3 rounds and smaller sizes: a hint only")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5); fewer are no result")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "bench", help="where the bench preset was built")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where pools are put")
    parser.add_argument("--kept", type=Path, default=None, help="where what was measured is kept, a JSON a row (OUT/PAPER)")
    parser.add_argument("--out", type=Path, default=None, help="where the page goes (docs/figures; of a quick run: BUILD_DIR/figures)")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"argument --rounds: found {args.rounds}, expected at least 1")
    if args.quick:
        args.rounds = min(args.rounds, 3)
    rows = {figure.row for figure in PAPERS[args.paper].figures}
    args.only = [row for row in args.only.split(",") if row]
    for row in args.only:
        if row not in rows:
            parser.error(f"argument --only: found row '{row}', expected some of {', '.join(sorted(rows))}")
    args.out = args.out or (args.build_dir / "figures" if args.quick else ROOT / "docs" / "figures")
    args.kept = args.kept or args.out / args.paper
    return args


def kept(args, figure):
    path = args.kept / f"{figure.row}{'.quick' if args.quick else ''}.json"
    return path, json.loads(path.read_text()) if path.exists() else None


def measure(args, paper):
    documents, failed = {}, []
    wanted = [f for f in paper.figures if not args.only or f.row in args.only]
    args.kept.mkdir(parents=True, exist_ok=True)
    facts = machine.facts(args.build_dir, args.dir)
    progress, start, done = Progress(), time.monotonic(), 0
    for figure in paper.figures:
        path, document = kept(args, figure)
        if figure in wanted and not args.list and (document is None or args.again or args.only):
            left = f", about {(time.monotonic() - start) / done * (len(wanted) - done) / 60:.0f} minutes left" if done else ""
            scratch = Path(tempfile.mkdtemp(prefix="perdure-figures-", dir=args.dir))
            began = time.monotonic()
            try:
                bench = Bench(args.build_dir, scratch, args.rounds, args.quick, lambda text, f=figure: progress(f"{f.row}{left}: {text}"))
                points = figure.measure(bench)
                document = as_json(figure, points, time.monotonic() - began, facts, args.rounds, args.quick)
                path.write_text(json.dumps(document, indent=1) + "\n")
                progress(f"{figure.row}: {len(points)} points in {time.monotonic() - began:.0f} s", last=True)
            except Failed as error:
                failed.append(f"{figure.row}: {error}")
                progress(f"{figure.row}: {error}", last=True)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            done += 1
        if document is not None:
            documents[figure.row] = document
    return documents, failed


def main():
    args = arguments()
    paper = PAPERS[args.paper]
    documents, failed = measure(args, paper)
    if args.list:
        for figure in paper.figures:
            print(f"{figure.row:10} {'measured' if figure.row in documents else 'not measured':13} {figure.title}")
        return 0
    written = page.write_page(paper, paper.figures, documents, args.out)
    if args.json:
        print(json.dumps(documents, indent=1))
    else:
        print(f"written: {written}, with {len(documents)} of {len(paper.figures)} rows")
    for failure in failed:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"figures: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
