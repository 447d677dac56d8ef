# SPDX-License-Identifier: BSD-3-Clause
"""Mutant schemata (Untch, Offutt, Harrold, ISSTA '93): all mutants of the table in one copy of the
sources, built once.

The copy differs from the project only at the sites of the table, where it asks `perdure_mutant(n)`:
true for the mutant whose number the environment variable PERDURE_MUTANT holds. The project's own
sources have only the marks (sites.py). Lines keep their numbers, for the compiler too, so that
messages and debug information name the lines of the project.
"""

import collections
import pathlib
import re
import subprocess

import calls
import cpp
import operations
import sites
from programs import PROGRAMS
from table import MUTANTS, REMOVED

# Before the first include of a mutated file; its guard serves units that include several.
DECLARATION = """\
#ifndef PERDURE_MUTANTS
#define PERDURE_MUTANTS
#include <cstdlib>
[[nodiscard]] inline bool perdure_mutant(int number) noexcept {
  static const int on = [] {
    const char* const text = std::getenv("PERDURE_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return on == number;
}
#endif
#line 2
"""
NAMES = pathlib.Path(__file__).with_name("names.txt")
_KNOWN_WORDS = {"auto", "bool", "const", "else", "false", "if", "return", "true", "void", "MUTANT"}


def check_names(mutants, removed, names):
    """Raises SiteError unless each mutant that ever existed is in the table, or is listed with the
    reason why not."""
    table = [m.name for m in mutants]
    names = set(names)
    twice = [name for name, count in collections.Counter(table).items() if count > 1]
    gone = {name for name, _ in removed}
    for found, what, advice in (
        (twice, "two mutants of one name", "rename one of them"),
        (
            [n for n in names if n not in table and n not in gone],
            "names.txt names mutants that the table does not have",
            "put them back into tests/mutants/table, or add them to REMOVED there with the reason",
        ),
        (
            [n for n in table if n not in names],
            "mutants that names.txt does not name",
            "add them to tests/mutants/names.txt",
        ),
        (
            [n for n in table if n in gone],
            "mutants of the table that REMOVED lists too",
            "take them out of one of the two",
        ),
        (
            [f"{m.by} ({m.name})" for m in mutants if m.by not in PROGRAMS],
            "programs that find mutants and that PROGRAMS does not have",
            "add them to tests/mutants/programs.py",
        ),
        (
            [n for n, why in removed if not why.strip()],
            "removed mutants without a reason",
            "say why, in REMOVED",
        ),
        (
            [n for n in gone if n not in names],
            "removed mutants that names.txt does not name",
            "add them to tests/mutants/names.txt",
        ),
    ):
        if found:
            raise sites.SiteError(f"found {what}: {'; '.join(sorted(found))}; {advice}")


def check_sites(mutants, explained, found):
    """Raises SiteError unless the table and the marks in the sources refer to the same sites."""
    wanted = {}
    for mutant in mutants:
        for name in [
            *mutant.edits,
            *(other for operation in mutant.edits.values() for other in operation.others),
        ]:
            wanted.setdefault(name, f"mutant '{mutant.name}'")
            if name not in found:
                raise sites.SiteError(
                    f"mutant '{mutant.name}' is about the site '{name}', and no source in"
                    f" {sites.WHERE} has the mark `// mutant: {name}`; put it above the statement,"
                    " or correct tests/mutants/table"
                )
    for name in explained:
        wanted.setdefault(f"call {name}", "calls.py")
        if f"call {name}" not in found:
            raise sites.SiteError(
                f"EXPLAINED in tests/mutants/calls.py is about the site 'call {name}', and no"
                f" source in {sites.WHERE} has the mark `// mutant: call {name}`; put it above the"
                " call, or correct calls.py"
            )
    for site in found.values():
        if site.name not in wanted:
            raise sites.SiteError(
                f"{site.where}: found the mark '{site.name}', of which neither tests/mutants/table"
                " nor EXPLAINED in calls.py knows; add it there, or take the mark out"
            )


def check_words(root, mutants):
    """Raises SiteError unless the sources have the identifiers that the table writes into them."""
    known = set(_KNOWN_WORDS)
    for path in sites.sources(root):
        code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        known.update(re.findall(r"[A-Za-z_]\w*", code))
    for mutant in mutants:
        for token in (
            t for operation in mutant.edits.values() for t in cpp.tokens_of(operation.text)
        ):
            if token.kind == "word" and token.text not in known:
                raise sites.SiteError(
                    f"mutant '{mutant.name}' writes '{token.text}', and no source in"
                    f" {sites.WHERE} has that word; correct tests/mutants/table"
                )


def mutated(root, mutants=MUTANTS, explained=None):
    """{file: text} of the files that differ in the copy."""
    found = sites.in_tree(root)
    check_sites(mutants, calls.EXPLAINED if explained is None else explained, found)
    check_words(root, mutants)
    edits = collections.defaultdict(list)
    for number, mutant in enumerate(mutants):
        for name, operation in mutant.edits.items():
            for edit in operation.edits(found[name], found):
                edits[found[name].file].append(
                    operations.numbered(edit, f"::perdure_mutant({number})")
                )
    files = {}
    for file, changes in edits.items():
        text = (root / file).read_text(encoding="utf-8")
        try:
            changed = operations.applied(text, changes)
        except cpp.CppError as error:
            raise sites.SiteError(
                f"{file}:{text.count(chr(10), 0, error.position) + 1}: {error}; make it one mutant,"
                " or use an operation that only inserts"
            ) from error
        head, _, rest = changed.partition("\n")  # the licence stays first
        files[file] = f"{head}\n{DECLARATION}{rest}"
    return files


def check(root):
    """{file: text} as mutated(), after all checks that need no build."""
    check_names(MUTANTS, REMOVED, NAMES.read_text(encoding="utf-8").splitlines())
    changed = mutated(root)
    calls.explained(root)
    return changed


def write_copy(root, copy, keep=()):
    """Writes the project's files, mutated, into the folder `copy`.

    A file that is unchanged keeps its time, so that a build continues from the last one. `keep`:
    names in the copy, in addition to build, that are not the project's and stay.
    """
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    changed = check(root)
    kept = set(keep)
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
