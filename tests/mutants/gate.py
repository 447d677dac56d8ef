#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The mutation gate: is every flush, fence, checksum test and order of publication of the library
needed, and does a test see it when it is missing?

  gate.py --work build/mutants            copies the sources there, mutated (schemata.py), builds
                                          the copy, and tries each mutant
  gate.py --work build/mutants --resume   tries only the mutants without a result of this commit,
                                          so that several runs together try all
  gate.py --work build/mutants --status   only says which mutants have a result of this commit
  gate.py --check                         only compares the table of mutants with the sources

Mutants are those of the table (table/) and the lines that call flush and fence, which are found
without a table (calls.py). Each is switched on alone, and the explorer, or the program that the
table names, is expected to fail. The gate prints the score and the survivors: a survivor is a
missing test or a needless line. A result is written to results.jsonl in the work folder as soon as
it is known, with the commit; results of a tree with changes are not kept.

Exit: 0 all killed or explained; 1 survivors, or, with --resume and --status, mutants without a
result of this commit; 2 wrong arguments, a table that does not fit, or --resume in a tree with
changes; 130 interrupted.
"""

import argparse
import json
import os
import pathlib
import sys

import schemata
import sites
from results import DirtyTree, Results, commit_of, head, said
from runner import Gate, say, written
from table import MUTANTS

RESULTS = "results.jsonl"


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=pathlib.Path, help="where the mutated copy and the results are kept"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check", action="store_true", help="only compare the table with the sources"
    )
    what.add_argument(
        "--resume",
        action="store_true",
        help="try only what has no result of this commit, and judge all that have one",
    )
    what.add_argument(
        "--status",
        action="store_true",
        help="build and try nothing: say what has a result of this commit",
    )
    parser.add_argument(
        "--distinct",
        type=int,
        default=3000,
        help="recoveries of each engine on each workload, for each mutant (3000)",
    )
    parser.add_argument(
        "--engine",
        default="",
        help="the explorer's runs with these instances only, such as softwrap,softwrap-local (all)",
    )
    parser.add_argument(
        "--only", default="", help="mutants whose name or line matches this regular expression"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument(
        "--at-once",
        type=int,
        default=os.cpu_count(),
        help="mutants tried at the same time (the number of processors)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    if arguments.at_once < 1:
        parser.error(f"found --at-once {arguments.at_once}, expected 1 or more")
    if not arguments.check and arguments.work is None:
        parser.error("found neither --work nor --check, expected one of them")
    return arguments


def status(root, path, arguments):
    results = Results(path, head(root), arguments.distinct, arguments.engine)
    standing = results.standing(written(root).values())
    try:
        commit_of(root)
    except DirtyTree:
        say("mutants: the tree has changes; this is of the commit without them")
    print(json.dumps(standing, indent=2) if arguments.json else said(standing))
    return 0 if standing["green"] else 1


def try_them(root, work, arguments):
    try:
        commit = commit_of(root)
    except DirtyTree as error:
        if arguments.resume:
            print(f"mutants: {error}", file=sys.stderr)
            return 2
        say(f"mutants: results are not kept: {error}")
        commit = None
    schemata.write_copy(root, work, keep=(RESULTS,))
    if commit is not None and commit != commit_of(root):
        sys.exit("mutants: another commit was checked out meanwhile; run the gate again")
    gate = Gate(
        root,
        work,
        Results(work / RESULTS, commit, arguments.distinct, arguments.engine),
        arguments.only,
        arguments.at_once,
    )
    try:
        gate.work(arguments.jobs, arguments.resume)
    except KeyboardInterrupt:
        advice = "; ./dev mutants --resume tries the others" if commit is not None else ""
        say(f"mutants: interrupted with {len(gate.tried)} tried{advice}")
        return 130
    standing = gate.results.standing(gate.written.values())
    gate.print(list(gate.results.rows) if arguments.resume else gate.tried, arguments.json)
    if commit is not None:
        print(said(standing), file=sys.stderr)
    if arguments.resume:
        return 0 if standing["green"] else 1
    rows = [gate.results.rows[name] for name in gate.tried]
    return 1 if any(not row["killed"] and not row["explained"] for row in rows) else 0


def main():
    arguments = parsed()
    root = pathlib.Path(__file__).resolve().parents[2]
    try:
        if arguments.check:
            files = len(schemata.check(root))
            print(f"{len(MUTANTS)} mutants in {files} files: the table fits the sources")
            return 0
        work = arguments.work.resolve()
        if arguments.status:
            return status(root, work / RESULTS, arguments)
        return try_them(root, work, arguments)
    except sites.SiteError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except DirtyTree as error:
        sys.exit(f"mutants: {error}")


if __name__ == "__main__":
    sys.exit(main())
