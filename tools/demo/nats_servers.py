# SPDX-License-Identifier: BSD-3-Clause
"""NATS servers on loopback, for the demo of replication and for tests."""

import os
import socket
import subprocess


def free_ports(count):
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Servers:
    """So many NATS servers, one cluster, each of which syncs every message and keeps so many bytes
    at most."""

    def __init__(self, program, folder, count, max_file="4G"):
        self.program, self.folder, self.count = program, folder, count
        self.ports = free_ports(2 * count)
        self.processes = [None] * count
        routes = ", ".join(f"nats-route://127.0.0.1:{port}" for port in self.ports[count:])
        cluster = "cluster {{ name: perdure, listen: 127.0.0.1:{0}, routes: [ {1} ] }}"
        for i in range(count):
            os.makedirs(os.path.join(folder, f"server{i}"))
            with open(self._config(i), "w", encoding="utf-8") as out:
                out.write(f"""
server_name: server{i}
listen: 127.0.0.1:{self.ports[i]}
jetstream {{ store_dir: "{folder}/server{i}", sync_interval: always, max_file: {max_file} }}
{cluster.format(self.ports[count + i], routes) if count > 1 else ""}
accounts {{ app: {{ jetstream: enabled, users: [ {{ user: app, password: app }} ] }}
  $SYS: {{ users: [ {{ user: system, password: secret }} ] }} }}
no_auth_user: app
""")
            self.start(i)

    def _config(self, i):
        return os.path.join(self.folder, f"server{i}", "config")

    def start(self, i):
        if self.processes[i] is None:
            with open(self._config(i) + ".log", "ab") as out:
                self.processes[i] = subprocess.Popen([self.program, "-c", self._config(i)],
                                                     stdout=out, stderr=out)

    def kill(self, i):
        if self.processes[i] is not None:
            self.processes[i].kill()
            self.processes[i].wait()
            self.processes[i] = None

    def log(self, stream):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[:self.count])
        return (f"nats://{hosts}/{stream}?replicas={self.count}&patience_ms=2000"
                "&system=system:secret")

    def end(self):
        for i in range(self.count):
            self.kill(i)
