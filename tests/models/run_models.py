#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the Promela models with spin: each as it is, which must hold, and once with every fault
that it knows, which must fail.

  run_models.py [--model NAME] [--json]     all of them, or one
  run_models.py --record                    all of them; writes verified.json beside them
  run_models.py --sample N                  those that verified.json does not have as they are now,
                                            and N of the others, which the commit chooses

A fault is a name in capitals that a model's opening comment lists after "it must fail:".
Exit: 0 all as expected, 1 not, 3 no spin.
"""
import argparse
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VERIFIED = HERE / "verified.json"


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


def fingerprint(model):
    """Of the model, and of how it is checked."""
    return hashlib.sha256(model.read_bytes() + pathlib.Path(__file__).read_bytes()).hexdigest()


def chosen(models, sample):
    """The models whose check is not recorded as they are now, and `sample` others."""
    verified = json.loads(VERIFIED.read_text(encoding="utf-8")) if VERIFIED.exists() else {}
    new = [m for m in models if verified.get(m.stem) != fingerprint(m)]
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    others = sorted(set(models) - set(new))
    some = random.Random(commit).sample(others, min(sample, len(others)))
    print(f"{len(new)} models are new or changed; of the {len(others)} others these are checked "
          f"again: {', '.join(sorted(m.stem for m in some)) or 'none'} (commit {commit[:12] or '-'})",
          flush=True)
    return sorted(new + some)


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--model", help="only this one, such as pipelined")
    parser.add_argument("--record", action="store_true",
                        help="write down which models were checked, as they are now")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="only what is new or changed, and N of the others")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if sum(x not in (None, False) for x in (arguments.model, arguments.record,
                                            arguments.sample)) > 1:
        parser.error("found more than one of --model, --record and --sample, expected one at most")
    if not shutil.which("spin"):
        print("run_models: found no spin; './dev setup models' installs it", file=sys.stderr)
        return 3
    models = sorted(HERE.glob("*.pml"))
    if arguments.model:
        models = [m for m in models if m.stem == arguments.model]
        if not models:
            print(f"run_models: found no model {arguments.model}", file=sys.stderr)
            return 1
    if arguments.sample is not None:
        models = chosen(models, arguments.sample)
    rows, wrong = [], 0
    for model in models:
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
    if arguments.record and not wrong:
        recorded = {m.stem: fingerprint(m) for m in models}
        VERIFIED.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
