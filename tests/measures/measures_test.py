#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests that each measure counts what it says, and nothing else, on small made-up trees."""

import json
import subprocess
import unittest

from made_up import CannotMeasure, MadeUp

import compiled  # noqa: E402
import report  # noqa: E402
import structure  # noqa: E402
import tree  # noqa: E402
from measure import Measure  # noqa: E402

WIDE = "x" * 101
LINK = "https://example.org/" + "a" * 90
SKELETON = """
  tm_.commit([&](std::uint64_t drawn) {
    if (__builtin_expect(core_.poisoned(), 0)) return core_.lost(drawn, {});
  });
"""
BLOCK = """
  if (core_.poisoned()) {
    meanwhile();
    return core_.lost(drawn, {});
  }
"""


class Text(MadeUp):
    def measures(self):
        return dict(tree.measures(self.root, tree.paths_of(self.root)))

    def long_lines(self, path, *lines):
        self.put(path, "".join(line + "\n" for line in lines))
        return self.measures()["long_lines"].value

    def test_the_limit_is_a_hundred_columns(self):
        lines = "x" * 100, WIDE, "\t" + "x" * 93, "\t" + "x" * 92, "ü" * 100
        self.assertEqual(self.long_lines("perdure/a.hpp", *lines), 2)

    def test_every_kind_of_text_counts_and_data_does_not(self):
        for name in ("a.hpp", "a.h", "a.cpp", "a.c", "a.py", "a.sh", "a.cmake", "CMakeLists.txt",
                     "a.in", "a.md", "man/a.1", "a.pml", "a.css", "a.j2"):
            self.put(f"x/{name}", WIDE + "\n")
        self.put("dev", f"#!/bin/sh\n# {WIDE}\n")
        for name in ("a.json", "a.csv", "a.html", "a.txt", "LICENSE"):
            self.put(f"x/{name}", WIDE + "\n")
        result = self.measures()
        self.assertEqual(result["long_lines"].value, 15)
        self.assertEqual(result["long_lines"].details["by_folder"], {"x": 13, ".": 1, "x/man": 1})
        self.assertEqual(result["files"].value, 15)

    def test_rows_of_tables_are_exempt_in_markdown_alone(self):
        self.assertEqual(self.long_lines("a.md", f"| {WIDE} |", f"a | {WIDE} |"), 1)
        self.assertEqual(self.long_lines("a.cpp", f"| {WIDE} |"), 2)

    def test_what_commands_print_is_exempt_in_markdown_alone(self):
        console = "```console", WIDE, "```"
        self.assertEqual(self.long_lines("a.md", *console), 0)
        self.assertEqual(self.long_lines("a.md", *console, WIDE, "```cpp", WIDE, "```"), 2)
        self.assertEqual(self.long_lines("a.cpp", *console), 3)

    def test_a_line_whose_excess_is_a_link_is_exempt(self):
        links = f"see {LINK}.", f"see [the page]({LINK}),", LINK
        self.assertEqual(self.long_lines("a.md", *links), 0)
        self.assertEqual(self.long_lines("a.md", f"see {LINK} and more words", f"{WIDE} {LINK}"), 2)

    def test_exempt_files_and_literals(self):
        for path in ("papers/rewind/figures/a.md", "papers/rewind/figures.md", "papers/report/a.md",
                     "tests/compat/pools/v1/a.py", "tests/fuzz/corpus/ops/a.cpp"):
            self.put(path, WIDE + "\n")
        self.assertEqual(self.measures()["files"].value, 0)
        literal, comment = f'  "{WIDE}",', f'  "short",  # {WIDE}'
        self.assertEqual(self.long_lines("tests/mutants/table.py", literal, comment), 1)
        self.assertEqual(self.long_lines("tests/other/table.py", literal, comment), 3)

    def test_messages_of_deleted_members_are_exempt(self):
        self.assertEqual(self.long_lines("perdure/api/a.hpp", f"void f() = delete;  // {WIDE}"), 0)
        self.assertEqual(self.long_lines("perdure/api/a.hpp", f"void f();  // {WIDE}"), 1)

    def test_what_makes_the_papers_pages_is_not_exempt(self):
        self.assertEqual(self.long_lines("papers/figures/page.py", WIDE), 1)
        self.assertEqual(self.long_lines("papers/rewind/README.md", WIDE), 2)

    def test_files_per_folder_and_long_files(self):
        for path, lines in {"p/a.hpp": 250, "p/b.hpp": 251, "p/q/c.hpp": 500, "p/q/d.hpp": 501,
                            "p/q/e.md": 1, "p/q/f.json": 900, "f.py": 0}.items():
            self.put(path, "\n" * lines)
        result = self.measures()
        self.assertEqual(result["files_in_largest_folder"].value, 3)
        self.assertEqual(result["files_in_largest_folder"].details["by_folder"],
                         {"p/q": 3, "p": 2, ".": 1})
        self.assertEqual(list(result["files_above_250"].details["files"].items()),
                         [("p/q/d.hpp", 501), ("p/q/c.hpp", 500), ("p/b.hpp", 251)])
        self.assertEqual(result["files_above_500"].value, 1)

    def test_files_are_those_of_git(self):
        for path in ("kept.hpp", "new.hpp", "build/made.hpp", "deleted.hpp"):
            self.put(path)
        self.assertEqual(tree.paths_of(self.root), ["deleted.hpp", "kept.hpp", "new.hpp"])
        self.put(".gitignore", "/build/\n")
        for command in (["init", "-q"], ["add", "kept.hpp", "deleted.hpp"]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True)
        (self.root / "deleted.hpp").unlink()
        self.assertEqual(tree.paths_of(self.root), [".gitignore", "kept.hpp", "new.hpp"])


class Structure(MadeUp):
    def setUp(self):
        super().setUp()
        self.source("perdure/engine/undo/undo_impl.hpp", "perdure/log/ring.hpp", text=SKELETON)

    def measures(self):
        return dict(structure.measures(self.root, tree.paths_of(self.root)))

    def test_logs_of_one_engine(self):
        log = "perdure/log/"
        self.source(log + "ring.hpp", log + "record.hpp")
        self.source(log + "record.hpp", "<vector>")
        self.source(log + "ring.cpp", log + "ring.hpp", log + "own.hpp")  # own serves as ring does
        self.source(log + "own.hpp")
        # There is no scan.hpp: it belongs to torn.
        self.source(log + "scan.cpp", log + "torn.hpp", log + "record.hpp")
        self.source(log + "torn.hpp")
        self.source(log + "alias.hpp")
        self.source(log + "progress.hpp")
        self.source(log + "nobody.hpp")
        self.source("perdure/engine/bppm/bppm.hpp", "perdure/log/torn.hpp")
        self.source(log + "waits.hpp")
        self.source("perdure/engine/engine.hpp", "perdure/log/progress.hpp")  # the kit's
        self.source("perdure/engine/kit/waits.hpp", "perdure/log/waits.hpp")
        self.source("papers/softwrap/softwrap.hpp", "perdure/log/alias.hpp")
        self.source("perdure/api/open.cpp", "perdure/log/alias.hpp", "perdure/log/nobody.hpp")
        self.source("tests/log/ring_test.cpp", "perdure/log/ring.hpp")
        result = self.measures()["logs_of_one_engine"]
        self.assertEqual(result.details["by_engine"],
                         {"bppm": ["scan.cpp", "torn.hpp"], "softwrap": ["alias.hpp"],
                          "undo": ["own.hpp", "ring.cpp", "ring.hpp"]})  # record: bppm's, too
        self.assertEqual(result.details["of_no_engine"], ["perdure/log/nobody.hpp"])
        self.assertEqual((result.value, result.details["sources"]), (6, 10))
        self.source("perdure/engine/kit/logs.hpp", "perdure/log/ring.hpp")
        self.assertEqual(self.measures()["logs_of_one_engine"].value, 3)

    def test_commit_skeletons(self):
        self.source("perdure/engine/bppm/bppm_impl.hpp", text=SKELETON + BLOCK)
        self.put("papers/rewind/rewind.hpp",
                 "if (core_.poisoned()) return tell({}, core_.lost(drawn, {}));\n")
        self.source("perdure/engine/kit/commit.hpp", text=BLOCK)
        for name, text in {"a": "// if (poisoned()) return lost(id);",
                           "b": "if (poisoned()) return why();\nlost(id);",
                           "c": "if (poisoned()) { why(); }\nlost(id);",
                           "d": "if (!s.ok()) return core_.lost(drawn, s);"}.items():
            self.put(f"perdure/engine/softwrap/{name}.hpp", text)
        self.source("tests/engine/a.cpp", text=SKELETON)
        result = self.measures()["commit_skeletons"]
        self.assertEqual(result.details["files"],
                         {"papers/rewind/rewind.hpp": 1,
                          "perdure/engine/bppm/bppm_impl.hpp": 2,
                          "perdure/engine/kit/commit.hpp": 1,
                          "perdure/engine/undo/undo_impl.hpp": 1})
        self.assertEqual((result.value, result.met), (5, False))

    def test_a_criterion_that_finds_nothing_is_an_error(self):
        self.put("perdure/engine/undo/undo_impl.hpp", "if (core.failed()) return core.gone(id);\n")
        with self.assertRaisesRegex(CannotMeasure, "LOST_ID"):
            self.measures()

    def test_outward_includes(self):
        self.assertEqual(self.measures()["outward_includes"].value, 0)
        self.source("perdure/api/a.cpp", "papers/rewind/calls.hpp", "perdure/api/b.hpp")
        self.source("perdure/api/b.hpp", "../../testing/media.hpp", "./papers/x.hpp")
        self.put("perdure/c.hpp", "#include <testing/explorer.hpp>\n// #include <papers/x.hpp>\n")
        self.source("testing/explorer.cpp", "papers/rewind/calls.hpp")
        result = self.measures()["outward_includes"]
        self.assertEqual(result.details["includes"], [
            "perdure/api/a.cpp:1: papers/rewind/calls.hpp",
            "perdure/api/b.hpp:1: testing/media.hpp",
            "perdure/c.hpp:1: testing/explorer.hpp"])
        self.assertEqual((result.value, result.met), (3, False))


class Compiled(MadeUp):
    def options(self, *members):
        self.put("perdure/perdure.hpp", "\n".join([
            "#include <functional>", "#include <optional>", "#include <string>",
            "namespace perdure {", "enum class Mode { a, b };", "struct Nested { int x, y; };",
            "struct Options {", *members, "};", "}", ""]))
        return compiled.members_of_options(self.root)

    def test_members_of_options(self):
        self.assertEqual(self.options(
            "int a = 0, b = 1;", "std::string c = {};  // int no;", "Nested e = {};",
            "std::function<void(int, int)> d = {};", "std::optional<Mode> f;", "int g[3] = {};",
            "Mode h = Mode::b;", "static constexpr int none = 0;", "using T = int;",
            "bool ok() const { return a == b; }"), 8)
        self.assertEqual(self.options("int a = 0;"), 1)
        with self.assertRaisesRegex(CannotMeasure, "aggregate"):
            self.options("bool a;", "private: int b;")

    def test_headers_and_lines_of_a_program(self):
        self.put("elsewhere/user.cpp", "#include <perdure/perdure.hpp>\nint main() {}\n")
        program = self.root / "elsewhere" / "user.cpp"
        self.source("perdure/perdure.hpp", "perdure/api/a.hpp", "perdure/api/../b.hpp")
        self.source("perdure/api/a.hpp", "perdure/b.hpp", text="int a;\nint a2;\n")
        self.put("perdure/b.hpp", '#pragma once\n#ifdef NO\n#include "perdure/c.hpp"\n#endif\n')
        self.put("perdure/c.hpp")
        headers, lines = compiled.inclusion(self.root, program)
        self.assertEqual(headers, ["perdure/api/a.hpp", "perdure/b.hpp", "perdure/perdure.hpp"])
        self.assertEqual(lines, 3)
        self.put("perdure/b.hpp", "#pragma once\nint b;\n\n// a comment\nint b2;\n")
        self.assertEqual(compiled.inclusion(self.root, program), (headers, 5))
        self.put("perdure/b.hpp", "#include <cstddef>\n")  # not a header of the project
        self.assertEqual(compiled.inclusion(self.root, program)[0], headers)
        self.source("perdure/perdure.hpp", "perdure/missing.hpp")
        with self.assertRaisesRegex(CannotMeasure, "missing.hpp"):
            compiled.inclusion(self.root, program)


class Shown(MadeUp):
    COMMIT = {"commit": "c0ffee", "date": "2026-01-01", "clean": True}

    def document(self, **values):
        measures = {name: Measure(f"the {name}", value, target, {"by_folder": {"a": 1000}})
                    for name, (value, target) in values.items()}
        return json.loads(json.dumps(report.document(measures, self.COMMIT, "g++")))

    def test_targets_are_met_up_to_their_value(self):
        for value, met in ((14, True), (15, False)):
            self.assertIs(self.document(a=(value, 14))["measures"]["a"]["met"], met)
        self.assertIsNone(self.document(a=(1, None))["measures"]["a"]["met"])

    @staticmethod
    def rows(text):
        return [" ".join(line.split()) for line in text.splitlines()]

    def test_a_table_and_one_beside_a_kept_document(self):
        now = self.document(a=(1234, 14), b=(3, None), d=(0, 0))
        before = self.document(a=(5678, 14), c=(9, 4))
        rows = self.rows(report.table(now))
        self.assertEqual(rows[0], "measure now target")
        self.assertEqual(rows[2:], ["the a 1,234 <= 14 NOT MET", "the b 3", "the d 0 <= 0 met"])
        rows = self.rows(report.table(now, before))
        self.assertEqual(rows[0], "measure before now target")
        self.assertEqual(rows[2:], ["the a 5,678 1,234 <= 14 NOT MET", "the b - 3",
                                    "the d - 0 <= 0 met", "the c 9 - <= 4"])
        self.assertIn("    a: 1,000", report.text(now).splitlines())

    def test_a_kept_document_that_is_none(self):
        for text in ("{", "[]", '{"format": 0, "measures": {}}'):
            self.put("kept.json", text)
            with self.assertRaisesRegex(CannotMeasure, "kept.json"):
                report.load(self.root / "kept.json")
        with self.assertRaisesRegex(CannotMeasure, "can't be read"):
            report.load(self.root / "none.json")


if __name__ == "__main__":
    unittest.main()
