#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The mutation gate: is every flush, fence, checksum test and order of publication of the library needed, and does a test see it when it is missing?

  gate.py --work build/mutants            copies the sources there, mutated (schemata.py), builds the copy, tries each mutant
  gate.py --check                         only looks whether the table of mutants fits the sources

Mutants are the table's (table/) and, found by themselves, the lines that call flush and fence (calls.py). Each is switched on alone, and the
explorer, or the program that the table names, is expected to fail. Prints the score and the survivors: a survivor is a missing test or
a needless line. Exit: 0 all killed or explained, 1 survivors, 2 wrong arguments or a table that does not fit.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import calls
import schemata
import sites
from programs import PROGRAMS
from table import MUTANTS

BUILD = "build/dev"
ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 600  # seconds: what hangs is found, too


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def build(root, work, jobs, wanted):
    copy = schemata.write_copy(root, work)
    say(f"mutants: building {len(wanted)} programs of the mutated copy in {work}")
    for command in (["cmake", "--preset", "dev"],
                    ["cmake", "--build", "--preset", "dev", "--parallel", str(jobs), "--target", *(PROGRAMS[by][0] for by in wanted)]):
        done = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nmutants: {' '.join(command)} failed in {copy}")
    return copy


@functools.cache
def all_sites():
    return sites.in_tree(ROOT)


def named(mutant):
    return f"{mutant.name} ({all_sites()[mutant.site].file})"


def chosen(only):
    return [(number, mutant) for number, mutant in enumerate(MUTANTS) if re.search(only, named(mutant))]


def needed(only):
    """The programs that try them, and the explorer, which tries the calls."""
    return sorted({mutant.by for _, mutant in chosen(only)} | {"explorer"})


class Gate:
    def __init__(self, copy, distinct, engines):
        self.copy = copy
        self.explorer = ["--distinct", str(distinct), *(["--engine", engines] if engines else [])]
        self.rows = []

    def program(self, by):
        target, arguments = PROGRAMS[by]
        built = next(path for path in (self.copy / BUILD).rglob(target) if path.is_file())
        return str(built), arguments + (self.explorer if by == "explorer" else [])

    def run(self, by, extra=(), mutant=-1):
        """What found it, or "" where nothing did."""
        program, arguments = self.program(by)
        command = [*(["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []), program, *arguments, *extra]
        try:
            answer = subprocess.run(command, cwd=self.copy / BUILD, env={**os.environ, "PERDURE_MUTANT": str(mutant)}, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, errors="replace", timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return f"{by} hangs"
        if answer.returncode == 0:
            return ""
        if by == "explorer":
            found = re.search(r"FOUND ([^:]*):", answer.stderr)
            if answer.returncode in (1, 2) and not found:  # it judges too little, or doesn't know what it is asked: no verdict
                sys.exit(f"mutants: {' '.join(command)}:\n{answer.stderr}")
            return found[1] if found else f"explorer ends with {answer.returncode}: {answer.stderr.strip()[-80:]}"
        failed = re.search(r"\[  FAILED  \] ([\w/.]+)", answer.stdout)
        return failed[1] if failed else f"{by} ends with {answer.returncode}"

    def tries(self, reached, only):
        """What to leave out or turn round, one at a time: (name, kind, who must find it, how it is switched on, why nothing can)."""
        why = calls.explained(ROOT)
        for (call, line), addresses in sorted(reached.items(), key=lambda s: s[0][1]):
            if re.search(only, line):
                yield f"{call} at {line}", "call", "explorer", {"extra": ["--omit", ",".join(f"{call}:{a}" for a in addresses)]}, why.get(line, "")
        for number, mutant in chosen(only):
            yield named(mutant), "written", mutant.by, {"mutant": number}, mutant.explained

    def try_all(self, reached, only):
        tries = list(self.tries(reached, only))
        for number, (what, kind, program, how, explained) in enumerate(tries, 1):
            start = time.monotonic()
            by = self.run(program, **how)
            self.rows.append({"mutant": what, "kind": kind, "killed": bool(by), "by": by, "explained": "" if by else explained})
            print(f"[{number:2}/{len(tries)}] {time.monotonic() - start:5.1f} s  {'killed  ' if by else 'SURVIVED'} {what}  {by}", file=sys.stderr, flush=True)

    def print(self, unreached):
        killed = sum(row["killed"] for row in self.rows)
        print(f"{killed} of {len(self.rows)} mutants killed")
        for row in self.rows:
            if not row["killed"]:
                print(f"  survived: {row['mutant']}{'; expected: ' + row['explained'] if row['explained'] else ''}")
        for call, line in unreached:
            print(f"  never reached: {call} at {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=pathlib.Path, help="where the mutated copy is kept and built")
    parser.add_argument("--check", action="store_true", help="only compare the table with the sources")
    parser.add_argument("--distinct", type=int, default=3000, help="recoveries of each engine on each workload, for each mutant (3000)")
    parser.add_argument("--engine", default="", help="the explorer's runs with these instances only, such as softwrap,softwrap-local (all)")
    parser.add_argument("--only", default="", help="mutants whose name or line matches this regular expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            print(f"{len(MUTANTS)} mutants in {len(schemata.check(ROOT))} files: the table fits the sources")
            return 0
        if arguments.work is None:
            parser.error("found neither --work nor --check, expected one of them")
        gate = Gate(build(ROOT, arguments.work.resolve(), arguments.jobs, needed(arguments.only)), arguments.distinct, arguments.engine)
    except sites.SiteError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    for by in needed(arguments.only):
        say(f"mutants: {by} without any")
        if found := gate.run(by):
            sys.exit(f"mutants: {by} fails without any mutant: {found}")
    say("mutants: which lines call flush and fence")
    try:
        reached = calls.reached(gate.program("explorer")[0], ROOT, gate.copy, arguments.engine)
    except RuntimeError as error:
        sys.exit(f"mutants: {error}")
    unreached = sorted(calls.written(ROOT) - set(reached), key=lambda s: s[1])
    gate.try_all(reached, arguments.only)
    if arguments.json:
        print(json.dumps({"mutants": gate.rows, "killed": sum(row["killed"] for row in gate.rows), "never_reached": unreached}, indent=2))
    else:
        gate.print(unreached)
    return 1 if any(not row["killed"] and not row["explained"] for row in gate.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
