# SPDX-License-Identifier: BSD-3-Clause
"""The Conan 2 recipe of Perdure, from the checkout that it lies in: conan create packaging/conan.

The targets in CMake are those of the installed package: perdure::perdure, perdure::testing,
perdure::papers. With system_lz4 the lz4 of the system is linked instead of Conan's package; with
system_xxhash the library is built with the system's xxhash.h. That header is compiled in, so a
program that uses Perdure never needs the package xxhash.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

PARTS = ("testing", "papers")
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake/*", "perdure/*", "papers/*", "testing/*")


class Perdure(ConanFile):
    name = "perdure"
    description = "Durable transactions for ordinary in-memory data structures"
    license = "BSD-3-Clause"
    topics = ("persistence", "transactions", "embedded-database", "persistent-memory")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "testing": [True, False], "papers": [True, False],
               "system_lz4": [True, False], "system_xxhash": [True, False]}
    default_options = {"shared": False, "testing": True, "papers": False, "system_lz4": False,
                       "system_xxhash": False}

    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._checkout(), "CMakeLists.txt"))
        self.version = re.search(r"project\(perdure VERSION (\S+)", text)[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._checkout(), self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration(f"found {self.settings.os} on {self.settings.arch}, "
                                            "expected Linux on x86_64")
        check_min_cppstd(self, 20)

    def requirements(self):
        if not self.options.system_lz4:
            self.requires("lz4/[>=1.9 <2]")
        if not self.options.system_xxhash:  # the header alone: nothing is linked or passed on
            self.requires("xxhash/[>=0.8 <1]", libs=False, visible=False)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("TESTS", "TOOLS", "EXAMPLES", "SQLITE", "BENCH"):
            toolchain.cache_variables[f"PERDURE_BUILD_{option}"] = False
        toolchain.cache_variables["PERDURE_BUILD_TESTING"] = bool(self.options.testing)
        toolchain.cache_variables["PERDURE_BUILD_PAPERS"] = bool(self.options.papers)
        toolchain.generate()
        CMakeDeps(self).generate()  # with it the toolchain says where they are

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan makes its own
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "perdure")
        library = self.cpp_info.components["perdure"]
        library.set_property("cmake_target_name", "perdure::perdure")
        library.set_property("pkg_config_name", "perdure")
        library.libs = ["perdure"]
        library.system_libs = ["pthread"]
        if not self.options.system_lz4:
            library.requires = ["lz4::lz4"]
        elif not self.options.shared:
            library.system_libs.append("lz4")
        for part in PARTS:
            if self.options.get_safe(part):
                component = self.cpp_info.components[part]
                component.set_property("cmake_target_name", f"perdure::{part}")
                component.set_property("pkg_config_name", f"perdure-{part}")
                component.libs = [f"perdure_{part}"]
                component.includedirs = [f"include/perdure-{part}"]
                component.requires = ["perdure"]
