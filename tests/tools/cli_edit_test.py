#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Single keys, and the properties of every command: help, errors, terminals."""

import json
import os
import pty
import subprocess
import unittest

from cli import Case, COMMANDS, packages, PERDURE, perdure


class KeyValue(Case):
    def test_put_get_del_scan(self):
        self.ok("put", self.pool, "b", "2")
        self.ok("put", self.pool, "a", "1")
        self.ok("put", self.pool, "c", "-", stdin=b"line\n\xff\x00")
        self.assertEqual(self.ok("get", self.pool, "a"), b"1")
        self.assertEqual(self.ok("get", self.pool, "c"), b"line\n\xff\x00")
        self.assertEqual(self.ok_json("put", self.pool, "a", "one")["new"], False)
        self.assertEqual(self.ok("scan", self.pool), b"a\tone\nb\t2\nc\tline\\n\xff\\x00\n")
        self.assertEqual(self.ok("export", self.pool), b'b,2\na,one\nc,"line\n\xff\x00"\n')
        self.ok("del", self.pool, "b")
        self.fails(1, "get", self.pool, "b", has=["no row with key 'b'"])
        self.fails(1, "del", self.pool, "b", "--json")
        self.assertEqual(self.ok("export", self.pool, "-"), b'a,one\nc,"line\n\xff\x00"\n')
        self.check()

    def test_scan_ranges(self):
        self.ok("load", self.pool,
                self.write("t.tsv", b"".join(b"k%03d\t%d\n" % (i, i) for i in range(900))))
        keys = lambda *options: self.ok("scan", self.pool, "--keys", *options).decode().split()
        everything = [f"k{i:03d}" for i in range(900)]
        self.assertEqual(keys(), everything)
        self.assertEqual(keys("--from", "k005", "--to", "k008"), everything[5:8])
        self.assertEqual(keys("--prefix", "k01"), everything[10:20])
        self.assertEqual(keys("--prefix", "k01", "--from", "k015", "--limit", "2"),
                         everything[15:17])
        self.assertEqual(keys("--from", "k005x", "--limit", "1"), ["k006"])
        self.assertEqual(keys("--prefix", "zz"), [])
        answer = self.ok_json("scan", self.pool, "--limit", "2")
        self.assertEqual(
            answer, {
                "rows": [{"key": "k000", "value": "k000\t0\n"},
                         {"key": "k001", "value": "k001\t1\n"}], "count": 2
            })

    def test_edits_of_a_loaded_pool(self):
        self.ok("load", self.pool, self.write("t.csv", b"id,v\r\n1,a\r\n2,b\r\n3,c"), "--key", "id")
        self.ok("put", self.pool, "4", "4,d")
        self.ok("put", self.pool, "2", "2,B")
        self.ok("del", self.pool, "1")
        self.assertEqual(self.ok("export", self.pool), b"id,v\r\n2,B\r\n3,c\r\n4,d\r\n")
        self.check()

    def test_export_refuses_the_pool_itself(self):
        self.ok("put", self.pool, "a", "1")
        self.fails(3, "export", self.pool, self.pool, has=["the pool itself"])
        self.assertEqual(self.ok("get", self.pool, "a"), b"1")


class CommandLine(Case):
    def test_help_has_an_example(self):
        self.assertIn(b"Example:", self.ok("--help"))
        for command in COMMANDS:
            text = self.ok(command, "--help").decode()
            self.assertIn("Example:", text)
            self.assertIn("perdure " + command, text)
            self.assertIn("--json", text)
            self.assertIn("Exit status", text)

    def test_usage_errors(self):
        self.fails(2)
        self.fails(2, "nonsense")
        for command in COMMANDS:
            self.fails(2, command)
            self.fails(2, command, "a", "b", "c", "d", "--bogus")
        self.fails(2, "load", "p", "f", "--format", "xml")
        self.fails(2, "load", "p", "f", "--header", "--no-header")

    def test_errors_are_json_too(self):
        for command in ("info", "check", "recover", "log", "stat", "get", "del", "scan"):
            arguments = [command, self.path("missing")
                         ] + (["k"] if command in ("get", "del") else [])
            status, out, err = perdure(*arguments, "--json")
            self.assertEqual(status, 3, err)
            self.assertEqual(json.loads(out)["error"]["code"], "not_found")
            self.assertIn("missing", err)
            self.assertFalse(os.path.exists(self.path("missing")))

    def test_doctor(self):
        answer = self.ok_json("doctor", self.path("any"))
        self.assertIn(answer["medium"], ("file", "dax"))
        self.assertTrue(answer["reason"])
        self.assertIn(b"medium:", self.ok("doctor", self.path("any")))

    def test_version(self):
        self.assertRegex(self.ok("--version").decode(), r"^perdure \d+\.\d+")

    def test_a_bar_on_a_terminal(self):
        source = self.write("Packages", packages(80000))  # the first bar comes after 80 ms
        try:
            leader, follower = pty.openpty()
        except OSError as e:
            self.skipTest(f"no terminal to be had here: {e}")
        loader = subprocess.Popen(
            [PERDURE, "load", self.pool, source, "--durability", "durable", "--batch", "20"],
            stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        text = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            text += part
        os.close(leader)
        self.assertEqual(loader.wait(), 0)
        self.assertIn(b"\r", text)
        self.assertIn(b" rows durable, ", text)
        self.assertTrue(text.endswith(b"\x1b[K"))

    def test_a_closed_pipe(self):
        self.ok("load", self.pool,
                self.write("t.tsv", b"".join(b"%d\tx\n" % i for i in range(50000))))
        done = subprocess.run(f"{PERDURE} scan {self.pool} | head -1", shell=True,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.stdout, b"0\tx\\n\n".replace(b"0\tx", b"0\t0\\tx"))
        self.check()


if __name__ == "__main__":
    unittest.main(verbosity=2)
