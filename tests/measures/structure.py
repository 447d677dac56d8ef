# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the structure: logs of one engine, commit skeletons, includes that point outwards.

They are taken from the text of the sources. An engine is a folder of perdure/engine/ or of papers/.
Files in perdure/engine/ itself, or in a folder of KIT_FOLDERS, are common to all engines.
"""

import posixpath
import re

from check_layers import INCLUDE, code_of
from measure import CannotMeasure, Measure
from tree import lines_of

CODE_SUFFIXES = (".hpp", ".h", ".cpp", ".c")
KIT_FOLDERS = ("kit",)
EVERY_ENGINE = "every engine"
LOG = "perdure/log/"
OUTWARDS = ("papers", "testing")  # the product, perdure/, includes nothing of these

# A commit acknowledges nothing after the medium failed: an `if` on the first name guards a
# statement that calls the second.
POISON_CHECK = "poisoned"
LOST_ID = re.compile(r"\blost\w*\s*\(")


def engine_of(path):
    """A source's engine, EVERY_ENGINE for a common one, None for any other."""
    parts = path.split("/")
    if parts[0] == "papers" and len(parts) > 2:
        return parts[1]
    if parts[:2] != ["perdure", "engine"]:
        return None
    return EVERY_ENGINE if len(parts) == 3 or parts[2] in KIT_FOLDERS else parts[2]


def includes_of(root, path):
    """(line, path from the root) of each include; "../x.hpp" is resolved."""
    for number, line in enumerate(lines_of(root, path), 1):
        if match := INCLUDE.match(line):
            target = match[2]
            if target.startswith("."):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            yield number, target


def logs_included(root, path):
    return [target for _, target in includes_of(root, path) if target.startswith(LOG)]


def log_users(root, code):
    """For each file of perdure/log, the engines that include it, directly or through other logs.

    A .cpp belongs to the header of its name, or else to the first header that it includes. A header
    also includes what its .cpp files include.
    """
    included = {path: logs_included(root, path) for path in code if path.startswith(LOG)}
    header, behind = {}, {path: set(targets) for path, targets in included.items()}
    for path, targets in included.items():
        own = re.sub(r"\.cp*$", ".hpp", path)
        if own != path and (own in included or targets):
            header[path] = own if own in included else targets[0]
            behind.setdefault(header[path], set()).update(targets)
    users = {path: set() for path in {*included, *header.values()}}
    for path in code:
        engine = engine_of(path)
        reached = logs_included(root, path) if engine else []
        while reached:
            target = reached.pop()
            if engine not in users.setdefault(target, set()):
                users[target].add(engine)
                reached += behind.get(target, ())
    return {path: users[header.get(path, path)] for path in included}


def statement_after(text, at):
    """Returns (condition, statement) of an `if`; `at` is just after the opening parenthesis."""
    depth, end = 1, at
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    condition, start, depth = text[at:end], end, 0
    while end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0 and text[end - 1] in ";}":
            # `lost(drawn, {})` closes a brace, too: only a block that opens the statement ends it
            if text[end - 1] == ";" or text[start:end].lstrip().startswith("{"):
                break
    return condition, text[start:end]


def skeletons_in(lines):
    """How many commits of a source determine by hand which ids are lost after the medium has
    failed."""
    text = "\n".join(code_of(line) for line in lines)
    found = 0
    for match in re.finditer(r"\bif\s*(?:constexpr\s*)?\(", text):
        condition, statement = statement_after(text, match.end())
        found += POISON_CHECK in condition and LOST_ID.search(statement) is not None
    return found


def measures(root, paths):
    code = [path for path in paths if path.endswith(CODE_SUFFIXES)]
    users = log_users(root, code)
    single, unused = {}, [path for path, engines in users.items() if not engines]
    for path, engines in users.items():
        if len(engines) == 1 and EVERY_ENGINE not in engines:
            single.setdefault(*engines, []).append(path.removeprefix(LOG))
    yield "logs_of_one_engine", Measure(
        "sources in perdure/log that serve one engine", sum(map(len, single.values())), None,
        {"sources": len(users), "count_by_engine": {e: len(p) for e, p in sorted(single.items())},
         "by_engine": dict(sorted(single.items())), "of_no_engine": unused})

    found = {path: skeletons_in(lines_of(root, path)) for path in code if engine_of(path)}
    skeletons = {path: n for path, n in found.items() if n}
    if not skeletons:
        raise CannotMeasure("found no commit of an engine that tests poisoned() and then calls "
                            "lost(), expected at least one; if they have other names now, give "
                            "them to POISON_CHECK and LOST_ID in tests/measures/structure.py")
    yield "commit_skeletons", Measure("commit skeletons (poison check, lost ids)",
                                      sum(skeletons.values()), 1, {"files": skeletons})

    outwards = [f"{path}:{number}: {target}" for path in code if path.startswith("perdure/")
                for number, target in includes_of(root, path) if target.split("/")[0] in OUTWARDS]
    yield "outward_includes", Measure("includes from perdure/ into papers/ or testing/",
                                      len(outwards), 0, {"includes": outwards})
