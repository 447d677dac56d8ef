#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev with stubs of apt, dpkg, sudo and cmake in PATH: the messages of a failed set-up step, and
what each command installs and configures."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("PERDURE_SOURCE", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "support"))

from limits import LimitedCase  # noqa: E402

DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n'
TOOLS = ("bash env awk grep cat sed tail head sort cut tr tee mkdir dirname nproc uname setarch "
         "true").split()
# Files in the stubs' folder: `installed` and `known` list packages, `refused` those that apt-get
# does not install.
STUBS = {
    "dpkg-query": 'for p; do :; done; grep -qx "$p" "$HERE/installed" && echo "ii "',
    # apt-cache writes more after the line that is searched for, as it does for a package of several
    # versions.
    "apt-cache": 'grep -qx "$2" "$HERE/known" || exit 0\nprintf "%s:\\n  Installed: (none)\\n  '
                 'Candidate: 1.0\\n" "$2"\n'
    'for i in {1..3000}; do echo "     $i 500 http://archive main"; done || exit 141',
    "apt-get": 'echo "apt-get $*" >>"$HERE/calls"\nfor word; do case $word in\n'
    '  update) [[ ! -e $HERE/no-network ]] || { echo "E: Could not resolve the archive" >&2; '
    'exit 100; } ;;\n  install) while [[ $1 != install ]]; do shift; done; shift\n'
    '    for p; do grep -qx "$p" "$HERE/refused" || echo "$p" >>"$HERE/installed"; done\n'
    '    for p; do if grep -qx "$p" "$HERE/refused"; then echo "E: $p: held back" >&2; exit 100; '
    'fi; done; break ;;\nesac; done',
    "cmake": 'echo "cmake $*" >>"$HERE/calls"',
    "go": 'echo "go $*" >>"$HERE/calls"',
    "ninja": "",
    "ctest": 'echo "ctest $*" >>"$HERE/calls"; echo "100% tests passed, 0 tests failed out of 1"',
}
SUDO = '[[ $1 != -n ]] || shift; exec "$@"'


class Dev(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-dev-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.stubs = self.root / "stubs"
        (self.root / "cmake").mkdir()
        (self.root / "packaging").mkdir()
        (self.root / "tests" / "porcupine").mkdir(parents=True)
        (self.root / "packaging" / "pypi.py").write_text(
            f"import sys\ncalls = open({str(self.stubs / 'calls')!r}, 'a')\n"
            "calls.write('pypi ' + ' '.join(sys.argv[1:]) + '\\n')\n")
        self.stubs.mkdir()
        shutil.copy(SOURCE / "dev", self.root / "dev")
        shutil.copy(SOURCE / "cmake" / "packages.txt", self.root / "cmake")
        for tool in TOOLS:
            (self.stubs / tool).symlink_to(shutil.which(tool, path="/usr/bin:/bin"))
        for name, text in STUBS.items():
            self.stub(name, text)
        if os.geteuid() != 0:
            self.stub("sudo", SUDO)
        for name in ("installed", "refused", "calls"):
            (self.stubs / name).touch()
        (self.stubs / "known").write_text("".join(p + "\n" for p in self.packages()))
        self.os_release(DEBIAN_12)

    def stub(self, name, text):
        path = self.stubs / name
        path.write_text(f"#!/bin/bash\nHERE={self.stubs}\n{text}\n")
        path.chmod(0o755)

    def os_release(self, text):
        (self.root / "os-release").write_text(text)

    @staticmethod
    def packages(*groups):
        lines = (SOURCE / "cmake" / "packages.txt").read_text().splitlines()
        rows = [line.split() for line in lines if line and not line.startswith("#")]
        return [package for group, package in rows if not groups or group in groups]

    def without(self, name, package):
        path = self.stubs / name
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()
                                if line != package))

    def dev(self, *arguments, **how):
        environment = {
            "PATH": str(self.stubs), "HOME": str(self.root),
            "PERDURE_OS_RELEASE": str(self.root / "os-release"), "PERDURE_JOBS": "1"
        }
        done = subprocess.run(["bash", self.root / "dev", *arguments],
                              env={**environment,
                                   **how.pop("environment", {})}, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, start_new_session=True, **how)
        return done.returncode, done.stderr + done.stdout

    def fails(self, *arguments, has, **how):
        status, said = self.dev(*arguments, **how)
        self.assertEqual(status, 1, said)
        for text in has:
            self.assertIn(text, said)
        return said

    def calls(self, of):
        return [
            line for line in (self.stubs / "calls").read_text().splitlines() if line.startswith(of)
        ]

    def as_user(self):
        """Arguments of dev() with which it runs as a user other than root."""
        if os.geteuid() != 0:
            return {}
        for path in (self.root, self.stubs):
            path.chmod(0o777)
        return {"user": 65534}

    # ---- failures ----

    def test_all_packages_known_and_installed(self):
        status, said = self.dev("setup", "core")
        self.assertEqual(status, 0, said)
        self.assertEqual(set(self.packages("core")),
                         set((self.stubs / "installed").read_text().split()))
        self.assertFalse(self.calls("apt-get -q -o Acquire::Retries=3 -o APT::Update"),
                         "lists that have all packages are not fetched again")

    def test_a_package_that_apt_does_not_have(self):
        self.without("known", "libgmock-dev")
        said = self.fails(
            "setup", "core", "test", has=[
                "missing packages: libgmock-dev\n",
                "what to do: add the archive 'main' of Debian 12", "./dev setup core test"
            ])
        self.assertNotIn("this system is", said)

    def test_no_network(self):
        (self.stubs / "known").write_text("")
        (self.stubs / "no-network").touch()
        self.fails(
            "setup", "format",
            has=["apt-get update failed", "missing packages: clang-format-19\n", "network, proxy"])

    def test_a_package_that_cannot_be_installed(self):
        (self.stubs / "refused").write_text("liblz4-dev\n")
        self.fails(
            "setup", "core", has=[
                "could not install", "missing packages: liblz4-dev\n", "what to do: ",
                "./dev setup core"
            ])

    def test_another_system(self):
        self.os_release(UBUNTU)
        self.without("known", "spin")
        self.fails(
            "setup", "models", has=[
                "missing packages: spin\n", "this system is Ubuntu 24.04.1 LTS",
                "Debian 12 (bookworm)"
            ])

    def test_a_user_without_sudo(self):
        (self.stubs / "sudo").unlink(missing_ok=True)
        self.fails(
            "setup", "models", has=[
                "neither root nor sudo", "missing packages: spin\n",
                "apt-get install -y --no-install-recommends spin"
            ], **self.as_user())

    def test_sudo_that_wants_a_password_without_a_terminal(self):
        self.stub("sudo",
                  '[[ $1 == -n ]] && exit 1; echo "sudo: a terminal is required" >&2; exit 1')
        self.fails("setup", "models",
                   has=["sudo wants a password", "missing packages: spin\n", "as root, once:"],
                   **self.as_user())

    def test_a_user_with_sudo(self):
        self.stub("sudo", SUDO)
        for name in ("installed", "calls"):
            (self.stubs / name).chmod(0o666)
        status, said = self.dev("setup", "models", **self.as_user())
        self.assertEqual(status, 0, said)
        self.assertIn("spin", (self.stubs / "installed").read_text())

    def test_no_set_up_and_no_cmake(self):
        (self.stubs / "cmake").unlink()
        self.fails("build", environment={"PERDURE_NO_SETUP": "1"},
                   has=["found no cmake", "Debian package cmake", "./dev setup core"])

    # ---- what each command installs and configures ----

    def installed_by(self, *arguments):
        _, said = self.dev(*arguments)
        return set((self.stubs / "installed").read_text().split()), said

    def test_the_demo_needs_no_tests(self):
        installed, _ = self.installed_by("demo")
        self.assertEqual(installed, set(self.packages("core", "demo")))
        self.assertEqual(self.calls("cmake --preset"), ["cmake --preset release"])
        presets = (SOURCE / "CMakePresets.json").read_text()
        for name in ("release", "bench"):
            own = re.search(r'"name": "%s",\s+"inherits": "base".*?\}\s+\}' % name, presets,
                            re.S)[0]
            self.assertIn('"PERDURE_BUILD_TESTS": "OFF"', own)

    def test_measures_need_the_tests_packages_for_a_build_alone(self):
        installed, _ = self.installed_by("measures", "--json")
        self.assertEqual(installed, set(self.packages("core")))
        installed, _ = self.installed_by("measures", "--build", "--json")
        self.assertEqual(installed, set(self.packages("core", "test")))
        self.assertFalse(self.calls("cmake"), "what is measured is what the script builds")

    def test_the_benchmarks_need_no_tests(self):
        installed, _ = self.installed_by("bench", "list")
        self.assertEqual(installed, set(self.packages("core", "bench")))
        self.assertEqual(self.calls("cmake --preset"), ["cmake --preset bench"])

    def test_packages_are_made_of_a_preset_of_their_own(self):
        installed, _ = self.installed_by("package")
        self.assertEqual(installed, set(self.packages("core", "package")))
        self.assertEqual(self.calls("cmake --preset"), ["cmake --preset package"])
        presets = (SOURCE / "CMakePresets.json").read_text()
        own = re.search(r'"name": "package",\s+"inherits": "release".*?\}\s+\}', presets, re.S)[0]
        self.assertIn('"PERDURE_STATIC_AND_SHARED": "ON"', own)

    def test_the_conan_recipe_builds_by_itself(self):
        installed, _ = self.installed_by("package", "--conan")
        self.assertEqual(installed, set(self.packages("core", "conan")))
        self.assertFalse(self.calls("cmake"))

    def test_the_tests_need_no_browser_and_no_model_checker(self):
        installed, said = self.installed_by("test")
        self.assertEqual(installed, set(self.packages("core", "test")))
        for name in ("chromium", "python3-selenium", "spin", "python3-matplotlib", "doxygen"):
            self.assertNotIn(name, installed)
        self.assertIn("-DPERDURE_TEST_GROUPS=\n", self.calls("cmake --preset")[0] + "\n")
        self.assertRegex(said, r"left out.*papers.*report.*models.*docs.*bench.*\./dev test --all")
        self.assertTrue(said.rstrip().endswith("100% tests passed, 0 tests failed out of 1"), said)

    def test_all_tests(self):
        installed, said = self.installed_by("test", "--all", "-R", "x")
        self.assertEqual(installed, set(self.packages("core", "test", "report", "models", "docs",
                                                       "callgrind", "clang", "nats", "s3",
                                                       "porcupine", "plain")))
        self.assertIn("-DPERDURE_TEST_GROUPS=report;models;docs;callgrind;clang;nats;s3;porcupine;"
                      "plain;bench;papers", self.calls("cmake --preset")[0])
        self.assertTrue(self.calls("ctest")[0].endswith("-R x"), self.calls("ctest"))
        self.assertNotIn("left out", said)
        self.assertEqual(self.calls("pypi"),
                         ["pypi build/tools/nats tests/nats/requirements.txt",
                          "pypi build/tools/s3 tests/s3/requirements.txt"])
        self.assertRegex(self.calls("go")[0], r"^go build .*/build/tools/porcupine/check \.$")
        self.assertIn("-DPERDURE_BUILD_NATS=ON", self.calls("cmake --preset")[0])
        self.assertIn("-DPERDURE_BUILD_S3=ON", self.calls("cmake --preset")[0])
        self.assertIn("-DPERDURE_BUILD_PLAIN=ON", self.calls("cmake --preset")[0])

    def test_the_quick_tests(self):
        installed, said = self.installed_by("test", "--quick")
        self.assertEqual(installed, set(self.packages("core", "test")))
        self.assertIn("--target label-quick", self.calls("cmake --build")[0])
        self.assertTrue(self.calls("ctest")[0].endswith("-L ^(quick)$"), self.calls("ctest"))
        self.assertIn("a choice of each layer's tests", said)
        self.fails("test", "--quick", "--all",
                   has=["found --quick and --all, expected one of them"])

    def test_a_label_asks_for_its_group(self):
        installed, _ = self.installed_by("test", "--label", "log,models")
        self.assertEqual(installed, set(self.packages("core", "test", "models")))
        self.assertIn("-DPERDURE_TEST_GROUPS=models;papers", self.calls("cmake --preset")[0])

    def test_a_part_that_is_chosen_by_name_may_be_a_papers(self):
        installed, said = self.installed_by("test", "-R", "rewind")
        self.assertEqual(installed, set(self.packages("core", "test")))
        self.assertIn("-DPERDURE_TEST_GROUPS=papers", self.calls("cmake --preset")[0])

    def test_the_documentation_builds_nothing(self):
        installed, _ = self.installed_by("docs")
        self.assertEqual(installed, set(self.packages("core", "docs")))
        self.assertFalse(self.calls("cmake"), "what is described is the headers")
        self.fails("docs", "html", has=["found 'html', expected: ./dev docs"])

    def test_tests_of_the_release_preset(self):
        self.dev("test", "--preset", "release")
        self.assertIn("--preset release -DPERDURE_BUILD_TESTS=ON", self.calls("cmake --preset")[0])

    # ---- CMake's own errors ----

    def test_every_target_names_a_listed_package(self):
        text = (SOURCE / "cmake" / "PerdureBuild.cmake").read_text()
        rows = re.findall(r"^  (\w+::\w+)=(\w+)=([\w-]+)\)?$", text, re.M)
        self.assertGreater(len(rows), 5)
        for target, _, package in rows:
            self.assertIn(package, self.packages("core", "test"), target)

    def test_what_the_library_is_built_with_is_listed(self):
        text = (SOURCE / "cmake" / "PerdureLibrary.cmake").read_text()
        named = re.findall(r"perdure_missing\(\S+ ([\w-]+)\)", text)
        self.assertIn("liblz4-dev", named)
        self.assertLessEqual(set(named), set(self.packages("core")))

    def test_a_package_without_one_of_its_parts(self):
        """GoogleTest is found, GoogleMock is missing: libgtest-dev alone is installed."""
        (self.root / "GTestConfig.cmake").write_text(
            "add_library(GTest::gtest INTERFACE IMPORTED)\n")
        (self.root / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES NONE)\n"
            f"include({SOURCE}/cmake/PerdureBuild.cmake)\nperdure_require(GTest::gtest)\n"
            "message(STATUS one)\nperdure_require(GTest::gtest GTest::gmock)\n")
        done = subprocess.run([
            "/usr/bin/cmake", "-S", self.root, "-B", self.root / "build", f"-DGTest_DIR={self.root}"
        ], capture_output=True, text=True, check=False)
        said = " ".join((done.stdout + done.stderr).split())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("one", said)
        self.assertIn("GTest::gmock was not found. On Debian 12 it is in the package libgmock-dev",
                      said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
