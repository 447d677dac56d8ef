#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev measures on this tree, as a user runs it but without a build."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from made_up import HERE, MadeUp

import compiled  # noqa: E402
import tree  # noqa: E402

SOURCE = Path(os.environ.get("PERDURE_SOURCE", HERE.parents[1]))
# Measures that are never 0, and measures that may become 0. The build's are not among them.
ABOVE_ZERO = {"user_headers", "user_lines", "options_members", "commit_skeletons", "files",
              "files_in_largest_folder"}
OTHERS = {"logs_of_one_engine", "outward_includes", "long_lines", "files_above_250",
          "files_above_500"}


class ThisTree(MadeUp):
    def dev(self, *arguments):
        command = [SOURCE / "dev", "measures", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "PERDURE_NO_SETUP": "1"})
        return done.returncode, done.stdout, done.stderr

    def test_json_and_a_comparison_with_it(self):
        status, out, said = self.dev("--json")
        self.assertEqual(status, 0, said)
        document = json.loads(out)
        self.assertEqual(set(document["measures"]), ABOVE_ZERO | OTHERS)
        for name in ABOVE_ZERO:
            self.assertGreater(document["measures"][name]["value"], 0, name)
        self.put("before.json", out)
        status, out, said = self.dev("--compare", str(self.root / "before.json"))
        self.assertEqual(status, 0, said)
        self.assertIn("headers in a user's translation unit", out)
        self.assertIn("before", out)

    def test_what_can_t_be_measured(self):
        status, out, said = self.dev("--root", str(self.root))
        self.assertEqual((status, out), (2, ""))
        self.assertIn("found no folder perdure", said)

    def test_the_user_s_program_compiles(self):
        done = compiled.run_compiler(SOURCE, "-Wall", "-Wextra", "-fsyntax-only",
                                     str(compiled.PROGRAM))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_exemption_is_of_files_that_are_there(self):
        paths = tree.paths_of(SOURCE)
        for pattern in [*tree.EXEMPT, *tree.LITERALS]:
            self.assertTrue(any(tree.matches(path, [pattern]) for path in paths), pattern)


if __name__ == "__main__":
    unittest.main()
