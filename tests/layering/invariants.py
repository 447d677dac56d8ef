# SPDX-License-Identifier: BSD-3-Clause
"""Holds docs/invariants.md and the names of invariants, such as RING-2, in the sources together.

Between its two markers docs/invariants.md has "Stated in `FILE`:" and below it an entry per name,
"- **NAME** statement", with "*Why:*" and "*Defended by:*". A name is listed once. FILE is a source
file that has the name. Tests that an entry names are files, mutants are sites in the sources
(`// mutant: NAME`). Each name in a source file or a document is one that is listed.
"""

import re

DOCUMENT = "docs/invariants.md"
BEGIN, END = "<!-- invariants:begin -->", "<!-- invariants:end -->"
NAME = re.compile(r"[A-Z][A-Z0-9]*-[0-9]+")
# Names in text. What has one letter only may be anything, such as a path in a drawing.
CITATION = re.compile(r"(?<![\w/.-])([A-Z][A-Z0-9]+-[0-9]+)(?![\w-]|\.[0-9])")
NOT_INVARIANTS = {"UTF-8"}
FOLDERS = tuple("perdure papers testing nats s3 plain sqlite tools bench tests examples docs"
                .split())
SUFFIXES = (".hpp", ".h", ".cpp", ".c", ".in", ".py", ".sh", ".md", ".pml", ".txt", ".1")
# What is kept or generated, and the cases of this check, which plant breaches.
EXEMPT = (
    "docs/measures/",
    "papers/figures/",
    "papers/report/",
    *(f"papers/{paper}/figures" for paper in ("blurred", "cross", "dudetm", "rewind", "softwrap")),
    "tests/compat/pools/",
    "tests/fuzz/corpus/",
    "tests/golden/traces.txt",
    "tests/layering/invariants_test.py",
)
STATED = re.compile(r"Stated in `([^`]+)`:$")
ENTRY = re.compile(r"- \*\*([^*]+)\*\* ")
SITE = re.compile(r"// mutant: (?:call )?(.*)")


class Entry:
    def __init__(self, name, line, stated):
        self.name, self.line, self.stated, self.text = name, line, stated, ""

    def part(self, title):
        """What follows *title:* in the entry."""
        _, found, text = self.text.partition(f"*{title}:*")
        return re.split(r"\*(?:Why|Defended by):\*", text)[0].strip() if found else ""


def files(root):
    """All files that may have names of invariants, as (path below root, text)."""
    found = [p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES]
    for path in sorted([*root.glob("*.md"), *found]):
        name = path.relative_to(root).as_posix()
        if path.is_file() and "__pycache__" not in name and not name.startswith(EXEMPT):
            yield name, path.read_text(encoding="utf-8", errors="replace")


def listed(text):
    """The entries of the document, in order."""
    stated, entries, inside = None, [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line in (BEGIN, END):
            inside = line == BEGIN
        elif not inside:
            continue
        elif match := STATED.match(line):
            stated = match[1]
        elif match := ENTRY.match(line):
            entries.append(Entry(match[1], number, stated))
            entries[-1].text = line
        elif entries and line.startswith("  "):
            entries[-1].text += " " + line.strip()
        elif line.startswith("#"):
            stated = None
    return entries


def sites(texts):
    """The names of all mutants' sites."""
    found = set()
    for name, text in texts.items():
        if name.endswith((".hpp", ".cpp")):
            for match in SITE.finditer(text):
                found.update(site.strip() for site in match[1].split(","))
    return found


def check_entry(root, entry, texts, mutants):
    """What is wrong with an entry: each breach without its place."""
    if not NAME.fullmatch(entry.name):
        yield f"found the name {entry.name}, expected one such as RING-2"
    if entry.stated is None:
        yield f"{entry.name}: found no file, expected 'Stated in `FILE`:' above it"
    elif entry.stated.endswith(".md") or entry.stated not in texts:
        yield f"{entry.name}: found 'Stated in `{entry.stated}`', expected a source file"
    elif entry.name not in CITATION.findall(texts[entry.stated]):
        yield f"{entry.name}: {entry.stated} does not have the name"
    for title in ("Why", "Defended by"):
        if not entry.part(title):
            yield f"{entry.name}: found no *{title}:*"
    tests, *of_mutants = re.split(r"(?:^|; )mutants? ", entry.part("Defended by"), maxsplit=1)
    for test in re.findall(r"`([^`]+)`", tests):
        if not (root / test).is_file():
            yield f"{entry.name}: there is no file {test}"
    for mutant in re.findall(r"`([^`]+)`", "".join(of_mutants)):
        if mutant not in mutants:
            yield f"{entry.name}: no source file has the mark '// mutant: {mutant}'"


def check_invariants(root):
    """Each breach as FILE:LINE: what was found, what was expected."""
    path = root / DOCUMENT
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in text or END not in text:
        yield f"{DOCUMENT}:1: found no list, expected one between {BEGIN} and {END}"
        return
    texts = dict(files(root))
    entries, mutants, first = listed(text), sites(texts), {}
    for entry in entries:
        if entry.name in first:
            yield f"{DOCUMENT}:{entry.line}: {entry.name} is listed in line {first[entry.name]} too"
        first.setdefault(entry.name, entry.line)
        for breach in check_entry(root, entry, texts, mutants):
            yield f"{DOCUMENT}:{entry.line}: {breach}"
    for name, source in texts.items():
        for number, line in enumerate(source.splitlines(), 1):
            for cited in CITATION.findall(line):
                if cited not in first and cited not in NOT_INVARIANTS:
                    yield f"{name}:{number}: found {cited}, expected a name listed in {DOCUMENT}"
