#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the tree to the layer rule: reads every #include under perdure/ and fails on a breach.

  check_layers.py ROOT     check the tree at ROOT; prints each breach as FILE:LINE: what was found,
                           what is allowed
  check_layers.py --table  print the table that docs/architecture.md must carry between its two
                           markers

A folder may include folders with a lower number and itself. log and tm share a number, so they
never see each other; an engine's folder never sees another engine's; containers see the API and
values alone.
Every source file carries the licence line. The library, SQLite's file system and the tools open no
file by a call of their own: perdure/base/descriptor.hpp keeps descriptors off the standard ones. Of
the tools, command.cpp alone includes CLI11 and no header includes <nlohmann/json.hpp>: they take
seconds to compile.
Invariants have names that docs/invariants.md lists once; each name in the tree is one of them
(invariants.py).
"""
import pathlib
import re
import sys

from invariants import check_invariants

# folder -> (number, the only folders it may include or None for "every lower number", what it is)
LAYERS = {
    "base": (0, None,
             "status and errors, bits, cpu features, checksum, thread slots, clock, descriptors"),
    "medium": (1, None, "where bytes live and when they are durable"),
    "pool": (2, None, "the pool file's format, open, close, check, the heap"),
    "log": (3, None, "log structures; know media and pools, know no transactions"),
    "tm": (3, None, "concurrency control; knows no persistence"),
    "engine": (4, None, "durability x concurrency: one folder a system"),
    "backup": (5, None, "the log's archive, backups and what is restored from them"),
    "replication": (6, None, "the log on other machines: who may append, what counts"),
    "api": (7, None, "transactions and persistent types for C++ and C"),
    "value": (8, ("base", "api"),
              "how plain structs, sequences and other C++ values lie in a pool"),
    "container": (9, ("api", "value"),
                  "vector, string, hash_map, map, rb_tree, list, queue, box, table, set, hash_set, "
                  "multimap, deque, priority_queue, hooked_list"),
    "evolve": (9, ("base", "api", "value"),
               "version 2 of a program: what changes in a pool, and the program's steps"),
    "inspect": (10, ("base", "pool", "api", "value"),
                "a pool of any program, read by its layout text at run time, or made from a dump"),
}
# Folders beside perdure/, each a target of its own over the library: what it may include of
# perdure/, what it is. Nothing in perdure/ includes from them.
BESIDE = {
    "papers": (tuple(
        "base medium pool log tm engine api".split()
    ), "the four papers' own: engines, logs, and the calls that programs of theirs are written "
       "against; never another paper's folder"
               ),
    "nats": (("base", "replication"), "the replicated log on NATS JetStream"),
    "s3": (("base", "backup", "replication"),
           "archives, backups and replicated logs in an S3-compatible store"),
    "plain": (("base", "pool", "engine", "api"),
              "ordinary statements as transactions: what a compiler's blocks call"),
    "testing": (tuple("base medium pool log tm engine api".split()),
                "crash exploration and test media: what power cuts leave, recovered and judged"),
}
# The public headers: perdure.hpp includes everything; perdure.h is the C interface, which api/
# implements.
CXX_DOOR, C_DOOR = FRONT_DOORS = ("perdure.hpp", "perdure.h")

BEGIN, END = "<!-- layers:begin -->", "<!-- layers:end -->"
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
SOURCE_FOLDERS = ("perdure", "papers", "testing", "nats", "s3", "plain", "sqlite", "tools", "bench",
                  "tests", "examples", "cmake", "packaging")
NOT_KEPT = {"__pycache__", "build", "CMakeUserPresets.json"}  # what tools leave (.gitignore)
SOURCE_SUFFIXES = (".hpp", ".h", ".cpp", ".c", ".py", ".sh", ".cmake", ".in")
# The calls that make a descriptor, and the one file that may contain them (FD-1).
DESCRIPTORS = pathlib.PurePath("perdure", "base", "descriptor.cpp")
DESCRIPTOR_FOLDERS = ("perdure", "papers", "testing", "nats", "s3", "plain", "sqlite", "tools")
DESCRIPTOR = re.compile(
    # Others have members of these names.
    r"(?<![\w>])::\s*(?:open|openat|creat|socket|socketpair|accept4?|pipe2?|eventfd|dup)\s*\("
    r"|(?<![\w.>:])(?:open|openat)\s*\([^;]*\bO_[A-Z]"
    r"|\b(?:open64|memfd_create|shm_open|mq_open|epoll_create1?|timerfd_create|signalfd|"
    r"inotify_init1?|fopen|freopen|popen|tmpfile|mkstemps?|mkostemps?|opendir)\s*\("
    r"|\bstd::(?:basic_)?(?:[io]?fstream|filebuf)\b|\bF_DUPFD\w*")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def allowed(folder):
    """The folders that `folder` may include, with itself as the last."""
    number, only, _ = LAYERS[folder]
    lower = only if only is not None else tuple(f for f, (n, _, _) in LAYERS.items() if n < number)
    return (*lower, folder)


def table():
    rows = ["| layer | folder | what it is | may include |", "|---|---|---|---|"]
    for folder, (number, _, what) in LAYERS.items():
        sees = ", ".join(allowed(folder)[:-1]) or "nothing"
        if folder == "engine":
            sees += "; never another engine's folder"
        rows.append(f"| {number} | `perdure/{folder}` | {what} | {sees} |")
    rows.append("| 10 | `perdure/perdure.hpp` | the C++ front door | everything above |")
    for folder, (sees, what) in BESIDE.items():
        rows.append(f"| beside | `{folder}` | {what} | {', '.join(sees)} |")
    return "\n".join(rows)


def include_breach(source, target, quoted):
    """Why `source` (path parts below perdure/) may not include `target`, or None."""
    parts = tuple(target.split("/"))
    if parts[0] != "perdure":
        if target in FRONT_DOORS:
            return f'found "{target}", expected "perdure/{target}": the short names are for users'
        return (f'found "{target}", expected "perdure/<folder>/<file>" or <system header>'
                if quoted else None)
    if not quoted:
        return f"found <{target}>, expected quotes"
    if len(parts) < 2 or ".." in parts or "." in parts:
        return f'found "{target}", expected "perdure/<folder>/<file>"'
    if len(source) == 1:  # a front door
        if source[0] == C_DOOR and parts[1] not in allowed("api"):
            return f"perdure.h includes {target}; it may see what api sees"
        return None
    if len(parts) == 2:  # ... includes a front door
        if source[0] == "api" and parts[1] == C_DOOR:
            return None
        return (
            f"perdure/{source[0]} includes the front door {target}; include the file that has "
            "what you need")
    if parts[1] not in LAYERS:
        return f"{target} lies in no layer of the table"
    if parts[1] not in allowed(source[0]):
        return f"perdure/{source[0]} includes {target}; it may see {', '.join(allowed(source[0]))}"
    if source[0] == parts[1] == "engine" and len(source) > 2 and len(
            parts) > 3 and source[1] != parts[2]:
        return (
            f"engine {source[1]} includes {target}; what two engines share lies in perdure/log "
            "or perdure/tm")
    return None


def beside_breach(folder, source, target, quoted):
    """Why a file (path parts below `folder`, which lies beside perdure/) may not include `target`,
    or None."""
    parts = tuple(target.split("/"))
    if ".." in parts or "." in parts or (quoted and
                                         (len(parts) < 2 or parts[0] not in ("perdure", folder))):
        return (
            f'found "{target}", expected "perdure/<folder>/<file>", "{folder}/<file>" or <system '
            'header>')
    if parts[0] in ("perdure", folder) and not quoted:
        return f"found <{target}>, expected quotes"
    if folder == parts[0] == "papers" and len(source) > 1 and len(
            parts) > 2 and source[0] != parts[1]:
        return (
            f"paper {source[0]} includes {target}; what two papers' engines share lies in "
            "perdure/engine, perdure/log or perdure/tm")
    # A header for C has no other way to the library.
    if parts[1:] == (C_DOOR,) and source[-1].endswith(".h") and "api" in BESIDE[folder][0]:
        return None
    if parts[0] == "perdure" and parts[1] not in BESIDE[folder][0]:
        return f"{folder} includes {target}; of perdure/ it may see {', '.join(BESIDE[folder][0])}"
    return None


def includes_of(root, base):
    """Each file below `base` with its path parts there, and its includes: (path, parts, line
    number, match)."""
    for path in sorted(p for p in base.rglob("*") if p.suffix in (".hpp", ".h", ".cpp", ".c")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path.relative_to(root), path.relative_to(base).parts, number, match


def check_beside(root):
    for folder in BESIDE:
        for name, source, number, match in includes_of(root, root / folder):
            if breach := beside_breach(folder, source, match[2], match[1] == '"'):
                yield f"{name}:{number}: {breach}"


def check_includes(root):
    base = root / "perdure"
    for path in sorted(p for p in base.rglob("*") if p.suffix in (".hpp", ".h", ".cpp", ".c")):
        source = path.relative_to(base).parts
        name = path.relative_to(root)
        if len(source) == 1:
            if source[0] not in FRONT_DOORS:
                yield f"{name}:1: found beside the front doors, expected in a folder of the table"
        elif source[0] not in LAYERS:
            yield (
                f"{name}:1: folder perdure/{source[0]} is not in the table of "
                f"{pathlib.Path(__file__).name}")
    for name, source, number, match in includes_of(root, base):
        known = source[0] in (FRONT_DOORS if len(source) == 1 else LAYERS)
        if known and (breach := include_breach(source, match[2], match[1] == '"')):
            yield f"{name}:{number}: {breach}"


def is_source(path):
    if path.suffix in SOURCE_SUFFIXES or path.name == "CMakeLists.txt":
        return True
    if path.suffix:
        return False
    with path.open("rb") as file:  # a script without a suffix
        return file.read(2) == b"#!"


def check_licences(root):
    candidates = [root / "CMakeLists.txt", root / "dev", root / ".ci" / "run"]
    for folder in SOURCE_FOLDERS:
        candidates += sorted((root / folder).rglob("*"))
    for path in candidates:
        if (not path.is_file() or NOT_KEPT & set(path.relative_to(root).parts)
                or not is_source(path)):
            continue
        with path.open(encoding="utf-8", errors="replace") as file:
            # The second line, after a #! line.
            if LICENCE not in file.readline() and LICENCE not in file.readline():
                yield (
                    f"{path.relative_to(root)}:1: found no licence line, expected '{LICENCE}' in "
                    "the first comment")


def code_of(line):
    """The line without its comment and its string literals: both may mention calls."""
    return re.sub(r"//.*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', line))


def check_descriptors(root):
    """FD-1: raw calls that open a descriptor, outside perdure/base/descriptor.cpp."""
    for folder in DESCRIPTOR_FOLDERS:
        for path in sorted(p for p in (root / folder).rglob("*")
                           if p.suffix in (".hpp", ".h", ".cpp", ".c")):
            name = path.relative_to(root)
            if name == DESCRIPTORS:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in DESCRIPTOR.finditer(code_of(line)):
                    found = match[0].strip()
                    yield (
                        f"{name}:{number}: found '{found}', which may give descriptor 0, 1 or 2; "
                        "expected perdure/base/descriptor.hpp")


def check_slow_headers(root):
    """The files of tools/ that include a slow header without need."""
    for name, source, number, match in includes_of(root, root / "tools"):
        if match[2].startswith("CLI/") and source != ("command.cpp",):
            yield (
                f"{name}:{number}: found <{match[2]}>, expected in tools/command.cpp alone; use "
                "Subcommand and Option of tools/command.hpp")
        if match[2] == "nlohmann/json.hpp" and name.suffix == ".hpp":
            yield (
                f"{name}:{number}: found <{match[2]}> in a header, expected \"tools/json.hpp\", "
                "which names the type")


def check_doc(root):
    path = root / "docs" / "architecture.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in text or END not in text:
        yield f"docs/architecture.md:1: found no table, expected one between {BEGIN} and {END}"
        return
    found = text.split(BEGIN, 1)[1].split(END, 1)[0].strip()
    if found != table():
        yield (
            "docs/architecture.md:1: its table differs from the one enforced; put the output of "
            "tests/layering/check_layers.py --table there")


def check(root):
    return [
        *check_includes(root), *check_beside(root), *check_licences(root), *check_descriptors(root),
        *check_slow_headers(root), *check_doc(root), *check_invariants(root)
    ]


def main(arguments):
    if arguments == ["--table"]:
        print(table())
        return 0
    if len(arguments) != 1 or not (pathlib.Path(arguments[0]) / "perdure").is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    breaches = check(pathlib.Path(arguments[0]))
    print(table())
    print(*breaches, sep="\n")
    print(f"{len(breaches)} breaches" if breaches else "every include keeps the rule")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
