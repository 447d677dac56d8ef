# SPDX-License-Identifier: BSD-3-Clause
"""Mutant schemata (Untch, Offutt, Harrold, ISSTA '93): all mutants of the table in one copy of the sources, built once.

The copy differs from the project in the places of the table only, where it asks `perdure_mutant(n)`: true for the mutant whose number
the environment variable PERDURE_MUTANT holds. The project's own sources know nothing of it.
"""
import pathlib
import subprocess

from table import MUTANTS

DECLARATION = "[[nodiscard]] bool perdure_mutant(int number) noexcept;\n"
DEFINITION = '''
#include <cstdlib>
bool perdure_mutant(int number) noexcept {
  static const int on = [] {
    const char* const text = std::getenv("PERDURE_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return on == number;
}
'''
DEFINED_IN = "perdure/base/status.cpp"


class TableError(Exception):
    """The table names a text that the sources don't have, or have more than once."""


def mutated(root):
    """{file: text} of the files that differ in the copy."""
    files = {DEFINED_IN: (root / DEFINED_IN).read_text(encoding="utf-8")}
    for number, mutant in enumerate(MUTANTS):
        if mutant.file not in files:
            files[mutant.file] = (root / mutant.file).read_text(encoding="utf-8")
        for old, new in mutant.edits:
            count = files[mutant.file].count(old)
            if count != 1:
                raise TableError(f"{mutant.file}: mutant '{mutant.name}' looks for a text that is there {count} times, expected once: {old!r}; "
                                 "correct tests/mutants/table.py")
            files[mutant.file] = files[mutant.file].replace(old, new.replace("MUTANT", f"::perdure_mutant({number})"))
    for file, text in files.items():
        head, _, rest = text.partition("\n")  # the licence stays first
        files[file] = f"{head}\n{DECLARATION}{rest}" + (DEFINITION if file == DEFINED_IN else "")
    return files


def write_copy(root, copy):
    """The project's files as they are, mutated; a file that is the same already keeps its time, so that a build goes on from the last."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"], stdout=subprocess.PIPE, text=True, check=True)
    changed = mutated(root)
    kept = set()
    for name in listed.stdout.splitlines():
        source = root / name
        if not source.is_file():
            continue
        kept.add(name)
        content = changed[name].encode() if name in changed else source.read_bytes()
        target = copy / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in copy.rglob("*"):
        name = path.relative_to(copy)
        if path.is_file() and name.parts[0] != "build" and str(name) not in kept:
            path.unlink()
    return pathlib.Path(copy)
