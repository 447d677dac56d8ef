#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands that inspect a pool: closed, killed, in use, damaged, of another program."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from cli import Case, FOREIGN, packages, PERDURE, perdure


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
        content = packages(20000)  # so many that the kill comes first, however fast the disk is
        self.kill_a_load(50, pool, self.write("Many", content), "--durability", "durable")
        log = self.ok_json("log", pool)
        self.assertGreater(log["total_records"], 5)
        self.assertEqual(len(log["records"]), log["shown"])
        ids = [r["id"] for r in log["records"]]
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(self.ok_json("log", pool, "--limit", "2", "--entries")["shown"], 2)
        self.assertIn(b"words", self.ok("log", pool, "--limit", "3", "--entries"))
        self.assertFalse(self.ok_json("info", pool)["clean"])
        self.assertIn(b"not closed in order", self.ok("check", pool))
        self.fails(1, "stat", pool)
        recovered = self.ok_json("recover", pool)
        self.assertGreater(recovered["records"], 5)
        self.assertFalse(recovered["was_clean"])
        self.assertTrue(self.ok_json("recover", pool)["was_clean"])
        self.assertTrue(self.ok_json("info", pool)["clean"])
        self.assertEqual(self.ok_json("log", pool)["total_records"], 0)
        self.check(pool)
        dry = self.ok_json("compact", pool, "--dry-run")
        done = self.ok_json("compact", pool)
        self.assertEqual("", done["refused"])
        self.assertEqual(dry["given_back_bytes"], done["given_back_bytes"])
        self.assertEqual(dry["data_bytes_after"], done["data_bytes_after"])
        info = self.ok_json("info", pool)
        self.assertEqual(info["file_bytes"], done["file_bytes_after"])
        self.assertEqual(info["allocated_bytes"], done["allocated_bytes_after"])
        self.check(pool)
        self.assertTrue(content.startswith(self.ok("export", pool)))

    def test_reading_after_a_kill_needs_no_recovery(self):
        pool = self.path("second")
        self.kill_a_load(50, pool, self.path("Packages"))
        with open(pool, "rb") as file:
            before = file.read()
        keys = self.ok("scan", pool, "--keys")
        self.assertGreaterEqual(len(keys.splitlines()), 50)
        self.assertIn(b"as the next recovery", self.ok("check", pool))
        with open(pool, "rb") as file:
            self.assertEqual(before, file.read())
        self.ok("recover", pool)
        self.assertEqual(keys, self.ok("scan", pool, "--keys"))

    def test_reading_after_a_kill_recovers(self):
        pool = self.path("second")
        self.kill_a_load(50, pool, self.path("Packages"), "--engine", "undo")
        self.assertGreaterEqual(len(self.ok("scan", pool, "--keys").splitlines()), 50)

    def test_reading_after_a_kill_without_write_permission_says_that_recovery_is_needed(self):
        pool = self.path("second")
        self.kill_a_load(50, pool, self.path("Packages"), "--engine", "undo")
        os.chmod(pool, 0o444)
        os.chmod(self.folder, 0o755)
        shutil.copy(PERDURE, self.path("perdure"))  # the build folder may be closed to others
        someone = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for command in (["get", pool, "x"], ["scan", pool, "--keys"], ["export", pool]):
            done = subprocess.run([self.path("perdure"), *command], capture_output=True, timeout=60,
                                  check=False, **someone)
            self.assertEqual(done.returncode, 3, done)
            for text in ("not closed in order", "no permission to write", "perdure recover",
                         "a user that may write it"):
                self.assertIn(text, done.stderr.decode())
        os.chmod(pool, 0o644)
        self.ok("recover", pool)
        os.chmod(pool, 0o444)
        done = subprocess.run([self.path("perdure"), "scan", pool, "--keys"], capture_output=True,
                              timeout=60, check=False, **someone)
        self.assertEqual(done.returncode, 0, done)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 50)

    def test_stat_and_busy_while_a_program_runs(self):
        # A put that waits for its standard input has read nothing and holds nothing, so a load from
        # a big file is stopped in the middle.
        big = self.write("big", packages(20000))
        pool = self.path("second")
        loader = subprocess.Popen([
            PERDURE, "load", pool, big, "--batch", "1", "--durability", "durable", "--progress",
            "json"
        ], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
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
            # Others read beside it, also while it is stopped.
            self.fails(1, "get", pool, "x", "--json")
            keys = self.ok("scan", pool, "--keys").splitlines()
            self.assertGreaterEqual(len(keys), 200)
            self.assertEqual(len(self.ok_json("scan", pool)["rows"]), len(keys))
            self.assertTrue(self.ok_json("info", pool)["in_use"])
            self.assertEqual(self.ok_json("info", pool)["store"]["rows"], len(keys))
            found = self.ok_json("check", pool)
            self.assertTrue(found["ok"])
            self.assertTrue(found["summary"]["in_use"])
            self.assertTrue(found["summary"]["containers_walked"])
            self.assertEqual(len(self.ok("dump", "--jsonl", pool, "rows").splitlines()), len(keys))
            self.assertIn("rows", [f["name"] for f in self.ok_json("schema", pool)["root"]["fields"]])
            self.ok("export", pool, self.path("copy"))
            self.ok("backup", pool, self.path("backups"))
            self.ok("restore", self.path("backups"), self.path("restored"))
            self.assertEqual(keys, self.ok("scan", self.path("restored"), "--keys").splitlines())
            self.fails(3, "put", pool, "x", "y", has=["has it open"])
            self.fails(3, "compact", pool, has=["has it open"])
            self.fails(3, "log", pool)
            # It goes on, and they read on.
            loader.send_signal(signal.SIGCONT)
            for _ in range(20):
                self.assertTrue(self.ok_json("check", pool)["ok"])
                more = self.ok("scan", pool, "--keys").splitlines()
                self.assertGreaterEqual(len(more), len(keys))
            loader.send_signal(signal.SIGSTOP)
        finally:
            loader.kill()
            loader.communicate()
        self.fails(1, "stat", pool, "--json")
        self.fails(1, "stat", self.pool, has=[])

    def damage(self, offset, n=8):
        """check's (exit status, problems) with n bytes flipped; then the pool is restored."""
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
        # One copy is damaged: the other one is used, and this is reported.
        for copy, at in (("A", 4088), ("B", 65536 + 4088)):
            status, problems = self.damage(at)
            self.assertEqual(status, 1)
            self.assertIn(f"copy {copy} is damaged", problems)
        status, problems = self.damage(home + 4096)  # the heap's directory
        self.assertEqual(status, 1, problems)
        # Pointers and counts of the containers.
        for field in range(0, info["root_bytes"] - 12 * 8, 8):
            status, problems = self.damage(root + field)
            self.assertIn(status, (0, 1), problems)
        self.assertEqual(self.damage(root)[0], 1)
        self.check()
        # Anywhere in the data: the damage is found, or lies in bytes that nothing guards
        # (docs/format.md); the command never crashes.
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
    """Pools of programs with root types of their own, in memory: an engine may sync thousands of
    times for one."""

    FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    # Engines without records.
    OWN_LOGS = ("rewind-1l-nfp-batch", "rewind-2l-fp-simple", "bppm", "redo-mne-sync", "softwrap",
                "softwrap-local")

    def make(self, engine, how):
        done = subprocess.run([FOREIGN, self.pool, engine, how], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0 if how == "close" else -signal.SIGKILL, done.stderr)

    def test_closed_in_order(self):
        for engine in ("shadow", "dudetm", "undo", *self.OWN_LOGS):
            self.make(engine, "close")
            info = self.ok_json("info", self.pool)
            self.assertEqual(info["engine"], engine)
            self.assertNotIn("store", info)
            self.assertIn("hash_map", info["layout"])
            answer = self.check()
            self.assertTrue(answer["summary"]["containers_walked"])
            self.assertEqual(answer["summary"]["leaked_blocks"], 0)
            self.assertTrue(self.ok_json("recover", self.pool)["was_clean"])
            self.fails(3, "get", self.pool, "x", has=["another layout", "accounts"])
            self.fails(3, "put", self.pool, "x", "y", has=["another layout", "accounts"])
            os.remove(self.pool)

    def test_killed(self):
        for engine in ("shadow", "dudetm", "undo", *self.OWN_LOGS):
            self.make(engine, "kill")
            if engine == "shadow":
                self.assertIn(b"not closed in order", self.ok("check", self.pool))
            else:
                self.fails(1, "check", self.pool, has=["recover"])
            if engine in self.OWN_LOGS:
                self.fails(3, "log", self.pool, has=[f"engine '{engine}'", "perdure recover"])
            else:
                self.assertGreater(self.ok_json("log", self.pool, "--entries")["total_records"], 0)
            self.assertFalse(self.ok_json("recover", self.pool)["was_clean"])
            self.check()
            self.make(engine, "close")  # the program continues with it
            os.remove(self.pool)


if __name__ == "__main__":
    unittest.main(verbosity=2)
