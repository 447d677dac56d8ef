#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The API reference is whole: doxygen says nothing about the public headers, and would.

  reference_test.py WORK    WORK: a folder of the test's own, emptied

The first case makes the reference of the headers as they are. Each of the others takes one
description away, or plants one thing that is wrong, in a copy, and wants it named by header and
line.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WORK = pathlib.Path(sys.argv.pop(1)).resolve()
COPIED = ("CMakeLists.txt", "docs/doxygen", "perdure", "testing")

# name -> (header, what is replaced there, by what, doxygen's message)
PLANTED = {
    "member of a class": (
        "perdure/container/vector.hpp",
        "  /// Calls f(T&), which changes the element. Throws error(invalid) if f removes elements "
        "of this\n  /// vector.\n", "",
        "Member update(Tx &tx, std::uint64_t i, F &&f) (function) of class perdure::vector is not"),
    "class": ("perdure/api/options.hpp", "/// The result of close().\n", "",
              "Compound perdure::CloseReport is not documented"),
    "function": (
        "perdure/api/tx.hpp",
        "/// Frees an object and what it owns, as tx.destroy().\n", "",
        "Member destroy(TxT &tx, T *object) (function) of namespace perdure is not documented"),
    "function in C": (
        "perdure/perdure.h", "/* Returns the pool that a transaction runs on. */\n", "",
        "Member perdure_pool_of(perdure_tx *tx) (function) of file perdure.h is not documented"),
    "second member of a declaration": (
        "perdure/perdure.h", "  uint64_t checkpoints;",
        "  uint64_t a, b;\n  uint64_t checkpoints;",
        "Member b (variable) of struct perdure_stats is not documented"),
    "wrong command": (
        "perdure/api/tx.hpp", "/// Rolls the transaction back;",
        "/// @param nothing Rolls it back;",
        "argument 'nothing' of command @param is not found"),
}


def make(source, out):
    script = SOURCE / "docs/doxygen/reference.py"
    command = [sys.executable, "-B", script, "--source", source, "--out", out]
    return subprocess.run(command, text=True, capture_output=True, check=False, timeout=200)


class Reference(unittest.TestCase):
    def test_every_public_symbol_is_described(self):
        done = make(SOURCE, WORK / "whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        pages = WORK / "whole/html"
        for page in ("index", "classperdure_1_1vector", "perdure_8h", "namespaceperdure"):
            self.assertTrue((pages / f"{page}.html").is_file(), page)

    def test_what_is_missing_is_named(self):
        copy = WORK / "planted"
        for name in COPIED:
            (shutil.copytree if (SOURCE / name).is_dir() else self.copy)(SOURCE / name, copy / name)
        for name, (header, old, new, _) in PLANTED.items():
            text = (copy / header).read_text(encoding="utf-8")
            self.assertEqual(text.count(old), 1, f"{name}: {old!r} in {header}")
            (copy / header).write_text(text.replace(old, new), encoding="utf-8")
        done = make(copy, WORK / "planted-reference")
        self.assertNotEqual(done.returncode, 0)
        for name, (header, _, _, message) in PLANTED.items():
            with self.subTest(name):
                self.assertRegex(done.stderr, rf"(?m)^{header}:[0-9]+: .*{re.escape(message)}")

    @staticmethod
    def copy(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


if __name__ == "__main__":
    shutil.rmtree(WORK, ignore_errors=True)
    unittest.main(verbosity=2)
