#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests that check_layers.py can fail: it plants one breach at a time in a small tree and expects
exactly that one to be found."""
import pathlib
import sys
import tempfile
import unittest

import check_layers
import invariants

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limits import LimitedCase  # noqa: E402

HEAD = f"// {check_layers.LICENCE}\n"


class Planted(LimitedCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.put("CMakeLists.txt", "# " + check_layers.LICENCE + "\n")
        self.put("docs/architecture.md",
                 f"# A\n{check_layers.BEGIN}\n{check_layers.table()}\n{check_layers.END}\n")
        self.put("docs/invariants.md", f"# I\n{invariants.BEGIN}\n{invariants.END}\n")
        self.source("perdure/perdure.hpp", '"perdure/container/map.hpp"')
        self.source("perdure/perdure.h", "<stdint.h>")
        # Every allowed include, to see that none of them is reported as a breach.
        for folder in check_layers.LAYERS:
            sees = [f'"perdure/{other}/x.hpp"' for other in check_layers.allowed(folder)]
            self.source(f"perdure/{folder}/x.cpp", "<vector>", *sees)
        for folder, (sees, _) in check_layers.BESIDE.items():
            self.source(f"{folder}/x.cpp", "<vector>",
                        *(f'"perdure/{other}/x.hpp"' for other in sees), f'"{folder}/x.hpp"')
        self.source("perdure/engine/undo/undo.cpp", '"perdure/engine/undo/undo.hpp"',
                    '"perdure/engine/engine.hpp"', '"perdure/log/ring.hpp"')
        self.source("perdure/engine/registry.cpp", '"perdure/engine/undo/undo.hpp"')
        self.source("perdure/api/c.cpp", '"perdure/perdure.h"')

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def source(self, name, *includes):
        self.put(name, HEAD + "".join(f"#include {i}\n" for i in includes))

    def expect(self, *words):
        breaches = check_layers.check(self.root)
        self.assertEqual(len(breaches), 1, breaches)
        for word in words:
            self.assertIn(word, breaches[0])

    def test_clean(self):
        self.assertEqual(check_layers.check(self.root), [])

    def test_includes(self):
        cases = [
            ("perdure/base/bad.cpp", '"perdure/medium/medium.hpp"', "may see base"),
            ("perdure/medium/bad.hpp", '"perdure/pool/heap.hpp"', "may see base, medium"),
            ("perdure/log/bad.cpp", '"perdure/tm/stm.hpp"', "perdure/log includes"),
            ("perdure/tm/bad.cpp", '"perdure/log/ring.hpp"', "perdure/tm includes"),
            ("perdure/pool/bad.cpp", '"perdure/log/ring.hpp"', "perdure/pool includes"),
            ("perdure/engine/undo/bad.cpp", '"perdure/engine/shadow/shadow.hpp"',
             "engine undo includes"),
            ("perdure/engine/undo/bad.cpp", '"perdure/api/pool.hpp"', "perdure/engine includes"),
            ("perdure/api/bad.cpp", '"perdure/container/map.hpp"', "perdure/api includes"),
            ("perdure/container/bad.hpp", '"perdure/engine/engine.hpp"',
             "may see api, value, container"),
            ("perdure/container/bad.hpp", '"perdure/base/status.hpp"',
             "may see api, value, container"),
            ("perdure/container/bad.hpp", '"perdure/perdure.hpp"', "front door"),
            ("perdure/container/bad.hpp", '"perdure/perdure.h"', "front door"),
            ("perdure/api/bad.hpp", '"perdure/perdure.hpp"', "front door"),
            ("perdure/api/bad.hpp", "<perdure.hpp>", "short names"),
            ("perdure/pool/bad.cpp", '"heap.hpp"', "expected"),
            ("perdure/pool/bad.cpp", '"../base/status.hpp"', "expected"),
            ("perdure/pool/bad.cpp", '"perdure/pool/../engine/engine.hpp"', "expected"),
            ("perdure/pool/bad.cpp", "<perdure/base/status.hpp>", "quotes"),
            ("perdure/pool/bad.cpp", '"perdure/common/util.hpp"', "no layer"),
            ("perdure/common/bad.cpp", "<vector>", "not in the table"),
            ("perdure/bad.cpp", "<vector>", "beside the front doors"),
            ("perdure/medium/bad.hpp", '"testing/trace.hpp"', "expected"),
            ("perdure/api/bad.hpp", '"testing/crashtest.hpp"', "expected"),
            ("perdure/engine/bad.hpp", '"papers/rewind/rewind_calls.hpp"', "expected"),
            ("papers/bad.hpp", '"testing/trace.hpp"', "expected"),
            ("papers/softwrap/bad.hpp", '"papers/rewind/rewind_log.hpp"',
             "paper softwrap includes"),
            ("testing/bad.hpp", '"papers/rewind/rewind_calls.hpp"', "expected"),
            ("testing/bad.hpp", '"perdure/container/map.hpp"', "of perdure/ it may see"),
            ("testing/bad.hpp", '"perdure/perdure.hpp"', "of perdure/ it may see"),
            ("testing/bad.hpp", '"tests/engine/suite.hpp"', "expected"),
            ("testing/bad.cpp", "<perdure/base/status.hpp>", "quotes"),
        ]
        for name, include, word in cases:
            with self.subTest(f"{name} {include}"):
                self.source(name, include)
                self.expect(name, word)
                (self.root / name).unlink()

    def test_descriptors(self):
        cases = [
            ("perdure/medium/bad.cpp", "int f() { return ::open(p, O_RDONLY | O_CLOEXEC); }",
             "::open("),
            ("perdure/medium/bad.cpp", "int f() { return open(p, O_RDONLY); }", "open("),
            ("perdure/pool/bad.cpp", "std::ifstream in(path);", "std::ifstream"),
            ("perdure/engine/bad.cpp", "int fd = shm_open(name, O_RDWR, 0600);", "shm_open("),
            ("perdure/engine/bad.cpp", "int fd = ::memfd_create(name, 0);", "memfd_create("),
            ("sqlite/bad.cpp", "FILE* f = std::fopen(name, mode);", "fopen("),
            ("tools/bad.cpp", "if (::pipe2(ends, O_CLOEXEC) != 0) return;", "::pipe2("),
            ("tools/bad.cpp", "int n = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);", "F_DUPFD_CLOEXEC"),
        ]
        for name, code, word in cases:
            with self.subTest(f"{name} {code}"):
                self.put(name, HEAD + code + "\n")
                self.expect(name, word, "descriptor.hpp")
                (self.root / name).unlink()
        allowed = (
            'auto pool = Pool::open(path); // ::open( of old\nopen(path, options);\nthrow '
            'error(system_failure(path, "shm_open(", e));\n')
        self.put("perdure/pool/good.cpp", HEAD + allowed)
        self.put("perdure/base/descriptor.cpp", HEAD + "int f() { return ::open(p, O_RDONLY); }\n")
        self.put("tests/pool/free.cpp", HEAD + "int f() { return ::open(p, O_RDONLY); }\n")
        self.assertEqual(check_layers.check(self.root), [])

    def test_slow_headers(self):
        cases = [
            ("tools/bad.cpp", "<CLI/CLI.hpp>", "tools/command.cpp alone"),
            ("tools/advise/command.cpp", "<CLI/App.hpp>", "tools/command.cpp alone"),
            ("tools/command.hpp", "<CLI/CLI.hpp>", "tools/command.cpp alone"),
            ("tools/advise/bad.hpp", "<nlohmann/json.hpp>", "tools/json.hpp"),
        ]
        for name, include, word in cases:
            with self.subTest(f"{name} {include}"):
                self.source(name, include)
                self.expect(name, word)
                (self.root / name).unlink()
        self.source("tools/command.cpp", "<CLI/CLI.hpp>")
        self.source("tools/good.cpp", "<nlohmann/json.hpp>")
        self.source("tools/json.hpp", "<nlohmann/json_fwd.hpp>")
        self.assertEqual(check_layers.check(self.root), [])

    def test_licence(self):
        for name in ("perdure/base/bad.hpp", "tools/bad.py", "tests/x/CMakeLists.txt",
                     "examples/bad.c"):
            with self.subTest(name):
                self.put(name, "\n\n")
                self.expect(name, "licence")
                (self.root / name).unlink()
        self.put("tools/script", "#!/bin/sh\n\n")
        self.expect("tools/script", "licence")

    def test_doc(self):
        self.put("docs/architecture.md",
                 f"{check_layers.BEGIN}\nanother table\n{check_layers.END}\n")
        self.expect("docs/architecture.md", "--table")
        self.put("docs/architecture.md", "no table\n")
        self.expect("docs/architecture.md", "found no table")

    def test_invariants(self):  # what is a breach: invariants_test.py
        self.put("perdure/log/ring.hpp", HEAD + "// RING-1 Records are in order.\n")
        self.expect("perdure/log/ring.hpp:2", "RING-1", "docs/invariants.md")


if __name__ == "__main__":
    unittest.main()
