#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Statements and parts of expressions, as the operations of mutants find them in C++ text."""

import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path[:0] = [str(SOURCE / "tests" / "support"), str(SOURCE / "tests" / "mutants")]

import cpp  # noqa: E402
from limits import LimitedCase  # noqa: E402


def statement(text):
    """The source's first statement as text."""
    source = cpp.Source(text)
    return source.plain(source.statement(0))


def part(text, *path, of=cpp.Source.condition):
    source = cpp.Source(text)
    span = of(source, source.statement(0))
    for name in path:
        span = source.part(span, name)
    return source.plain(span)


class Cpp(LimitedCase):
    def test_brackets_in_strings_and_comments_are_no_brackets(self):
        code = """f("a;{", ')', R"x(};")x", 1'000 /* ; */  // ;
                  );"""
        self.assertEqual(statement(code + "g();"), """f("a;{", ')', R"x(};")x", 1'000 );""")

    def test_statements_end_where_they_do(self):
        for code in (
            "a = b[1] + f({1, 2});",
            "if (a) b(); else if (c) d(); else { e(); }",
            "if (Status s = f(); !s.ok()) return s;",
            "for (int i = 0; i < n; ++i) while (f(i)) {}",
            "{ a(); b(); }",
            "const auto f = [&](int a) { return a; };",
            "return g([this] { h(); }, 1);",
            "[[nodiscard]] bool f(const X& x) const noexcept { return x.a; }",
            "++h.epoch;",
            "const std::uint64_t order[2] = {a ? b : c, d};",
        ):
            self.assertEqual(statement(code + " next();"), code)

    def test_what_is_no_statement_is_said(self):
        for code, said in (
            ("else a();", "found 'else', which begins no statement"),
            ("case 1: a();", "found 'case'"),
            ("f(a)", "expected the ';' of a statement"),
            ("", "found no statement"),
            ("#define X 1\n", "found '#define X 1'"),
        ):
            with self.assertRaisesRegex(cpp.CppError, said):
                statement(code)
        for code, said in (
            ("f(a;", "'\\(' without its closing"),
            ("f)", "'\\)' without its opening"),
        ):
            with self.assertRaisesRegex(cpp.CppError, said):
                cpp.Source(code)

    def test_conditions_and_values(self):
        self.assertEqual(part("if (int a = f(x, y); a < 2) b();"), "a < 2")
        self.assertEqual(part("for (; a && b; ++i) c();"), "a && b")
        self.assertEqual(part("while (f(a)) {}"), "f(a)")
        self.assertEqual(part("return a == b;"), "a == b")
        self.assertEqual(part("x.y = a ? b : c;"), "a ? b : c")
        value = cpp.Source.value
        self.assertEqual(part("if (Status s = f(x); !s.ok()) return s;", of=value), "f(x)")
        for code, said in (
            ("for (auto x : y) f(x);", "found a for over a range"),
            ("f();", "found 0 times '='"),
            ("return;", "found no expression"),
        ):
            with self.assertRaisesRegex(cpp.CppError, said):
                part(code)
        with self.assertRaisesRegex(cpp.CppError, "found an if without a declaration"):
            part("if (a) return b;", of=value)

    def test_parts(self):
        self.assertEqual(part("return a || b && c || (d || e);", "2 of 3"), "b && c")
        self.assertEqual(part("return a || b && c || (d || e);", "3 of 3", "2 of 2"), "e")
        self.assertEqual(part("return (a && f(b, c && d));", "2 of 2", "argument 2 of 2"), "c && d")
        self.assertEqual(part("x = a == b ? !c : d;", "test"), "a == b")
        self.assertEqual(part("x = a == b ? !c : d;", "then"), "!c")
        self.assertEqual(part("x = a == b ? !c : d;", "else"), "d")
        call = cpp.Source.expression
        self.assertEqual(part("p->f(a ? b : c);", "argument 1 of 1", "else", of=call), "c")
        self.assertEqual(part("Type name(a, b, c::d);", "argument 3 of 3", of=call), "c::d")
        for name, said in (
            ("2 of 3", "found 2 operands, expected 3, of which number 2 is meant"),
            ("3 of 2", "number 3 is meant"),
            ("test", "found 0 '\\?' and 0 ':'"),
            ("argument 1 of 1", "found no call at the end"),
        ):
            with self.assertRaisesRegex(cpp.CppError, said):
                part("return a && b;", name)
        with self.assertRaisesRegex(cpp.CppError, "found a \\?:, expected operands"):
            part("return a ? b || c : d;", "1 of 2")

    def test_the_one_statement_within(self):
        def body(code):
            source = cpp.Source(code)
            return source.plain(source.body(source.statement(0)))

        self.assertEqual(body("for (;;) a = a && b;"), "a = a && b;")
        self.assertEqual(body("if (a) { b(); }"), "b();")
        self.assertEqual(body("const auto f = [&](int a) { g(a); };"), "g(a);")
        self.assertEqual(body("bool f() const { return a; }"), "return a;")
        self.assertEqual(body("return f({1, 2}, [] { return a; });"), "return a;")
        for code, said in (
            ("if (a) b(); else c();", "found an else"),
            ("auto f = [] { a(); b(); };", "more than one statement"),
            ("f([] { a(); }, [] { b(); });", "found 2 bodies"),
            ("a();", "found 0 bodies"),
        ):
            with self.assertRaisesRegex(cpp.CppError, said):
                body(code)


if __name__ == "__main__":
    unittest.main()
