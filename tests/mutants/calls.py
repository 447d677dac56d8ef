# SPDX-License-Identifier: BSD-3-Clause
"""The mutants that are not in the table: each line of the library that calls a medium's flush or
fence, without that call.

One build serves all of them: the recording media identify their callers by return address, and omit
the calls that --omit names.
"""

import collections
import json
import pathlib
import re
import subprocess

import sites

CALLS = {"flush", "flush_lines", "flush_ring", "fence", "flush_all"}

# Survivors that stay, and why no image of the explorer can tell: by the name of the call's site,
# which is `// mutant: call NAME` in the sources (sites.py).
EXPLAINED = {
    "create-flush-all": (
        "on a file it is the fsync that makes length and allocation durable before the pool gets"
        " its name"
    ),
    "rewind-heap-bits-fence": (
        "only a transaction that allocates or frees and stores nothing needs it, which no workload"
        " of the explorer's has; a mutant of the table stands for it"
    ),
    "scanned-flush": (
        "only a process that is killed between a commit record and its fence needs it, and only"
        " where no older record brings the same blocks' bits back, which the explorer's programs"
        " rarely have; a mutant of the table stands for it"
    ),
    "undo-records-fence": "as of scanned-flush; a mutant of the table stands for it",
    "torn-generation-fill-fence": (
        "only a short lap behind a full one with aborted runs needs it, which no workload of the"
        " explorer's has; a mutant of the table stands for it"
    ),
    "torn-generation-begin-fence": (
        "the first transaction's own fence makes it durable with its commit, and without it none of"
        " the lap's records count"
    ),
    "torn-ordered-records-fence": (
        "the paper's order, which is measured: a commit record whose records are not there is one"
        " behind a hole, and does not count"
    ),
    "torn-close-zero-fence": (
        "of a log that was closed only blocks in one torn bit's sense do harm, which no workload of"
        " the explorer's leaves; a mutant of the table stands for it"
    ),
    "wrap-format-fence": (
        "only another thread than the one that opened the pool needs it, and the explorer's"
        " programs have one; a mutant of the table stands for it"
    ),
    "control-word-forget-fence": (
        "only a pool of an earlier build needs it, and the explorer's programs make their own; a"
        " mutant of the table stands for it"
    ),
    "softwrap-local-base-fence": (
        "only a wrap of another thread on the same log needs it, and the explorer's programs have"
        " one thread; the table's mutant of the same fence is explained so, too"
    ),
    "checksum-forget-flushes": (
        "only a chunk that is trimmed, and used again after a power cut, needs it, and the"
        " explorer's programs don't trim pools with checksums; a mutant of the table stands for it"
    ),
    "checksums-moved-durable": (
        "only a pool whose limit is raised so far that its checksums move needs it, which the"
        " explorer's programs don't; a mutant of the table stands for it"
    ),
    "wrap-id-fence": (
        "only a bucket that another thread begins again needs it, and the explorer's programs have"
        " one thread; a mutant of the table stands for it"
    ),
}


def explained(root):
    """{"file:line": why} of the lines whose calls EXPLAINED lists.

    Raises SiteError if a site's statement has no call of a medium, or more than one.
    """
    found = {}
    calls = written(root)
    for site in sites.in_tree(root).values():
        if not site.name.startswith("call "):
            continue
        inside = [
            line
            for _, line in calls
            if line.rpartition(":")[0] == site.file and int(line.rpartition(":")[2]) in site.lines
        ]
        if len(inside) != 1:
            raise sites.SiteError(
                f"{site.where}: found {len(inside)} calls of a medium in the statement of the mark"
                f" '{site.name}', expected one; move the mark above the statement of the call"
            )
        found[inside[0]] = EXPLAINED[site.name.removeprefix("call ")]
    return found


def _in_source(source):
    """(call, the line of its name, all lines at which it may be found) of each call of a medium.

    A medium is an object of that name, as in medium.fence(), core_.medium.flush(...),
    medium_->fence().
    """
    for i, token in enumerate(source.code):
        if not re.fullmatch(r"medium\w*", token.text):
            continue
        if source.is_at(i + 1, "(") and source.is_at(i + 2, ")"):
            i += 2
        if source.is_at(i + 1, ".", "->") and source.is_at(i + 2, *CALLS):
            name = source.code[i + 2]
            if source.is_at(i + 3, "("):
                lines = range(source.line(token.begin), source.line(source.code[i + 3].begin) + 1)
                yield name.text, source.line(name.begin), lines


def _places(root):
    """{(call, file, line): the line of the call's name}, for each line at which it may be found."""
    found = {}
    for path in sites.sources(root):
        file = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        if "medium" in text and not set(sites.MEDIA_FOLDERS).intersection(file.parts):
            for call, name, lines in _in_source(sites.source_of(file.as_posix(), text)):
                found.update({(call, file.as_posix(), line): name for line in lines})
    return found


def written(root):
    """Every line of the library that calls a medium: {(call, "file:line")}."""
    return {(call, f"{file}:{name}") for (call, file, _), name in _places(root).items()}


def reached(explorer, root, copy, engines):
    """{(call, "file:line"): [address, ...]}, from the calls of the explorer's own run.

    `root` has the sources, `copy` the build, whose debug information names the lines of the
    sources. Raises RuntimeError if the explorer does not run.
    """
    answer = subprocess.run(
        [explorer, "--sites", "--distinct", "1000", *(["--engine", engines] if engines else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    called = json.loads(answer.stdout)
    # The call is before the address to which it returns.
    wanted = "".join(f"{int(s['address'], 16) - 1:#x}\n" for s in called)
    lines = subprocess.run(
        ["addr2line", "-e", explorer], input=wanted, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split("\n")
    found = collections.defaultdict(list)
    places = _places(root)
    for site, line in zip(called, lines):
        call = site["call"]
        path, _, number = line.split(" ")[0].rpartition(":")
        try:
            file = pathlib.Path(path).resolve().relative_to(copy).as_posix()
        except ValueError:
            file = path
        number = int(number) if number.isdecimal() else 0
        # If a function of a header was inlined the line is the header's, but the file may not be.
        same = [f for c, f, n in places if (c, n) == (call, number)]
        if (call, file, number) not in places and len(same) == 1:
            file = same[0]
        found[call, f"{file}:{places.get((call, file, number), number)}"].append(site["address"])
    return dict(found)
