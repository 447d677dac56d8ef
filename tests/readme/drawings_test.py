#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The drawings of docs/drawings are what their sources make; a change of a source, of the table of
layers or of an SVG's words by hand is found. Graphviz is not needed, but compared with if present.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def check(root):
    command = [sys.executable, "-B", root / "docs/drawings/make.py", "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


class Drawings(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(SOURCE / "docs/drawings", self.root / "docs/drawings")
        shutil.copytree(SOURCE / "tests/layering", self.root / "tests/layering")

    def change(self, name, old, new):
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def finds(self, message):
        done = check(self.root)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(message, done.stderr)

    def test_kept(self):
        done = check(SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_copy_is_whole(self):
        self.assertEqual(check(self.root).returncode, 0)

    def test_the_table_of_layers(self):
        self.change("tests/layering/check_layers.py", '"log": (3, None,', '"log": (4, None,')
        self.finds("docs/drawings/layers.svg is not made from its source")

    def test_a_source(self):
        self.change("docs/drawings/commit.dot", "thread B", "thread C")
        self.finds("docs/drawings/commit.svg is not made from its source")

    def test_a_missing_drawing(self):
        (self.root / "docs/drawings/checkpoint.svg").unlink()
        self.finds("docs/drawings/checkpoint.svg is not made from its source")

    @unittest.skipUnless(shutil.which("dot"), "found no graphviz: words are not compared")
    def test_words_changed_by_hand(self):
        self.change("docs/drawings/commit.svg", "thread B", "thread C")
        self.finds("docs/drawings/commit.svg has other words")


if __name__ == "__main__":
    unittest.main(verbosity=2)
