# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the text: lines above 100 columns, files per folder, long files.

They count code and prose: sources, scripts, CMake files, Markdown, the man page, models, style
sheets and templates. Data (JSON, CSV, pictures, pools) is not counted. EXEMPT lists the files that
none of these measures counts, LITERALS those whose string literals may be long, each with its
reason.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys

from measure import Measure, counted, descending

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "layering"))
from check_layers import is_source  # noqa: E402

COLUMNS = 100
PROSE_SUFFIXES = (".md", ".1", ".pml", ".css", ".j2")
EXEMPT = {  # pattern of paths: reason
    "papers/*/figures/*": "kept results and pictures",
    "papers/*/figures.md": "a page that ./dev figures writes from kept results",
    "papers/report/*": "the page that ./dev figures writes from all of them",
    "tests/compat/pools/*": "kept pools",
    "tests/fuzz/corpus/*": "inputs of the fuzzers, byte for byte",
}
LITERALS = {
    "tests/mutants/*.py": "quotes of the code, compared with it byte for byte by gate.py --check",
}
# A deleted member's comment is what the compiler shows to a program that uses it; the tests of
# tests/compile_fail compare it.
MESSAGE = re.compile(r"= delete;  // ")
NEVER_LISTED = {".git", ".cache", "__pycache__"}  # skipped where there is no git
LINK = re.compile(r"!?\[[^\]]*\]\([^)\s]*\)|<?https?://[^\s>)]+>?")
AFTER_LINK = " .,;:!?)*_\"'`"  # what may follow a link that a line ends with
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'")


def git(root, *arguments):
    """What git prints about the tree at `root`, or None if that is not the top of a checkout."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def paths_of(root):
    """The paths, relative to `root`, of all files that git has or would add.

    Without git these are all files except for what a build leaves.
    """
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        return sorted(p for p in set(listed.split("\0")) if p and (root / p).is_file())
    found = []
    for name, folders, files in os.walk(root):
        folder = pathlib.Path(name)
        leave_out = NEVER_LISTED | ({"build"} if folder == root else set())
        folders[:] = [f for f in folders if f not in leave_out]
        found += [str((folder / f).relative_to(root)) for f in files]
    return sorted(found)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def is_text(root, path):
    if matches(path, EXEMPT):
        return False
    return path.endswith(PROSE_SUFFIXES) or is_source(root / path)


def lines_of(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace").splitlines()


def ends_in_link(line):
    """Whether the text beyond the last column is part of one link or address, which can't be
    broken."""
    end = len(line.rstrip(AFTER_LINK))
    return any(link.start() <= COLUMNS and link.end() >= end for link in LINK.finditer(line))


def cuts_literal(line):
    """Whether a string literal extends beyond the last column."""
    return any(text.start() < COLUMNS < text.end() for text in LITERAL.finditer(line))


def is_too_long(path, line):
    line = line.expandtabs(8)
    if len(line) <= COLUMNS or ends_in_link(line):
        return False
    if path.endswith(".hpp") and MESSAGE.search(line):
        return False
    if path.endswith(".md") and line.lstrip().startswith("|"):  # a row of a table
        return False
    return not (matches(path, LITERALS) and cuts_literal(line))


def but_what_commands_print(path, lines):
    """The lines of a page without those of its `console` blocks, which tests compare byte for byte
    with what commands print."""
    inside = False
    for line in lines:
        if path.endswith(".md") and line.startswith("```"):
            inside = not inside and line.startswith("```console")
        if not inside:
            yield line


def folder_of(path, depth=None):
    """The folder of a file, or the first `depth` parts of its path; `.` at the top."""
    return "/".join(path.split("/")[:-1][:depth]) or "."


def measures(root, paths):
    texts = [path for path in paths if is_text(root, path)]
    long_lines, length = [], {}
    for path in texts:
        lines = lines_of(root, path)
        length[path] = len(lines)
        written = but_what_commands_print(path, lines)
        long_lines += [path] * sum(is_too_long(path, line) for line in written)
    by_folder = counted(folder_of(path, 2) for path in long_lines)
    yield "long_lines", Measure(f"lines above {COLUMNS} columns", len(long_lines), 0,
                                {"by_folder": by_folder, "exempt": EXEMPT,
                                 "string_literals_exempt": LITERALS})
    yield "files", Measure("files of code and prose", len(texts))
    folders = counted(folder_of(path) for path in texts)
    yield "files_in_largest_folder", Measure("files in the folder that has most",
                                             max(folders.values(), default=0), None,
                                             {"by_folder": folders})
    for limit in (250, 500):
        above = descending({path: n for path, n in length.items() if n > limit})
        yield f"files_above_{limit}", Measure(f"files above {limit} lines", len(above), None,
                                              {"files": above})
