#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes Debian packages of a build, and looks at what it has made.

`./dev package` builds the preset `package` and calls this. CPack makes the packages from the
components that `cmake --install` knows (cmake/PerdureDebian.cmake has their names, sections and
descriptions). Then each package is unpacked and looked at: no file may hold a path of this machine
or say where to look for libraries, all belongs to root, and the licence is there. The exit status
is 1 when something of that is found, 2 when the packages can't be made.

The packages are: libperdure0.1, the shared library; libperdure-dev, the headers and both libraries
to link; perdure-tools, the command and its man page; perdure-sqlite, the extension for SQLite.
`./dev bare plain --command package` installs them in a bare system and uses them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
FIELDS = ("Package", "Version", "Architecture", "Section", "Depends", "Installed-Size")
COMPONENTS = 4
ELF = b"\x7fELF"


class CannotPackage(Exception):
    """The packages can't be made; the message says why and what to do."""


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def arguments():
    p = argparse.ArgumentParser(
        prog="./dev package", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[2:]) +
        "\n\n./dev package --conan runs the Conan recipe instead (packaging/README.md).")
    p.add_argument("--build", type=Path, default=Path("build/package"), metavar="DIR",
                   help="the build, in which the packages will lie, too (%(default)s)")
    p.add_argument("--json", action="store_true", help="print the list of packages as JSON")
    args = p.parse_args()
    args.build = args.build.resolve()
    return args


def output_of(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          check=True).stdout


def time_of_sources():
    """Seconds, for all times inside the packages: the same sources give the same packages."""
    done = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def make(build):
    """The packages that CPack makes of the build."""
    ninja = build / "build.ninja"
    if not (build / "CPackConfig.cmake").exists() or not ninja.exists():
        raise CannotPackage(f"found no build of preset package in {build}, expected one: "
                            "./dev package makes it")
    native = re.search(r"-m(?:arch|tune)=native", ninja.read_text())
    if native:
        raise CannotPackage(f"found {native[0]} in {ninja}, expected code for every x86-64 "
                            "processor: unset CXXFLAGS and CFLAGS and remove the folder")
    for old in build.glob("*.deb"):
        old.unlink()
    environment = dict(os.environ)
    epoch = time_of_sources()
    if epoch:
        environment["SOURCE_DATE_EPOCH"] = epoch
    log = build / "cpack.log"
    with open(log, "w", encoding="utf-8") as out:
        code = subprocess.run(["cpack", "--config", "CPackConfig.cmake"], cwd=build, stdout=out,
                              stderr=out, env=environment, umask=0o022, check=False).returncode
    if code != 0:
        raise CannotPackage(f"cpack ended with {code}; its output is {log}:\n{log.read_text()}")
    return sorted(build.glob("*.deb"))


def faults_of_file(path, name, foreign):
    """What is wrong with an unpacked file; `foreign` are paths that none may hold."""
    content = path.read_bytes()
    for folder in foreign:
        if os.fsencode(folder) in content:
            yield f"{name}: found '{folder}', expected no path of the machine that built it"
    if content.startswith(ELF):
        found = re.search(r"\((R(?:UN)?PATH)\).*", output_of("readelf", "-d", path))
        if found:
            yield f"{name}: found {found[0]}, expected no path to look for libraries"


def faults(package, foreign):
    """What is wrong with a package, a line each."""
    name = output_of("dpkg-deb", "--field", package, "Package").strip()
    for line in output_of("dpkg-deb", "--contents", package).splitlines():
        if line.split()[1] != "root/root":
            yield f"{name}: found '{line}', expected files that belong to root"
    for field in ("Description", "Section", "Depends", "Maintainer"):
        if not output_of("dpkg-deb", "--field", package, field).strip():
            yield f"{name}: found no {field}, expected one"
    with tempfile.TemporaryDirectory(prefix="perdure-package-") as folder:
        output_of("dpkg-deb", "--extract", package, folder)
        root = Path(folder)
        if not (root / "usr/share/doc" / name / "copyright").is_file():
            yield f"{name}: found no usr/share/doc/{name}/copyright, expected the licence"
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield from faults_of_file(path, f"{name}: /{path.relative_to(root)}", foreign)


def row_of(package):
    printed = output_of("dpkg-deb", "--field", package, *FIELDS)
    values = dict(re.findall(r"^([\w-]+): (.*)$", printed, re.M))
    return {"package": values["Package"], "version": values["Version"],
            "architecture": values["Architecture"], "section": values["Section"],
            "depends": values["Depends"].split(", "), "file": str(package),
            "bytes": package.stat().st_size,
            "installed_bytes": 1024 * int(values["Installed-Size"])}


def main():
    args = arguments()
    try:
        say(f"making packages with cpack (output: {args.build / 'cpack.log'})")
        packages = make(args.build)
        if len(packages) != COMPONENTS:
            raise CannotPackage(f"found {len(packages)} packages in {args.build}, "
                                f"expected {COMPONENTS}")
        say("looking at what is in them")
        found = [line for package in packages for line in faults(package, [SOURCE, args.build])]
        rows = [row_of(package) for package in packages]
    except CannotPackage as e:
        print(f"package: {e}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"{'package':16} {'version':8} {'KiB':>6} {'installed':>9}  depends")
        for row in rows:
            print(f"{row['package']:16} {row['version']:8} {row['bytes'] / 1024:6.0f} "
                  f"{row['installed_bytes'] / 1024:9.0f}  {', '.join(row['depends'])}")
        print(f"the packages lie in {args.build}")
    for line in found:
        print(f"package: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
