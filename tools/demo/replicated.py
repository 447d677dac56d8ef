#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads real data into a replicated pool while its primary and the servers of its log are killed;
standbys take over, and nothing that a quorum had is lost.

`./dev demo --replicated` runs this. Steps:
  1. three NATS servers are started on loopback, in one cluster, each of which syncs every message.
  2. `perdure load --replicate` loads the input (as ./dev demo finds it, or --input), the primary;
     `perdure backup` makes a backup, of which two standbys are made.
  3. --failovers times: the primary is killed, or stopped for a while, at a random row; a standby is
     promoted and goes on loading; the copy of before comes back as a standby, or is made anew where
     it has diverged. Now and then a server of the log is killed, and started again later. In every
     second term rows count as loaded when a quorum has them, in the others when they are durable in
     the primary alone: how many of those a failover takes is counted.
  4. the load ends; all three copies are exported and compared byte for byte with the input, and
     checked.
Prints what it found, writes replicated.json and replicated.png (the rows, and how far the standbys
were behind) to --out, removes its temporary folder. Exit status: as demo.py.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from demo import (CannotRun, Failure, Loader, add_common_options, input_of,  # noqa: E402
                  median, run_demo, run_json, say, verify)
from nats_servers import Servers  # noqa: E402


class Standby:
    """`perdure standby`, whose reports are kept."""

    def __init__(self, demo, copy):
        self.copy = copy
        self.reports = []  # (time, behind in ms)
        self.process = subprocess.Popen(
            [demo.perdure, "standby", demo.path(copy), "--log", demo.log, "--backups",
             demo.backups, "--name", copy, "--every", "0.1", "--patience", "60", "--json",
             "--remake"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._read, self._hear)]
        self.said = b""
        for thread in self.threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            try:
                self.reports.append((time.monotonic(), json.loads(line)))
            except ValueError:  # an error, which is on standard error, too
                return

    def _hear(self):
        self.said = self.process.stderr.read()

    def stop(self):
        """Ends it in order. Returns whether it had to make its copy anew."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        for thread in self.threads:
            thread.join()
        if code != 0:
            raise Failure(f"standby {self.copy} ended with {code}: {self.said.decode()}")
        return b"made anew" in self.said

    def wait_until_it_follows(self):
        """A copy that was the primary may have to be made anew first."""
        end = time.monotonic() + 120
        while not (self.reports and self.reports[-1][1]["caught_up"]):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Failure(f"standby {self.copy} does not come to the end of the log: "
                              f"{self.said.decode() or self.reports[-1:]}")
            time.sleep(0.05)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()


class Demo:
    COPIES = ("a", "b", "c")

    def __init__(self, options, folder, source, extra):
        self.options, self.folder, self.source, self.extra = options, folder, source, extra
        self.perdure = options.perdure
        self.backups = os.path.join(folder, "backups")
        self.seed = options.seed if options.seed is not None else random.SystemRandom().randrange(
            1 << 32)
        self.random = random.Random(self.seed)
        self.zero = time.monotonic()
        self.standbys, self.curve, self.behind, self.failovers = {}, [], [], []
        self.remade = 0
        self.loader, self.primary, self.server_down = None, "a", None
        self.servers = Servers(options.nats_server, os.path.join(folder, "servers"), 3)
        self.log = self.servers.log("demo")

    def path(self, copy):
        return os.path.join(self.folder, f"copy-{copy}.perdure")

    def run(self, *command):
        code, answer, message = run_json([self.perdure, *command, "--json"])
        if code != 0:
            raise Failure(f"perdure {' '.join(command)} ended with {code}: {message}")
        return answer

    def follow(self, copy):
        self.standbys[copy] = Standby(self, copy)

    def unfollow(self, copy):
        standby = self.standbys.pop(copy)
        self.remade += standby.stop()
        self.behind += [(t - self.zero, copy, r["behind_ms"]) for t, r in standby.reports]

    def load(self, level):
        """Starts a load by the primary. Waits until it has opened the pool; how many rows it has
        found."""
        self.loader = Loader(self.perdure, self.path(self.primary), self.source,
                             self.extra + ["--replicate", self.log, "--ack", level],
                             self.options.batch)
        while self.loader.open is None:
            if self.loader.process.poll() is not None:
                raise Failure(self.loader.explain(self.loader.wait()))
            time.sleep(0.01)
        return self.loader.open["rows"]

    def take_curve(self):
        self.curve += [(t - self.zero, rows) for t, rows in self.loader.history]

    def fail_over(self, level, target):
        """Lets the primary load up to a row, takes it away, and promotes a standby. Returns False
        if the load has ended before."""
        if not self.loader.wait_for_rows(target):
            return False
        if self.random.random() < 0.25 and self.server_down is None:
            self.server_down = self.random.randrange(3)
            self.servers.kill(self.server_down)
        elif self.server_down is not None:
            self.servers.start(self.server_down)
            self.server_down = None
        successor = self.random.choice([c for c in self.COPIES if c != self.primary])
        stopped = self.random.random() < 0.3
        begun = time.monotonic()
        if stopped:
            self.loader.process.send_signal(signal.SIGSTOP)
        else:
            self.loader.kill()
        self.unfollow(successor)
        self.run("promote", self.path(successor), "--log", self.log, "--patience", "60")
        if stopped:  # it goes on as if nothing had happened, and is refused
            self.loader.process.send_signal(signal.SIGCONT)
            code = self.loader.wait()
            if code == 0:
                raise Failure("a primary that was deposed went on to the end")
        reported = self.loader.rows
        self.take_curve()
        before, self.primary = self.primary, successor
        seconds = time.monotonic() - begun
        # The rest waits until there are two standbys again: the input is short.
        self.follow(before)
        for standby in self.standbys.values():
            standby.wait_until_it_follows()
        next_level = "quorum" if level == "local" else "local"
        found = self.load(next_level)
        lost = max(0, reported - found)
        self.failovers.append({"time": begun - self.zero, "seconds": seconds, "ack": level,
                               "stopped": stopped, "log_server_down": self.server_down is not None,
                               "reported": reported, "found": found, "lost": lost})
        if level == "quorum" and lost != 0:
            raise Failure(f"copy {successor} took over with {found} rows; a quorum had {reported}")
        return next_level

    def go(self, rows):
        level = "quorum"
        self.load(level)
        if not self.loader.wait_for_rows(1):
            raise CannotRun("the input is too small")
        self.loader.process.send_signal(signal.SIGSTOP)
        self.run("backup", self.path("a"), self.backups)
        # The log gets what the backup has.
        self.loader.process.send_signal(signal.SIGCONT)
        self.loader.wait_for_rows(self.loader.rows + 20 * self.options.batch)
        self.loader.process.send_signal(signal.SIGSTOP)
        for copy in self.COPIES[1:]:
            self.follow(copy)
        for standby in self.standbys.values():
            standby.wait_until_it_follows()
        self.loader.process.send_signal(signal.SIGCONT)
        for n in range(self.options.failovers):
            begun = self.loader.open["rows"]
            ahead = (rows - begun) / (self.options.failovers - n + 1)
            level = self.fail_over(level, begun + 1 + int(ahead * self.random.uniform(0.3, 1)))
            if not level:
                raise CannotRun(f"the load ended after {n} of {self.options.failovers} failovers: "
                                "the input is too small for this machine")
            say(f"failover {n + 1}: {self.failovers[-1]['seconds']:.1f} s, copy {self.primary} has "
                f"{self.failovers[-1]['found']:,} rows")
        if self.loader.wait() != 0:
            raise Failure(self.loader.explain(self.loader.process.returncode))
        self.take_curve()
        checks = {}
        for copy in self.COPIES:
            if copy != self.primary:
                self.unfollow(copy)
                self.run("standby", self.path(copy), "--log", self.log, "--once", "--patience",
                         "60")
            checks[copy] = verify(self.perdure, self.path(copy), self.source, self.folder,
                                  f"copy {copy}")
        return checks

    def end(self):
        if self.loader is not None and self.loader.process.poll() is None:
            self.loader.process.kill()
            self.loader.process.wait()
        for standby in self.standbys.values():
            standby.kill()
        self.servers.end()


def plot(path, demo, rows):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as e:
        say(f"plot: left out ({e}); install python3-matplotlib")
        return None
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(10, 7), sharex=True)
    upper.plot([t for t, _ in demo.curve], [n for _, n in demo.curve], color="tab:blue",
               linewidth=1.2, label="rows acknowledged by the primary")
    upper.axhline(rows, color="grey", linewidth=0.8, linestyle="--", label=f"all {rows:,} rows")
    for copy, colour in zip(Demo.COPIES, ("tab:green", "tab:purple", "tab:brown")):
        points = [(t, max(ms, 0.1)) for t, name, ms in demo.behind if name == copy]
        lower.plot([t for t, _ in points], [ms for _, ms in points], ".", color=colour,
                   markersize=3, label=f"copy {copy}")
    for axes in (upper, lower):
        for n, one in enumerate(demo.failovers):
            axes.axvspan(one["time"], one["time"] + one["seconds"], color="tab:red", alpha=0.15,
                         label="failover" if n == 0 else None)
        axes.legend(loc="upper left", fontsize=8)
    lower.set_yscale("log")
    upper.set(ylabel="rows", title=f"{rows:,} records, {len(demo.failovers)} failovers, nothing "
                                   "lost that a quorum had")
    lower.set(xlabel="seconds", ylabel="ms since a standby had all that the log had")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def report(result):
    say()
    say(f"input                      {result['what']}: {result['bytes']:,} bytes, "
        f"{result['rows']:,} records")
    for ack in ("quorum", "local"):
        those = [f for f in result["failovers"] if f["ack"] == ack]
        lost = sum(f["lost"] for f in those)
        say(f"acknowledged as {ack:7}    {len(those)} failovers, {lost} records lost")
    seconds = [f["seconds"] for f in result["failovers"]]
    down = sum(f["log_server_down"] for f in result["failovers"])
    say(f"failovers                  {len(seconds)}: median {median(seconds):.1f} s, longest "
        f"{max(seconds):.1f} s, until a standby is the primary; a server of the log was down in "
        f"{down}")
    say(f"copies made anew           {result['remade']}: they had diverged")
    say(f"standbys behind            median {result['behind_median_ms']:.0f} ms while they "
        "followed")
    say(f"export of all three copies byte for byte the input ({result['bytes']:,} bytes)")


def run(options, folder):
    source, extra, what = input_of(options, folder)
    size = os.path.getsize(source)
    say(f"input: {what}, {size:,} bytes")
    plain = os.path.join(folder, "plain.perdure")
    code, summary, message = run_json([options.perdure, "load", plain, source, "--json", *extra])
    if code != 0:
        raise CannotRun(f"load ended with {code}: {message}")
    os.remove(plain)
    demo = Demo(options, folder, source, extra)
    try:
        say(f"three NATS servers; {summary['rows']:,} records, {options.failovers} failovers (seed "
            f"{demo.seed})")
        checks = demo.go(summary["rows"])
    finally:
        demo.end()
    return {
        "what": what, "bytes": size, "rows": summary["rows"], "seed": demo.seed,
        "failovers": demo.failovers, "remade": demo.remade, "checks": checks,
        "behind_median_ms": median([ms for _, _, ms in demo.behind]), "ok": True,
        "plot": plot(os.path.join(options.out, "replicated.png"), demo, summary["rows"]),
    }


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()),
                                     epilog="Example: ./dev demo --replicated --failovers 20",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser, "replicated")
    parser.add_argument("--nats-server", default="build/tools/nats/venv/bin/nats-server",
                        help="the server's program (default: %(default)s)")
    parser.add_argument("--failovers", type=int, default=6, metavar="N",
                        help="how many (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=16, metavar="N",
                        help="records a transaction (default: %(default)s)")
    options = parser.parse_args()
    if options.failovers < 1:
        parser.error(f"found --failovers {options.failovers}, expected 1 or more")
    options.perdure = os.path.abspath(options.perdure)
    options.nats_server = os.path.abspath(options.nats_server)
    return run_demo(options, "replicated", [options.perdure, options.nats_server], run, report)


if __name__ == "__main__":
    sys.exit(main())
