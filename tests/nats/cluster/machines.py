# SPDX-License-Identifier: BSD-3-Clause
"""The machines of a cluster test: servers of the log, and those with a copy of the pool."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time


class Failure(Exception):
    """The cluster did what it must not do, or did not do what it must."""


def wait_until(f, seconds, what):
    end = time.monotonic() + seconds
    while not (found := f()):
        if time.monotonic() > end:
            raise Failure(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)
    return found


class Machine:
    """A machine with a folder, a disk that can become full where root may mount one, and the
    processes that were started on it."""

    disk_bytes = 192 << 20

    def __init__(self, network, name, folder):
        self.network, self.name, self.folder = network, name, os.path.join(folder, name)
        os.mkdir(self.folder)
        self.errors = self.folder + ".log"
        self.process = None
        self.mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={self.disk_bytes}", "perdure-test", self.folder],
            capture_output=True, check=False).returncode == 0

    def start(self, words, **options):
        with open(self.errors, "ab") as errors:
            return subprocess.Popen(self.network.command(self.name, words), stderr=errors,
                                    **options)

    def run(self, words):
        """(exit status, standard output, what was said)"""
        done = subprocess.run(self.network.command(self.name, words), capture_output=True,
                              text=True, timeout=180, check=False)
        return done.returncode, done.stdout, done.stderr.strip()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.alive():
            self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process = None

    def fill_disk(self):
        with open(os.path.join(self.folder, "filler"), "wb", buffering=0) as out:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        out.write(b"\0" * size)
                except OSError:
                    pass

    def empty_disk(self):
        filler = os.path.join(self.folder, "filler")
        if os.path.exists(filler):
            os.remove(filler)

    def lose_data(self):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.remove(path)

    def close(self):
        self.kill()
        if self.mounted:
            subprocess.run(["umount", "-l", self.folder], capture_output=True, check=False)


class LogServer(Machine):
    """A NATS server, one of several in a cluster."""

    def __init__(self, network, name, folder, program, names):
        super().__init__(network, name, folder)
        self.program = program
        self.config = os.path.join(folder, name + ".config")
        listen, route, monitor = (":".join(map(str, network.listens(name, service)))
                                  for service in ("client", "route", "monitor"))
        routes = ", ".join("nats-route://{}:{}".format(*network.reaches(name, other, "route"))
                           for other in names if other != name)
        # What a server tells of itself would lead around a proxy.
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"""
server_name: {name}
listen: {listen}
http: {monitor}
jetstream {{ store_dir: "{self.folder}", sync_interval: always, max_file: 128M }}
cluster {{ name: perdure, listen: {route}, routes: [ {routes} ], no_advertise: true,
  advertise: "127.0.0.1:1" }}
ping_interval: 2s
accounts {{ app: {{ jetstream: enabled, users: [ {{ user: app, password: app }} ] }}
  $SYS: {{ users: [ {{ user: system, password: secret }} ] }} }}
no_auth_user: app
""")

    def begin(self):
        if not self.alive():
            self.process = self.start([self.program, "-c", self.config])

    def leader_of(self, stream):
        """The name of the server that leads the stream, as this one knows it; None: it does not."""
        return (self.knows_of(stream).get("cluster") or {}).get("leader")

    def last_of(self, stream):
        """The last message that this server has."""
        return (self.knows_of(stream).get("state") or {}).get("last_seq", 0)

    def knows_of(self, stream):
        address = "http://{}:{}/jsz?accounts=true&streams=true".format(
            *self.network.listens(self.name, "monitor"))
        program = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=2)" \
                  ".read().decode())"
        code, text, _ = self.run([sys.executable, "-c", program, address])
        if code != 0:
            return {}
        for account in json.loads(text).get("account_details") or []:
            for one in account.get("stream_detail") or []:
                if one["name"] == stream:
                    return one
        return {}


class PoolMachine(Machine):
    """A machine with a copy of the pool: `perdure standby`, or the program that writes it."""

    def __init__(self, network, name, folder, cluster):
        super().__init__(network, name, folder)
        self.cluster = cluster
        self.pool = os.path.join(self.folder, "pool")
        self.lines, self.said, self.thread = queue.Queue(), [], None
        self.start_number = None

    def log(self):
        return self.cluster.log_for(self.name)

    def _begin(self, words):
        self.said = []
        self.process = self.start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self._listen, args=(self.process, self.said),
                                       daemon=True)
        self.thread.start()

    def _listen(self, process, said):
        for line in process.stdout:
            try:
                one = json.loads(line)
            except ValueError:
                continue
            self.cluster.heard(self, one)
            if "number" not in one:
                said.append(one)

    def primary_words(self):
        self.start_number = self.cluster.next_start()
        return [self.cluster.node, "primary", self.pool, "--log", self.log(), "--name", self.name,
                "--start", str(self.start_number), "--beat-ms", "500"]

    def begin_primary(self):
        self._begin(self.primary_words())

    def begin_standby(self, takes_over):
        words = [self.cluster.perdure, "standby", self.pool, "--log", self.log(), "--backups",
                 self.cluster.backups, "--name", self.name, "--every", "0.2", "--patience", "60",
                 "--json", "--remake"]
        if takes_over:
            then = " ".join(f"'{w}'" for w in self.primary_words())
            words += ["--take-over-after", "3", "--then", "exec " + then]
        self._begin(words)

    def remove_kept(self):
        """The files of copies that had diverged: somebody has looked at them."""
        for name in os.listdir(self.folder):
            if name.startswith("pool."):
                os.remove(os.path.join(self.folder, name))

    def last_words(self):
        with open(self.errors, encoding="utf-8", errors="replace") as said:
            return (said.read().splitlines() or ["nothing was said"])[-1]

    def opened(self):
        """Whether the program that writes the pool has opened it."""
        return any("open" in one for one in self.said)

    def ended(self):
        return next((one["end"] for one in self.said if "end" in one), None)

    def tell(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, AttributeError):
            pass

    def stop_in_order(self, seconds):
        if self.opened():
            self.tell("stop")
        else:
            self.send(signal.SIGTERM)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as e:
            raise Failure(f"{self.name} does not end") from e
        self.thread.join(timeout=10)
        code, self.process = self.process.returncode, None
        return code
