# SPDX-License-Identifier: BSD-3-Clause
"""Whether a kept row still says something about the present sources.

A measurement is made of a tree without uncommitted changes (changes()), and keeps a hash of the
sources of each of its systems (hashes()): the preprocessed text, without comments and with
normalised white space, of the system's own files and of the layers that all systems share. A system
is an engine's folder, or a system in bench/ with which the engines are compared. The workloads, the
containers and other projects' libraries are not hashed.

stale() compares a row's hashes with those of the tree for which the pages were last written; these
lie beside the rows in sources.json, so that the pages are made from kept data alone. A row without
a hash was measured before hashes were kept: its hashes are those of the commit that it names. If
that commit had uncommitted changes, or the history lacks it, nothing proves that the row is fresh,
and it is marked, too.
"""

import hashlib
import json
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report.driver import Failed

# `redo` is part of bppm.
ENGINES = ("rewind", "bppm", "softwrap", "dudetm", "shadow", "undo", "volatile")
PAPERS = {"bppm": "papers/blurred/"}  # where the folder has another name
SYSTEMS = {
    name: (f"perdure/engine/{name}/", PAPERS.get(name, f"papers/{name}/")) for name in ENGINES
} | {
    "non-recoverable baselines": ("bench/systems/nvm.cpp", "bench/systems/plain.cpp",
                                  "bench/tpcc/nvm"),
    "SoftWrAP's baselines": ("bench/softwrap/baselines.hpp", "bench/softwrap/counted.hpp",
                             "bench/softwrap/hosts.hpp"), "the SQLite VFS": ("sqlite/", )
}
_SHARED = re.compile(r"perdure/((base|medium|pool|log|tm|api)/.*|engine/(?!registry\.hpp)[^/]*)")
_UNITS = ("perdure/api/*.cpp", "perdure/base/*.cpp", "perdure/medium/*.cpp", "perdure/pool/*.cpp",
          "perdure/log/*.cpp", "perdure/tm/*.cpp", "perdure/engine/**/*.cpp", "papers/**/*.cpp",
          "sqlite/*.cpp", "bench/systems/nvm.cpp", "bench/systems/plain.cpp", "bench/tpcc/nvm.cpp",
          "bench/softwrap/baselines.hpp", "bench/softwrap/hosts.hpp")
_COMPILER = ("c++", "-std=c++20", "-DNDEBUG", '-DPERDURE_VERSION="0"', "-I.", "-E", "-x", "c++")
_LINE = re.compile(r'# \d+ "([^"]*)"')
FILE = "figures/sources.json"


def _git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True,
                          timeout=120, check=False)


def changes(root, written=()):
    """The files of a tree that differ from its last commit, without the files and folders that the
    run itself writes (`written`)."""
    done = _git(root, "status", "--porcelain", "--untracked-files=all")
    if done.returncode != 0:
        raise Failed(
            f"found no git repository in {root}, expected the one that the sources come from, so "
            f"that a row can name its commit: {done.stderr.strip()}")
    own = [
        f"{path.relative_to(root)}/" for path in map(Path.resolve, map(Path, written))
        if path.is_relative_to(root)
    ]
    return [
        line[3:] for line in done.stdout.splitlines()
        if not any((line[3:].strip('"') + "/").startswith(path) for path in own)
    ]


def _preprocessed(root, unit):
    """Returns {file of the tree: its text} as one translation unit sees it."""
    done = subprocess.run([*_COMPILER, unit], cwd=root, capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"{unit} of {root}: {done.stderr.strip()[-500:]}")
    found, file = {}, None
    for line in done.stdout.splitlines():
        if name := _LINE.match(line):
            file = name[1].removeprefix("./")
        elif file and not file.startswith(("/", "<")) and (words := line.split()):
            found.setdefault(file, []).append(" ".join(words))
    return {file: " ".join(text) for file, text in found.items()}


def _hash(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:20]


def hashes(root):
    """Returns {system: hash of its sources} of a tree."""
    units = sorted(
        {str(path.relative_to(root)) for pattern in _UNITS for path in Path(root).glob(pattern)})
    files = {}
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda unit: _preprocessed(root, unit), units):
            for file, text in found.items():
                files.setdefault(file, set()).add(_hash([text]))
    def of(wanted):
        return _hash(f"{file} {' '.join(sorted(files[file]))}" for file in sorted(files)
                     if wanted(file))
    shared = of(_SHARED.fullmatch)
    return {
        name: _hash([shared, of(lambda file, own=own: file.startswith(own))])
        for name, own in SYSTEMS.items()
    }


def of_revision(root, revision):
    """hashes() of a commit; None if the history lacks it, or if it cannot be preprocessed."""
    if not revision or revision.endswith("-dirty") or _git(
            root, "rev-parse", "--verify", "-q", f"{revision}^{{commit}}").returncode != 0:
        return None
    with tempfile.TemporaryDirectory(prefix="perdure-sources-") as scratch:
        archive = Path(scratch) / "tree.tar"
        folders = _git(root, "ls-tree", "--name-only", revision, "perdure", "papers", "sqlite",
                       "bench").stdout.split()
        if not folders or _git(root, "archive", f"--output={archive}", revision, *
                               folders).returncode != 0:
            return None
        subprocess.run(["tar", "-xf", str(archive), "-C", scratch], check=True, timeout=120)
        try:
            return hashes(scratch)
        except Failed:
            return None


def revision_of(document):
    return document["machine"].get("revision", "unknown")


def load(folder):
    path = Path(folder) / FILE
    return json.loads(path.read_text(
        encoding="utf-8")) if path.exists() else {"systems": {}, "revisions": {}}


def update(root, folder, documents):
    """Writes sources.json for the tree as it is. `documents`: those of all rows. Hashes of a commit
    that are known already are not computed again."""
    known = load(folder)["revisions"]
    wanted = sorted({revision_of(document) for document in documents if "sources" not in document})
    found = {
        "systems": hashes(root), "revisions": {
            revision: known.get(revision) or of_revision(root, revision) for revision in wanted
        }
    }
    (Path(folder) / FILE).parent.mkdir(parents=True, exist_ok=True)
    (Path(folder) / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


def stale(document, systems, found):
    """Why a row may say nothing about the present sources, or an empty text. `found`: the content
    of sources.json."""
    own, revision = document.get("sources"), revision_of(document)
    if own is None:
        own = found["revisions"].get(revision)
        if own is None:
            why = "with changes that were not committed" if revision.endswith(
                "-dirty") else "at a commit whose sources are not at hand"
            return (
                f"measured {why} ({revision}), before hashes of the sources were kept, so that "
                "nothing proves it fresh.")
    changed = [name for name in systems if own.get(name) != found["systems"].get(name)]
    return (f"the sources of {', '.join(changed)} have changed since it was measured ({revision})."
            if changed else "")
