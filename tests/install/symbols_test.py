#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the shared library exports: Perdure's own symbols, all of them, each with its version.

PERDURE_SHARED is the library, PERDURE_STATIC the static one of the same objects (where there is
one), PERDURE_MAP the linker's version script, CXX the compiler.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "support"))

from limits import LimitedCase  # noqa: E402

MAP = Path(os.environ["PERDURE_MAP"])
VERSION = re.search(r"^(PERDURE_[\d.]+) \{", MAP.read_text(), re.M)[1]
# The C interface; namespace perdure, and what the compiler makes for it: static variables of its
# functions (Z), their guards (GV), virtual tables, typeinfo, thread-local wrappers and thunks (T).
OWN = re.compile(r"perdure_\w+$|_Z(?:GV|T[A-Z]|T[hv]n?\d+_(?:n?\d+_)?)?Z*N[KOR]*7perdure")
FOREIGN = """namespace other { int leak() { return 1; } }
namespace perdure { struct Own { int it(); }; }
int perdure::Own::it() { return other::leak(); }
"""


def symbols(*how):
    """[(name, version)] that nm prints of a file's global symbols."""
    printed = subprocess.run(["nm", "--defined-only", "--with-symbol-versions", *map(str, how)],
                             capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[0-9a-f]+ [A-Zu] (\S+?)(?:@@?(\S+))?$", printed, re.M)
    return [pair for pair in found if pair[0] != VERSION]


def demangled(names):
    return subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()


def faults(library):
    """What of a shared library's symbols breaks the rule."""
    found = symbols("--dynamic", library)
    texts = demangled(name for name, _ in found)
    for (name, version), text in zip(found, texts):
        if not OWN.match(name):
            yield f"{text}: found outside of perdure:: and perdure_*, expected to be local"
        if version != VERSION:
            yield f"{text}: found version '{version}', expected {VERSION}"


class Symbols(LimitedCase):
    library = Path(os.environ["PERDURE_SHARED"])

    def test_nothing_foreign_and_every_symbol_with_its_version(self):
        self.assertGreater(len(symbols("--dynamic", self.library)), 500)
        self.assertEqual(list(faults(self.library)), [])

    def test_the_library_has_its_name(self):
        printed = subprocess.run(["readelf", "-d", self.library], capture_output=True, text=True,
                                 check=True).stdout
        self.assertIn(f"[libperdure.so.{VERSION.removeprefix('PERDURE_')}]", printed)
        self.assertNotRegex(printed, r"R(UN)?PATH")

    def test_the_whole_c_interface(self):
        header = (SOURCE / "perdure" / "perdure.h").read_text()
        header = re.sub(r"/\*.*?\*/|typedef[^;{]*;", "", header, flags=re.S)
        declared = set(re.findall(r"\b(perdure_\w+)\([^;{}]*\)\s*;", header))
        self.assertGreater(len(declared), 20)
        self.assertEqual(declared - {name for name, _ in symbols("--dynamic", self.library)}, set())

    def test_all_of_the_namespace(self):
        """A program with the static library finds nothing that the shared one lacks."""
        if "PERDURE_STATIC" not in os.environ:
            self.skipTest("the library was built shared alone")
        exported = {name for name, _ in symbols("--dynamic", self.library)}
        archive = symbols("--extern-only", os.environ["PERDURE_STATIC"])
        inside = sorted({name for name, _ in archive})
        lost = [text for name, text in zip(inside, demangled(inside))
                if OWN.match(name) and name not in exported and "{lambda" not in text]
        self.assertEqual(lost, [])

    def test_a_leak_is_found(self):
        """The same check on a library that is linked without the map, and with it."""
        with tempfile.TemporaryDirectory(prefix="perdure-symbols-") as folder:
            source, result = Path(folder, "a.cpp"), Path(folder, "a.so")
            source.write_text(FOREIGN)
            link = [os.environ["CXX"], "-shared", "-fPIC", source, "-o", result]
            subprocess.run(link, check=True)
            found = "\n".join(faults(result))
            self.assertIn("other::leak(): found outside of perdure::", found)
            self.assertIn("perdure::Own::it(): found version ''", found)
            subprocess.run([*link, f"-Wl,--version-script={MAP}"], check=True)
            self.assertEqual(list(faults(result)), [])
            self.assertEqual(len(symbols("--dynamic", result)), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
