# SPDX-License-Identifier: BSD-3-Clause
"""lz4 as a Conan package, made of Debian's liblz4-dev: it stands for ConanCenter's in the test.

So the test needs no network, and the recipe of Perdure is tried with an lz4 that lies in a folder
which no compiler and no linker searches by itself.
"""

import os
import re

from conan import ConanFile
from conan.tools.files import copy, load

INCLUDE, LIBRARIES = "/usr/include", "/usr/lib/x86_64-linux-gnu"


class Lz4(ConanFile):
    name = "lz4"
    settings = "os", "arch", "compiler", "build_type"
    package_type = "static-library"

    def set_version(self):
        text = load(self, os.path.join(INCLUDE, "lz4.h"))
        self.version = ".".join(re.search(rf"define LZ4_VERSION_{part} +(\d+)", text)[1]
                                for part in ("MAJOR", "MINOR", "RELEASE"))

    def package(self):
        copy(self, "lz4*.h", INCLUDE, os.path.join(self.package_folder, "include"))
        copy(self, "liblz4.a", LIBRARIES, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.libs = ["lz4"]
