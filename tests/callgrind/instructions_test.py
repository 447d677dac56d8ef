#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of single transactions with valgrind, and compares them with what each
may take.

  instructions_test.py PROGRAM [--blocks PROGRAM] [--json]

PROGRAM is the build's callgrind_transactions, and that of --blocks its callgrind_blocks. Each kind
of transaction is run with two counts: the difference, divided, is what one takes, with the loop
around it and without what opening takes. The limits are GCC 12's counts at -O3, and 3 % for other
processors' library functions. Each kind is counted with the engine compiled in, and with the engine
that Pool<Root> has behind virtual calls: the difference is what a name for the transaction costs.
For blocks of plain code, and beside them the same updates of the chosen engine, the stores are
counted, too: the next transaction's loads wait behind a commit's fence when those stores fill the
processor's store buffer.
Exit: 0 all within their limits, 1 not, 3 no valgrind.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY = 2000, 12000
# A look-up's limit is for what the view adds to the same look-up by plain loads.
LIMITS = {
    "compiled": {"look-up": 43, "view": 45, "update-1": 777, "update-8": 1734, "find": 108,
                 "put": 763, "put-erase": 1525, "map-put": 1009},
    "chosen": {"look-up": 63, "view": 63, "update-1": 732, "update-8": 1777, "find": 138,
               "put": 784, "put-erase": 1558, "map-put": 1079},
    "blocks": {"update-1": 1105, "update-8": 2789},
}
STORES = {"chosen": {"update-1": 121, "update-8": 292},
          "blocks": {"update-1": 195, "update-8": 461}}


def counted(program, folder, engine, kind, count):
    """(instructions, stores)"""
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         # It counts stores, too, for which it simulates caches.
         f"--cache-sim={'yes' if kind in STORES.get(engine, {}) else 'no'}", program,
         str(pathlib.Path(folder) / "pool"), engine, kind, str(count)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    collected = re.search(r"Collected : (\d+)(?: \d+ (\d+))?", run.stderr)
    if run.returncode != 0 or not collected:
        sys.exit(f"instructions_test: {engine}, {kind}, {count} times: {run.stderr}")
    return int(collected[1]), int(collected[2] or 0)


def each_of(program, folder, engine, kind):
    """What one transaction takes: (instructions, stores)."""
    few, many = (counted(program, folder, engine, kind, n) for n in (FEW, MANY))
    return tuple((b - a) / (MANY - FEW) for a, b in zip(few, many))


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("program")
    parser.add_argument("--blocks", help="the program whose transactions are blocks of plain code")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("instructions_test: found no valgrind; './dev setup callgrind' installs it",
              file=sys.stderr)
        return 3
    rows = []
    with tempfile.TemporaryDirectory(prefix="perdure-callgrind-") as folder:
        for engine, limits in LIMITS.items():
            program = arguments.blocks if engine == "blocks" else arguments.program
            if not program:
                continue
            kinds = [*limits] if engine == "blocks" else ["raw", *limits]
            each = {kind: each_of(program, folder, engine, kind) for kind in kinds}
            for kind, limit in limits.items():
                found = each[kind][0] - (each["raw"][0] if kind == "look-up" else 0)
                rows.append({"engine": engine, "kind": kind, "what": "instructions",
                             "found": round(found, 1), "limit": limit})
                if kind in STORES.get(engine, {}):
                    rows.append({"engine": engine, "kind": kind, "what": "stores",
                                 "found": round(each[kind][1], 1), "limit": STORES[engine][kind]})
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            mark = "" if row["found"] <= row["limit"] else "  ABOVE"
            print(f"{row['engine']:9} {row['kind']:10} {row['found']:8.1f} of at most "
                  f"{row['limit']} {row['what']}{mark}")
    return 0 if all(row["found"] <= row["limit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
