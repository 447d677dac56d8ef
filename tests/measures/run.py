#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the measures of the tree's structure.

Each row has a number, its target where there is one, and whether that is met; below the table
stands what the numbers are made of. The exit status is 0 whether or not targets are met, and 2 when
something can't be measured. To compare, keep what --json prints before a change, and give it to
--compare after the change. CXX in the environment names the compiler that is asked (g++).
"""

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import build_cost  # noqa: E402
import compiled  # noqa: E402
import report  # noqa: E402
import structure  # noqa: E402
import tree  # noqa: E402
from measure import CannotMeasure  # noqa: E402

HERE = Path(__file__).resolve().parents[2]


def commit_of(root):
    """The commit of the tree at `root`, its date, and whether the files are those of the commit."""
    head = tree.git(root, "log", "-1", "--format=%H %cs")
    if head is None:
        return {"commit": None, "date": None, "clean": False}
    commit, date = head.split()
    clean = tree.git(root, "status", "--porcelain") == ""
    return {"commit": commit, "date": date, "clean": clean}


def measured(root, chosen):
    """The document of all measures; the build comes last, as it takes minutes."""
    if not (root / "perdure").is_dir():
        raise CannotMeasure(f"found no folder perdure in {root}, expected a tree of Perdure")
    commit = commit_of(root)
    paths = tree.paths_of(root)
    measures = dict(compiled.measures(root))
    measures.update(structure.measures(root, paths))
    measures.update(tree.measures(root, paths))
    if chosen.build:
        folder = HERE / "build" / "measures"
        measures.update(build_cost.measures(root, folder, chosen.jobs, chosen.only))
    return report.document(measures, commit, compiled.version())


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev measures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--compare", type=Path, metavar="FILE",
                        help="show what FILE has, kept from --json, beside the measures of now")
    parser.add_argument("--build", action="store_true",
                        help="also build every target of preset dev from nothing, without ccache, "
                        "and measure its processor time: about 10 minutes on two cores")
    parser.add_argument("--only", nargs="+", default=[], metavar="TARGET",
                        help="with --build: these targets instead of all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="with --build: how many compilations run at once")
    parser.add_argument("--root", type=Path, default=HERE, metavar="FOLDER",
                        help="the tree to measure, instead of this one")
    chosen = parser.parse_args(arguments)
    if chosen.only and not chosen.build:
        parser.error("found --only without --build, expected both")
    if chosen.json and chosen.compare:
        parser.error("found --json and --compare, expected one of them")
    return chosen


def main(arguments):
    chosen = parse(arguments)
    try:
        before = report.load(chosen.compare) if chosen.compare else None
        now = measured(chosen.root.resolve(), chosen)
    except CannotMeasure as e:
        print(f"measures: {e}", file=sys.stderr)
        return 2
    print(json.dumps(now, indent=1) if chosen.json else report.text(now, before))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
