# SPDX-License-Identifier: BSD-3-Clause
"""The machine on which the figures were measured: recorded in the JSON and printed above the
tables."""

import os
import platform
import subprocess
from pathlib import Path


def _first(path, key):
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def _text(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "unknown"


def file_system(directory):
    """Returns (type, mount point) of the file system on which a directory lies."""
    path, best = os.path.realpath(directory), ("unknown", "")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        mount = mount.encode().decode("unicode_escape")
        if (path == mount or path.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(
                best[1]):
            best = (kind, mount)
    return best


def _compiler(build_dir):
    """Compiler and flags of the measured build, from CMake's own records."""
    wanted = {}
    try:
        for line in (Path(build_dir) / "CMakeCache.txt").read_text().splitlines():
            name, sep, value = line.partition("=")
            if sep:
                wanted[name.split(":")[0]] = value
    except OSError:
        return "unknown"
    compiler = wanted.get("CMAKE_CXX_COMPILER", "c++")
    kind = wanted.get("CMAKE_BUILD_TYPE", "")
    try:
        compiler = subprocess.run([compiler, "--version"], capture_output=True, text=True,
                                  timeout=20).stdout.splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        pass
    flags = (f"{wanted.get('CMAKE_CXX_FLAGS', '')} "
             f"{wanted.get('CMAKE_CXX_FLAGS_' + kind.upper(), '')}").strip()
    return f"{compiler}; {kind}: {flags}"


def _revision():
    try:
        here = Path(__file__).resolve().parent
        return subprocess.run(["git", "-C", here, "describe", "--always", "--dirty"],
                              capture_output=True, text=True,
                              timeout=20).stdout.strip() or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def _flag(name):
    return "yes" if name in _first("/proc/cpuinfo", "flags").split() else "no"


def facts(build_dir, directory):
    kind, mount = file_system(directory)
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "hypervisor": _flag("hypervisor"),
        "rtm": _flag("rtm"),
        "transparent_hugepage": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load": os.getloadavg()[0],
        "directory": str(directory),
        "file_system": f"{kind} at {mount}",
        "compiler": _compiler(build_dir),
        "revision": _revision(),
    }


def lines(f):
    return [
        f"machine   {f['cpu']}, {f['cpus']} "
        f"CPUs{' (virtual machine)' if f['hypervisor'] == 'yes' else ''}, {f['memory']}, "
        f"{f['kernel']}, "
        f"load {f['load']:.1f}",
        f"medium    {f['directory']} on {f['file_system']}",
        f"build     {f['compiler']}; revision {f['revision']}",
    ]
