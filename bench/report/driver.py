# SPDX-License-Identifier: BSD-3-Clause
"""Systems under test as processes that run in turn.

Each system is one process (bench/harness/serve.cpp, --serve) that opened and filled its structure;
it answers one request per line. A process without a request is stopped (SIGSTOP), so that its
background threads take no time from the measured one.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Failed(Exception):
    """A system could not be opened, measured or audited."""


def list_systems(executable):
    """The systems of an executable: a list of {name, about, structures, max_threads}."""
    done = subprocess.run([executable, "--list"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failed(f"{executable} --list: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Process:
    """One system with one structure. ask() wakes it, sends a request, and stops it again."""

    def __init__(self, executable, system, structure, directory, options=(), environment=None):
        self.system = system
        self.describe = ""
        self._errors = tempfile.TemporaryFile(mode="w+")
        command = [
            str(executable), "--serve", "--system", system, "--structure", structure, "--dir",
            str(directory), *map(str, options)
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors,
                                         env={**os.environ, **(environment or {})})
        self._unread = b""

    def wait_ready(self, timeout=300):
        """Waits until the structure is filled; then the process is stopped until the next
        request."""
        self.describe = self._answer(timeout)["describe"]
        self._process.send_signal(signal.SIGSTOP)

    def ask(self, request, timeout=120):
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
            answer = self._answer(timeout)
        except BrokenPipeError:
            self._fail("died")
        finally:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGSTOP)
        if "error" in answer:
            raise Failed(f"{self.system}: {answer['error']}")
        return answer

    def close(self):
        """Lets the process exit by itself (it removes its files); kills it if it does not."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _answer(self, timeout):
        """Returns the next line. It reads the pipe itself, because a buffered reader and select()
        do not work together."""
        fd, end = self._process.stdout.fileno(), time.monotonic() + timeout
        while b"\n" not in self._unread:
            left = end - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                self._process.kill()
                self._fail(f"gave no answer within {timeout} s and was killed")
            more = os.read(fd, 1 << 16)
            if not more:
                self._process.wait()
                self._fail(f"ended with status {self._process.returncode}")
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def _fail(self, what):
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        raise Failed(f"{self.system}: {what}" + (f": {' | '.join(said[-3:])}" if said else ""))
