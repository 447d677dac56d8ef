# SPDX-License-Identifier: BSD-3-Clause
"""Builds the mutated copy, tries one mutant at a time, and stores each result as soon as it is
known.

A program that fails without any mutant ends the gate: its failures with mutants would mean nothing.
"""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import calls
import sites
from programs import PROGRAMS, engines_of
from table import MUTANTS

BUILD = "build/dev"
# A mutant that hangs is found, too: after this many seconds, or four times what its program took
# without any mutant on this machine, if that is longer. A program without any mutant has longer.
LONGEST = 600
WITHOUT_ANY = 3600
# A survivor costs the explorer the most, because it judges all of its images. Where a survivor is
# explained, its number of images is divided by this.
LESS_WHERE_EXPLAINED = 10
# What the explorer names when it finds a failure, as the options that look only there.
FOUND = ("--engine", "--workload", "--configuration", "--model")


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def build(copy, jobs, wanted):
    say(f"mutants: building {len(wanted)} programs of the mutated copy in {copy}")
    targets = [PROGRAMS[by][0] for by in wanted]
    options = ["-DPERDURE_TEST_GROUPS=papers;plain", "-DPERDURE_BUILD_PLAIN=ON",
               "-DPERDURE_BUILD_PLAIN_PASS=ON"]
    configure = ["cmake", "--preset", "dev", *options]
    compile_them = ["cmake", "--build", "--preset", "dev", "--parallel", str(jobs)]
    for command in (configure, [*compile_them, "--target", *targets]):
        done = subprocess.run(
            command,
            cwd=copy,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nmutants: {' '.join(command)} failed in {copy}")


def written(root):
    """{number: name with its file} of the table's mutants, in the table's order."""
    return named(sites.in_tree(root))


def named(found):
    """written() of the sites that were found."""
    return {
        number: f"{mutant.name} ({found[mutant.site].file})"
        for number, mutant in enumerate(MUTANTS)
    }


class Gate:
    def __init__(self, root, copy, results, only, at_once=1):
        self.root, self.copy, self.results, self.only = root, copy, results, only
        self.at_once = at_once
        self.sites = sites.in_tree(root)
        self.written = named(self.sites)
        self.engines = []  # that the explorer has
        self.built = {}  # the path of each program
        self.took = {}  # seconds of each program without any mutant
        self.tried = []

    def program(self, by, less=1):
        target, arguments = PROGRAMS[by]
        if by == "explorer":
            arguments = self.explorer_arguments(self.results.settings["distinct"] // less)
        if by not in self.built:
            found = [path for path in (self.copy / BUILD).rglob(target) if path.is_file()]
            if len(found) != 1:
                sys.exit(
                    f"mutants: found {len(found)} programs {target} in {self.copy / BUILD},"
                    " expected the one that was built; remove that folder"
                )
            self.built[by] = str(found[0])
        return self.built[by], arguments

    def explorer_arguments(self, distinct):
        """The explorer refuses an option that is given twice, so each is here once."""
        engine = self.results.settings["engine"]
        return [
            *PROGRAMS["explorer"][1],
            "--distinct",
            str(distinct),
            *(["--engine", engine] if engine else []),
        ]

    def limit(self, by):
        return max(LONGEST, 4 * self.took[by]) if by in self.took else WITHOUT_ANY

    def run_without_any(self, by):
        """Ends the gate if the program fails. Its time sets the limit for its mutants."""
        say(f"mutants: {by} without any")
        start = time.monotonic()
        if found := self.run(by):
            sys.exit(f"mutants: {by} fails without any mutant: {found}")
        self.took[by] = time.monotonic() - start
        self.results.add_without_any(by, self.took[by])

    def run(self, by, extra=(), mutant=-1, less=1):
        """Returns what found the mutant, or "" if nothing did."""
        program, arguments = self.program(by, less)
        command = [
            *(["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []),
            program,
            *arguments,
            *extra,
        ]
        try:
            answer = subprocess.run(
                command,
                cwd=self.copy / BUILD,
                env={**os.environ, "PERDURE_MUTANT": str(mutant)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=self.limit(by),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{by} hangs"
        if answer.returncode == 0:
            return ""
        # It was ended from outside: no verdict.
        if answer.returncode in (-signal.SIGINT, -signal.SIGTERM):
            sys.exit(
                f"mutants: {' '.join(command)}: ended by signal {-answer.returncode}, which is no"
                " result; run the gate again"
            )
        if by == "explorer":
            found = re.search(r"FOUND ([^:]*):", answer.stderr)
            # It has judged too little, or does not know its arguments: no verdict.
            if answer.returncode in (1, 2) and not found:
                sys.exit(f"mutants: {' '.join(command)}:\n{answer.stderr}")
            if found:
                return found[1]
            return f"explorer ends with {answer.returncode}: {answer.stderr.strip()[-80:]}"
        failed = re.search(r"\[  FAILED  \] ([\w/.]+)", answer.stdout)
        return failed[1] if failed else f"{by} ends with {answer.returncode}"

    def learn_engines(self):
        """One round of each tells which the explorer has."""
        program, _ = self.program("explorer")
        command = [program, *self.explorer_arguments(1), "--json", "--workload", "swaps"]
        answer = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        try:
            self.engines = [row["engine"] for row in json.loads(answer.stdout)["rows"]]
        except ValueError:
            sys.exit(
                f"mutants: {' '.join(command)}: found no JSON, expected rows of engines:\n"
                f"{answer.stderr}"
            )

    def with_engines(self, files):
        """The explorer's arguments for a mutant of these files: other engines can't find it."""
        some = engines_of(files, self.engines)
        if some == self.engines or self.results.settings["engine"]:
            return []
        return ["--engine", ",".join(some)]

    def wants(self, name, where, resume):
        return re.search(self.only, where) and not (resume and name in self.results.rows)

    def wanted_written(self, resume):
        return [
            (number, MUTANTS[number])
            for number, name in self.written.items()
            if self.wants(name, name, resume)
        ]

    def wants_calls(self, resume):
        """Whether a call may have to be tried. Only a run of the explorer lists the calls."""
        if resume and self.results.calls is not None:
            names = [call["mutant"] for call in self.results.calls]
            return any(self.wants(name, name.split(" at ")[1], True) for name in names)
        return any(re.search(self.only, line) for _, line in calls.written(self.root))

    def tries(self, reached, why, resume):
        """What to omit or reverse, one at a time.

        Yields (name, kind, the program that must find it, how it is switched on, why none can).
        """
        for (call, line), addresses in sorted(reached.items(), key=lambda s: s[0][1]):
            name = f"{call} at {line}"
            if self.wants(name, line, resume):
                yield (
                    name,
                    "call",
                    "explorer",
                    {
                        "extra": [
                            "--omit",
                            ",".join(f"{call}:{a}" for a in addresses),
                            *self.with_engines([line]),
                        ],
                        "less": LESS_WHERE_EXPLAINED if line in why else 1,
                    },
                    why.get(line, ""),
                )
        for number, mutant in self.wanted_written(resume):
            how = {"mutant": number}
            if mutant.by == "explorer":
                how["extra"] = self.with_engines(self.sites[name].file for name in mutant.edits)
                how["less"] = LESS_WHERE_EXPLAINED if mutant.explained else 1
            yield self.written[number], "written", mutant.by, how, mutant.explained

    def learn_calls(self):
        say("mutants: which lines call flush and fence")
        why = calls.explained(self.root)
        try:
            reached = calls.reached(
                self.program("explorer")[0], self.root, self.copy, self.results.settings["engine"]
            )
        except RuntimeError as error:
            sys.exit(f"mutants: {error}")
        known = [
            {"mutant": f"{call} at {line}", "explained": why.get(line, "")}
            for call, line in sorted(reached, key=lambda s: s[1])
        ]
        self.results.add_calls(
            known, sorted(calls.written(self.root) - set(reached), key=lambda s: s[1])
        )
        return reached, why

    def try_all(self, tries):
        """Tries `at_once` mutants at a time; what is known first is stored first.

        A program that hangs beside another one may only be slow: it is tried again at the end,
        alone.
        """
        hung = []
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            left = {pool.submit(self.timed, attempt): attempt for attempt in tries}
            try:
                for number, done in enumerate(concurrent.futures.as_completed(list(left)), 1):
                    attempt = left.pop(done)
                    by, seconds = done.result()
                    if by == f"{attempt[2]} hangs" and self.at_once > 1:
                        hung.append(attempt)
                        continue
                    self.note(attempt, by, seconds, f"{number:2}/{len(tries)}")
                    self.say_how_long(left.values())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for number, attempt in enumerate(hung, len(tries) - len(hung) + 1):
            self.note(attempt, *self.timed(attempt), f"{number:2}/{len(tries)}")
            self.say_how_long(hung[number - len(tries) + len(hung) :])

    def timed(self, attempt):
        """Returns what found the mutant, or "", and the seconds."""
        what, _, program, how, _ = attempt
        start = time.monotonic()
        extra = self.found_last(what, program, how.get("extra", []))
        by = (extra and self.run(program, **{**how, "extra": extra})) or self.run(program, **how)
        return by, time.monotonic() - start

    def found_last(self, what, program, extra):
        """The arguments for only that part of the program which found the mutant the last time, in
        this commit or another one: most are found by it again, at once. Empty if none did."""
        by = self.results.found_by.get(what, "")
        if program != "explorer":
            return [f"--gtest_filter={by}"] if re.fullmatch(r"[\w/]+\.[\w/]+", by) else []
        parts = by.split(", ")
        if len(parts) != len(FOUND) or self.results.settings["engine"]:
            return []
        omitted = extra[:2] if extra[:1] == ["--omit"] else []
        return [*omitted, *(word for pair in zip(FOUND, parts) for word in pair)]

    def note(self, attempt, by, seconds, number):
        what, kind, program, _, explained = attempt
        self.results.add(
            {
                "mutant": what,
                "kind": kind,
                "killed": bool(by),
                "by": by,
                "explained": "" if by else explained,
                "program": program,
                "seconds": round(seconds, 2),
            }
        )
        self.tried.append(what)
        verdict = "killed  " if by else "SURVIVED"
        line = f"[{number}] {seconds:5.1f} s  {verdict} {what}  {by}"
        print(line, end="", file=sys.stderr, flush=True)

    def say_how_long(self, left):
        """Ends the line of note()."""
        minutes = (self.results.estimate([a[2] for a in left]) or 0) / 60 / self.at_once
        text = f"  (about {minutes:.0f} min left)" if left else ""
        print(text, file=sys.stderr, flush=True)

    def work(self, jobs, resume):
        """Builds what is needed, and tries."""
        wants_calls = self.wants_calls(resume)
        needed = sorted(
            {mutant.by for _, mutant in self.wanted_written(resume)}
            | ({"explorer"} if wants_calls else set())
        )
        if not needed:
            return say("mutants: none to try: all that were asked for have a result of this commit")
        build(self.copy, jobs, needed)
        known = self.results.took if resume else {}
        self.took.update(known)
        for by in needed:
            if by not in known:
                self.run_without_any(by)
        reached, why = self.learn_calls() if wants_calls else ({}, {})
        if "explorer" in needed:
            self.learn_engines()
        tries = list(self.tries(reached, why, resume))
        left = self.results.estimate([t[2] for t in tries])
        about = f", about {left / 60 / self.at_once:.0f} min" if left is not None else ""
        say(f"mutants: {len(tries)} to try{about}")
        return self.try_all(tries)

    def print(self, names, as_json):
        rows = [self.results.rows[name] for name in names]
        killed = sum(row["killed"] for row in rows)
        if as_json:
            print(
                json.dumps(
                    {
                        "mutants": rows,
                        "killed": killed,
                        "never_reached": self.results.never_reached,
                    },
                    indent=2,
                )
            )
            return
        print(f"{killed} of {len(rows)} mutants killed")
        for row in rows:
            if not row["killed"]:
                why = f"; expected: {row['explained']}" if row["explained"] else ""
                print(f"  survived: {row['mutant']}{why}")
        for call, line in self.results.never_reached:
            print(f"  never reached: {call} at {line}")
