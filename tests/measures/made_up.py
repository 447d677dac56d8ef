# SPDX-License-Identifier: BSD-3-Clause
"""A made-up tree for the tests of the measures: a folder that is written file by file."""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE)]

from limits import LimitedCase  # noqa: E402
from measure import CannotMeasure  # noqa: E402,F401


class MadeUp(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-measures-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name).resolve()

    def put(self, path, text=""):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def source(self, path, *includes, text=""):
        self.put(path, "".join(f'#include "{target}"\n' for target in includes) + text)
