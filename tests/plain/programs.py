# SPDX-License-Identifier: BSD-3-Clause
"""Small programs with blocks, compiled, linked and run by tests."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "support"))

from limits import LimitedCase  # noqa: E402

CC, CXX = os.environ["PERDURE_CC"], os.environ["PERDURE_CXX"]
PLUG_IN = os.environ["PERDURE_PLUG_IN"]
LIBRARIES = os.environ["PERDURE_LIBRARIES"].split(":")
GCC_FLAGS = ["-fgnu-tm", "-fno-tree-pta", f"-fplugin={PLUG_IN}", "-Wno-clobbered"]
OPEN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plain/plain.h"
struct root { unsigned long sum; struct root *next; };
static struct root *r;
static perdure_pool *open_pool(const char *path) {
  perdure_options o;
  memset(&o, 0, sizeof o);
  o.root_bytes = sizeof(struct root);
  o.layout = "test/1";
  o.medium = "emulated";
  perdure_pool *pool = NULL;
  if (perdure_open(path, &o, &pool) != PERDURE_OK) {
    fprintf(stderr, "%s\\n", perdure_message());
    exit(3);
  }
  return pool;
}
static perdure_pool *use_pool(char **a) {
  perdure_pool *const pool = open_pool(a[1]);
  perdure_plain_use(pool);
  r = perdure_plain_root(pool);
  return pool;
}
"""


class Programs(LimitedCase):
    CC, CXX, FLAGS = CC, CXX, GCC_FLAGS  # of what has blocks

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(prefix="perdure-plain-", dir="/dev/shm")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return Path(self.folder.name, name)

    def compile(self, text, *flags, compiler=None, suffix=".c", with_blocks=True):
        """(status, what the compiler says) of an object file."""
        source = self.path("program" + suffix)
        source.write_text(text, encoding="utf-8")
        compiler = compiler or (self.CC if suffix == ".c" else self.CXX)
        command = [compiler, *(self.FLAGS if with_blocks else []), "-O2", f"-I{SOURCE}", *flags]
        return self.run_tool(*command, "-c", source, "-o", self.path("program.o"))

    @staticmethod
    def source():
        return SOURCE

    def refused(self, text, *words, flags=(), **how):
        status, said = self.compile(text, *flags, **how)
        self.assertNotEqual(0, status, text)
        for word in words:
            self.assertIn(word, said)

    def link(self, *objects):
        return self.run_tool(CXX, *objects, *LIBRARIES, "-pthread", "-o", self.path("program"))

    def run_tool(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr

    def run_program(self, main):
        status, said = self.compile(OPEN + main)
        self.assertEqual(0, status, said)
        status, said = self.link(self.path("program.o"))
        self.assertEqual(0, status, said)
        return subprocess.run([self.path("program"), self.path("pool")], capture_output=True,
                              text=True, timeout=60, check=False)

    def dies(self, main, *words):
        done = self.run_program(main)
        self.assertEqual(-6, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
