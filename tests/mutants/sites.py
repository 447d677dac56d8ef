# SPDX-License-Identifier: BSD-3-Clause
"""The sites of mutants: places in the sources that have a name.

A site is a comment, alone on its line above the statement to which it refers:

    // mutant: ring-damage-below-whole-record
    if (whole(at(p))) return p;

Several names are separated by commas; `call NAME` names a call of a medium for calls.py. Further
comment lines may stand between. Sites are searched for in every source of FOLDERS.
"""

import bisect
import dataclasses
import re

import cpp

# The folders of the project whose sources may have sites, and calls of media that are mutants.
FOLDERS = ("perdure", "papers", "plain")
WHERE = " or ".join(f"{folder}/" for folder in FOLDERS)  # in errors
# Folders below those with the media themselves, and the explorer's models of them. Their calls of
# flush and fence implement a medium, and are not mutants.
MEDIA_FOLDERS = ("medium",)
_MARK = re.compile(r"//\s*mutant:(.*)")
_NAME = re.compile(r"(call )?[a-z0-9]+(-[a-z0-9]+)*")


class SiteError(Exception):
    """The table and the sources do not agree: what was found, what was expected, what to do."""


@dataclasses.dataclass(frozen=True)
class Site:
    name: str
    file: str  # relative to the sources' root, with /
    line: int  # of the mark
    source: cpp.Source
    statement: cpp.Span

    @property
    def where(self):
        return f"{self.file}:{self.line}"

    @property
    def lines(self):
        """The lines of the statement, without its end."""
        return range(
            self.source.line(self.source.begin(self.statement)),
            self.source.line(self.source.end(self.statement)) + 1,
        )


def source_of(file, text):
    """The text of a file as tokens."""
    try:
        return cpp.Source(text)
    except cpp.CppError as error:
        raise SiteError(
            f"{file}:{text.count(chr(10), 0, error.position) + 1}: {error}; correct the source, or"
            " tests/mutants/cpp.py where it does not know that C++"
        ) from error


def in_text(file, text):
    """The sites of one file, in the order of the text."""
    if "mutant:" not in text:
        return []
    source = source_of(file, text)
    begins = [token.begin for token in source.code]
    found = []
    for comment in source.comments:
        if not (match := _MARK.fullmatch(comment.text)):
            continue
        line = source.line(comment.begin)
        if text[text.rfind("\n", 0, comment.begin) + 1 : comment.begin].strip():
            raise SiteError(
                f"{file}:{line}: found the mark '{comment.text}' behind code, expected it alone on"
                " the line above its statement; move it there"
            )
        following = bisect.bisect(begins, comment.end)
        for name in (n.strip() for n in match[1].split(",")):
            if not _NAME.fullmatch(name):
                raise SiteError(
                    f"{file}:{line}: found the site's name '{name}', expected small letters, digits"
                    " and '-', or `call NAME`; rename it"
                )
            if following == len(begins):
                raise SiteError(
                    f"{file}:{line}: found no statement behind the mark '{name}'; move the mark"
                    " above its statement"
                )
            try:
                statement = source.statement(following)
            except cpp.CppError as error:
                raise SiteError(
                    f"{file}:{line}: behind the mark '{name}', in line"
                    f" {source.line(error.position)}: {error}; move the mark above a statement"
                ) from error
            found.append(Site(name, file, line, source, statement))
    return found


def in_tree(root):
    """{name: Site} of all sources."""
    found = {}
    for path in sources(root):
        for site in in_text(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")):
            if site.name in found:
                raise SiteError(
                    f"{site.where}: found a second mark '{site.name}', the first is at"
                    f" {found[site.name].where}; rename one of them or take it out"
                )
            found[site.name] = site
    return found


def sources(root):
    """Every C++ file of the folders that may have sites."""
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    return sorted(path for path in paths if path.suffix in (".hpp", ".cpp"))
