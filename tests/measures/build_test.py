#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a build, as ./dev measures --build takes it, on a made-up project."""

import json
import subprocess
import sys
import unittest

from made_up import HERE, CannotMeasure, MadeUp

import build_cost  # noqa: E402

PRESET = {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES C CXX)
add_library(made_up perdure/one.cpp perdure/two.c)
add_subdirectory(tools)
execute_process(COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CMAKE_C_COMPILER} -c perdure/two.c -o tried.o
                WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(no_ccache ALL COMMAND sh -c "test x$CCACHE_DISABLE = x1" VERBATIM)
"""
# Two processes, each of which works for 0.2 s of processor time.
WORK = """import os, time
child = os.fork()
while time.process_time() < 0.2: pass
child and os.waitpid(child, 0)
"""


class Build(MadeUp):
    def setUp(self):
        super().setUp()
        self.put("CMakePresets.json", json.dumps({"version": 6, "configurePresets": [PRESET]}))
        self.put("CMakeLists.txt", PROJECT)
        self.put("tools/CMakeLists.txt", "add_executable(tool main.cpp ../perdure/one.cpp)\n")
        self.put("perdure/one.cpp", "int one() { return 1; }\n")
        self.put("perdure/two.c", "int two(void) { return 2; }\n")
        self.put("tools/main.cpp", "int main() {}\n")
        self.folder = self.root / "build" / "measures"

    def measures(self, *only):
        return dict(build_cost.measures(self.root, self.folder, 2, only))

    def test_each_compilation_is_counted_once(self):
        self.put("build/measures/CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        result = self.measures()
        units = ["perdure/one.cpp (made_up)", "perdure/one.cpp (tools/tool)",
                 "perdure/two.c (made_up)", "tools/main.cpp (tools/tool)"]
        self.assertEqual(sorted(result["slowest_unit_seconds"].details["slowest"]), units)
        build = result["build_seconds"]
        self.assertEqual((build.details["units"], build.target), (4, 550))
        parts = build.details["seconds_by_part"]
        self.assertEqual(set(parts), {"library", "tools", "linking and the rest"})
        self.assertGreater(build.value, 0)
        self.assertGreaterEqual(parts["linking and the rest"], 0)
        self.assertFalse(self.folder.exists())

    def test_some_targets_have_no_target_for_their_total(self):
        build = self.measures("made_up")["build_seconds"]
        self.assertEqual(build.details["units"], 2)
        self.assertEqual(build.details["only"], ["made_up"])
        self.assertIsNone(build.met)

    def test_a_build_that_fails(self):
        self.put("perdure/one.cpp", "#error broken\n")
        with self.assertRaisesRegex(CannotMeasure, "cmake ended with"):
            self.measures()

    def test_numbers(self):
        units = [
            {"object": "CMakeFiles/p.dir/perdure/a.cpp.o", "source": "/r/perdure/a.cpp",
             "seconds": 15.0, "launcher": 0.5},
            {"object": "tests/x/CMakeFiles/t.dir/t.cpp.o", "source": "/r/tests/x/t.cpp",
             "seconds": 20.26, "launcher": 0.25},
            {"object": "sqlite/CMakeFiles/s.dir/__/perdure/a.cpp.o", "source": "/r/perdure/a.cpp",
             "seconds": 15.1, "launcher": 0.25}]
        result = dict(build_cost.evaluate("/r", 551.04, units))
        self.assertEqual(result["build_seconds"].value, 550.0)
        self.assertTrue(result["build_seconds"].met)
        self.assertEqual(result["build_seconds"].details["seconds_by_part"],
                         {"linking and the rest": 499.7, "tests": 20.3, "sqlite": 15.1,
                          "library": 15.0})
        unit = result["slowest_unit_seconds"]
        self.assertEqual((unit.value, unit.met, unit.details["above_the_target"]),
                         (20.26, False, 2))
        self.assertEqual(list(unit.details["slowest"]), [
            "tests/x/t.cpp (tests/x/t)", "perdure/a.cpp (sqlite/s)", "perdure/a.cpp (p)"])
        fast = dict(build_cost.evaluate("/r", 20, units[:1]))
        self.assertTrue(fast["slowest_unit_seconds"].met)


class Launcher(MadeUp):
    def launch(self, code):
        command = [sys.executable, HERE / "launcher.py", self.root / "log",
                   sys.executable, "-ISc", code, "-c", "a.cpp", "-o", "a.o"]
        done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        lines = (self.root / "log").read_text().splitlines()
        return done.returncode, [json.loads(line) for line in lines]

    def test_the_compiler_s_children_count_and_the_launcher_does_not(self):
        status, lines = self.launch(WORK)
        self.assertEqual(status, 0)
        line, = lines
        self.assertEqual((line["object"], line["source"]), ("a.o", "a.cpp"))
        self.assertGreaterEqual(line["seconds"], 0.4)
        self.assertLess(line["launcher"], line["seconds"])

    def test_it_exits_as_the_compiler(self):
        self.assertEqual(self.launch("raise SystemExit(3)")[0], 3)
        status, lines = self.launch("import os; os.kill(os.getpid(), 9)")
        self.assertEqual((status, len(lines)), (137, 2))


if __name__ == "__main__":
    unittest.main()
