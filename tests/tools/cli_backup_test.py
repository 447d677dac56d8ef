#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure backup, restore, verify, prune, and load --archive."""

import json
import os
import subprocess
import unittest

from cli import Case, PERDURE, perdure


class Backups(Case):
    def setUp(self):
        super().setUp()
        self.backups, self.new = self.path("backups"), self.path("new")

    def fill(self, *keys):
        for key in keys:
            self.ok("put", self.pool, key, key * 3)

    def restored(self, *options, folder=None):
        if os.path.exists(self.new):
            os.remove(self.new)
        self.ok("restore", folder or self.backups, self.new, *options)
        return self.ok("export", self.new)

    def test_only_what_is_new_is_written(self):
        self.fill("a", "b")
        first = self.ok_json("backup", self.pool, self.backups)
        self.assertGreater(first["new_chunks"], 0)
        self.assertEqual(self.ok_json("backup", self.pool, self.backups)["new_chunks"], 0)
        self.fill("c")
        second = self.ok_json("backup", self.pool, self.backups)
        self.assertLess(0, second["new_chunks"])
        self.assertLessEqual(second["new_chunks"], second["chunks"])
        self.assertEqual(self.restored(), self.ok("export", self.pool))
        self.assertEqual(self.restored("--to", str(first["id"])), b"a,aaa\nb,bbb\n")
        self.ok("check", self.new)

    def test_engines_without_snapshots(self):
        for engine in ("undo", "dudetm", "rewind-1l-nfp-batch"):
            pool, folder = self.path(engine), self.path(engine + "-backups")
            self.ok("put", pool, "a", "1", "--engine", engine)
            self.ok("backup", pool, folder)
            self.assertEqual(self.restored(folder=folder), b"a,1\n")

    def test_a_pool_that_was_not_closed_in_order(self):
        source = self.write("t.tsv", b"".join(b"k%05d\t%d\n" % (i, i) for i in range(3000)))
        self.kill_a_load(500, self.pool, source)
        self.ok("backup", self.pool, self.backups)
        self.ok("recover", self.pool)
        self.assertEqual(self.restored(), self.ok("export", self.pool))
        os.remove(self.pool)
        os.remove(self.new)
        self.kill_a_load(500, self.pool, source, "--engine", "undo")
        self.fails(3, "backup", self.pool, self.path("others"),
                   has=["not closed in order", "recover"])

    def test_points(self):
        self.fill("a")
        self.ok("backup", self.pool, self.backups)
        at = self.ok_json("verify", self.backups)["backups"][0]["unix_ns"]
        for point in ("latest", f"@{at // 10**9}", f"@{at // 10**9}.{at % 10**9:09}",
                      "2100-01-01T00:00:00Z", "2100-01-01 00:00"):
            self.assertEqual(self.restored("--to", point), b"a,aaa\n", point)
        os.remove(self.new)
        for point in (f"@{at // 10**9 - 1}", "1970-01-02T00:00:00Z", "0", "@1.5"):
            self.fails(3, "restore", self.backups, self.new, "--to", point, has=["no backup for"])
        for point in ("yesterday", "@", "@1.", "12x", "2026-13-01", "-1"):
            self.fails(2, "restore", self.backups, self.new, f"--to={point}",
                       has=["expected latest"])
        self.assertFalse(os.path.exists(self.new))

    def test_a_stream(self):
        self.fill("a", "b")
        stream = self.ok("backup", self.pool, "-")
        done = subprocess.run([PERDURE, "restore", "-", self.new], input=stream,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.ok("export", self.new), b"a,aaa\nb,bbb\n")
        folder = self.path("unpacked")
        os.mkdir(folder)
        subprocess.run(["tar", "-x", "-C", folder], input=stream, check=True)
        self.assertEqual(self.restored(folder=folder), b"a,aaa\nb,bbb\n")
        packed = subprocess.run(["tar", "-c", "-C", folder, "."], capture_output=True, check=True)
        os.remove(self.new)
        self.ok("restore", "-", self.new, stdin=packed.stdout)
        os.remove(self.new)
        status, _, err = perdure("restore", "-", self.new, stdin=stream[:len(stream) // 2])
        self.assertEqual(status, 3, err)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("new")], [])
        self.fails(2, "backup", self.pool, "-", "--json", has=["standard output"])

    def test_load_with_an_archive(self):
        source = self.write("t.tsv", b"".join(b"k%05d\t%d\n" % (i, i) for i in range(20000)))
        self.kill_a_load(500, self.pool, source, "--archive", self.backups)
        self.ok("load", self.pool, source, "--archive", self.backups, "--backups", "2")
        written = self.path("verify.prom")
        found = self.ok_json("verify", self.backups, "--restore", "--prometheus", written)
        self.assertTrue(found["ok"])
        with open(written, encoding="utf-8") as file:
            self.assertIn("perdure_verified_id{backups=\"" + self.backups + "\"} " +
                          str(found["restored"]["id"]), file.read())
        self.assertEqual(len(found["runs"]), 1)
        self.assertGreaterEqual(len(found["backups"]), 2)
        with open(source, "rb") as file:
            whole = file.read()
        self.assertEqual(self.restored(), whole)
        ids = range(found["backups"][0]["id"], found["runs"][0]["last"] + 1)
        for n in ids[::max(1, len(ids) // 10)]:
            part = self.restored("--to", str(n))
            self.assertEqual(part, whole[:len(part)])
        middle = found["backups"][1]["id"]
        would = self.ok_json("prune", self.backups, "--from", str(middle), "--dry-run")
        done = self.ok_json("prune", self.backups, "--from", str(middle))
        self.assertEqual(dict(would, dry_run=False), done)
        self.assertEqual(done["oldest_id"], middle)
        self.assertEqual(self.restored(), whole)
        self.fails(3, "restore", self.backups, self.path("no"), "--to", str(middle - 1),
                   has=["no backup for"])

    def test_damage(self):
        self.fill("a")
        self.ok("backup", self.pool, self.backups)
        chunks = [os.path.join(folder, name) for folder, _, names in
                  os.walk(os.path.join(self.backups, "chunk")) for name in names]
        with open(chunks[0], "r+b") as file:
            file.seek(20)
            byte = file.read(1)
            file.seek(20)
            file.write(bytes([byte[0] ^ 1]))
        written = self.path("verify.prom")
        status, out, err = perdure("verify", self.backups, "--restore", "--json", "--prometheus",
                                   written)
        self.assertEqual(status, 1, err)
        self.assertIn(os.path.basename(chunks[0]), err)
        self.assertFalse(os.path.exists(written))
        self.assertFalse(json.loads(out)["backups"][0]["whole"])
        self.fails(3, "restore", self.backups, self.new, has=[os.path.basename(chunks[0])])
        self.assertFalse(os.path.exists(self.new))

    def test_what_is_not_there(self):
        self.fails(3, "verify", self.path("none"), has=["no such folder"])
        self.fails(3, "restore", self.path("none"), self.new, has=["no such folder"])
        self.fails(3, "backup", self.path("none"), self.backups)
        self.fill("a")
        self.fails(3, "backup", self.pool, self.path("none/such"), has=["parent"])
        os.mkdir(self.backups)
        self.fails(3, "restore", self.backups, self.new, has=["no backup"])
        self.fails(3, "prune", self.backups, "--from", "latest", has=["nothing was removed"])
        self.ok("backup", self.pool, self.backups)
        self.fails(3, "restore", self.backups, self.pool, has=["replaces no file"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
