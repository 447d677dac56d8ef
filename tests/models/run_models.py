#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the Promela models with spin: each as it is, which must hold, and once with every fault
that it knows, which must fail.

  run_models.py [--model NAME] [--json]

A fault is a name in capitals that a model's opening comment lists after "it must fail:".
Exit: 0 all as expected, 1 not, 3 no spin.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time


def faults_of(text):
    listed = re.search(r"it must fail:(.*?)\.\s", text, re.DOTALL)
    return re.findall(r"[A-Z][A-Z_]+", listed[1]) if listed else []


def check(model, fault):
    """Returns (errors, states, seconds) of a model with one fault, or with None for no fault."""
    with tempfile.TemporaryDirectory(prefix="perdure-model-") as folder:
        start = time.monotonic()
        run = lambda *command: subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=
                                              subprocess.STDOUT, text=True, check=False)
        made = run("spin", "-a", *([f"-D{fault}"] if fault else []), str(model))
        if made.returncode != 0:
            sys.exit(f"{model}: spin: {made.stdout}")
        # Processes stop when the power does (provided clauses): no partial order reduction.
        built = run("cc", "-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=2048",
                    "-o", "pan", "pan.c")
        if built.returncode != 0:
            sys.exit(f"{model}: cc: {built.stdout}")
        out = run("./pan", "-E", "-m1000000").stdout  # -E: a process that blocks is not an error
        errors, states = re.search(r"errors: (\d+)", out), re.search(r"(\d+) states, stored", out)
        if not errors or not states or (errors[1] == "0" and re.search(
                "MEMLIM bound|out of memory|max search depth too small", out)):
            sys.exit(f"{model}: the search did not end: {out}")
        return int(errors[1]), int(states[1]), time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--model", help="only this one, such as decoupled")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("spin"):
        print("run_models: found no spin; './dev setup models' installs it", file=sys.stderr)
        return 3
    rows, wrong = [], 0
    for model in sorted(pathlib.Path(__file__).resolve().parent.glob("*.pml")):
        if arguments.model not in (None, model.stem):
            continue
        for fault in (None, *faults_of(model.read_text(encoding="utf-8"))):
            errors, states, seconds = check(model, fault)
            good = (errors == 0) == (fault is None)
            wrong += not good
            rows.append({
                "model": model.stem, "fault": fault, "errors": errors, "states": states,
                "as_expected": good
            })
            if not arguments.json:
                says = "holds" if errors == 0 else "fails"
                print(
                    f"{model.stem:12} {fault or '-':28} {says}, {states:>9} states, "
                    f"{seconds:4.1f} s{'' if good else '   NOT EXPECTED'}",
                    flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    if not rows:
        print(f"run_models: found no model {arguments.model}", file=sys.stderr)
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
