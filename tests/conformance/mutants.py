#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The mutation gate: is every flush and fence of the library needed, and does the explorer see it when one is missing?

  mutants.py --explorer build/dev/tests/conformance/perdure_explore

Lists the source lines from which the library calls a medium's flush and fence while the explorer runs, leaves out one line at a time, and
expects the explorer to find something each time. Prints the score and the survivors: a survivor is a missing test or a
needless call. Lines that call a medium and were never reached are listed too. Exit: 0 all killed or explained below, 1 survivors, 2 wrong
arguments.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import time

# A call on something that is a medium, by name: medium.fence(), core_.medium.flush(...), medium_->fence()
CALL = re.compile(r"\bmedium\w*(?:\(\))?(?:->|\.)(flush|fence|flush_all)\(")


# Survivors that stay, and why no image of the explorer can tell.
EXPLAINED = {
    ("flush_all", "perdure/pool/create.cpp"): "on a file it is the fsync that makes length and allocation durable before the pool gets its name",
}


def explore(explorer, *arguments):
    return subprocess.run([explorer, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def reached(explorer, root, distinct):
    """{(call, "file:line"): [address, ...]}, by what the explorer's own run called."""
    answer = explore(explorer, "--sites", "--distinct", str(distinct))
    if answer.returncode != 0:
        sys.exit(f"mutants: the explorer found something without any mutant:\n{answer.stderr}")
    sites = json.loads(answer.stdout)
    # the call is before the address to which it returns
    wanted = "".join(f"{int(s['address'], 16) - 1:#x}\n" for s in sites)
    lines = subprocess.run(["addr2line", "-e", explorer], input=wanted, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    found = collections.defaultdict(list)
    calls = set(written(root))
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


def written(root):
    """Every line of the library that calls a medium."""
    for path in sorted((root / "perdure").rglob("*")):
        if path.suffix in (".hpp", ".cpp") and "crash" not in path.parts and path.parts[-2] != "medium":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in CALL.finditer(line.split("//")[0]):
                    yield match[1], f"{path.relative_to(root)}:{number}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--explorer", required=True, help="perdure_explore, built with line numbers")
    parser.add_argument("--distinct", type=int, default=3000, help="recoveries of each engine on each workload, for each mutant (3000)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    sites = reached(arguments.explorer, root, 1000)
    rows = []
    for number, ((call, line), addresses) in enumerate(sorted(sites.items(), key=lambda s: s[0][1]), 1):
        start = time.monotonic()
        omit = ",".join(f"{call}:{a}" for a in addresses)
        answer = explore(arguments.explorer, "--first", "--distinct", str(arguments.distinct), "--omit", omit)
        killed = answer.returncode == 1 and "FOUND " in answer.stderr
        if not killed and answer.returncode != 0:
            sys.exit(f"mutants: exit {answer.returncode} without {call} at {line}:\n{answer.stderr}")
        by = re.search(r"FOUND ([^:]*):", answer.stderr)
        rows.append({"call": call, "line": line, "killed": killed, "by": by[1] if by else answer.stderr.strip()[:80] if killed else ""})
        print(f"[{number:2}/{len(sites)}] {time.monotonic() - start:5.1f} s  {'killed  ' if killed else 'SURVIVED'} {call:9} {line}  {rows[-1]['by']}",
              file=sys.stderr, flush=True)
    unreached = sorted(set(written(root)) - set(sites), key=lambda s: s[1])
    survivors = [r for r in rows if not r["killed"]]
    for row in survivors:
        row["explained"] = EXPLAINED.get((row["call"], row["line"].rpartition(":")[0]), "")
    if arguments.json:
        print(json.dumps({"mutants": rows, "killed": len(rows) - len(survivors), "never_reached": unreached}, indent=2))
    else:
        print(f"{len(rows) - len(survivors)} of {len(rows)} mutants killed")
        for row in survivors:
            print(f"  survived: without {row['call']} at {row['line']} nothing was found{'; expected: ' + row['explained'] if row['explained'] else ''}")
        for call, line in unreached:
            print(f"  never reached: {call} at {line}")
    return 1 if any(not row["explained"] for row in survivors) else 0


if __name__ == "__main__":
    sys.exit(main())
