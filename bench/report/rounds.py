# SPDX-License-Identifier: BSD-3-Clause
"""Opens systems, runs their cells in interleaved rounds, and audits them at the end."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .driver import Failed, Process


@dataclass
class Runner:
    """A system and how to start it."""

    name: str  # as it is shown
    executable: str
    system: str  # as the executable knows it
    max_threads: int
    seconds: float  # a cell's measured time
    environment: dict = field(default_factory=dict)
    options: tuple = ()
    # Workload -> the workload that this system runs instead.
    rename: dict = field(default_factory=dict)


class Progress:
    """One line on standard error that is overwritten; plain lines if standard error is not a
    terminal."""

    def __init__(self):
        self._start, self._live, self._width = time.monotonic(), sys.stderr.isatty(), 0

    def __call__(self, text, last=False):
        line = f"[{time.monotonic() - self._start:5.0f} s] {text}"
        if self._live:
            sys.stderr.write("\r" + line.ljust(self._width) + ("\n" if last else ""))
            self._width = len(line)
        elif last:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()


def run_structure(structure, workloads, runners, threads, rounds, warmup, directory, options,
                  figures, progress, parallel=2, seed=1, latency=False):
    """Runs all cells of one structure. Returns ({name: describe}, [failures])."""
    described, failures, processes = {}, [], {}

    def failed(name, error):
        failures.append(f"{structure}: {error}")
        progress(f"{structure}: {error}", last=True)
        processes.pop(name).close()

    try:
        def start(runner):
            kept = Process(runner.executable, runner.system, structure, directory,
                           (*options, *runner.options), runner.environment)
            processes[runner.name] = kept
            try:
                kept.wait_ready()
                return runner, None
            except Failed as error:
                return runner, error

        with ThreadPoolExecutor(parallel) as pool:
            for n, (runner, error) in enumerate(pool.map(start, runners), 1):
                progress(f"{structure}: filled {n} of {len(runners)} systems")
                if error:
                    failed(runner.name, error)
                else:
                    described[runner.name] = processes[runner.name].describe

        for number in range(rounds):
            order = runners if number % 2 == 0 else list(reversed(runners))
            for workload in workloads:
                for runner in order:
                    for count in threads:
                        if count > runner.max_threads or runner.name not in processes:
                            continue
                        progress(
                            f"{structure}: round {number + 1} of {rounds}: {workload}, "
                            f"{runner.name}, {count} threads")
                        request = {
                            "run": runner.rename.get(workload, workload), "threads": count,
                            "seconds": runner.seconds, "warmup": warmup, "seed": seed + number,
                            "latency": latency
                        }
                        try:
                            figures.add(workload, runner.name, count, number,
                                        processes[runner.name].ask(request))
                        except Failed as error:
                            failed(runner.name, error)

        for n, runner in enumerate(runners, 1):
            if runner.name not in processes:
                continue
            progress(f"{structure}: auditing {n} of {len(runners)} systems")
            try:
                for request in ({"audit": True}, {"audit": True, "reopen": True}):
                    answer = processes[runner.name].ask(request, timeout=300)
                    when = "after it was opened again" if answer[
                        "reopened"] else "after the last round"
                    failures += [
                        f"{structure}: {runner.name}: {when}: {problem}"
                        for problem in answer["problems"]
                    ]
            except Failed as error:
                failed(runner.name, error)
    finally:
        for process in processes.values():
            process.close()
    progress(f"{structure}: {len(described)} systems, {rounds} rounds of {', '.join(workloads)}",
             last=True)
    return described, failures
