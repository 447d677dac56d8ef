#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lines of code of docs/programs.md are those of the tree."""

import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "tests" / "support")]

from limits import LimitedCase  # noqa: E402
from report import apps  # noqa: E402


class Lines(LimitedCase):
    def test_comments_and_blank_lines_do_not_count(self):
        self.assertEqual(2, apps.code_lines("// a\n\nint a;  // one\n  /// b\n}\n"))

    def test_the_page_has_those_of_the_tree(self):
        page = apps.PAGE.read_text(encoding="utf-8")
        self.assertIn(
            apps.lines_table(), page,
            "docs/programs.md is old: ./dev bench apps --page writes its tables again")


if __name__ == "__main__":
    unittest.main(verbosity=2)
