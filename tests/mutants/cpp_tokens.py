# SPDX-License-Identifier: BSD-3-Clause
"""The tokens of C++ source text."""

import dataclasses
import re

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
      | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_.])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
      | (?P<sign><=>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s])
      | (?P<space>\s+)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class CppError(Exception):
    """Unexpected text: the offset in the text, and what is wrong there."""

    def __init__(self, position, what):
        super().__init__(what)
        self.position = position


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # string, number, word, directive, sign, comment
    text: str
    begin: int
    end: int


def tokens_of(text):
    """All tokens, including comments, without white space."""
    found = []
    at = 0
    while at < len(text):
        # `#` begins a directive only at the start of a line.
        match = _TOKEN.match(text, at)
        kind = "string" if match.lastgroup in ("raw", "delimiter") else match.lastgroup
        if kind != "space":
            found.append(Token(kind, match[0], match.start(), match.end()))
        at = match.end()
    return found
