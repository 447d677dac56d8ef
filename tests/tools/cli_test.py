#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The perdure command, end to end, through its own binary (environment PERDURE)."""

import json
import os
import pty
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PERDURE = os.environ.get("PERDURE", "build/dev/tools/perdure")
FOREIGN = os.environ.get("PERDURE_FOREIGN")  # makes pools with another root type (foreign_pool.cpp)
COMMANDS = ["load", "export", "get", "put", "del", "scan", "info", "check", "recover", "log", "doctor", "stat"]


def perdure(*arguments, stdin=b""):
    """(exit status, standard output, standard error)"""
    done = subprocess.run([PERDURE, *arguments], input=stdin, capture_output=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdure-cli-", dir=os.environ.get("PERDURE_TEST_DIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.pool = self.path("pool")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content)
        return self.path(name)

    def ok(self, *arguments, stdin=b""):
        status, out, err = perdure(*arguments, stdin=stdin)
        self.assertEqual(status, 0, f"{arguments}: {err}")
        return out

    def ok_json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, status, *arguments, has=()):
        """The command ends with this status; its message holds every string of `has`. With --json, standard output says the same."""
        found, out, err = perdure(*arguments)
        self.assertEqual(found, status, f"{arguments}: {out!r} {err}")
        for text in has:
            self.assertIn(text, err)
        if "--json" in arguments:
            json.loads(out)
        return err

    def check(self, pool=None):
        answer = self.ok_json("check", pool or self.pool)
        self.assertEqual(answer["problems"], [])
        return answer


def packages(n, seed=1):
    """A control file of n stanzas."""
    rng = random.Random(seed)
    stanzas = []
    for i in range(n):
        text = f"Package: p{i:05d}\nVersion: {rng.randrange(9)}.{i}\nArchitecture: amd64\nDescription: " + "x" * rng.randrange(300)
        stanzas.append(text + "\n more\n .\n\n")
    return "".join(stanzas).encode()


class RoundTrip(Case):
    """What is loaded comes out byte for byte."""

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

    def test_crlf_and_byte_order_mark(self):
        pool = self.round_trip("w.csv", b"\xef\xbb\xbfid;x\r\n1;2\r\n3;4\r\n", "--key", "id", rows=2)
        self.assertEqual(self.ok("scan", pool, "--keys"), b"1\n3\n")

    def test_no_final_newline(self):
        self.round_trip("a.tsv", b"a\t1\nb\t2", rows=2)
        self.round_trip("a.csv", b"a,1\nb,\"2\"", rows=2)
        self.round_trip("a.control", b"Package: a\nVersion: 1\nArchitecture: all", rows=1)

    def test_control(self):
        content = b"\n# head\n" + packages(50) + b"\n \n# tail\n"
        pool = self.round_trip("Packages", content, rows=50)
        self.assertIn(b"Package: p00007\n", self.ok("get", pool, "p00007 " + self.version(content, 7) + " amd64"))

    @staticmethod
    def version(content, i):
        return content.decode().split(f"Package: p{i:05d}\nVersion: ")[1].split("\n")[0]

    def test_comments_header_only_and_empty_files(self):
        self.round_trip("c.csv", b"# one\na;1\n#two\nb;2\n# end", "--comment", "#", "--delimiter", ";", rows=2)
        self.round_trip("h.csv", b"id,name\n", "--header", rows=0)
        self.round_trip("e.tsv", b"", rows=0)
        self.round_trip("nl.tsv", b"\n\n\n", rows=0)

    def test_random_files(self):
        rng = random.Random(5)
        for i in range(6):
            lines = []
            for row in range(rng.randrange(200)):
                junk = bytes(rng.choice(b"abc \"'\\\xc3\xa9\x00") for _ in range(rng.randrange(80)))
                lines.append(b"\n" * (rng.randrange(8) == 0) + b"%d\t" % row + junk + rng.choice([b"\n", b"\r\n"]))
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
            self.fails(3, "load", pool, source, "--batch", batch, has=["t.tsv:701:", "k123", "line 124"])
            self.assertEqual(self.ok("export", pool), "".join(rows[:700]).encode())
            self.fails(3, "load", pool, source, "--json", has=["t.tsv:701:", "line 124", "700 rows"])  # and again
            self.check(pool)

    def test_wrong_options_leave_no_pool(self):
        source = self.write("t.csv", b"id,name\n1,a\n")
        self.fails(3, "load", self.pool, source, "--key", "nope", has=["no column 'nope'", "id, name"])
        self.fails(3, "load", self.pool, source, "--key", "5", has=["t.csv:1: a row of 2 columns", "at least 5"])
        self.fails(3, "load", self.pool, self.path("missing"), has=["missing"])
        self.fails(3, "load", self.pool, self.folder, has=["a directory", "regular file"])
        self.fails(3, "load", self.pool, self.write("z", b"\x1f\x8b\x08\x00"), has=["gzip"])
        self.assertFalse(os.path.exists(self.pool))

    def test_a_second_load_changes_nothing(self):
        source = self.write("t.tsv", b"a\t1\nb\t2\n")
        self.ok("load", self.pool, source)
        again = self.ok_json("load", self.pool, source)
        self.assertEqual((again["rows"], again["rows_loaded"]), (2, 0))
        self.assertEqual(self.ok("export", self.pool), b"a\t1\nb\t2\n")

    def test_another_source_is_an_error_that_says_what_differs(self):
        self.ok("load", self.pool, self.write("t.csv", b"a,1\nb,2\nc,3\n"))
        self.fails(3, "load", self.pool, self.write("longer", b"a,1\nb,2\nc,3\nd,4\n"), has=["16 bytes", "the 12 bytes", "t.csv"])
        self.fails(3, "load", self.pool, self.write("other", b"a,1\nb,7\nc,3\n"), has=["in the record at line 2"])
        self.fails(3, "load", self.pool, self.path("t.csv"), "--key", "2", has=["--key 2", "expected 1"])
        self.fails(3, "load", self.pool, self.path("t.csv"), "--delimiter", ";", has=["--delimiter ;"])
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
        self.pool = os.path.join("/dev/shm" if os.access("/dev/shm", os.W_OK) else self.folder, f"perdure-cli-{os.getpid()}.pool")
        self.addCleanup(lambda: os.path.exists(self.pool) and os.remove(self.pool))
        self.resume_after_kills(packages(6000), 6, "--medium", "emulated", medium=("--medium", "emulated"))

    def resume_after_kills(self, content, wanted, *options, medium=()):
        source = self.write("Packages", content)
        kills, reported = 0, 0
        rng = random.Random(11)
        for _ in range(60):
            loader = subprocess.Popen([PERDURE, "load", self.pool, source, "--batch", "10", "--progress", "json", *options],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
                os.remove(self.pool)  # faster than the kills: once more from the start
                reported = 0
                continue
            self.assertEqual(loader.returncode, -signal.SIGKILL)
            kills += 1
            if kills == wanted // 2:  # what is there is the file's beginning, whole records
                part = self.ok("export", self.pool, *medium)
                self.assertTrue(content.startswith(part))
                self.assertTrue(part == b"" or part.endswith(b"\n\n"))
        self.assertGreaterEqual(kills, wanted)
        self.assertEqual(self.ok("export", self.pool, *medium), content)
        self.assertEqual(self.ok_json("check", self.pool, *medium)["problems"], [])

    def test_a_different_file_on_resume(self):
        content = packages(2000)
        source = self.write("Packages", content)
        loader = subprocess.Popen([PERDURE, "load", self.pool, source, "--batch", "5", "--durability", "durable", "--progress", "json"],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in loader.stderr:
            if json.loads(line)["rows"] >= 20:
                break
        loader.kill()
        loader.communicate()
        self.write("Packages", content.replace(b"Package: p01999", b"Package: q01999"))
        self.fails(3, "load", self.pool, source, has=["content", "behind what is loaded"])
        self.write("Packages", content)
        self.ok("load", self.pool, source)
        self.assertEqual(self.ok("export", self.pool), content)


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
        self.ok("load", self.pool, self.write("t.tsv", b"".join(b"k%03d\t%d\n" % (i, i) for i in range(900))))
        keys = lambda *options: self.ok("scan", self.pool, "--keys", *options).decode().split()
        everything = [f"k{i:03d}" for i in range(900)]
        self.assertEqual(keys(), everything)
        self.assertEqual(keys("--from", "k005", "--to", "k008"), everything[5:8])
        self.assertEqual(keys("--prefix", "k01"), everything[10:20])
        self.assertEqual(keys("--prefix", "k01", "--from", "k015", "--limit", "2"), everything[15:17])
        self.assertEqual(keys("--from", "k005x", "--limit", "1"), ["k006"])
        self.assertEqual(keys("--prefix", "zz"), [])
        answer = self.ok_json("scan", self.pool, "--limit", "2")
        self.assertEqual(answer, {"rows": [{"key": "k000", "value": "k000\t0\n"}, {"key": "k001", "value": "k001\t1\n"}], "count": 2})

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


class Looking(Case):
    def setUp(self):
        super().setUp()
        self.content = packages(500)
        self.ok("load", self.pool, self.write("Packages", self.content))

    def test_info(self):
        info = self.ok_json("info", self.pool)
        self.assertEqual(info["store"]["rows"], 500)
        self.assertTrue(info["clean"])
        self.assertRegex(info["uuid"], "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertIn("map", info["layout"])
        self.assertIn(b"engine:", self.ok("info", self.pool))

    def test_log_recover_and_stat_of_a_killed_load(self):
        pool = self.path("second")
        content = packages(20000)  # so many that the kill comes first, however fast the disk
        loader = subprocess.Popen([PERDURE, "load", pool, self.write("Many", content), "--batch", "5", "--durability", "durable", "--progress", "json"],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in loader.stderr:
            if json.loads(line)["rows"] >= 50:
                break
        loader.kill()
        loader.communicate()
        log = self.ok_json("log", pool)
        self.assertGreater(log["total_records"], 5)
        self.assertEqual(len(log["records"]), log["shown"])
        ids = [r["id"] for r in log["records"]]
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(self.ok_json("log", pool, "--limit", "2", "--entries")["shown"], 2)
        self.assertIn(b"words", self.ok("log", pool, "--limit", "3", "--entries"))
        self.assertFalse(self.ok_json("info", pool)["clean"])
        self.fails(1, "check", pool, has=["recover"])
        self.fails(1, "stat", pool)
        recovered = self.ok_json("recover", pool)
        self.assertGreater(recovered["records"], 5)
        self.assertFalse(recovered["was_clean"])
        self.assertTrue(self.ok_json("recover", pool)["was_clean"])
        self.assertTrue(self.ok_json("info", pool)["clean"])
        self.assertEqual(self.ok_json("log", pool)["total_records"], 0)
        self.check(pool)
        self.assertTrue(content.startswith(self.ok("export", pool)))

    def test_reading_after_a_kill_recovers(self):
        pool = self.path("second")
        loader = subprocess.Popen([PERDURE, "load", pool, self.path("Packages"), "--batch", "5", "--progress", "json"],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in loader.stderr:
            if json.loads(line)["rows"] >= 50:
                break
        loader.kill()
        loader.communicate()
        self.assertGreaterEqual(len(self.ok("scan", pool, "--keys").splitlines()), 50)

    def test_stat_and_busy_while_a_program_runs(self):
        # a put that waits for its standard input has read nothing and holds nothing: so a load from a big file is stopped in its tracks
        big = self.write("big", packages(20000))
        pool = self.path("second")
        loader = subprocess.Popen([PERDURE, "load", pool, big, "--batch", "1", "--durability", "durable", "--progress", "json"],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            for line in loader.stderr:
                if json.loads(line)["rows"] >= 200:
                    break
            time.sleep(0.05)
            loader.send_signal(signal.SIGSTOP)
            stat = self.ok_json("stat", pool)
            self.assertTrue(stat["running"])
            self.assertEqual(stat["pid"], loader.pid)
            self.assertGreater(stat["log_capacity_bytes"], 0)
            self.assertGreater(stat["commits"], 0)
            self.assertIn(b"commits:", self.ok("stat", pool))
            self.fails(3, "load", pool, big, has=["second"])
            self.fails(3, "get", pool, "x", "--json")
            self.fails(3, "check", pool)
            self.assertEqual(json.loads(perdure("info", pool, "--json")[1])["error"]["code"], "busy")
        finally:
            loader.kill()
            loader.communicate()
        self.fails(1, "stat", pool, "--json")
        self.fails(1, "stat", self.pool, has=[])

    def damage(self, offset, n=8):
        """check's (exit status, problems) with n bytes flipped; the pool is mended again."""
        with open(self.pool, "r+b") as f:
            f.seek(offset)
            good = f.read(n)
            f.seek(offset)
            f.write(bytes(b ^ 0xff for b in good))
        status, out, err = perdure("check", self.pool, "--json")
        with open(self.pool, "r+b") as f:
            f.seek(offset)
            f.write(good)
        answer = json.loads(out)
        self.assertIn(status, (0, 1, 3), err)
        self.assertEqual(status == 0, answer.get("ok", False), err)
        return status, json.dumps(answer.get("problems", answer.get("error")))

    def test_check_finds_damage(self):
        self.check()
        info = self.ok_json("info", self.pool)
        home, root = info["log_bytes"], info["log_bytes"] + info["root_offset"]
        for copy, at in (("A", 4088), ("B", 65536 + 4088)):  # one copy: the other is used, and it is said
            status, problems = self.damage(at)
            self.assertEqual(status, 1)
            self.assertIn(f"copy {copy} is damaged", problems)
        status, problems = self.damage(home + 4096)  # the heap's directory
        self.assertEqual(status, 1, problems)
        for field in range(0, info["root_bytes"] - 12 * 8, 8):  # pointers and counts of the containers
            status, problems = self.damage(root + field)
            self.assertIn(status, (0, 1), problems)
        self.assertEqual(self.damage(root)[0], 1)
        self.check()
        # anywhere in the data: found, or in bytes that nothing guards (docs/format.md); never a crash of the command
        rng = random.Random(3)
        found = sum(self.damage(root + rng.randrange(0, 400_000) // 8 * 8)[0] for _ in range(60))
        self.assertGreater(found, 0)
        self.check()
        self.fails(3, "check", self.path("missing"), has=["missing"])
        self.fails(3, "check", self.path("Packages"), "--json")

    def test_both_headers_damaged(self):
        for at in (100, 65536 + 100):
            with open(self.pool, "r+b") as f:
                f.seek(at)
                f.write(b"\xff" * 8)
        self.fails(1, "check", self.pool, "--json")
        self.fails(3, "info", self.pool)
        self.fails(3, "get", self.pool, "x")
        self.fails(3, "load", self.pool, self.path("Packages"))

    def test_truncated(self):
        os.truncate(self.pool, os.path.getsize(self.pool) - 4096)
        for command in ("info", "check", "recover", "scan"):
            self.assertIn(perdure(command, self.pool)[0], (1, 3))


@unittest.skipUnless(FOREIGN, "PERDURE_FOREIGN is not set")
class Foreign(Case):
    """Pools of programs with root types of their own."""

    OWN_LOGS = ("rewind-1l-nfp-batch", "rewind-2l-fp-simple", "bppm", "redo-mne-sync")  # no records

    def make(self, engine, how):
        done = subprocess.run([FOREIGN, self.pool, engine, how], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0 if how == "close" else -signal.SIGKILL, done.stderr)

    def test_closed_in_order(self):
        for engine in ("shadow", "dudetm", "undo", *self.OWN_LOGS):
            self.make(engine, "close")
            info = self.ok_json("info", self.pool)
            self.assertEqual(info["engine"], engine)
            self.assertNotIn("store", info)
            self.assertIn("hash_map", info["layout"])
            answer = self.check()
            self.assertFalse(answer["summary"]["containers_walked"])
            self.assertIn("everything but the containers", json.dumps(answer["notes"]))
            self.assertTrue(self.ok_json("recover", self.pool)["was_clean"])
            self.fails(3, "get", self.pool, "x", has=["field 0"])
            self.fails(3, "put", self.pool, "x", "y", has=["field 0"])
            os.remove(self.pool)

    def test_killed(self):
        for engine in ("shadow", "dudetm", "undo", *self.OWN_LOGS):
            self.make(engine, "kill")
            self.fails(1, "check", self.pool, has=["recover"])
            if engine in self.OWN_LOGS:
                self.fails(3, "log", self.pool, has=[f"engine '{engine}'", "perdure recover"])
            else:
                self.assertGreater(self.ok_json("log", self.pool, "--entries")["total_records"], 0)
            self.assertFalse(self.ok_json("recover", self.pool)["was_clean"])
            self.check()
            self.make(engine, "close")  # the program goes on with it
            os.remove(self.pool)


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
            arguments = [command, self.path("missing")] + (["k"] if command in ("get", "del") else [])
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
        loader = subprocess.Popen([PERDURE, "load", self.pool, source, "--durability", "durable", "--batch", "20"], stdout=subprocess.DEVNULL, stderr=follower)
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
        self.ok("load", self.pool, self.write("t.tsv", b"".join(b"%d\tx\n" % i for i in range(50000))))
        done = subprocess.run(f"{PERDURE} scan {self.pool} | head -1", shell=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.stdout, b"0\tx\\n\n".replace(b"0\tx", b"0\t0\\tx"))
        self.check()


if __name__ == "__main__":
    unittest.main(verbosity=2)
