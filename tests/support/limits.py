# SPDX-License-Identifier: BSD-3-Clause
"""A limit for each case of a Python test, as watchdog.hpp is for the GoogleTest programs.

A case that takes longer than its class's `case_limit` (60 s) ends the test: the stacks of all
Python threads and the command lines of all child processes are printed, the children are ended, and
the exit status is 1. PERDURE_CASE_LIMIT=SECONDS overrides the limit, 0 switches it off.
"""

import contextlib
import faulthandler
import os
import pathlib
import signal
import sys
import threading
import unittest

BACKSTOP = 15  # seconds more, after which faulthandler ends the process if no Python code can run


def children(pid):
    """The process numbers of all descendants of a process, parents first."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += [int(child), *children(int(child))]
    return found


def expire(what, seconds):
    print(
        f"\n[ WATCHDOG ] {what}: still running after {seconds:g} s, expected it to end within "
        "that. The stacks of all threads:", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(all_threads=True)
    for pid in children(os.getpid()):
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(
                b"\0", b" ").decode(errors="replace")
            print(f"child process {pid}, now ended: {line}", file=sys.stderr, flush=True)
            os.kill(pid, signal.SIGKILL)
    os._exit(1)


@contextlib.contextmanager
def limited(what, seconds):
    """The limit applies while the block runs."""
    seconds = float(
        os.environ.get("PERDURE_CASE_LIMIT",
                       seconds * float(os.environ.get("PERDURE_LIMIT_FACTOR", "1"))))
    if seconds <= 0:
        yield
        return
    timer = threading.Timer(seconds, expire, (what, seconds))
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(seconds + BACKSTOP, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        timer.cancel()


class LimitedCase(unittest.TestCase):
    """A unittest.TestCase whose cases have the limit, set-up and clean-up included."""

    case_limit = 60

    def run(self, result=None):
        with limited(self.id(), self.case_limit):
            return super().run(result)
