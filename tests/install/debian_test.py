#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ./dev package says of Debian packages that have something wrong with them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "support"))
sys.path.insert(0, str(SOURCE / "packaging"))

import debian  # noqa: E402
from limits import LimitedCase  # noqa: E402

CONTROL = """Package: sample
Version: 1.0
Architecture: amd64
Section: libs
Depends: libc6
Installed-Size: 3
Maintainer: The Perdure authors
Description: a sample
"""


@unittest.skipUnless(shutil.which("dpkg-deb"), "found no dpkg-deb, which packages are made with")
class Packages(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-debian-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.root = self.folder / "root"
        self.write("usr/share/doc/sample/copyright", "the licence\n")
        self.write("usr/lib/text", "some text\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def package(self, control=CONTROL, owner="--root-owner-group"):
        self.write("DEBIAN/control", control)
        (self.root / "DEBIAN").chmod(0o755)
        result = self.folder / "sample.deb"
        subprocess.run(["dpkg-deb", *([owner] if owner else []), "--build", self.root, result],
                       stdout=subprocess.DEVNULL, check=True)
        return result

    def faults(self, **how):
        return "\n".join(debian.faults(self.package(**how), ["/the/checkout"]))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.faults(), "")
        row = debian.row_of(self.folder / "sample.deb")
        self.assertEqual((row["package"], row["depends"], row["installed_bytes"]),
                         ("sample", ["libc6"], 3072))

    def test_no_licence(self):
        (self.root / "usr/share/doc/sample/copyright").unlink()
        self.assertIn("found no usr/share/doc/sample/copyright", self.faults())

    def test_a_path_of_this_machine(self):
        self.write("usr/lib/text", "made in /the/checkout/build\n")
        self.assertIn("sample: /usr/lib/text: found '/the/checkout'", self.faults())

    def test_a_path_to_look_for_libraries(self):
        compiler = os.environ.get("CXX") or "c++"
        library = self.root / "usr/lib/sample.so"
        command = [compiler, "-shared", "-x", "c", "/dev/null", "-o", library]
        subprocess.run(command, check=True)
        self.assertEqual(self.faults(), "")
        subprocess.run([*command, "-Wl,-rpath,/somewhere"], check=True)
        self.assertRegex(self.faults(), r"sample.so: found \(RUNPATH\).*/somewhere")

    def test_no_description_and_no_dependency(self):
        lines = CONTROL.splitlines(keepends=True)
        found = self.faults(control="".join(s for s in lines if not s.startswith("Depends")))
        self.assertEqual(found, "sample: found no Depends, expected one")

    def test_another_owner(self):
        if os.geteuid() != 0:
            self.skipTest("files of another owner need root")
        os.chown(self.root / "usr/lib/text", 65534, 65534)
        self.assertIn("expected files that belong to root", self.faults(owner=None))

    def test_no_build(self):
        with self.assertRaisesRegex(debian.CannotPackage, "found no build of preset package"):
            debian.make(self.folder)

    def test_code_for_one_processor(self):
        (self.folder / "CPackConfig.cmake").touch()
        (self.folder / "build.ninja").write_text("FLAGS = -O3 -march=native\n")
        with self.assertRaisesRegex(debian.CannotPackage, "found -march=native"):
            debian.make(self.folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
