# SPDX-License-Identifier: BSD-3-Clause
"""What a mutant does to the statement that its site marks.

An operation turns a site into edits of the source text that change nothing until the mutant is
switched on: MUTANT in them becomes the test for it (schemata.py). No edit has a line break, so that
lines keep their numbers. All operations but replace(), exchange() and rewrite() only insert, so
that one statement can have several mutants.

Most take `inner`, the one statement within the marked one (under a for, in a lambda or a function),
and `part`, a part of the expression, or a path of parts, as Source.part() names them.
"""

import dataclasses

import cpp
from sites import SiteError

# The order of edits at one place: the end of an expression, statements before the marked one, its
# new condition, the start of an expression, replaced tokens.
_CLOSING, _BEFORE, _GUARD, _AROUND, _REPLACED = range(5)


@dataclasses.dataclass(frozen=True)
class Edit:
    begin: int
    end: int
    rank: int
    text: str
    encloses: int = 0  # of an edit around an expression: where that ends


@dataclasses.dataclass(frozen=True)
class Operation:
    """One entry's operation: edits(site, sites) gives its edits.

    `others` are further sites, from which it takes statements. `text` is C++ of the table.
    """

    name: str
    make: object
    others: tuple = ()
    text: str = ""

    def edits(self, site, sites):
        try:
            return self.make(site, sites)
        except cpp.CppError as error:
            raise SiteError(
                f"{site.file}:{site.source.line(error.position)}: site '{site.name}', for"
                f" {self.name}(): {error}; correct the entry in tests/mutants/table, or move the"
                " mark"
            ) from error


def _around(source, span, before, after):
    begin, end = source.begin(span), source.end(span)
    return [Edit(begin, begin, _AROUND, before, end), Edit(end, end, _CLOSING, after)]


def _statement(site, inner):
    return site.source.body(site.statement) if inner else site.statement


def _parts(source, span, part):
    for name in ((part,) if isinstance(part, str) else part):
        span = source.part(span, name)
    return span


def leave_out(unless="", inner=False):
    """The statement is omitted, except where the expression `unless` is true."""

    def make(site, _):
        source, statement = site.source, _statement(site, inner)
        if source.is_at(statement.last, "else"):
            raise source.error(
                statement.last,
                "found an else behind the statement, which would become another if's; give the"
                " statement braces",
            )
        return [
            Edit(
                source.begin(statement),
                source.begin(statement),
                _GUARD,
                f"if (!MUTANT{' || ' + unless if unless else ''}) ",
            )
        ]

    return Operation("leave_out", make, text=unless)


def _condition(name, asked, inner, part, when):
    def make(site, _):
        source = site.source
        span = _parts(source, source.condition(_statement(site, inner)), part)
        opened, closed = ("(", ")") if part else ("", "")  # a part stands beside others
        return _around(source, span, f"{opened}{asked} (", f"){closed}")

    return Operation(name, make, text=when)


def never(inner=False, part=(), when=""):
    """The condition of an if, while or for, or the value returned or assigned, or a part of it, is
    false where `when` is true."""
    return _condition(
        "never", f"!(MUTANT && {when}) &&" if when else "!MUTANT &&", inner, part, when
    )


def always(inner=False, part=()):
    """The same, true."""
    return _condition("always", "MUTANT ||", inner, part, "")


def instead(text, inner=False, part=(), when=""):
    """The value or the argument is `text` where `when` is true. PART in `text` is the original."""

    def make(site, _):
        source = site.source
        span = _parts(source, source.expression(_statement(site, inner)), part)
        made = text.replace("PART", f"({source.plain(span)})")
        opened, closed = ("(", ")") if part else ("", "")
        return _around(
            source,
            span,
            f"{opened}MUTANT{' && ' + when if when else ''} ? {made} : (",
            f"){closed}",
        )

    return Operation("instead", make, text=f"{when} {text.replace('PART', '')}")


def succeed(inner=False, part=(), when=""):
    """The call is not made, and its Status is that of success."""
    return dataclasses.replace(instead("Status()", inner, part, when), name="succeed")


def turned(inner=False):
    """The value is a comparison A < B, and becomes A > B."""

    def make(site, _):
        source = site.source
        span = source.value(_statement(site, inner))
        signs = list(source.level(span, "<"))
        if len(signs) != 1:
            raise source.error(
                span.first, f"found {len(signs)} times '<', expected one comparison A < B"
            )
        left, right = source.plain(cpp.Span(span.first, signs[0])), source.plain(
            cpp.Span(signs[0] + 1, span.last)
        )
        return _around(source, span, f"MUTANT ? {left} > {right} : (", ")")

    return Operation("turned", make)


def _in_front(name, statements, **others):
    def make(site, sites):
        source, statement = site.source, site.statement
        if statement.first != 0 and not source.is_at(statement.first - 1, "{", "}", ";"):
            raise source.error(
                statement.first,
                "found the only statement under another one, which takes none in front of it; give"
                " it braces",
            )
        return [
            Edit(
                source.begin(statement),
                source.begin(statement),
                _BEFORE,
                f"if (MUTANT) {{ {statements(sites)} }} ",
            )
        ]

    return Operation(name, make, **others)


def also_here(*others):
    """The statements of the sites `others` also run before this one.

    Of a declaration, only its value is computed.
    """

    def statements(sites):
        made = []
        for name in others:
            source, statement = sites[name].source, sites[name].statement
            if not source.is_at(statement.first, "if", "for", "while") and source.has(
                statement, "="
            ):
                made.append(f"(void)({source.plain(source.value(statement))});")
            else:
                made.append(source.plain(statement))
        return " ".join(made)

    return _in_front("also_here", statements, others=others)


def insert(text):
    """The statements of `text` run before this one."""
    return _in_front("insert", lambda _: text, text=text)


def replace(old, new, times=1):
    """The tokens `old`, which the statement has `times` times, become `new`."""

    def make(site, _):
        source = site.source
        found = source.occurrences(site.statement, old)
        if len(found) != times:
            raise source.error(
                site.statement.first,
                f"found '{old}' {len(found)} times in the statement, expected {times}",
            )
        return [Edit(source.begin(span), source.end(span), _REPLACED, new) for span in found]

    return Operation("replace", make, text=new)


def exchange(old, new, times=1):
    """The tokens `old` are a value, which becomes `new`."""
    return dataclasses.replace(replace(old, f"(MUTANT ? {new} : {old})", times), name="exchange")


def rewrite(text, part):
    """The statement becomes `text`, a whole statement too, where PART is a part of it."""
    if not text.endswith((";", "}")):
        raise ValueError(
            f"found rewrite('{text}'), expected a whole statement, which ends with ; or }}; a part"
            " of one takes instead()"
        )
    before, _, after = text.partition("PART")

    def make(site, _):
        source, statement = site.source, site.statement
        span = _parts(source, source.expression(statement), part)
        return [
            Edit(source.begin(statement), source.begin(span), _REPLACED, before),
            Edit(source.end(span), source.end(statement), _REPLACED, after),
        ]

    return Operation("rewrite", make, text=f"{before} {after}")


def numbered(edit, asks):
    """The edit, in which MUTANT is the test for this mutant."""
    return dataclasses.replace(edit, text=edit.text.replace("MUTANT", asks))


def applied(text, edits):
    """The text with all edits made.

    Of two edits that enclose an expression from the same place on, the outer one is opened first.
    """
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.begin, e.rank, -e.encloses)):
        if edit.begin < at:
            raise cpp.CppError(
                edit.begin,
                f"found '{text[edit.begin:at]}' replaced by one mutant and changed by another",
            )
        # A replacement has as many line breaks as the replaced text.
        breaks = "\n" * text.count("\n", edit.begin, edit.end)
        pieces += [text[at : edit.begin], edit.text, breaks]
        at = edit.end
    return "".join(pieces) + text[at:]
