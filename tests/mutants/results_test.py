#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The results of the mutation gate: kept per mutant and commit, usable after an interruption; and
what a run with --resume tries."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path[:0] = [str(SOURCE / "tests" / "support"), str(SOURCE / "tests" / "mutants")]

import gate  # noqa: E402
import operations as op  # noqa: E402
import results  # noqa: E402
import runner  # noqa: E402
from programs import engines_of  # noqa: E402
from limits import LimitedCase  # noqa: E402
from table import Mutant  # noqa: E402

NAMES = ["a (perdure/a.cpp)", "b (perdure/a.cpp)"]
CALL = "fence at perdure/a.cpp:9"


def row(mutant, killed=True, explained="", program="ring", seconds=2.0):
    return {
        "mutant": mutant,
        "kind": "written",
        "killed": killed,
        "by": "found" if killed else "",
        "explained": explained,
        "program": program,
        "seconds": seconds,
    }


class Scratch(LimitedCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.path = self.root / "work" / "results.jsonl"

    def results(self, commit="one", distinct=3000, engine=""):
        return results.Results(self.path, commit, distinct, engine)


class Kept(Scratch):
    def test_by_mutant_and_commit(self):
        first = self.results()
        first.add(row(NAMES[0], killed=False))
        first.add(row(NAMES[0]))
        self.results("two").add(row(NAMES[1]))
        self.assertEqual(self.results().rows, {NAMES[0]: first.rows[NAMES[0]]})
        self.assertTrue(self.results().rows[NAMES[0]]["killed"])
        self.assertEqual(list(self.results("two").rows), [NAMES[1]])
        self.assertEqual(self.results("three").rows, {})

    def test_a_cut_off_line_costs_that_result_only(self):
        self.results().add(row(NAMES[0]))
        self.results().add(row(NAMES[1]))
        text = self.path.read_bytes()
        for end in range(len(text)):
            self.path.write_bytes(text[:end])
            whole = text[:end].count(b"\n") + (text[end : end + 1] == b"\n")
            self.assertEqual(list(self.results().rows), NAMES[:whole], end)
            self.results().add(row("c"))
            self.assertEqual(list(self.results().rows), [*NAMES[:whole], "c"], end)

    def test_what_the_explorer_said_is_of_its_settings(self):
        self.results(distinct=10).add(row(NAMES[0], program="explorer"))
        self.results(distinct=10).add_calls([{"mutant": CALL, "explained": ""}], [])
        self.results(distinct=10).add(row(NAMES[1]))
        self.assertEqual(list(self.results().rows), [NAMES[1]])
        self.assertIsNone(self.results().calls)
        self.assertEqual(list(self.results(distinct=10).rows), NAMES)
        self.assertEqual(self.results(distinct=10).calls[0]["mutant"], CALL)

    def test_of_a_tree_with_changes_not_at_all(self):
        changed = self.results(None)
        changed.add(row(NAMES[0]))
        self.assertEqual(list(changed.rows), [NAMES[0]])
        self.assertFalse(self.path.exists())

    def test_the_estimate_is_the_mean_of_the_program(self):
        some = self.results()
        self.assertIsNone(some.estimate(["ring"]))
        for program, seconds in (("ring", 1.0), ("ring", 3.0), ("fuzz", 8.0)):
            some.add(row("a", program=program, seconds=seconds))
        self.assertEqual(self.results("two").estimate(["ring", "fuzz", "unknown"]), 2.0 + 8.0 + 4.0)

    def test_green_when_all_of_one_commit_are_found_or_explained(self):
        some = self.results()
        some.add(row(NAMES[0]))
        some.add(row(NAMES[1], killed=False, explained="why"))
        standing = some.standing(NAMES)
        self.assertFalse(standing["green"])  # the calls are not known
        self.assertIn("is not known yet", results.said(standing))
        some.add_calls([{"mutant": CALL, "explained": ""}], [])
        standing = some.standing(NAMES)
        self.assertEqual((standing["results"], standing["mutants"]), (2, 3))
        self.assertEqual(standing["missing"], [CALL])
        self.assertIn("2 of 3 mutants have a result", results.said(standing))
        self.assertIn(f"1 without a result, the first: {CALL}", results.said(standing))
        some.add(row(CALL, killed=False, program="explorer"))
        self.assertEqual(some.standing(NAMES)["survived"], [CALL])
        self.assertFalse(some.standing(NAMES)["green"])
        some.add(row(CALL, program="explorer"))
        self.assertTrue(self.results().standing(NAMES)["green"])
        self.assertFalse(self.results("two").standing(NAMES)["green"])


class Tree(Scratch):
    def git(self, *arguments):
        settings = ("user.name=n", "user.email=e@e", "commit.gpgsign=false")
        command = ["git", "-C", self.root, *(word for s in settings for word in ("-c", s))]
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        (self.root / "a").write_text("1")
        self.git("add", "a")
        self.git("commit", "-qm", "one")

    def test_a_tree_with_changes_is_of_no_commit(self):
        self.assertEqual(results.commit_of(self.root), results.head(self.root))
        (self.root / "a").write_text("2")
        with self.assertRaisesRegex(results.DirtyTree, "found 1 changed files, such as a, .*stash"):
            results.commit_of(self.root)
        self.git("commit", "-qam", "two")
        results.commit_of(self.root)
        (self.root / "new").write_text("1")
        with self.assertRaises(results.DirtyTree):
            results.commit_of(self.root)

    def test_resume_refuses_it(self):
        (self.root / "a").write_text("2")
        arguments = mock.Mock(resume=True)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(gate.try_them(self.root, self.root / "work", arguments), 2)
        self.assertIn("expected the files of a commit", said.getvalue())


class Engines(LimitedCase):
    def test_only_those_that_run_the_code_explore(self):
        every = ["shadow", "shadow/stm", "undo", "dudetm", "bppm", "redo-base", "softwrap"]
        for files, expected in (
            (["perdure/log/ring.cpp:9"], every),
            (["perdure/engine/undo/undo_impl.hpp"], ["undo"]),
            (["papers/blurred/torn_log.cpp:98"], ["bppm", "redo-base"]),
            (["perdure/engine/shadow/a.hpp", "papers/softwrap/b.hpp"],
             ["shadow", "shadow/stm", "softwrap"]),
            (["perdure/engine/shadow/a.hpp", "perdure/log/b.hpp"], every),
        ):
            self.assertEqual(expected, engines_of(files, every), files)


class CommandLines(Scratch):
    """The explorer refuses an option that is given twice. A stub stands for it, which does the same
    and keeps what it was given."""

    def setUp(self):
        super().setUp()
        (self.root / "perdure").mkdir()
        folder = self.root / runner.BUILD
        folder.mkdir(parents=True)
        stub = folder / "perdure_explore"
        stub.write_text(
            f"#!{sys.executable}\n"
            "import json, sys\n"
            "given = sys.argv[1:]\n"
            f"with open({str(self.root / 'given')!r}, 'a') as file:\n"
            "    print(json.dumps(given), file=file)\n"
            "options = [a for a in given if a.startswith('--')]\n"
            "if len(options) != len(set(options)):\n"
            "    sys.exit(f'an option twice: {given}')\n"
            "sites = '--sites' in given\n"
            "rows = [{'engine': 'shadow'}, {'engine': 'undo'}]\n"
            "print(json.dumps([] if sites else {'rows': rows}))\n"
        )
        stub.chmod(0o755)
        (self.root / "addr2line").symlink_to(shutil.which("true"))  # the stub has no lines

    def test_each_has_an_option_once(self):
        for engine in ("", "shadow"):
            results_of = self.results(distinct=17, engine=engine)
            with (
                mock.patch.object(runner, "MUTANTS", ()),
                mock.patch.object(runner.calls, "explained", lambda _: {}),
                mock.patch.dict(os.environ, PATH=f"{self.root}:{os.environ['PATH']}"),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                made = runner.Gate(self.root, self.root, results_of, "")
                made.run_without_any("explorer")
                made.learn_calls()
                made.learn_engines()
                extra = made.with_engines(["perdure/engine/undo/undo.hpp"])
                omitted = ["--omit", "fence:0x1", *extra]
                self.assertEqual(made.run("explorer", extra=omitted), "")
                self.assertEqual(made.run("explorer", extra=omitted, less=3), "")
            self.assertEqual(made.engines, ["shadow", "undo"])
            given = [json.loads(line) for line in (self.root / "given").read_text().splitlines()]
            (self.root / "given").unlink()
            self.assertEqual(len(given), 5)
            for arguments in given:
                options = [a for a in arguments if a.startswith("--")]
                self.assertEqual(len(options), len(set(options)), arguments)
            distinct = [a[a.index("--distinct") + 1] for a in given]
            self.assertEqual(distinct, ["17", "1000", "1", "17", "5"])
            engines = [a[a.index("--engine") + 1] if "--engine" in a else "" for a in given]
            self.assertEqual(engines, [engine, engine, engine, *[engine or "undo"] * 2])


class Run(Scratch):
    """A gate of two mutants and a call, whose programs are stubs."""

    def setUp(self):
        super().setUp()
        source = self.root / "perdure" / "a.cpp"
        source.parent.mkdir()
        source.write_text("// licence\n// mutant: x\nf();\n// mutant: y\nmedium.fence();\n")
        mutants = (
            Mutant("a", {"x": op.leave_out()}, by="ring"),
            Mutant("b", {"y": op.leave_out()}, by="fuzz", explained="why"),
        )
        self.less = {}  # of each program's last run
        self.call = "fence at perdure/a.cpp:5"
        reached = {("fence", "perdure/a.cpp:5"): ["0x1"]}
        self.built = []
        for target, name, value in (
            (runner, "MUTANTS", mutants),
            (runner, "build", lambda copy, jobs, wanted: self.built.append(wanted)),
            (runner.calls, "reached", lambda *_: reached),
            (runner.calls, "explained", lambda _: {}),
            (runner.Gate, "program", lambda _, by, less=1: (by, [])),
            (runner.Gate, "learn_engines", lambda _: None),
        ):
            patch = mock.patch.object(target, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def gate(self, answers, only=""):
        """A gate whose programs give these answers, one after the other, and then none."""
        made = runner.Gate(self.root, self.root / "work", self.results(), only)
        ran = []

        def run(by, extra=(), mutant=-1, less=1):
            self.less[by] = less
            ran.append((by, mutant if not extra else extra[1]))
            if mutant == -1 and not extra:
                return answers.get("without", "")
            answer = answers[ran[-1]]
            if isinstance(answer, BaseException):
                raise answer
            return answer

        made.run = run
        return made, ran

    def work(self, made, resume=True):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            made.work(1, resume)
        return said.getvalue()

    def test_what_has_a_result_is_not_tried_again(self):
        call = ("explorer", "fence:0x1")
        made, ran = self.gate({call: "found", ("ring", 0): KeyboardInterrupt()})
        with self.assertRaises(KeyboardInterrupt):
            self.work(made)
        self.assertEqual(self.built, [["explorer", "fuzz", "ring"]])
        self.assertEqual(list(self.results().rows), [self.call])
        made, ran = self.gate({("ring", 0): "found", ("fuzz", 1): ""})
        said = self.work(made)
        self.assertEqual(ran, [("ring", 0), ("fuzz", 1)])  # both passed without any before
        self.assertEqual(self.built[1:], [["fuzz", "ring"]])
        self.assertRegex(
            said, r"\[ 1/2\] .* killed   a \(perdure/a.cpp\)  found  \(about 0 min left\)"
        )
        self.assertIn("SURVIVED b (perdure/a.cpp)", said)
        self.assertTrue(self.results().standing(made.written.values())["green"])
        made, ran = self.gate({})
        self.assertIn("none to try", self.work(made))
        self.assertEqual((ran, len(self.built)), ([], 2))
        made, ran = self.gate({call: "found", ("ring", 0): "found", ("fuzz", 1): ""})
        self.work(made, resume=False)
        self.assertEqual(len(ran), 6)

    def test_the_explorer_looks_less_where_a_survivor_is_expected(self):
        call = ("explorer", "fence:0x1")
        for why, less in (({}, 1), ({"perdure/a.cpp:5": "why"}, runner.LESS_WHERE_EXPLAINED)):
            with mock.patch.object(runner.calls, "explained", lambda _, why=why: why):
                made, _ = self.gate({call: ""}, only="^perdure")
                self.work(made, resume=False)
            self.assertEqual(self.less, {"explorer": less})
            self.assertEqual([row["explained"] for row in made.results.rows.values()],
                             list(why.values()) or [""])

    def test_two_are_tried_at_once(self):
        both = threading.Barrier(2, timeout=30)

        def run(by, extra=(), mutant=-1):
            if mutant != -1:
                both.wait()
            return "found"

        made = runner.Gate(self.root, self.root / "work", self.results(), r"^[ab] ", at_once=2)
        made.run, made.run_without_any = run, lambda by: None
        self.work(made)
        self.assertEqual(sorted(made.tried), sorted(made.written.values()))
        self.assertTrue(all(row["killed"] for row in self.results().rows.values()))

    def test_what_hangs_beside_another_is_tried_again_alone(self):
        for again in ("found", "ring hangs", ""):
            answers = {"ring": ["ring hangs", again], "fuzz": ["found"]}
            made = runner.Gate(self.root, self.root / "work", self.results(), r"^[ab] ", at_once=2)
            made.run = lambda by, answers=answers, **_: answers[by].pop(0)
            made.run_without_any = lambda by: None
            said = self.work(made, resume=False)
            self.assertEqual(answers, {"ring": [], "fuzz": []})
            self.assertEqual(made.results.rows["a (perdure/a.cpp)"]["by"], again)
            self.assertRegex(said, r"\[ 2/2\] .* a \(perdure/a.cpp\)")

    def test_what_found_it_last_comes_first(self):
        made = runner.Gate(self.root, self.root / "work", self.results("other"), "")
        for name, program, by in (
            (self.call, "explorer", "undo/stm, swaps, file-async, px86"),
            ("a", "ring", "Ring/Wraps.at_its_end/3"),
            ("b", "ring", "ring ends with -11"),
            ("c", "explorer", "explorer hangs"),
        ):
            made.results.add({**row(name, program=program), "by": by})
        made = runner.Gate(self.root, self.root / "work", self.results("next"), "")
        self.assertEqual(made.results.rows, {})
        only_there = ["--engine", "undo/stm", "--workload", "swaps", "--configuration",
                      "file-async", "--model", "px86"]
        every = ["--omit", "fence:0x1", "--engine", "undo,undo/stm"]
        for name, program, extra, expected in (
            (self.call, "explorer", every, [*every[:2], *only_there]),
            (self.call, "explorer", [], only_there),
            ("a", "ring", [], ["--gtest_filter=Ring/Wraps.at_its_end/3"]),
            ("b", "ring", [], []),
            ("c", "explorer", [], []),
            ("never tried", "explorer", every, []),
        ):
            self.assertEqual(made.found_last(name, program, extra), expected)
        ran = []
        made.run = lambda by, extra=(), less=1: ran.append([*extra]) or ""
        made.timed((self.call, "call", "explorer", {"extra": every, "less": 1}, ""))
        self.assertEqual(ran, [[*every[:2], *only_there], every])  # all, where it finds nothing now

    def test_only_some(self):
        made, ran = self.gate({("ring", 0): "found"}, only="^a ")
        self.work(made)
        self.assertEqual(ran, [("ring", -1), ("ring", 0)])
        standing = self.results().standing(made.written.values())
        self.assertEqual((standing["results"], standing["calls_known"]), (1, False))

    def test_a_program_that_fails_without_any_mutant_ends_the_gate(self):
        made, _ = self.gate({"without": "Case.name"})
        with self.assertRaisesRegex(SystemExit, "explorer fails without any mutant: Case.name"):
            self.work(made)
        self.assertEqual(self.results().rows, {})

    def test_a_slow_machine_is_no_hang(self):
        made = runner.Gate(self.root, self.root, self.results(), "")
        (self.root / runner.BUILD).mkdir(parents=True)
        slow = [sys.executable, ["-c", "import time; time.sleep(0.4)"]]
        stuck = [sys.executable, ["-c", "import time; time.sleep(60)"]]
        with (
            mock.patch.object(runner, "LONGEST", 0.2),
            mock.patch.object(made, "program", lambda *_: slow),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            made.run_without_any("ring")
            self.assertGreater(made.limit("ring"), 1.5)
            self.assertEqual(made.run("ring", mutant=0), "")
            with mock.patch.object(made, "program", lambda *_: stuck):
                self.assertEqual(made.run("ring", mutant=0), "ring hangs")

    def test_a_program_that_is_ended_from_outside_has_no_verdict(self):
        made = runner.Gate(self.root, self.root, self.results(), "")
        (self.root / runner.BUILD).mkdir(parents=True)
        for number, found in ((signal.SIGTERM, None), (signal.SIGSEGV, "ring ends with -11")):
            kill = [sys.executable, ["-c", f"import os; os.kill(os.getpid(), {number:d})"]]
            with mock.patch.object(made, "program", lambda *_, kill=kill: kill):
                if found is None:
                    with self.assertRaisesRegex(SystemExit, "ended by signal 15"):
                        made.run("ring")
                else:
                    self.assertEqual(made.run("ring"), found)

    def test_status_says_it_without_a_build(self):
        self.results().add(row("a (perdure/a.cpp)"))
        arguments = mock.Mock(distinct=3000, engine="", json=True)
        with (
            mock.patch.object(gate, "head", lambda _: "one"),
            mock.patch.object(gate, "commit_of", lambda _: "one"),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            self.assertEqual(gate.status(self.root, self.path, arguments), 1)
        standing = json.loads(said.getvalue())
        self.assertEqual((standing["results"], standing["mutants"]), (1, 2))
        self.assertEqual((standing["missing"], self.built), (["b (perdure/a.cpp)"], []))


if __name__ == "__main__":
    unittest.main()
