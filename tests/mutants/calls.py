# SPDX-License-Identifier: BSD-3-Clause
"""The mutants that nobody writes down: each source line from which the library calls a medium's flush or fence, without that call.

One build serves for all: the recording media know their callers by return address, and leave out what --omit names.
"""
import collections
import json
import pathlib
import re
import subprocess

# A call on something that is a medium, by name: medium.fence(), core_.medium.flush(...), medium_->fence()
CALL = re.compile(r"\bmedium\w*(?:\(\))?(?:->|\.)(flush|flush_lines|flush_ring|fence|flush_all)\(")

# Survivors that stay, and why no image of the explorer can tell: by the call, its file and what its line says.
EXPLAINED = {
    ("flush_all", "perdure/pool/create.cpp", ""): "on a file it is the fsync that makes length and allocation durable before the pool gets its name",
    ("fence", "perdure/engine/rewind/rewind_impl.hpp", ""): "only a transaction that allocates or frees and stores nothing needs it, which no workload of the explorer's has; a mutant of table.py stands for it",
    ("fence", "perdure/log/torn_log.cpp", "// T2"): "only a short lap behind a full one with aborted runs needs it, which no workload of the explorer's has; a mutant of table.py stands for it",
    ("fence", "perdure/log/torn_log.cpp", "// T3"): "the first transaction's own fence makes it durable with its commit, and without it none of the lap's records count",
    ("fence", "perdure/log/torn_log.cpp", "// T5"): "of a log that was closed only blocks in one torn bit's sense do harm, which no workload of the explorer's leaves; a mutant of table.py stands for it",
    ("fence", "perdure/log/wrap_log.cpp", "before the first wrap is durable in it"): "only another thread than the one that opened the pool needs it, and the explorer's programs have one; a mutant of table.py stands for it",
    ("fence", "perdure/log/control_word.hpp", "// no log"): "only a pool of an earlier build needs it, and the explorer's programs make their own; a mutant of table.py stands for it",
    ("fence", "perdure/log/wrap_log.cpp", "// W3"): "only a bucket that another thread begins again needs it, and the explorer's programs have one thread; a mutant of table.py stands for it",
}


def explained(root, call, line):
    file, _, number = line.rpartition(":")
    for (other, of, says), why in EXPLAINED.items():
        if (other, of) == (call, file) and says in (root / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]:
            return why
    return ""


def written(root):
    """Every line of the library that calls a medium: {(call, "file:line")}."""
    found = set()
    for path in sorted((root / "perdure").rglob("*")):
        if path.suffix in (".hpp", ".cpp") and "crash" not in path.parts and path.parts[-2] != "medium":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in CALL.finditer(line.split("//")[0]):
                    found.add((match[1], f"{path.relative_to(root)}:{number}"))
    return found


def reached(explorer, root, engines):
    """{(call, "file:line"): [address, ...]}, by what the explorer's own run called. Raises RuntimeError where it does not run."""
    answer = subprocess.run([explorer, "--sites", "--distinct", "1000", *(["--engine", engines] if engines else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    sites = json.loads(answer.stdout)
    # the call is before the address to which it returns
    wanted = "".join(f"{int(s['address'], 16) - 1:#x}\n" for s in sites)
    lines = subprocess.run(["addr2line", "-e", explorer], input=wanted, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    found = collections.defaultdict(list)
    calls = written(root)
    for site, line in zip(sites, lines):
        path, _, number = line.split(" ")[0].rpartition(":")
        try:
            name = pathlib.Path(path).resolve().relative_to(root)
        except ValueError:
            name = path
        # where a header's function was inlined the line is the header's, the file sometimes not
        same = [line for call, line in calls if call == site["call"] and line.endswith(f":{number}")]
        if (site["call"], f"{name}:{number}") not in calls and len(same) == 1:
            name = same[0].rpartition(":")[0]
        found[site["call"], f"{name}:{number}"].append(site["address"])
    return dict(found)
