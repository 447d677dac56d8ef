# SPDX-License-Identifier: BSD-3-Clause
"""xxhash as a Conan package, made of Debian's libxxhash-dev: it stands for ConanCenter's in a test.

So the test needs no network, and the recipe of Perdure is tried with an xxhash.h that lies in a
folder which no compiler searches by itself. The package has the static library, as ConanCenter's
has, though Perdure must not link it.
"""

import os
import re

from conan import ConanFile
from conan.tools.files import copy, load

INCLUDE, LIBRARIES = "/usr/include", "/usr/lib/x86_64-linux-gnu"


class Xxhash(ConanFile):
    name = "xxhash"
    settings = "os", "arch", "compiler", "build_type"
    package_type = "static-library"

    def set_version(self):
        text = load(self, os.path.join(INCLUDE, "xxhash.h"))
        self.version = ".".join(re.search(rf"define XXH_VERSION_{part} +(\d+)", text)[1]
                                for part in ("MAJOR", "MINOR", "RELEASE"))

    def package(self):
        copy(self, "xxh*.h", INCLUDE, os.path.join(self.package_folder, "include"))
        copy(self, "libxxhash.a", LIBRARIES, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.libs = ["xxhash"]
