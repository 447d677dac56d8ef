#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The vcpkg port and the Conan recipe fit this tree: version, options, dependencies, files.

Neither vcpkg nor Conan is needed: the port runs with stand-ins for vcpkg's functions, which print
what they are told. `./dev package --conan` runs the recipe itself.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "support"))

from limits import LimitedCase  # noqa: E402

ROOT = (SOURCE / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(perdure VERSION (\S+)", ROOT)[1]
OPTIONS = set(re.findall(r"^option\((PERDURE_\w+)\s", ROOT, re.M))
# What the library is built with: perdure_use_<name> in CMake. The ports give it the same name.
LIBRARIES = set(re.findall(r"^function\(perdure_use_(\w+) target\)",
                           (SOURCE / "cmake" / "PerdureLibrary.cmake").read_text(), re.M))
PORT = SOURCE / "packaging" / "vcpkg" / "perdure"
CONAN = SOURCE / "packaging" / "conan"
STAND_INS = """
set(PORT perdure)
set(CURRENT_PACKAGES_DIR ${CMAKE_CURRENT_BINARY_DIR}/package)
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  message("FEATURES ${arg_FEATURES}")
  set(${arg_OUT_FEATURE_OPTIONS} -DPERDURE_BUILD_TESTING=ON PARENT_SCOPE)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()
foreach(name IN ITEMS vcpkg_cmake_configure vcpkg_cmake_install vcpkg_cmake_config_fixup
        vcpkg_fixup_pkgconfig)
  cmake_language(EVAL CODE "function(${name})\\n  message(\\"${name} \\${ARGN}\\")\\nendfunction()")
endforeach()
"""


class Vcpkg(LimitedCase):
    def setUp(self):
        self.manifest = json.loads((PORT / "vcpkg.json").read_text())

    def test_the_manifest_has_the_version_of_the_project(self):
        self.assertEqual(self.manifest["version-semver"], VERSION)

    def test_the_dependencies_are_the_librarys(self):
        self.assertIn("lz4", LIBRARIES)
        given = {name for name in self.manifest["dependencies"] if isinstance(name, str)}
        self.assertEqual(given, LIBRARIES)

    def test_the_port_with_stand_ins(self):
        with tempfile.TemporaryDirectory(prefix="perdure-port-") as folder:
            script = Path(folder, "run.cmake")
            script.write_text(f"cmake_minimum_required(VERSION 3.25)\n{STAND_INS}\n"
                              f"include({PORT}/portfile.cmake)\n")
            done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True,
                                  cwd=folder, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            installed = {p.name for p in Path(folder, "package/share/perdure").iterdir()}
        self.assertEqual(installed, {"usage", "copyright"})
        called = dict(line.split(" ", 1) for line in done.stderr.splitlines() if " " in line)
        features = called["FEATURES"].split(";")
        self.assertEqual(set(features[::2]), set(self.manifest["features"]))
        self.assertLessEqual(set(features[1::2]), OPTIONS)
        configured = called["vcpkg_cmake_configure"].split(";")
        self.assertEqual(Path(configured[1]), SOURCE)
        given = {word[2:].split("=")[0] for word in configured if word.startswith("-D")}
        self.assertGreater(len(given), 4)
        self.assertLessEqual(given, OPTIONS)
        where = called["vcpkg_cmake_config_fixup"].split(";")[1]
        self.assertEqual(where, "lib/cmake/perdure")


class Conan(LimitedCase):
    recipe = (CONAN / "conanfile.py").read_text()

    def test_the_options_are_the_projects(self):
        names = re.search(r"for option in \(([^)]*)\)", self.recipe)[1]
        given = {f"PERDURE_BUILD_{name}" for name in re.findall(r'"(\w+)"', names)}
        given |= set(re.findall(r"PERDURE_BUILD_[A-Z]+", self.recipe))
        self.assertGreater(len(given), 5)
        self.assertLessEqual(given, OPTIONS)

    def test_the_requirements_are_the_librarys(self):
        self.assertEqual(set(re.findall(r'requires\("(\w+)/\[', self.recipe)), LIBRARIES)

    def test_each_requirement_can_be_the_systems(self):
        """An option says so, and a stand-in for ConanCenter's package is made in the test."""
        options = set(re.findall(r'"system_(\w+)": \[True, False\]', self.recipe))
        self.assertEqual(options, LIBRARIES)
        runs = (CONAN / "run.py").read_text()
        for name in LIBRARIES:
            stand_in = (CONAN / f"system_{name}" / "conanfile.py").read_text()
            self.assertIn(f'    name = "{name}"\n', stand_in)
            self.assertIn(f'HERE / "system_{name}"', runs)
            self.assertIn(f'"&:system_{name}=True"', runs)

    def test_the_sources_are_there(self):
        names = re.search(r"^SOURCES = \(([^)]*)\)", self.recipe, re.M)[1]
        patterns = re.findall(r'"([^"]+)"', names)
        self.assertIn("perdure/*", patterns)
        for pattern in patterns:
            self.assertTrue(list(SOURCE.glob(pattern)), pattern)

    def test_every_package_of_pypi_has_its_checksum(self):
        lines = [line for line in (CONAN / "requirements.txt").read_text().splitlines()
                 if line and not line.startswith(("#", "--only-binary"))]
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assertRegex(line, r"^[a-z0-9-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
