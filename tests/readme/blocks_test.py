#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""blocks.py finds a document's programs and commands, and what is not printed as it says."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BLOCKS = pathlib.Path(__file__).resolve().parent / "blocks.py"


class Blocks(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / "bin").mkdir()

    def blocks(self, what, text, *arguments):
        document = self.root / "document.md"
        document.write_text(text, encoding="utf-8")
        command = [sys.executable, "-B", BLOCKS, what, document, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def session(self, *lines):
        text = "```console\n" + "".join(f"{line}\n" for line in lines) + "```\n"
        return self.blocks("run", text, self.root / "bin", self.root / "bin", self.root / "work")

    def test_programs(self):
        text = ("```cpp\n// one.cpp: it\nint x;\n```\n\n```cpp\nint fragment;\n```\n"
                "```sh\n// no.cpp\n```\n```cpp\n// two.cpp\nint y;\n```\n")
        status, said = self.blocks("sources", text, self.root / "sources")
        self.assertEqual((status, said), (0, "one\ntwo\n"))
        self.assertEqual((self.root / "sources/one.cpp").read_text(), "// one.cpp: it\nint x;\n")
        self.assertEqual(len(list((self.root / "sources").iterdir())), 2)

    def test_two_programs_of_one_name(self):
        text = "```cpp\n// one.cpp\n```\n```cpp\n// one.cpp\n```\n"
        status, said = self.blocks("sources", text, self.root / "sources")
        self.assertEqual(status, 1)
        self.assertIn("found two programs one.cpp", said)

    def test_what_is_printed_as_it_says(self):
        status, said = self.session(
            "$ echo one; echo two >&2", "one", "two", "$ echo 7 of 9", "... of ...",
            "$ seq 9", "1", "...", "9", "$ true", "$ false")
        self.assertEqual(status, 0, said)
        self.assertIn("5 commands", said)
        self.assertFalse((self.root / "work").exists())

    def test_what_is_not(self):
        for lines in (["$ echo one", "two"], ["$ echo one"], ["$ true", "one"],
                      ["$ seq 3", "1", "3"], ["$ seq 3", "1", "2"], ["$ echo a.b", "a+b"],
                      ["$ echo 7 of 9", "... in ..."]):
            with self.subTest(lines):
                status, said = self.session(*lines)
                self.assertEqual(status, 1, said)
                self.assertIn("found the above (status", said)

    def test_a_document_without_commands(self):
        status, said = self.blocks("run", "no block\n", self.root, self.root, self.root / "work")
        self.assertEqual(status, 1)
        self.assertIn("found no command", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
