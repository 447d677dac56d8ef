#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs what a list of PyPI's packages has, with the versions and checksums of the list, into a
virtual environment of its own.

  pypi.py FOLDER REQUIREMENTS     FOLDER/venv has them; nothing happens if it has them already
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path


class CannotInstall(Exception):
    """The packages can't be installed here; the message says why and what to do."""


def _run(*command, advice):
    printed = " ".join(map(str, command))
    print(f"  $ {printed}", file=sys.stderr, flush=True)
    code = subprocess.run(list(map(str, command)), check=False).returncode
    if code != 0:
        raise CannotInstall(f"'{printed}' ended with {code}, expected 0: {advice}")


def installed(folder, wanted):
    """The folder of the programs of an environment in `folder` that has what `wanted` lists."""
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    mark, programs = folder / "installed", folder / "venv" / "bin"
    if not programs.exists() or not mark.exists() or mark.read_text() != digest:
        print(f"==> installing what {wanted} lists, of PyPI, into {folder}", file=sys.stderr,
              flush=True)
        _run(sys.executable, "-m", "venv", "--clear", folder / "venv",
             advice="./dev setup installs python3-venv")
        _run(programs / "pip", "--disable-pip-version-check", "install", "--quiet",
             "--require-hashes", "-r", wanted, advice="see that this machine reaches PyPI")
        mark.write_text(digest)
    return programs


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    parser.add_argument("requirements", type=Path)
    args = parser.parse_args()
    try:
        installed(args.folder.resolve(), args.requirements.resolve())
    except CannotInstall as e:
        print(f"pypi: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
