#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Doxygen's input filter: makes the headers' comments such as doxygen reads, line for line.

  comments.py FILE    prints FILE

A header's first comment becomes the description of the file, as it is printed. In the C header,
whose comments are ordinary ones, each comment that stands alone belongs to the declaration behind
it, each one behind code to that code; a comment that begins with four hyphens opens a group of
declarations. Members that one declaration makes, `std::uint64_t records = 0, bytes = 0;`, share its
description. The number of lines stays, so that doxygen's messages name the right ones.
"""
import re
import sys

LICENCE = "SPDX-License-Identifier"


def cpp(text):
    """The head, up to the first line that is no comment, as a description of the file."""
    lines = text.split("\n")
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    if end < 3 or LICENCE not in lines[0]:
        return text
    head = [re.sub(r"^// ?", "", line) for line in lines[2:end]]
    head[-1] += " @endverbatim */"
    return "\n".join(["/** @file", "@verbatim", *head, *lines[end:]])


def c(text):
    """Every comment of the C header as a description."""
    groups = 0

    def one(match):
        nonlocal groups
        before, body = match.group(1), match.group(2)[2:-2]
        if LICENCE in body:
            text = body.split(LICENCE)[1].partition("\n *")[2]
            return f"{before}/** @file\n@verbatim{text} @endverbatim */"
        if body.strip() == "PERDURE_H":  # behind the last line: the last group ends
            return f"{before}/** @}} */"
        if rule := re.match(r"\s*-{4} (.*?) -+", body):
            close = "/** @} */ " if groups else ""
            groups += 1
            text = rule.group(1) + body[rule.end():].rstrip()
            return f"{before}{close}/** @name {text} */ /** @{{ */"
        return f"{before}/**{'<' if before.strip() else ''}{body}*/"

    return re.sub(r"^([^\n]*?)(/\*.*?\*/)", one, text, flags=re.S | re.M)


# Several members in one declaration, up to its end or its line's: type, members, end, description.
MEMBER = r"\w+(?: = [\w:~ *]+|\{\w*\})?"
SEVERAL = re.compile(
    r"(\s*)((?!return|using|case|delete|friend)[\w:]+(?:<[\w:]+>)?) "
    rf"({MEMBER}(?:, {MEMBER})+)([;,])\s*(///<.*|/\*\*<.*\*/)?")


def apart(text):
    """Members that share a declaration share its description."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not (match := SEVERAL.fullmatch(line)):
            continue
        indent, kind, members, end, behind = match.groups()
        if behind is None:
            above = i
            while re.match(r"\s*(///|/\*\*| \* )(?!@)", lines[above - 1]):
                above -= 1
            text = (re.sub(r"^\s*(///|/?\*+/?) ?|\*+/$", "", line) for line in lines[above:i])
            words = " ".join(text)
        else:
            words = re.sub(r"^(///<|/\*\*<) ?|\*/$", "", behind)
        if words.strip():
            told = f"; /**< {words.strip()} */ "
            names = members.split(", ")
            first = "; " if behind is None else told  # the first one has what stands above
            lines[i] = f"{indent}{kind} {names[0]}{first}"
            lines[i] += "".join(f"{kind} {name}{told}" for name in names[1:])
            lines[i] += kind if end == "," else ""
    return "\n".join(lines)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    sys.stdout.write(apart(c(text) if sys.argv[1].endswith(".h") else cpp(text)))


if __name__ == "__main__":
    main()
