#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loading files and exporting them again, with kills and repeated keys in between."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from cli import Case, packages, PERDURE


class RoundTrip(Case):
    """What is loaded is exported byte for byte."""

    def round_trip(self, name, content, *options, rows=None):
        source = self.write(name, content)
        pool = self.path(name + ".pool")
        summary = self.ok_json("load", pool, source, *options)
        if rows is not None:
            self.assertEqual(summary["rows"], rows)
        self.assertTrue(summary["complete"])
        self.assertEqual(self.ok("export", pool), content)
        copy = self.path(name + ".copy")
        self.assertEqual(self.ok_json("export", pool, copy)["bytes"], len(content))
        with open(copy, "rb") as again:
            self.assertEqual(again.read(), content)
        self.check(pool)
        return pool

    def test_tsv(self):
        pool = self.round_trip("t.tsv", b"a\t1\nb\t2\n\nc\t\xff\x00\n", rows=3)
        self.assertEqual(self.ok("get", pool, "b"), b"b\t2\n")
        self.assertEqual(self.ok("get", pool, "c"), b"\nc\t\xff\x00\n")

    def test_csv_with_header_quotes_and_newlines(self):
        content = b'id,name\n1,"Doe, ""J"""\n2,"two\nlines"\n'
        pool = self.round_trip("t.csv", content, "--key", "id", rows=2)
        self.assertEqual(self.ok("get", pool, "2"), b'2,"two\nlines"\n')
        self.round_trip("n.csv", content, "--key", "name", rows=2)

    def test_backups_while_it_loads(self):
        content = b"".join(b"k%d\t%s\n" % (i, b"x" * (i % 200)) for i in range(2000))
        source, pool = self.write("b.tsv", content), self.path("b.pool")
        summary = self.ok_json("load", pool, source, "--batch", "10", "--backups", "4")
        self.assertEqual([os.path.basename(b["path"]) for b in summary["backups"]],
                         [f"b.pool.backup-{i}" for i in range(1, 5)])
        for number, backup in enumerate(summary["backups"], 1):
            self.assertGreaterEqual(backup["position"], len(content) // 5 * number)
            self.assertEqual(self.ok("export", backup["path"]), content[:backup["position"]])
            self.check(backup["path"])
        self.assertEqual(self.ok("export", pool), content)
        # A backup is a pool with which the load can go on.
        rest = self.ok_json("load", summary["backups"][1]["path"], source)
        self.assertEqual(rest["rows_before"], summary["backups"][1]["rows"])
        self.assertEqual(self.ok("export", summary["backups"][1]["path"]), content)
        # A file of that name is not replaced.
        self.fails(3, "load", self.path("c.pool"), source, "--backups", "1", "--engine", "undo")
        os.rename(self.path("b.pool.backup-1"), self.path("d.pool.backup-1"))
        self.fails(3, "load", self.path("d.pool"), source, "--backups", "1",
                   has=["d.pool.backup-1: a file of that name", "no row was loaded"])
        self.fails(2, "load", self.path("e.pool"), source, "--backups", "101", has=["at most 100"])

    def test_crlf_and_byte_order_mark(self):
        pool = self.round_trip("w.csv", b"\xef\xbb\xbfid;x\r\n1;2\r\n3;4\r\n", "--key", "id",
                               rows=2)
        self.assertEqual(self.ok("scan", pool, "--keys"), b"1\n3\n")

    def test_no_final_newline(self):
        self.round_trip("a.tsv", b"a\t1\nb\t2", rows=2)
        self.round_trip("a.csv", b"a,1\nb,\"2\"", rows=2)
        self.round_trip("a.control", b"Package: a\nVersion: 1\nArchitecture: all", rows=1)

    def test_control(self):
        content = b"\n# head\n" + packages(50) + b"\n \n# tail\n"
        pool = self.round_trip("Packages", content, rows=50)
        self.assertIn(b"Package: p00007\n",
                      self.ok("get", pool, "p00007 " + self.version(content, 7) + " amd64"))

    @staticmethod
    def version(content, i):
        return content.decode().split(f"Package: p{i:05d}\nVersion: ")[1].split("\n")[0]

    def test_comments_header_only_and_empty_files(self):
        self.round_trip("c.csv", b"# one\na;1\n#two\nb;2\n# end", "--comment", "#", "--delimiter",
                        ";", rows=2)
        self.round_trip("h.csv", b"id,name\n", "--header", rows=0)
        self.round_trip("e.tsv", b"", rows=0)
        self.round_trip("nl.tsv", b"\n\n\n", rows=0)

    def test_random_files(self):
        rng = random.Random(5)
        for i in range(6):
            lines = []
            for row in range(rng.randrange(200)):
                junk = bytes(rng.choice(b"abc \"'\\\xc3\xa9\x00") for _ in range(rng.randrange(80)))
                lines.append(b"\n" * (rng.randrange(8) == 0) + b"%d\t" % row + junk +
                             rng.choice([b"\n", b"\r\n"]))
            self.round_trip(f"r{i}.tsv", b"".join(lines), "--batch", str(rng.randrange(1, 40)))

    def test_rows_larger_than_a_batch(self):
        content = b"".join(b"%d\t" % i + bytes([97 + i]) * (700_000 * i) + b"\n" for i in range(5))
        self.round_trip("big.tsv", content, rows=5)

    def test_durable_and_every_engine_option(self):
        self.round_trip("d.tsv", b"a\t1\nb\t2\n", "--durability", "durable", "--batch", "1", rows=2)
        self.round_trip("g.tsv", b"a\t1\nb\t2\n", "--durability", "group", "--no-direct", rows=2)
        self.round_trip("m.tsv", b"a\t1\nb\t2\n", "--medium", "emulated", rows=2)


class Load(Case):
    def test_repeated_key_names_both_lines_and_keeps_what_came_before(self):
        rows = [f"k{i}\t{i}\n" for i in range(1000)]
        rows[700] = "k123\tagain\n"
        source = self.write("t.tsv", "".join(rows).encode())
        for batch in ("1", "64", "5000"):
            pool = self.path("pool" + batch)
            self.fails(3, "load", pool, source, "--batch", batch,
                       has=["t.tsv:701:", "k123", "line 124"])
            self.assertEqual(self.ok("export", pool), "".join(rows[:700]).encode())
            # And again.
            self.fails(3, "load", pool, source, "--json",
                       has=["t.tsv:701:", "line 124", "700 rows"])
            self.check(pool)

    def test_wrong_options_leave_no_pool(self):
        source = self.write("t.csv", b"id,name\n1,a\n")
        self.fails(3, "load", self.pool, source, "--key", "nope",
                   has=["no column 'nope'", "id, name"])
        self.fails(3, "load", self.pool, source, "--key", "5",
                   has=["t.csv:1: a row of 2 columns", "at least 5"])
        self.fails(3, "load", self.pool, self.path("missing"), has=["missing"])
        self.fails(3, "load", self.pool, self.folder, has=["a directory", "regular file"])
        self.fails(3, "load", self.pool, self.write("z", b"\x1f\x8b\x08\x00"), has=["gzip"])
        self.assertFalse(os.path.exists(self.pool))

    def test_line_ends_of_cr_alone_are_refused(self):
        wanted = ["CR alone", "LF or CRLF", "tr '\\r' '\\n'"]
        for name, content, options in [("h.csv", b"id,name\r1,a\r2,b\r", ["--key", "id"]),
                                       ("n.tsv", b"a\t1\rb\t2", []),
                                       ("Packages", b"Package: a\rVersion: 1\rArchitecture: all\r",
                                        []), ("one.tsv", b"a\t1\r", [])]:
            self.fails(3, "load", self.pool, self.write(name, content), *options,
                       has=[name + ":1:", *wanted])
            self.assertFalse(os.path.exists(self.pool))
        # A CR that is data: between quotes, or in lines with another line end.
        self.ok("load", self.path("a"), self.write("d.csv", b'a,"1\r2"'))
        self.assertEqual(self.ok("get", self.path("a"), "a"), b'a,"1\r2"')
        self.ok("load", self.path("b"), self.write("d.tsv", b"a\t1\r2\nb\t3\n"))
        self.assertEqual(self.ok("get", self.path("b"), "a"), b"a\t1\r2\n")

    def test_a_second_load_changes_nothing(self):
        source = self.write("t.tsv", b"a\t1\nb\t2\n")
        self.ok("load", self.pool, source)
        again = self.ok_json("load", self.pool, source)
        self.assertEqual((again["rows"], again["rows_loaded"]), (2, 0))
        self.assertEqual(self.ok("export", self.pool), b"a\t1\nb\t2\n")

    def test_another_source_is_an_error_that_says_what_differs(self):
        self.ok("load", self.pool, self.write("t.csv", b"a,1\nb,2\nc,3\n"))
        self.fails(3, "load", self.pool, self.write("longer", b"a,1\nb,2\nc,3\nd,4\n"),
                   has=["16 bytes", "the 12 bytes", "t.csv"])
        self.fails(3, "load", self.pool, self.write("other", b"a,1\nb,7\nc,3\n"),
                   has=["in the record at line 2"])
        self.fails(3, "load", self.pool, self.path("t.csv"), "--key", "2",
                   has=["--key 2", "expected 1"])
        self.fails(3, "load", self.pool, self.path("t.csv"), "--delimiter", ";",
                   has=["--delimiter ;"])
        self.assertEqual(self.ok("export", self.pool), b"a,1\nb,2\nc,3\n")

    def test_resumes_after_kills(self):
        self.resume_after_kills(packages(3000), 8, "--durability", "durable")

    def test_resumes_after_kills_async(self):
        self.resume_after_kills(packages(30000), 8, "--durability", "async")

    def test_resumes_after_kills_dudetm(self):
        self.resume_after_kills(packages(30000), 6, "--engine", "dudetm")

    def test_resumes_after_kills_undo(self):
        self.resume_after_kills(packages(300), 4, "--engine", "undo")

    def test_resumes_after_kills_emulated(self):
        self.pool = os.path.join("/dev/shm" if os.access("/dev/shm", os.W_OK) else self.folder,
                                 f"perdure-cli-{os.getpid()}.pool")
        self.addCleanup(lambda: os.path.exists(self.pool) and os.remove(self.pool))
        self.resume_after_kills(packages(6000), 6, "--medium", "emulated",
                                medium=("--medium", "emulated"))

    def resume_after_kills(self, content, wanted, *options, medium=()):
        source = self.write("Packages", content)
        kills, reported = 0, 0
        rng = random.Random(11)
        for _ in range(60):
            loader = subprocess.Popen([
                PERDURE, "load", self.pool, source, "--batch", "10", "--progress", "json", *options
            ], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if kills < wanted:
                seen = 0
                for line in loader.stderr:
                    event = json.loads(line)
                    if event["event"] == "open":
                        self.assertGreaterEqual(event["rows"], reported)
                    reported = max(reported, event["rows"])
                    seen += 1
                    if seen > rng.randrange(1, 25):
                        break
                time.sleep(rng.random() * 0.003)
                loader.send_signal(signal.SIGKILL)
                for line in loader.stderr:
                    if line.endswith(b"}\n"):
                        reported = max(reported, json.loads(line)["rows"])
            loader.communicate()
            if loader.returncode == 0:
                if kills >= wanted:
                    break
                os.remove(self.pool)  # the load was faster than the kills: start again
                reported = 0
                continue
            self.assertEqual(loader.returncode, -signal.SIGKILL)
            kills += 1
            if kills == wanted // 2:  # what is present is the file's beginning, in whole records
                part = self.ok("export", self.pool, *medium)
                self.assertTrue(content.startswith(part))
                self.assertTrue(part == b"" or part.endswith(b"\n\n"))
        self.assertGreaterEqual(kills, wanted)
        self.assertEqual(self.ok("export", self.pool, *medium), content)
        self.assertEqual(self.ok_json("check", self.pool, *medium)["problems"], [])

    def test_a_different_file_on_resume(self):
        content = packages(2000)
        source = self.write("Packages", content)
        self.kill_a_load(20, self.pool, source, "--durability", "durable")
        self.write("Packages", content.replace(b"Package: p01999", b"Package: q01999"))
        self.fails(3, "load", self.pool, source, has=["content", "behind what is loaded"])
        self.write("Packages", content)
        self.ok("load", self.pool, source)
        self.assertEqual(self.ok("export", self.pool), content)


if __name__ == "__main__":
    unittest.main(verbosity=2)
