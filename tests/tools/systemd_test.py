#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""packaging/systemd: what the units run is run, over a folder."""

import configparser
import os
import re
import shlex
import signal
import subprocess
import time
import unittest
from pathlib import Path

from cli import PERDURE, Case, perdure

UNITS = Path(__file__).resolve().parents[2] / "packaging/systemd"


def commands(unit):
    """The command lines of a unit, in order."""
    text = (UNITS / unit).read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)]


class Systemd(Case):
    def setUp(self):
        super().setUp()
        self.log, self.backups = self.path("log"), self.path("backups")
        self.ok("put", self.pool, "a", "1", "--replicate", self.log)

    def line(self, words, pool):
        """As systemd runs it for the instance `shop`, with this test's files."""
        values = {"${POOL}": pool, "${LOG}": self.log, "${BACKUPS}": self.backups}
        words = [values.get(w, w).replace("%i", "shop") for w in words]
        self.assertEqual(words[0], "/usr/bin/perdure")
        return [w.replace("/var/lib/prometheus/node-exporter", self.folder) for w in words[1:]]

    def run_unit(self, unit, pool):
        return [perdure(*self.line(words, pool)) for words in commands(unit)]

    def metrics(self, name):
        return Path(self.path(name)).read_text(encoding="utf-8")

    def test_all_of_them(self):
        for code, _, err in self.run_unit("perdure-backup@.service", self.pool):
            self.assertEqual(code, 0, err)
        before = time.time()
        for code, _, err in self.run_unit("perdure-verify@.service", self.pool):
            self.assertEqual(code, 0, err)
        seconds = re.search(r"^perdure_verified_timestamp_seconds\{.*\} (\S+)$",
                            self.metrics("perdure-verify-shop.prom"), re.MULTILINE).group(1)
        self.assertGreaterEqual(float(seconds), before - 1)
        self.assertIn("perdure_verified_restore{", self.metrics("perdure-verify-shop.prom"))

        copy = self.path("copy")
        [words] = commands("perdure-standby@.service")
        with subprocess.Popen([PERDURE, *self.line(words, copy)],
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            for code, _, err in self.run_unit("perdure-metrics@.service", copy):
                self.assertEqual(code, 0, err)
            self.assertIn('role="standby"} 1', self.metrics("perdure-shop.prom"))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 0)
        # The exit status that the unit takes for success.
        [(code, _, _)] = self.run_unit("perdure-metrics@.service", copy)
        self.assertEqual(code, 1)
        self.assertIn("perdure_up", self.metrics("perdure-shop.prom"))

    def test_each_timer_has_its_service(self):
        for timer in UNITS.glob("*.timer"):
            self.assertTrue(timer.with_suffix(".service").exists(), timer)
            unit = configparser.ConfigParser(strict=False)
            unit.optionxform = str
            unit.read(timer, encoding="utf-8")
            self.assertIn("Timer", unit)
        for unit in UNITS.iterdir():
            self.assertTrue(os.path.basename(unit).startswith("perdure-"))


if __name__ == "__main__":
    unittest.main()
