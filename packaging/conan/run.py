#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the Conan recipe: makes its packages and builds and runs its test program with each.

`./dev package --conan` calls this. Conan comes from PyPI, in the versions and with the checksums
of requirements.txt, into a virtual environment in build/tools/conan; its home lies there, too, so
that no other use of Conan on this machine is touched. Two packages are made: a static library with
the system's lz4 and xxhash (options system_lz4 and system_xxhash), and a shared library with both
from Conan packages. Those are ConanCenter's with --remote; without it they are made here of the
system's files, so that no network but PyPI's is needed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pypi import CannotInstall, installed  # noqa: E402

STAND_INS = (HERE / "system_lz4", HERE / "system_xxhash")
RUNS = {"static library, the system's lz4 and xxhash":
        ["-o", "&:system_lz4=True", "-o", "&:system_xxhash=True"],
        "shared library, lz4 and xxhash from packages":
        ["-o", "&:shared=True", "-o", "&:papers=True"]}


class CannotRun(Exception):
    """The recipe can't be run here; the message says why and what to do."""


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def arguments():
    p = argparse.ArgumentParser(
        prog="./dev package --conan", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[2:]))
    p.add_argument("--dir", type=Path, default=Path("build/tools/conan"), metavar="DIR",
                   help="where Conan and its home lie (%(default)s)")
    p.add_argument("--remote", action="store_true", help="take lz4 and xxhash from ConanCenter")
    args = p.parse_args()
    args.dir = args.dir.resolve()
    return args


def run(*command, advice, **how):
    printed = " ".join(map(str, command))
    print(f"  $ {printed}", file=sys.stderr, flush=True)
    code = subprocess.run(list(map(str, command)), check=False, **how).returncode
    if code != 0:
        raise CannotRun(f"'{printed}' ended with {code}, expected 0: {advice}")


def main():
    args = arguments()
    jobs = os.environ.get("PERDURE_JOBS") or str(os.cpu_count())
    environment = {**os.environ, "CONAN_HOME": str(args.dir / "home")}
    try:
        conan = installed(args.dir, HERE / "requirements.txt") / "conan"
        how = {"env": environment, "advice": "Conan's words are above"}
        run(conan, "profile", "detect", "--force", **how)
        common = ["-s", "compiler.cppstd=20", "-c", f"tools.build:jobs={jobs}",
                  "-c", f"tools.cmake.cmake_layout:test_folder={args.dir / 'test_package'}",
                  "-c", "tools.cmake.cmaketoolchain:user_presets="]
        if not args.remote:
            common.append("--no-remote")
            for stand_in in STAND_INS:
                run(conan, "create", stand_in, *common, **how)
        for name, options in RUNS.items():
            say(f"conan create: {name}")
            run(conan, "create", HERE, "--build=missing", "--build=perdure/*", *common, *options,
                **how)
    except (CannotRun, CannotInstall) as e:
        print(f"package --conan: {e}", file=sys.stderr)
        return 2
    print("\n".join(f"made and used: {name}" for name in RUNS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
