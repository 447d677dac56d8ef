# SPDX-License-Identifier: BSD-3-Clause
"""Statements of C++ source text, as far as the mutants need them.

This is not a parser: it finds a statement by its brackets, semicolons and keywords. Unexpected text
is a CppError with its position, never a guess. Positions are offsets in the text.
"""

import dataclasses

from cpp_tokens import CppError, tokens_of

CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Span:
    """A range of tokens of a Source."""

    first: int
    last: int  # excluded


class Statements:
    """A file's code tokens, with the partner of each bracket."""

    def __init__(self, text):
        self.text = text
        tokens = tokens_of(text)
        self.comments = [t for t in tokens if t.kind == "comment"]
        self.code = [t for t in tokens if t.kind != "comment"]
        self.partner = {}
        open_brackets = []
        for i, token in enumerate(self.code):
            if token.kind != "sign":
                continue
            if token.text in CLOSING:
                open_brackets.append(i)
            elif token.text in CLOSING.values():
                if not open_brackets or CLOSING[self.code[open_brackets[-1]].text] != token.text:
                    raise CppError(token.begin, f"found '{token.text}' without its opening bracket")
                begin = open_brackets.pop()
                self.partner[begin], self.partner[i] = i, begin
        if open_brackets:
            token = self.code[open_brackets[-1]]
            raise CppError(token.begin, f"found '{token.text}' without its closing bracket")

    def line(self, position):
        return self.text.count("\n", 0, position) + 1

    def begin(self, span):
        return self.code[span.first].begin

    def end(self, span):
        return self.code[span.last - 1].end

    def is_at(self, i, *texts):
        return i < len(self.code) and self.code[i].text in texts

    def plain(self, span):
        """The text of a span without comments, on one line."""
        pieces = []
        for i in range(span.first, span.last):
            if i > span.first and self.code[i].begin > self.code[i - 1].end:
                pieces.append(" ")
            pieces.append(self.code[i].text)
        return "".join(pieces)

    def level(self, span, *texts):
        """The tokens with one of these texts in a span, outside all brackets."""
        i = span.first
        while i < span.last:
            if self.code[i].text in texts:
                yield i
            i = self.partner[i] + 1 if self.code[i].text in CLOSING else i + 1

    def has(self, span, text):
        return bool(list(self.level(span, text)))

    def error(self, i, what):
        where = self.code[i] if i < len(self.code) else None
        return CppError(where.begin if where else len(self.text), what)

    def after_head(self, i):
        """The token after the parentheses of an if, for, while or switch at token i."""
        i += 1
        if self.is_at(i, "constexpr"):
            i += 1
        if not self.is_at(i, "("):
            raise self.error(i, f"found no '(' behind '{self.code[i - 1].text}'")
        return self.partner[i] + 1

    def statement(self, i):
        """The statement, declaration or function definition that begins at token i."""
        if i >= len(self.code) or self.is_at(i, "}", ")", "]"):
            raise self.error(i, "found no statement")
        if self.is_at(i, "{"):
            return Span(i, self.partner[i] + 1)
        if self.is_at(i, "if", "for", "while", "switch"):
            last = self.statement(self.after_head(i)).last
            if self.is_at(i, "if") and self.is_at(last, "else"):
                last = self.statement(last + 1).last
            return Span(i, last)
        if (
            self.is_at(i, "else", "do", "try", "catch", "case", "default")
            or self.code[i].kind == "directive"
        ):
            raise self.error(
                i, f"found '{self.code[i].text}', which begins no statement that a mutant can be of"
            )
        return self._simple(i)

    def _simple(self, first):
        """A statement up to its `;`, or up to the `}` of a function's body."""
        i = first
        may_be_function = True
        while i < len(self.code):
            text = self.code[i].text
            if text == ";":
                return Span(first, i + 1)
            if text in CLOSING.values():
                break
            if text in ("=", "return") or (text == "[" and not self.is_at(i + 1, "[")):
                may_be_function = False
            if (
                text == "{"
                and may_be_function
                and self.is_at(i - 1, ")", "const", "noexcept", "override", "final")
            ):
                return Span(first, self.partner[i] + 1)
            i = self.partner[i] + 1 if text in CLOSING else i + 1
        raise self.error(i, "found the end of a block, expected the ';' of a statement before it")

    def body(self, statement):
        """The one statement within another: under an if, for or while, or the whole body of a
        lambda or function."""
        if self.is_at(statement.first, "if", "for", "while"):
            inside = self.statement(self.after_head(statement.first))
            if inside.last != statement.last:
                raise self.error(inside.last, "found an else, expected one statement under the if")
            return self.only(inside) if self.is_at(inside.first, "{") else inside
        blocks = []
        i = statement.first
        while i < statement.last:
            if self.is_at(i, "{") and self.has(Span(i + 1, self.partner[i]), ";"):
                blocks.append(Span(i, self.partner[i] + 1))
                i = self.partner[i]
            i += 1
        if len(blocks) != 1:
            raise self.error(
                statement.first,
                f"found {len(blocks)} bodies in the statement, expected that of one lambda or"
                " function",
            )
        return self.only(blocks[0])

    def only(self, block):
        inside = self.statement(block.first + 1)
        if inside.last != block.last - 1:
            raise self.error(inside.last, "found more than one statement in the body, expected one")
        return inside
