#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure follow: events of a pool that a program has open, of a closed one, and of an archive."""

import json
import os
import subprocess
import unittest

from cli import Case, PERDURE

EMITTING = os.environ["PERDURE_EMITTING"]


class Follow(Case):
    def setUp(self):
        super().setUp()
        self.archive = self.path("archive")

    def program(self, *arguments):
        program = subprocess.Popen([EMITTING, self.pool, *arguments], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        return program

    @staticmethod
    def emit(program, topic, text):
        program.stdin.write(f"{topic} {text}\n")
        program.stdin.flush()
        return int(program.stdout.readline())

    def close(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(), 0)

    def events(self, *arguments):
        """(topic, text) of what it prints"""
        lines = self.ok("follow", *arguments, "--wait", "0.2", "--json").splitlines()
        return [(e["topic"], e["event"]) for e in map(json.loads, lines)]

    def test_beside_the_program(self):
        program = self.program(self.archive)
        ids = [self.emit(program, "a/x", "one"), self.emit(program, "b", "two")]
        both = [("a/x", "one"), ("b", "two")]
        self.assertEqual(self.events(self.pool, "--from", "start"), both)
        self.assertEqual(self.events(self.pool, "--from", str(ids[0])), both[1:])
        self.assertEqual(self.events(self.pool, "--from", f"{ids[1]}.0"), [])
        self.assertEqual(self.events(self.pool, "--from", "start", "--topic", "a/*"), both[:1])
        self.assertEqual(self.events(self.pool, "--from", "start", "--limit", "1"), both[:1])
        self.assertEqual(self.events(self.pool), [])
        self.assertIn(b"\ta/x\tone\n", self.ok("follow", self.pool, "--from", "start", "--wait", "0"))
        # One that waits gets what comes.
        follower = subprocess.Popen([PERDURE, "follow", self.pool, "--from", str(ids[1]), "--limit",
                                     "1", "--json"], stdout=subprocess.PIPE)
        self.emit(program, "c", "three")
        event = json.loads(follower.communicate(timeout=60)[0])
        self.assertEqual((event["topic"], event["event"], event["schema"], event["ordinal"]),
                         ("c", "three", 7, 0))
        self.assertIn(b"topic a/x", self.closed_log(program))

    def closed_log(self, program):
        program.kill()
        program.wait()
        return self.ok("log", self.pool, "--entries")

    def test_a_consumer_and_the_archive(self):
        program = self.program(self.archive)
        self.emit(program, "t", "one")
        named = (self.pool, "--archive", self.archive, "--consumer", "mailer")
        self.assertEqual(self.events(*named, "--from", "start"), [("t", "one")])
        self.emit(program, "t", "two")
        self.assertEqual(self.events(*named), [("t", "two")])
        self.assertEqual(self.events(*named), [])
        self.close(program)
        every = [("t", "one"), ("t", "two")]
        self.assertEqual(self.events(self.archive, "--from", "start"), every)
        self.assertEqual(
            self.events(self.pool, "--archive", self.archive, "--from", "start"), every)
        self.fails(3, "follow", self.pool, "--from", "start", "--wait", "0", has=["gone"])
        self.fails(3, "follow", self.pool, "--consumer", "x", "--wait", "0", has=["archive"])
        self.fails(2, "follow", self.pool, "--from", "x", has=["expected now, start"])
        self.fails(3, "follow", self.path("none"), has=["no such file"])

    def test_an_engine_without_events(self):
        self.ok("load", self.pool, self.write("t.tsv", b"a\t1\n"), "--engine", "undo")
        self.fails(3, "follow", self.pool, "--wait", "0", has=["shadow"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
