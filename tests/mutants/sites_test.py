#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The sites of mutants: each operation, the marks, and the errors when table and sources do not
agree."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path[:0] = [str(SOURCE / "tests" / "support"), str(SOURCE / "tests" / "mutants")]

import calls  # noqa: E402
import cpp  # noqa: E402
import operations as op  # noqa: E402
import schemata  # noqa: E402
import sites  # noqa: E402
from limits import LimitedCase  # noqa: E402
from table import MUTANTS, Mutant  # noqa: E402


def words(text):
    return [t.text for t in cpp.tokens_of(text) if t.kind != "comment"]


def mutated(text, **edits):
    """The text with operations at its sites; `_` in a site's name here stands for `-` there."""
    found = {site.name: site for site in sites.in_text("a.cpp", text)}
    made = []
    for name, operation in edits.items():
        made += operation.edits(found[name.replace("_", "-")], found)
    return op.applied(text, made)


def alone(code, operation):
    """A statement's text with an operation."""
    return mutated(f"// mutant: x\n{code}", x=operation).partition("\n")[2]


class Operations(LimitedCase):
    def test_each(self):
        for code, operation, expected in (
            ("f(a);", op.leave_out(), "if (!MUTANT) f(a);"),
            ("f(a);", op.leave_out(unless="b"), "if (!MUTANT || b) f(a);"),
            (
                "auto g = [] { f(); };",
                op.leave_out(inner=True),
                "auto g = [] { if (!MUTANT) f(); };",
            ),
            ("if (a || b) c();", op.never(), "if (!MUTANT && (a || b)) c();"),
            ("while (a) {}", op.never(), "while (!MUTANT && (a)) {}"),
            ("if (a || b) c();", op.never(part="2 of 2"), "if (a || (!MUTANT && (b))) c();"),
            (
                "x = a ? b : c;",
                op.never(part="test", when="d"),
                "x = (!(MUTANT && d) && (a)) ? b : c;",
            ),
            (
                "if (int a = f(); a > b) c();",
                op.always(),
                "if (int a = f(); MUTANT || (a > b)) c();",
            ),
            (
                "for (;;) x = x && y;",
                op.always(True, "2 of 2"),
                "for (;;) x = x && (MUTANT || (y));",
            ),
            ("return f(a);", op.succeed(), "return MUTANT ? Status() : (f(a));"),
            (
                "if (Status s = f(a); !s.ok()) return s;",
                op.succeed(when="b"),
                "if (Status s = MUTANT && b ? Status() : (f(a)); !s.ok()) return s;",
            ),
            (
                "f(a, b);",
                op.instead("PART + 1", part="argument 2 of 2"),
                "f(a, (MUTANT ? (b) + 1 : (b)));",
            ),
            ("a = b;", op.instead("0"), "a = MUTANT ? 0 : (b);"),
            (
                "sort(v, [](A a, A b) { return a.x < b.x; });",
                op.turned(inner=True),
                "sort(v, [](A a, A b) { return MUTANT ? a.x > b.x : (a.x < b.x); });",
            ),
            ("f(a + b);", op.replace("a +", "a -"), "f(a - b);"),
            (
                "f(a, b, a);",
                op.exchange("a", "0", times=2),
                "f((MUTANT ? 0 : a), b, (MUTANT ? 0 : a));",
            ),
            ("f(a);", op.insert("g();"), "if (MUTANT) { g(); } f(a);"),
            (
                "f([&] { a(); });",
                op.rewrite("auto g = PART; h(g);", "argument 1 of 1"),
                "auto g = [&] { a(); }; h(g);",
            ),
        ):
            with self.subTest(code, operation=operation.name):
                self.assertEqual(alone(code, operation), expected)

    def test_a_rewritten_statement_is_a_whole_one(self):
        with self.assertRaisesRegex(ValueError, "expected a whole statement"):
            op.rewrite("MUTANT ? b : PART", "argument 1 of 2")

    def test_statements_of_other_sites_come_from_the_source(self):
        text = """\
// mutant: early
fence();
// mutant: late-a
tail.store(a,  // comment
           b);
// mutant: late-b
const Status s = publish(a);
"""
        changed = mutated(text, early=op.also_here("late-a", "late-b"))
        self.assertIn("if (MUTANT) { tail.store(a, b); (void)(publish(a)); } fence();\n", changed)

    def test_layout_and_comments_make_no_difference(self):
        code = "if (Status s = f(a, b); !s.ok() && g(c, d || e)) return h(s);"
        broken = """if (Status s =  // why
    f(a,
      b);
    !s.ok() &&
    g(c, d
         /* or */ || e))
  return h(
      s);"""
        for operation in (
            op.leave_out(),
            op.never(),
            op.always(part=("2 of 2", "argument 2 of 2", "1 of 2")),
            op.succeed(),
            op.instead("PART", part="argument 2 of 2"),
            op.replace("f(a, b", "f(b, a"),
            op.exchange("g(c,d||e)", "i(s)"),
            op.insert("j();"),
        ):
            with self.subTest(operation.name):
                self.assertEqual(words(alone(code, operation)), words(alone(broken, operation)))
                self.assertEqual(alone(broken, operation).count("\n"), broken.count("\n"))

    def test_several_of_one_statement(self):
        text = "// mutant: a, b, c\n// mutant: d\nStatus s = f(x);"
        changed = mutated(
            text,
            b=op.leave_out(),
            a=op.insert("g();"),
            c=op.succeed(when="y"),
            d=op.instead("0", part="argument 1 of 1"),
        )
        self.assertEqual(
            changed.rpartition("\n")[2],
            "if (MUTANT) { g(); } if (!MUTANT) Status s = MUTANT && y ? Status() : "
            "(f((MUTANT ? 0 : (x))));",
        )
        nested = mutated(
            "// mutant: a, b\nif (x && y) z();", a=op.never(part="1 of 2"), b=op.always()
        )
        self.assertIn("if (MUTANT || ((!MUTANT && (x)) && y)) z();", nested)
        with self.assertRaisesRegex(cpp.CppError, "replaced by one mutant and changed by another"):
            mutated(
                "// mutant: a, b\nf(x + y);", a=op.replace("x + y", "0"), b=op.exchange("y", "1")
            )

    def test_what_does_not_fit_is_said(self):
        for code, operation, said in (
            (
                "if (a)\n// mutant: x\nb(); else c();",
                op.leave_out(),
                "a.cpp:3: site 'x', for leave_out.*an else behind",
            ),
            (
                "if (a)\n// mutant: x\nb();",
                op.insert("c();"),
                "a.cpp:3: site 'x', for insert.*only statement under",
            ),
            ("// mutant: x\nb();", op.never(), "a.cpp:2: .*never.*found 0 times '='"),
            (
                "// mutant: x\nreturn a && b;",
                op.always(part="1 of 3"),
                "found 2 operands, expected 3",
            ),
            (
                "// mutant: x\nf(a);",
                op.replace("b", "c"),
                "found 'b' 0 times in the statement, expected 1",
            ),
            (
                "// mutant: x\nf(a, a);",
                op.exchange("a", "c"),
                "found 'a' 2 times in the statement, expected 1",
            ),
            ("// mutant: x\nreturn a <= b;", op.turned(), "found 0 times '<'"),
            (
                "// mutant: x\nif (a) b();",
                op.succeed(),
                "an if without a declaration.*correct the entry",
            ),
        ):
            with self.subTest(code), self.assertRaisesRegex(sites.SiteError, said):
                mutated(code, x=operation)


class Marks(LimitedCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, file, text):
        path = self.root / "perdure" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def fails(self, said, mutants=(), explained=()):
        with self.assertRaisesRegex(sites.SiteError, said):
            schemata.mutated(self.root, mutants, explained)

    def test_a_site_is_found_in_any_file(self):
        mutants = (Mutant("m", {"x": op.leave_out()}),)
        path = self.write("log/a.cpp", "// licence\n// mutant: x\n// why\nf(a);\n")
        before = schemata.mutated(self.root, mutants, ())
        self.assertEqual(list(before), ["perdure/log/a.cpp"])
        self.assertIn(
            "#line 2\n// mutant: x\n// why\nif (!::perdure_mutant(0)) f(a);\n",
            before["perdure/log/a.cpp"],
        )
        path.unlink()
        self.write("pool/deep/b.hpp", "// licence\n// mutant: x\n// why\nf(a);\n")
        after = schemata.mutated(self.root, mutants, ())
        self.assertEqual(after["perdure/pool/deep/b.hpp"], before["perdure/log/a.cpp"])

    def test_marks_that_are_wrong_are_said(self):
        for text, said in (
            (
                "f();  // mutant: x\ng();\n",
                "perdure/a.cpp:1: found the mark '// mutant: x' behind code.*move it",
            ),
            (
                "\n// mutant: X_y\ng();\n",
                "perdure/a.cpp:2: found the site's name 'X_y', expected small letters",
            ),
            ("// mutant: x,\ng();\n", "found the site's name ''"),
            ("g();\n// mutant: x\n", "perdure/a.cpp:2: found no statement behind the mark 'x'"),
            ("{\n// mutant: x\n}\n", "behind the mark 'x', in line 3: found no statement"),
            (
                "// mutant: x\nf();\n// mutant: x\ng();\n",
                "perdure/a.cpp:3: found a second mark 'x', the first is at perdure/a.cpp:1; rename",
            ),
            (
                "// mutant: x\nf(;\n",
                "perdure/a.cpp:2: found '\\(' without its closing bracket; correct the source",
            ),
        ):
            with self.subTest(text):
                self.write("a.cpp", text)
                self.fails(said)

    def test_table_and_sources_are_about_the_same_sites(self):
        self.write("a.cpp", "// licence\n// mutant: x, call y\nmedium.fence();\n")
        x = Mutant("m", {"x": op.leave_out()})
        self.assertEqual(len(schemata.mutated(self.root, (x,), ("y",))), 1)
        self.fails("perdure/a.cpp:2: found the mark 'x', of which neither", (), ("y",))
        self.fails("perdure/a.cpp:2: found the mark 'call y', of which neither", (x,), ())
        gone = Mutant("m", {"z": op.leave_out()})
        self.fails(
            "mutant 'm' is about the site 'z', and no source in .*perdure/.* has the mark", (gone,)
        )
        late = Mutant("m", {"x": op.also_here("z-late")})
        self.fails("'m' is about the site 'z-late'", (late,), ("y",))
        self.fails(
            "EXPLAINED in tests/mutants/calls.py is about the site 'call z'", (x,), ("y", "z")
        )

    def test_words_of_the_table_are_in_the_sources(self):
        self.write("a.cpp", "// licence\n// mutant: x\na = known;  // renamed\n")
        schemata.mutated(self.root, (Mutant("m", {"x": op.instead("known + 1")}),), ())
        self.fails("mutant 'm' writes 'renamed'", (Mutant("m", {"x": op.instead("renamed + 1")}),))

    def test_a_call_is_found_however_it_is_broken(self):
        text = (
            "void f() {\n  // mutant: call create-flush-all\n  s = core_.medium\n         "
            " .flush_all(  // why\n  );\n}\n"
        )
        self.write("pool/a.cpp", text)
        self.write("medium/b.cpp", "void f() { medium.fence(); }\n")
        self.assertEqual(calls.written(self.root), {("flush_all", "perdure/pool/a.cpp:4")})
        why = calls.EXPLAINED["create-flush-all"]
        self.assertEqual(calls.explained(self.root), {"perdure/pool/a.cpp:4": why})
        self.write("pool/a.cpp", text.replace("flush_all(", "other("))
        with self.assertRaisesRegex(
            sites.SiteError, "a.cpp:2: found 0 calls of a medium.*expected one"
        ):
            calls.explained(self.root)


class Names(LimitedCase):
    def test_no_mutant_vanishes_unnoticed(self):
        a, b = Mutant("a", {"x": op.leave_out()}), Mutant("b", {"y": op.leave_out()}, by="fuzz")
        schemata.check_names((a, b), (), ["a", "b"])
        schemata.check_names((a,), (("b", "the line is gone"),), ["a", "b"])
        for mutants, removed, names, said in (
            (
                (a,),
                (),
                ["a", "b"],
                "names.txt names mutants that the table does not have: b; put them back",
            ),
            (
                (a, b),
                (),
                ["a"],
                "mutants that names.txt does not name: b; add them to tests/mutants/names.txt",
            ),
            ((a,), (("b", " "),), ["a", "b"], "removed mutants without a reason: b"),
            ((a, b), (("b", "why"),), ["a", "b"], "that REMOVED lists too: b"),
            ((a,), (("c", "why"),), ["a"], "removed mutants that names.txt does not name: c"),
            ((a, a), (), ["a"], "two mutants of one name: a"),
            ((Mutant("a", {}, by="none"),), (), ["a"], "PROGRAMS does not have: none \\(a\\)"),
        ):
            with self.subTest(said), self.assertRaisesRegex(sites.SiteError, said):
                schemata.check_names(mutants, removed, names)

    def test_the_table_fits_this_tree(self):
        files = schemata.check(SOURCE)
        asked = "".join(files.values())
        for number, mutant in enumerate(MUTANTS):
            self.assertIn(f"::perdure_mutant({number})", asked, mutant.name)
        for file, text in files.items():
            plain = (SOURCE / file).read_text(encoding="utf-8")
            self.assertEqual(
                text.partition("#line 2\n")[2].count("\n"), plain.count("\n") - 1, file
            )


if __name__ == "__main__":
    unittest.main()
