#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A compiler launcher (CMAKE_CXX_COMPILER_LAUNCHER) that writes down what each compilation takes.

  launcher.py LOG COMPILER ARGUMENT...

Appends one line of JSON to LOG: the object, the source, the processor time of the compiler and its
children, and the launcher's own, which is no part of a build's cost. One call writes the line, so
compilations that run at once don't mix. Exits as the compiler does.
"""
import json
import os
import sys
import time


def after(option, arguments):
    return arguments[arguments.index(option) + 1] if option in arguments[:-1] else None


def main(log, *command):
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    line = {"object": after("-o", command), "source": after("-c", command),
            "seconds": used.ru_utime + used.ru_stime, "launcher": time.process_time()}
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    os.write(file, (json.dumps(line) + "\n").encode())
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
