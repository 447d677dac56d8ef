#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A replicated pool on machines that fail: three servers of the log, a primary and a standby, each
on a machine of its own, between which the network can be cut.

`./dev explore --cluster` runs this. A cell is a fault, the machine that it meets, and what goes on
meanwhile. After each cell the list in the pool is compared with what was acknowledged: nothing that
a quorum had is missing, nothing of what was only durable in a primary that the log had, and nothing
is there twice. Without --cells all cells run, in an order that the seed gives; with it so many of
them, with at least one that cuts the network. Where the system has no network namespaces (root),
proxies on loopback stand for them. Exit status: 0 nothing is wrong, 1 something is, 3 it could not
run.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import network  # noqa: E402
from machines import Failure, LogServer, PoolMachine, wait_until  # noqa: E402

CUTS = ("partition", "deaf", "mute")
FAULTS = ("kill", "stop", *CUTS, "slow", "disk full", "data gone")
TARGETS = ("primary", "standby", "log leader", "log follower")
ACTIVITIES = ("idle", "load", "election", "backup", "trim", "growth")
ENDS_A_PRIMARY = ("kill", "stop", *CUTS, "disk full", "data gone")
NOT_INJECTED = ["errors of a disk (EIO): tests/faults has them call by call, without a cluster"]


class Cluster:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.perdure, self.node = options.perdure, options.node
        self.backups = os.path.join(folder, "backups")
        self.numbers = itertools.count(1)
        self.acknowledged = {True: {}, False: {}}  # quorum or not: number -> transaction
        self.shipped = {}  # start -> the last transaction that the log was known to have
        self.seen = 0      # acknowledgements of a quorum
        names = [f"log{i}" for i in range(3)]
        self.network, self.why_no_namespaces = network.make(names + ["pool0", "pool1"],
                                                            options.network)
        self.servers, self.pools = {}, []
        try:
            self.servers = {name: LogServer(self.network, name, folder, options.nats_server, names)
                            for name in names}
            self.pools = [PoolMachine(self.network, f"pool{i}", folder, self) for i in range(2)]
        except BaseException:
            self.close()
            raise

    def close(self):
        for machine in [*self.pools, *self.servers.values()]:
            machine.close()
        self.network.close()

    def log_for(self, machine):
        hosts = ",".join("{}:{}".format(*self.network.reaches(machine, name, "client"))
                         for name in self.servers)
        return f"nats://{hosts}/list?replicas=3&patience_ms=2000&system=system:secret"

    def next_start(self):
        return next(self.numbers)

    def heard(self, machine, one):
        """A line of a machine's program."""
        if "number" in one:
            self.acknowledged[one["quorum"]][one["number"]] = one["id"]
            self.seen += one["quorum"]
        elif "shipped" in one:
            self.shipped[machine.start_number] = one["shipped"]

    # ---- what is to happen ------------------------------------------------------------------

    def begin(self):
        for server in self.servers.values():
            server.begin()
        first, second = self.pools
        first.begin_primary()
        wait_until(first.opened, 120, "the first opening of the pool")
        self.progress(first)
        self.backup(first)
        second.begin_standby(False)
        self.primary, self.standby = first, second

    def progress(self, machine):
        """A quorum acknowledges what the machine's program writes."""
        machine.tell("run")
        seen = self.seen

        def has():
            if not machine.alive():
                raise Failure(f"the program of {machine.name} has ended: {machine.ended()}")
            return self.seen > seen + 5
        wait_until(has, 90, f"a quorum acknowledges what {machine.name} writes")

    def backup(self, machine):
        code, _, said = machine.run([self.perdure, "backup", machine.pool, self.backups])
        if code != 0:
            raise Failure(f"a backup of {machine.name}: {said}")

    @staticmethod
    def follows(machine):
        if not machine.alive():
            raise Failure(f"the standby on {machine.name} has ended: {machine.last_words()}")
        return any(one.get("caught_up") for one in machine.said)

    def promote(self):
        """An operator makes the standby the primary."""
        machine = self.standby
        machine.stop_in_order(60)

        def done():
            code, _, said = machine.run([self.perdure, "promote", machine.pool, "--log",
                                         machine.log(), "--patience", "20"])
            if code != 0 and "no answer" not in said and "unavailable" not in said:
                raise Failure(f"a promotion of {machine.name}: {said}")
            return code == 0
        wait_until(done, 120, f"{machine.name} is promoted")
        machine.begin_primary()
        wait_until(machine.opened, 120, f"{machine.name} opens the pool")

    def swap(self):
        self.primary, self.standby = self.standby, self.primary

    # ---- faults -------------------------------------------------------------------------------

    def victim(self, target, rng):
        if target in ("primary", "standby"):
            return self.primary if target == "primary" else self.standby
        leader = wait_until(lambda: next(
            filter(None, (s.leader_of("list") for s in self.servers.values() if s.alive())), None),
            60, "the log has a leader")
        if target == "log leader":
            return self.servers[leader]
        return self.servers[rng.choice([n for n in self.servers if n != leader])]

    def inject(self, fault, victim):
        others = [m.name for m in [*self.pools, *self.servers.values()] if m is not victim]
        if fault in ("kill", "data gone"):
            victim.kill()
            if fault == "data gone":
                victim.lose_data()
        elif fault == "stop":
            victim.send(signal.SIGSTOP)
        elif fault == "disk full":
            victim.fill_disk()
        for other in others if fault in CUTS else []:
            if fault in ("partition", "mute"):
                self.network.cut(victim.name, other)
            if fault in ("partition", "deaf"):
                self.network.cut(other, victim.name)

    def hold(self, fault, victim, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if fault == "slow":
                victim.send(signal.SIGSTOP)
                time.sleep(0.09)
                victim.send(signal.SIGCONT)
            time.sleep(0.01)

    def heal(self, victim):
        self.network.heal()
        victim.empty_disk()
        victim.send(signal.SIGCONT)

    # ---- a cell -----------------------------------------------------------------------------

    def during(self, activity, victim, rng):
        """What goes on while the fault is there; returns what ends it."""
        if activity == "idle":
            self.primary.tell("pause")
        elif activity == "growth":
            self.primary.tell("grow")
        elif activity == "election":
            other = rng.choice([s for s in self.servers.values() if s is not victim])
            other.kill()
            return other.begin
        elif activity in ("backup", "trim"):
            words = [self.perdure, "backup", self.primary.pool, self.backups]
            if activity == "trim":
                if victim is not self.primary:
                    self.backup(self.primary)
                words = [self.perdure, "replicate", "trim", self.backups, "--log",
                         self.primary.log()]
            process = self.primary.start(words, stdout=subprocess.DEVNULL)

            def end():
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:  # it is cut off
                    process.kill()
                    process.wait()
            return end
        return lambda: None

    def run_cell(self, fault, target, activity, rng):
        takes_over = rng.random() < 0.5
        self.standby.stop_in_order(60)
        self.standby.begin_standby(takes_over)
        wait_until(lambda: self.follows(self.standby), 120, f"{self.standby.name} follows")
        self.progress(self.primary)
        victim = self.victim(target, rng)
        ends = self.during(activity, victim, rng)
        self.inject(fault, victim)
        self.hold(fault, victim, rng.uniform(1, 3))
        ends()
        gone = victim is self.primary and fault in ENDS_A_PRIMARY
        if fault == "disk full" and takes_over:
            gone = False  # it gives signs, and may even go on: nobody takes over unasked
        if gone and takes_over:
            wait_until(self.standby.opened, 120, f"{self.standby.name} takes over by itself")
        elif gone:
            self.promote()
        if gone:
            self.progress(self.standby)
        self.heal(victim)
        self.recover(victim, fault, gone)
        self.progress(self.primary)
        self.check(self.primary)
        return takes_over

    def recover(self, victim, fault, gone):
        if isinstance(victim, LogServer):
            if fault == "disk full":  # it has switched its store off
                victim.kill()
            victim.begin()
            if fault == "data gone":  # the next cell may take another one's
                last = max(s.last_of("list") for s in self.servers.values() if s is not victim)
                wait_until(lambda: victim.last_of("list") >= last, 120,
                           f"{victim.name} gets what it has lost")
        # A primary that was slow may have been taken over from, too.
        if gone or self.standby.opened():
            before = self.primary
            if before.process is not None:
                wait_until(lambda: not before.alive(), 90,
                           f"{before.name}, which is not the primary any more, learns of it")
                if before.ended() not in ("deposed", "diverged", None):
                    raise Failure(f"{before.name} ended with {before.ended()}, expected deposed")
                before.kill()
            self.swap()
            before.remove_kept()
            before.begin_standby(False)
        elif victim is self.standby and not victim.alive():
            victim.begin_standby(False)
        if not self.primary.alive():
            raise Failure(f"the program of {self.primary.name} ended: {self.primary.ended()}")

    def check(self, machine):
        """What the copy has, and what was acknowledged before."""
        quorum, local = dict(self.acknowledged[True]), dict(self.acknowledged[False])
        shipped = dict(self.shipped)
        code, text, said = machine.run([self.node, "contents", machine.pool])
        if code != 0:
            raise Failure(f"{machine.name} can't be read: {said}")
        found = json.loads(text)
        if not found["sound"]:
            raise Failure(f"the pool of {machine.name} is not sound")
        has = set(found["numbers"])
        if len(has) != len(found["numbers"]):
            raise Failure(f"{machine.name} has a number twice")
        missing = [n for n in quorum if n not in has]
        if missing:
            raise Failure(f"{machine.name} lacks {len(missing)} numbers that a quorum had, such as "
                          f"{missing[0] >> 32}:{missing[0] & 0xffffffff}")
        now = machine.start_number
        lost = [n for n in local if n not in has and n >> 32 != now]
        beyond = [n for n in lost if local[n] <= shipped.get(n >> 32, 0)]
        if beyond:
            raise Failure(f"{machine.name} lacks {len(beyond)} numbers that its primary of before "
                          "had reported to be in the log")
        self.lost = len(lost)

    def finish(self):
        """Both copies have the same in the end."""
        self.primary.stop_in_order(60)
        wait_until(lambda: self.follows(self.standby), 120, f"{self.standby.name} follows")
        self.standby.stop_in_order(60)
        code, _, said = self.standby.run([self.perdure, "standby", self.standby.pool, "--log",
                                          self.standby.log(), "--once", "--patience", "60"])
        if code != 0:
            raise Failure(f"{self.standby.name} at the end: {said}")
        texts = []
        for machine in self.pools:
            self.check(machine)
            texts.append(json.loads(machine.run([self.node, "contents", machine.pool])[1]))
        if texts[0]["numbers"] != texts[1]["numbers"]:
            raise Failure("the two copies have different lists in the end")
        return len(texts[0]["numbers"])


def all_cells(disks):
    for fault, target, activity in itertools.product(FAULTS, TARGETS, ACTIVITIES):
        if fault == "disk full" and not disks:
            continue
        # Another server is killed, too: that is more than a quorum of three survives.
        if fault == "data gone" and target.startswith("log") and activity == "election":
            continue
        yield fault, target, activity


def choose(options, disks, rng):
    cells = list(all_cells(disks))
    if options.only:
        cells = [c for c in cells if all(word in " / ".join(c) for word in options.only)]
    rng.shuffle(cells)
    if options.cells and options.cells < len(cells):
        # One that cuts the network is among them.
        cells.sort(key=lambda c: c[0] not in CUTS)
        cuts = sum(c[0] in CUTS for c in cells)
        keep = max(1, options.cells * cuts // len(cells))
        cells = cells[:keep] + cells[cuts:cuts + options.cells - keep]
        rng.shuffle(cells)
    return cells


def say(text):
    print(text, file=sys.stderr, flush=True)


def explore(options, folder):
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    cluster = Cluster(options, folder)
    not_injected = list(NOT_INJECTED)
    disks = all(m.mounted for m in [*cluster.pools, *cluster.servers.values()])
    if not disks:
        not_injected.append("full disks: this user may not mount a small one for each machine")
    result = {"seed": seed, "network": cluster.network.kind, "not_injected": not_injected,
              "cells": [], "ok": False}
    if cluster.why_no_namespaces:
        result["why_no_namespaces"] = cluster.why_no_namespaces
    try:
        cluster.begin()
        cells = choose(options, disks, rng)
        for n, (fault, target, activity) in enumerate(cells):
            begun = time.monotonic()
            cell = {"fault": fault, "target": target, "activity": activity}
            result["cells"].append(cell)
            cell["by_itself"] = cluster.run_cell(fault, target, activity, rng)
            cell["seconds"] = round(time.monotonic() - begun, 1)
            say(f"{n + 1}/{len(cells)} {fault} / {target} / {activity}: {cell['seconds']} s, "
                f"{len(cluster.acknowledged[True]):,} acknowledged by a quorum")
        result["numbers"] = cluster.finish()
        result["quorum"] = len(cluster.acknowledged[True])
        result["local"] = len(cluster.acknowledged[False])
        result["lost_local"] = cluster.lost
        if not options.only and not any(c["fault"] in CUTS for c in result["cells"]):
            raise Failure("no cell of this run has cut the network")
        result["ok"] = True
    except Failure as e:
        result["problem"] = str(e)
        if options.keep:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    finally:
        cluster.close()
    return result


def report(result):
    say(f"network                    {result['network']}" +
        (f" (no namespaces: {result['why_no_namespaces']})" if "why_no_namespaces" in result
         else ""))
    for what in result["not_injected"]:
        say(f"not injected               {what}")
    say(f"cells                      {len(result['cells'])}, seed {result['seed']}")
    if result["ok"]:
        say(f"acknowledged by a quorum   {result['quorum']:,}, none lost")
        say(f"acknowledged as local      {result['local']:,}, {result['lost_local']:,} lost with "
            "their copy, none of which the log was said to have")
    else:
        cell = result["cells"][-1] if result["cells"] else {}
        say(f"WRONG in {' / '.join(str(cell.get(k)) for k in ('fault', 'target', 'activity'))}: "
            f"{result['problem']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog=__doc__.split("\n\n", maxsplit=1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perdure", required=True, help="the perdure command")
    parser.add_argument("--node", required=True, help="the program perdure_cluster_node")
    parser.add_argument("--nats-server", required=True, help="nats-server 2.15.1 or newer")
    parser.add_argument("--cells", type=int, default=0, help="how many cells (default: all)")
    parser.add_argument("--only", action="append",
                        help="only cells whose names have this word; may be repeated")
    parser.add_argument("--seed", type=int, help="chooses and orders the cells")
    parser.add_argument("--network", choices=["auto", "namespaces", "proxies"], default="auto")
    parser.add_argument("--keep", help="keep the machines' files here if something is wrong")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    for name in ("perdure", "node", "nats_server"):
        setattr(options, name, os.path.abspath(getattr(options, name)))
    with tempfile.TemporaryDirectory(prefix="perdure-cluster-") as folder:
        result = explore(options, folder)
    if options.json:
        print(json.dumps(result, indent=2))
    report(result)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
