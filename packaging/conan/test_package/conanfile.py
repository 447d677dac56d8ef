# SPDX-License-Identifier: BSD-3-Clause
"""Builds a program against the package and runs it twice: the second run finds the first's pool."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class PerdureTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        folder = self.cpp.build.bindir
        pool = os.path.join(folder, "visits.perdure")
        if os.path.exists(pool):
            os.unlink(pool)
        for visits in (1, 2):
            self.run(f"{os.path.join(folder, 'visits')} {pool} {visits}", env="conanrun")
