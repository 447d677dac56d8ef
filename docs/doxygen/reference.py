#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the API reference with doxygen, from the public headers. Fails where one of their symbols
has no description, or a description is wrong.

  reference.py [--source ROOT] [--out FOLDER]    writes FOLDER/html (build/docs/html unless said)

The settings are Doxyfile's, beside this script; which headers are public is its INPUT.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version(source):
    """The project's version, of CMakeLists.txt."""
    text = (source / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(\s*\w+\s+VERSION\s+([0-9.]+)", text).group(1)


def warnings(output, source):
    """Doxygen's messages about the headers, with paths from `source` on, each once."""
    lines = dict.fromkeys(line.replace(f"{source}/", "") for line in output.splitlines())
    return [line for line in lines if line.strip()]


def make(source, out):
    """Runs doxygen; returns (its exit status, its messages)."""
    out.mkdir(parents=True, exist_ok=True)
    settings = (source / "docs/doxygen/Doxyfile").read_text(encoding="utf-8")
    settings += f"\nPROJECT_NUMBER = {version(source)}\nOUTPUT_DIRECTORY = {out}\n"
    settings += f"STRIP_FROM_PATH = {source}\n"
    done = subprocess.run(
        ["doxygen", "-"], cwd=source, input=settings, text=True, capture_output=True, check=False)
    return done.returncode, warnings(done.stderr, source)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=ROOT)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/docs")
    args = parser.parse_args()
    status, messages = make(args.source.resolve(), args.out.resolve())
    for message in messages:
        print(message, file=sys.stderr)
    if status != 0 or messages:
        sys.exit(
            f"reference.py: found {len(messages)} messages of doxygen (status {status}), expected "
            "none: describe each public symbol in its header, or list it in EXCLUDE_SYMBOLS of "
            "docs/doxygen/Doxyfile")
    print(f"API reference: {args.out / 'html/index.html'}")


if __name__ == "__main__":
    main()
