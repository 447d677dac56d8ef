# SPDX-License-Identifier: BSD-3-Clause
"""The systems of the benchmark executables, and how they are chosen: by engine, concurrency control
(TM) and mode."""

import sys
from dataclasses import dataclass

from .driver import Failed, list_systems

EXECUTABLES = ("perdure_bench_engines", "perdure_bench_blocks", "perdure_bench_pass",
               "perdure_bench_pmemobj", "perdure_bench_peers")
# Of blocks of plain code (docs/plain.md): which modes an executable has, and what it is built with.
PLAIN = {
    "perdure_bench_blocks": ("PERDURE_BUILD_PLAIN", ("blocks", "chosen")),
    "perdure_bench_pass": ("PERDURE_BUILD_PLAIN_PASS", ("pass", "chosen-clang")),
}
PLAIN_MODES = tuple(mode for _, modes in PLAIN.values() for mode in modes)
# Not durable, or not a transaction: references for the others.
BOUNDS = ("plain", "nvm", "ceiling", "bound", "raw")
NOT_WAITING = ("nosync", "normal", "off")
DEFAULT = "shadow:durable"


@dataclass(frozen=True)
class System:
    """`engine/tm:mode`, as in the name."""

    name: str
    executable: str  # its path
    about: str
    structures: tuple
    max_threads: int
    isolates: bool
    peer: bool

    @property
    def engine(self):
        return self.name.partition(":")[0].partition("/")[0]

    @property
    def tm(self):
        """The TM; "" is the engine's own."""
        return self.name.partition(":")[0].partition("/")[2]

    @property
    def mode(self):
        if self.peer and "-" in self.name:
            return self.name.partition("-")[2]
        return self.name.partition(":")[2] or "durable"

    @property
    def bound(self):
        return self.name in BOUNDS or self.engine == "volatile"

    @property
    def waits(self):
        """Whether an update is durable when it returns."""
        return not self.bound and self.mode in ("durable", "group", "snapshot", "archive",
                                                "backup", "checksums", *PLAIN_MODES)


def find(build_dir, modes=()):
    """Every System of the build. The first executable must exist; what is left out is said, but
    those of blocks only where one of their modes is asked for."""
    found = []
    for n, name in enumerate(EXECUTABLES):
        path = build_dir / "bench" / name
        if path.exists():
            found += [
                System(s["name"], str(path), s["about"], tuple(s["structures"]), s["max_threads"],
                       s["max_threads"] > 1, n > 0 and name not in PLAIN)
                for s in list_systems(path)
            ]
        elif n == 0:
            raise Failed(
                f"{path} is not there; build it first: ./dev build --preset bench --target "
                "bench/all")
        else:
            why, only = PLAIN.get(name, ("PERDURE_BENCH_PMEMOBJ", ()))
            if not only or set(modes) & set(only):
                print(f"bench: {path} was not built ({why} is OFF): left out", file=sys.stderr)
    return found


def choose(systems, engines=(), tms=(), modes=(), structure=None):
    """The systems that match; an empty choice is the usual one: every engine that isolates over its
    own TM, durable, and the peers that wait.

    `engines` may name a whole system ("shadow/stm:async"), an engine ("shadow") or a peer ("lmdb");
    a name that matches nothing is refused."""
    def wanted(system):
        whole = system.name in engines or system.name.partition(":")[0] in engines
        if engines and not whole and system.engine not in engines:
            return False
        if system.name in engines:
            return True
        # An engine's plain name means its own TM or, if it has none, the one that isolates least.
        tm_fits = system.tm in tms if tms else whole or not system.tm
        mode_fits = (system.mode in modes
                     if modes else system.waits and system.mode == "durable" or system.bound)
        return tm_fits and mode_fits and (bool(engines) or system.peer or system.isolates or
                                          system.bound)

    names = {n for s in systems for n in (s.name, s.engine, s.name.partition(":")[0])}
    for name in engines:
        if name not in names:
            raise Failed(
                f"found engine '{name}', expected some of "
                f"{', '.join(sorted({s.engine for s in systems}))}, or a system's whole name "
                "(./dev bench list)")
    for what, asked, there in (("tm", tms, {s.tm for s in systems if not s.peer}),
                               ("mode", modes, {s.mode for s in systems})):
        for name in asked:
            if name not in there:
                raise Failed(
                    f"found --{what} '{name}', expected some of "
                    f"{', '.join(sorted(t for t in there if t))}")
    return [s for s in systems if wanted(s) and (structure is None or structure in s.structures)]
