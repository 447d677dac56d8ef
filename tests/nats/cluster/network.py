# SPDX-License-Identifier: BSD-3-Clause
"""The network between the machines of a cluster test, in which connections can be cut in either
direction: network namespaces joined by a router, where the system allows them (root), otherwise
proxies on loopback."""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools/demo"))
from nats_servers import free_ports  # noqa: E402  pylint: disable=wrong-import-position

SERVICES = {"client": 4222, "route": 6222, "monitor": 8222}


def run(*words, check=True):
    return subprocess.run(words, capture_output=True, text=True, check=check)


class Namespaces:
    """A namespace for each machine, with a link to one that routes between them. What is cut is
    dropped there, as by a switch: nobody is told."""

    kind = "network namespaces"

    def __init__(self, machines):
        self.tag = f"pd{os.getpid() % 100000}"
        self.router = self.tag + "r"
        self.numbers = {name: 10 + i for i, name in enumerate(machines)}
        self.cuts = set()
        self.made = []
        try:
            self._make(self.router)
            for name, n in self.numbers.items():
                self._join(name, n)
            run("ip", "netns", "exec", self.router, "sh", "-c",
                "echo 1 > /proc/sys/net/ipv4/ip_forward")
        except BaseException:
            self.close()
            raise

    def _make(self, namespace):
        run("ip", "netns", "add", namespace)
        self.made.append(namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")

    def _join(self, name, n):
        namespace, outside, inside = self._namespace(name), f"{self.tag}o{n}", f"{self.tag}i{n}"
        self._make(namespace)
        run("ip", "link", "add", outside, "netns", self.router, "type", "veth", "peer", "name",
            inside, "netns", namespace)
        for where, link, address in ((self.router, outside, f"10.77.{n}.1/24"),
                                     (namespace, inside, f"10.77.{n}.2/24")):
            run("ip", "-n", where, "addr", "add", address, "dev", link)
            run("ip", "-n", where, "link", "set", link, "up")
        run("ip", "-n", namespace, "route", "add", "default", "via", f"10.77.{n}.1")

    def _namespace(self, name):
        return f"{self.tag}n{self.numbers[name]}"

    def _address(self, name):
        return f"10.77.{self.numbers[name]}.2"

    def command(self, machine, words):
        return ["ip", "netns", "exec", self._namespace(machine), *words]

    def listens(self, machine, service):
        return self._address(machine), SERVICES[service]

    def reaches(self, _, to, service):
        return self.listens(to, service)

    def cut(self, source, target):
        """Nothing that `source` sends arrives at `target` any more."""
        if (source, target) not in self.cuts:
            run("ip", "-n", self.router, "rule", "add", "from", self._address(source), "to",
                self._address(target), "priority", "100", "blackhole")
            self.cuts.add((source, target))

    def heal(self):
        for source, target in self.cuts:
            run("ip", "-n", self.router, "rule", "del", "from", self._address(source), "to",
                self._address(target), "priority", "100", "blackhole")
        self.cuts.clear()

    def close(self):
        for namespace in self.made:
            run("ip", "netns", "del", namespace, check=False)


class Proxies:
    """Every connection goes through a proxy of its own for two machines and a service. What is cut
    is held back, and goes on when that is healed, as what TCP sends again."""

    kind = "proxies on loopback"

    def __init__(self, machines):
        self.machines = list(machines)
        self.cuts = set()
        services = [(m, s) for m in self.machines for s in SERVICES]
        pairs = [(a, b, s) for a, b in itertools.permutations(self.machines, 2) for s in SERVICES]
        ports = free_ports(len(services) + len(pairs))
        self.real = dict(zip(services, ports))
        self.shown = dict(zip(pairs, ports[len(services):]))
        self.loop = asyncio.new_event_loop()
        self.changed = None
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)

        async def listen():
            self.changed = asyncio.Event()
            for (source, target, service), port in self.shown.items():
                async def serve(reader, writer, way=(source, target, service)):
                    await self._serve(reader, writer, *way)
                await asyncio.start_server(serve, "127.0.0.1", port)
            ready.set()

        self.loop.run_until_complete(listen())
        self.loop.run_forever()

    async def _open(self, *ways):
        while any(way in self.cuts for way in ways):
            changed = self.changed
            await changed.wait()

    async def _serve(self, reader, writer, source, target, service):
        try:
            await self._open((source, target), (target, source))
            to_reader, to_writer = await asyncio.open_connection(
                "127.0.0.1", self.real[target, service])
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, to_writer, (source, target)),
                             self._pump(to_reader, writer, (target, source)))

    async def _pump(self, reader, writer, way):
        try:
            while data := await reader.read(65536):
                await self._open(way)
                writer.write(data)
                await writer.drain()
            await self._open(way)
        except OSError:
            pass
        writer.close()

    def command(self, _, words):
        return list(words)

    def listens(self, machine, service):
        return "127.0.0.1", self.real[machine, service]

    def reaches(self, source, target, service):
        return "127.0.0.1", self.shown[source, target, service]

    def cut(self, source, target):
        self.cuts.add((source, target))

    def heal(self):
        def wake():
            self.cuts.clear()
            before, self.changed = self.changed, asyncio.Event()
            before.set()
        self.loop.call_soon_threadsafe(wake)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=5)


def make(machines, wanted="auto"):
    """(the network, why it has no namespaces)"""
    if wanted == "proxies":
        return Proxies(machines), "proxies were asked for"
    try:
        return Namespaces(machines), None
    except (OSError, subprocess.CalledProcessError) as e:
        why = (getattr(e, "stderr", "") or str(e)).strip()
        if wanted == "namespaces":
            raise SystemExit(f"cluster: no network namespaces: {why}; run it as root, or with "
                             "--network proxies") from e
        return Proxies(machines), why
