# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a build from nothing: preset dev, every target, in a fresh folder, without ccache.

It is the processor time, user and system, of all processes of the build, so it does not depend on
how many run at once. Each compilation goes through launcher.py, whose own time is subtracted.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from measure import CannotMeasure, Measure, descending

LAUNCHER = Path(__file__).with_name("launcher.py")
TOTAL, UNIT = 550, 15  # targets: seconds of the build, and of one translation unit
SHOWN = 20  # the number of slowest units that are named


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def step(command, root):
    """Runs one command, its output on standard error; returns the processor time that it took."""
    print("  $ " + " ".join(command), file=sys.stderr, flush=True)
    before = children_seconds()
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    try:
        done = subprocess.run(command, cwd=root, stdout=sys.stderr, check=False, env=environment)
    except OSError as e:
        raise CannotMeasure(f"found no {command[0]} ({e.strerror}), expected what "
                            "./dev setup core test installs") from None
    if done.returncode != 0:
        raise CannotMeasure(f"{command[0]} ended with {done.returncode} (see above), expected a "
                            "tree that builds")
    return children_seconds() - before


def part_of(name):
    """The folder in which an object is compiled; the top CMakeLists.txt is the library's."""
    first = name.split("/")[0]
    return "library" if first == "CMakeFiles" else first


def unit_name(root, unit):
    """A translation unit as its source and target: a source may be compiled more than once."""
    target = unit["object"].partition(".dir/")[0].replace("CMakeFiles/", "")
    return f"{os.path.relpath(unit['source'], root)} ({target})"


def evaluate(root, total, units, configure=0.0, only=()):
    """The measures of a build that took `total` seconds; `units` are the launcher's lines."""
    total -= sum(unit["launcher"] for unit in units)
    slowest = sorted(units, key=lambda unit: -unit["seconds"])
    parts = {}
    for unit in units:
        part = part_of(unit["object"])
        parts[part] = parts.get(part, 0) + unit["seconds"]
    parts["linking and the rest"] = total - sum(parts.values())
    details = {"units": len(units), "configure_seconds": round(configure, 1),
               "seconds_by_part": descending({part: round(s, 1) for part, s in parts.items()})}
    title = "CPU seconds of a build from nothing"
    if only:
        title = f"CPU seconds of a build of {len(only)} of its targets"
        details["only"] = list(only)
    yield "build_seconds", Measure(title, round(total, 1), None if only else TOTAL, details)
    yield "slowest_unit_seconds", Measure(
        "CPU seconds of the slowest translation unit",
        round(slowest[0]["seconds"], 2) if slowest else 0, UNIT,
        {"above_the_target": sum(unit["seconds"] > UNIT for unit in units),
         "slowest": {unit_name(root, unit): round(unit["seconds"], 1) for unit in slowest[:SHOWN]}})


def measures(root, folder, jobs, only=()):
    """Builds in `folder`, which is emptied first, and removed after a successful build."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "units.jsonl"
    launcher = f"{sys.executable};-ISB;{LAUNCHER};{log}"
    configure = step(["cmake", "--preset", "dev", "-B", str(folder),
                      f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}",
                      f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"], root)
    log.unlink(missing_ok=True)  # removes what configuring compiled
    targets = ["--target", *only] if only else []
    total = step(["cmake", "--build", str(folder), "--parallel", str(jobs), *targets], root)
    if not log.exists():
        raise CannotMeasure(f"the build compiled nothing through {LAUNCHER}, expected every "
                            f"compilation; look at {folder}")
    units = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    shutil.rmtree(folder)
    return list(evaluate(root, total, units, configure, only))
