# SPDX-License-Identifier: BSD-3-Clause
"""Measures made with the compiler: what a user's program includes, and the members of Options.

CXX in the environment names the compiler; the default is g++. Nothing needs to have been built.
"""

import os
import pathlib
import re
import subprocess

from measure import CannotMeasure, Measure, counted
from tree import folder_of

PROGRAM = pathlib.Path(__file__).with_name("user.cpp")
# One name for all members of an aggregate: the compiler says how many names it expected. For a
# struct of one member this compiles.
OPTIONS = """#include <perdure/perdure.hpp>
void count(perdure::Options& options) { [[maybe_unused]] auto& [all] = options; }
"""


def run_compiler(root, *arguments, text=None):
    name = os.environ.get("CXX") or "g++"
    command = [*name.split(), "-std=c++20", "-I", str(root), *arguments]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                              errors="replace", env={**os.environ, "LC_ALL": "C"})
    except OSError as e:
        raise CannotMeasure(f"found no compiler '{name}' ({e.strerror}), expected one that runs: "
                            "./dev setup core, or set CXX") from None


def version():
    return run_compiler(".", "--version").stdout.partition("\n")[0]


def inclusion(root, program):
    """Returns (the project's headers that a program includes, its number of preprocessed lines)."""
    done = run_compiler(root, "-E", "-P", "-H", str(program))
    if done.returncode != 0:
        raise CannotMeasure(f"{program} can't be preprocessed against {root}, expected a user's "
                            f"first program to compile:\n{done.stderr}")
    headers = set()
    for line in done.stderr.splitlines():
        if match := re.match(r"\.+ (.+)", line):
            path = os.path.relpath(os.path.realpath(match[1]), root)
            if not path.startswith("../"):
                headers.add(path)
    # Blank lines do not count: -P leaves them in the place of comments.
    return sorted(headers), sum(bool(line.strip()) for line in done.stdout.splitlines())


def members_of_options(root):
    done = run_compiler(root, "-fsyntax-only", "-x", "c++", "-", text=OPTIONS)
    if done.returncode == 0:
        return 1
    if match := re.search(r"decomposes into (\d+) element", done.stderr):
        return int(match[1])
    raise CannotMeasure("the compiler does not say how many members perdure::Options has, expected "
                        "an aggregate that <perdure/perdure.hpp> declares, and the words "
                        f"'decomposes into N elements':\n{done.stderr}")


def measures(root):
    headers, lines = inclusion(root, PROGRAM)
    by_folder = counted(folder_of(header, 2) for header in headers)
    yield "user_headers", Measure("headers in a user's translation unit", len(headers), 45,
                                  {"by_folder": by_folder, "headers": headers})
    yield "user_lines", Measure("preprocessed lines of a user's translation unit", lines)
    yield "options_members", Measure("members of Options", members_of_options(root), 14)
