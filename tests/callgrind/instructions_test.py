#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of single transactions with valgrind, and compares them with what each
may take.

  instructions_test.py PROGRAM [--json]

PROGRAM is the build's callgrind_transactions. Each kind of transaction is run with two counts: the
difference, divided, is what one takes, with the loop around it and without what opening takes. The
limits are GCC 12's counts at -O3, and 3 % for other processors' library functions. Each kind is
counted with the engine compiled in, and with the engine that Pool<Root> has behind virtual calls:
the difference is what a name for the transaction costs.
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
}


def instructions(program, folder, engine, kind, count):
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
         str(pathlib.Path(folder) / "pool"), engine, kind, str(count)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not collected:
        sys.exit(f"instructions_test: {engine}, {kind}, {count} times: {run.stderr}")
    return int(collected[1])


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("instructions_test: found no valgrind; './dev setup callgrind' installs it",
              file=sys.stderr)
        return 3
    rows = []
    with tempfile.TemporaryDirectory(prefix="perdure-callgrind-") as folder:
        for engine, limits in LIMITS.items():
            each = {kind: (instructions(arguments.program, folder, engine, kind, MANY) -
                           instructions(arguments.program, folder, engine, kind, FEW)) /
                          (MANY - FEW) for kind in ("raw", *limits)}
            for kind, limit in limits.items():
                found = each[kind] - (each["raw"] if kind == "look-up" else 0)
                rows.append({"engine": engine, "kind": kind, "instructions": round(found, 1),
                             "limit": limit})
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            mark = "" if row["instructions"] <= row["limit"] else "  ABOVE"
            print(f"{row['engine']:9} {row['kind']:10} {row['instructions']:8.1f} "
                  f"of at most {row['limit']}{mark}")
    return 0 if all(row["instructions"] <= row["limit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
