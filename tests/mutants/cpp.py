# SPDX-License-Identifier: BSD-3-Clause
"""Statements and parts of expressions of C++ source text, as far as the mutants need them.

An expression is divided at `,`, `?`, `||` and `&&` outside brackets. Unexpected text is a CppError
with its position, never a guess.
"""

import re

from cpp_statements import Span, Statements
from cpp_tokens import CppError, tokens_of

__all__ = ["CppError", "Source", "Span", "tokens_of"]


class Source(Statements):
    """A file's code tokens, its statements and the parts of their expressions."""

    def condition(self, statement):
        """The condition of an if, while or for; of another statement its value."""
        if not self.is_at(statement.first, "if", "for", "while"):
            return self.value(statement)
        end = self.after_head(statement.first) - 1
        begin = self.partner[end] + 1
        parts = list(self.level(Span(begin, end), ";"))
        if self.is_at(statement.first, "for"):
            if len(parts) != 2:
                raise self.error(begin, "found a for over a range, expected one with a condition")
            return self._some(Span(parts[0] + 1, parts[1]))
        return self._some(Span(parts[-1] + 1 if parts else begin, end))

    def value(self, statement):
        """The value that is returned or assigned, or the initial value of a declaration's variable
        (also in an if)."""
        span = statement
        if self.is_at(statement.first, "if"):
            end = self.after_head(statement.first) - 1
            begin = self.partner[end] + 1
            parts = list(self.level(Span(begin, end), ";"))
            if len(parts) != 1:
                raise self.error(
                    begin,
                    "found an if without a declaration, expected `if (T x = VALUE; CONDITION)`",
                )
            span = Span(begin, parts[0] + 1)
        elif not self.is_at(statement.last - 1, ";"):
            raise self.error(
                statement.first,
                "found a statement with a body, expected a return, an assignment or a declaration",
            )
        if self.is_at(span.first, "return"):
            return self._some(Span(span.first + 1, span.last - 1))
        assigned = list(self.level(span, "="))
        if len(assigned) != 1:
            raise self.error(
                span.first,
                f"found {len(assigned)} times '=', expected a return, an assignment or a"
                " declaration",
            )
        return self._some(Span(assigned[0] + 1, span.last - 1))

    def expression(self, statement):
        """The value, or the whole of an expression statement, or of a declaration without '='."""
        if self.is_at(statement.first, "if", "return") or self.has(statement, "="):
            return self.value(statement)
        if not self.is_at(statement.last - 1, ";"):
            raise self.error(
                statement.first, "found a statement with a body, expected an expression"
            )
        return self._some(Span(statement.first, statement.last - 1))

    def _some(self, span):
        if span.first == span.last:
            raise self.error(span.first, "found no expression")
        return span

    def _without_parentheses(self, span):
        while self.is_at(span.first, "(") and self.partner[span.first] == span.last - 1:
            span = Span(span.first + 1, span.last - 1)
        return span

    def _divided(self, span, signs):
        cuts = [span.first - 1, *signs, span.last]
        return [self._some(Span(a + 1, b)) for a, b in zip(cuts, cuts[1:])]

    def part(self, span, name):
        """A part of an expression: "2 of 3" operands of || or &&, "argument 2 of 3" of the call at
        its end, or "test", "then" or "else" of a ?:."""
        if match := re.fullmatch(r"argument (\d+) of (\d+)", name):
            calls = [i for i in self.level(span, "(") if self.partner[i] == span.last - 1]
            if not calls or calls[-1] == span.first:
                raise self.error(
                    span.first, "found no call at the end of the expression, expected arguments"
                )
            inside = Span(calls[-1] + 1, span.last - 1)
            return self._numbered(
                self._divided(inside, self.level(inside, ",")), match, "arguments"
            )
        span = self._without_parentheses(span)
        choice = list(self.level(span, "?"))
        if name in ("test", "then", "else"):
            colons = list(self.level(span, ":"))
            if len(choice) != 1 or len(colons) != 1:
                raise self.error(
                    span.first, f"found {len(choice)} '?' and {len(colons)} ':', expected one ?:"
                )
            return dict(zip(("test", "then", "else"), self._divided(span, [*choice, *colons])))[
                name
            ]
        match = re.fullmatch(r"(\d+) of (\d+)", name)
        if match is None:
            raise ValueError(
                f"found part '{name}', expected '2 of 3', 'argument 2 of 3', 'test', 'then' or"
                " 'else'"
            )
        if choice:
            raise self.error(
                choice[0],
                "found a ?:, expected operands of || or &&; name its 'test', 'then' or 'else'"
                " first",
            )
        signs = list(self.level(span, "||")) or list(self.level(span, "&&"))
        return self._numbered(self._divided(span, signs), match, "operands")

    def _numbered(self, parts, match, what):
        number, count = int(match[1]), int(match[2])
        if len(parts) != count or not 1 <= number <= count:
            raise self.error(
                parts[0].first,
                f"found {len(parts)} {what}, expected {count}, of which number {number} is meant",
            )
        return parts[number - 1]

    def occurrences(self, span, wanted):
        """The places of the tokens of the text `wanted` in a span, with any white space and
        comments between them."""
        texts = [t.text for t in tokens_of(wanted) if t.kind != "comment"]
        return [
            Span(i, i + len(texts))
            for i in range(span.first, span.last - len(texts) + 1)
            if [t.text for t in self.code[i : i + len(texts)]] == texts
        ]
