# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of SQLite on pools: connections through the extension (PERDURE_VFS), SQLite's
shell."""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from limits import LimitedCase  # noqa: E402

# For cases that sync thousands of times: minutes on a slow disk.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LOAD = os.environ["PERDURE_VFS"].removesuffix(".so")


def load():
    memory = sqlite3.connect(":memory:")
    memory.enable_load_extension(True)
    memory.load_extension(LOAD)
    return memory


class Case(LimitedCase):
    design = ""
    folders = None  # the place of each case's folder; None: TMPDIR

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdure-sqlite-", dir=self.folders)
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "app.db")
        self.memory = load()
        self.addCleanup(self.memory.close)

    def uri(self, more="", path=None):
        return f"file:{path or self.path}?vfs=perdure&max_size=256M&log_size=16M{self.design}{more}"

    def connect(self, more="", path=None, **how):
        return sqlite3.connect(self.uri(more, path), uri=True, isolation_level=None, **how)

    def shell(self, *commands, code=0):
        done = subprocess.run(
            ["sqlite3", ":memory:"],
            input="\n".join([f".load {LOAD}", f".open {self.uri()}", *commands]) + "\n",
            capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def sound(self, db, schema="main"):
        self.assertEqual(db.execute(f"pragma {schema}.integrity_check").fetchall(), [("ok",)])
