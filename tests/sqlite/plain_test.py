#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure sqlite import and export: a database goes into a pool and out again, page for page; what
is wrong is said, what is there is kept.

PERDURE is the command, PERDURE_VFS the extension.
"""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from case import Case, LOAD, MEMORY

PERDURE = os.environ["PERDURE"]
CUT = """
import sqlite3, os, sys
m = sqlite3.connect(":memory:")
m.enable_load_extension(True)
m.load_extension(sys.argv[1])
db = sqlite3.connect(sys.argv[2], uri=True, isolation_level=None)
db.execute("delete from t where a > 99")
os._exit(9)
"""


def perdure(*arguments):
    done = subprocess.run([PERDURE, "sqlite", *arguments], capture_output=True, text=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


class Plain(Case):
    def setUp(self):
        super().setUp()
        self.pool, self.out = os.path.join(self.folder, "pool"), os.path.join(self.folder, "out.db")

    def make(self, *statements, rows=2000):
        db = sqlite3.connect(self.path, isolation_level=None)
        for statement in statements:
            db.execute(statement)
        db.execute("create table t (a integer primary key, b)")
        db.execute("create index i on t (b)")
        db.execute("begin")
        db.executemany("insert into t values (?, ?)",
                       ((n, f"row {n * 7919 % 10007} " + "x" * (n % 300)) for n in range(rows)))
        db.execute("commit")
        return db

    def ok(self, *arguments):
        status, out, error = perdure(*arguments)
        self.assertEqual(status, 0, error)
        return out

    def fails(self, *arguments, code, has):
        status, out, error = perdure(*arguments, "--json")
        self.assertEqual(status, 3, error)
        self.assertEqual(json.loads(out)["error"]["code"], code)
        self.assertIn(has, error)

    def content(self, db):
        return list(db.iterdump())

    def left(self):
        folders = {pathlib.Path(self.folder), pathlib.Path(self.pool).parent}
        return sorted(p.name for folder in folders for p in folder.iterdir() if "part" in p.name)

    def test_a_database_goes_in_and_out(self):
        for number, statements in enumerate(
            ([], ["pragma page_size = 512"], ["pragma page_size = 65536"],
             ["pragma auto_vacuum = full"])):
            self.path, self.pool, self.out = (os.path.join(self.folder, f"{name}{number}")
                                              for name in ("app", "pool", "out"))
            self.make(*statements).close()
            answer = json.loads(self.ok("import", self.pool, self.path, "--json"))
            self.assertEqual(answer["bytes"], os.path.getsize(self.path))
            self.ok("export", self.pool, self.out)
            self.assertEqual(
                pathlib.Path(self.out).read_bytes()[100:],
                pathlib.Path(self.path).read_bytes()[100:])
            self.assertEqual(self.left(), [])
            plain, inside, again = sqlite3.connect(
                self.path), self.connect(path=self.pool), sqlite3.connect(self.out)
            self.sound(inside)
            self.assertEqual(self.content(plain), self.content(inside))
            self.assertEqual(self.content(plain), self.content(again))
            inside.execute("delete from t where a % 2 = 0")
            inside.close()
            os.remove(self.out)
            self.ok("export", self.pool, self.out)
            again.close()
            again = sqlite3.connect(self.out)
            self.sound(again)
            self.assertEqual(
                again.execute("select count(*), sum(a % 2) from t").fetchone(), (1000, 1000))
            again.close()
            plain.close()

    def test_what_is_in_the_wal_comes_along(self):
        db = self.make("pragma journal_mode = wal", "pragma wal_autocheckpoint = 0")
        self.assertGreater(os.path.getsize(self.path + "-wal"), 100000)
        db.execute("begin immediate")
        db.execute("delete from t")  # not committed: it is not copied
        self.ok("import", self.pool, self.path)
        db.execute("rollback")
        inside = self.connect(path=self.pool)
        self.assertEqual(self.content(db), self.content(inside))
        self.assertEqual(inside.execute("pragma journal_mode").fetchone(), ("delete",))
        self.sound(inside)
        inside.execute("insert into t values (-1, 'more')")
        inside.close()
        self.ok("export", self.pool, self.out)
        plain = sqlite3.connect(self.out)
        self.assertEqual(plain.execute("select count(*) from t").fetchone(), (2001,))
        plain.close()
        db.close()

    # A backup copies page 1 as it is, and with it bytes 18 and 19 of the header, which say WAL.
    def test_a_backup_of_a_database_in_wal_mode(self):
        for number, design in enumerate(("", "&design=a")):
            self.design, self.pool = design, os.path.join(self.folder, f"pool{number}")
            self.path = os.path.join(self.folder, f"app{number}.db")
            source = self.make("pragma journal_mode = wal")
            inside = self.connect(path=self.pool)
            inside.execute("create table before (a)")
            source.backup(inside)
            # With page 1 in its cache, and without it.
            for mine in (inside, self.connect(path=self.pool)):
                self.assertEqual(self.content(source), self.content(mine))
                self.assertEqual(mine.execute("pragma journal_mode").fetchone(), ("delete",))
                mine.execute("insert into t values (null, 'more')")
                mine.execute("delete from t where a = (select max(a) from t)")
                self.sound(mine)
                mine.close()
            again = self.connect(path=self.pool)
            self.assertEqual(self.content(source), self.content(again))
            again.backup(source)  # and back, where the mode stays
            self.assertEqual(source.execute("pragma journal_mode").fetchone(), ("wal",))
            source.close()
            again.close()

    # A program that has the bytes from another source writes them through the VFS: a pool that has
    # them already opens, too.
    def test_restored_by_the_shell(self):
        self.make("pragma journal_mode = wal").close()
        self.path, plain = self.pool, self.path
        self.shell(f".restore {plain}", "insert into t values (null, 'more');")
        out, _ = self.shell("select count(*) from t;", "pragma integrity_check;",
                            "pragma journal_mode;")
        self.assertEqual(out.split(), ["2001", "ok", "delete"])

    # A file made by tempfile or `touch` is a new database for SQLite; also with a mode of SQLite's
    # that makes no file.
    def test_an_empty_file_is_a_new_database(self):
        for number, (design, more) in enumerate((("", ""), ("&design=a", ""), ("", "&mode=rw"))):
            self.design, path = design, os.path.join(self.folder, f"empty{number}")
            pathlib.Path(path).touch(mode=0o600)
            db = self.connect(more, path)
            self.assertEqual(db.execute("select count(*) from sqlite_schema").fetchone(), (0,))
            db.execute("create table t (a)")
            db.close()
            self.assertEqual(pathlib.Path(path).read_bytes()[:7], b"PERDURE")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            db = self.connect(path=path)
            self.assertEqual(db.execute("select count(*) from t").fetchone(), (0,))
            db.close()
        empty = os.path.join(self.folder, "empty")
        pathlib.Path(empty).touch()
        with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
            self.connect("&mode=ro", empty).execute("select * from sqlite_schema")
        self.assertEqual(os.path.getsize(empty), 0)

    def test_an_empty_one(self):
        pathlib.Path(self.path).touch()
        self.ok("import", self.pool, self.path)
        self.ok("export", self.pool, self.out)
        db = self.connect(path=self.pool)
        db.execute("create table t (a)")
        db.close()

    def test_a_log_far_smaller_than_the_database(self):
        memory = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(memory.cleanup)
        # Undo syncs for each line that it changes, which takes minutes on a slow disk.
        self.pool = os.path.join(memory.name, "pool")
        self.make(rows=20000).close()
        self.ok("import", self.pool, self.path, "--log-size", "4MiB", "--engine", "undo")
        self.ok("export", self.pool, self.out)
        self.assertEqual(
            pathlib.Path(self.out).read_bytes()[100:],
            pathlib.Path(self.path).read_bytes()[100:])
        self.fails("import", self.pool + "2", self.path, "--log-size", "128KiB", "--engine", "undo",
                   code="too_big", has="larger log_size")
        self.assertEqual(self.left(), [])

    def test_the_other_design(self):
        self.make("pragma journal_mode = wal").close()
        self.ok("import", self.pool, self.path, "--design", "a")
        inside, plain = self.connect(path=self.pool), sqlite3.connect(self.path)
        self.sound(inside)
        self.assertEqual(self.content(plain), self.content(inside))
        inside.execute("pragma journal_mode = persist")
        inside.close()
        plain.close()
        # Not closed in order.
        subprocess.run(["/usr/bin/python3", "-c", CUT, LOAD,
                        self.uri(path=self.pool)], check=False, timeout=60)
        self.ok("export", self.pool, self.out)
        plain = sqlite3.connect(self.out)
        self.sound(plain)
        self.assertEqual(plain.execute("select count(*) from t").fetchone(), (100,))
        plain.close()

    def test_what_is_wrong_is_said(self):
        self.make().close()
        self.fails("import", self.pool, self.path + "x", code="not_found", has="no such file")
        self.fails("export", self.pool, self.out, code="not_found", has=self.pool)
        self.fails("import", self.path, self.path, code="exists", has="remove that one first")
        self.fails("export", self.path, self.out, code="incompatible", has="PERDURE")
        self.ok("import", self.pool, self.path)
        self.fails("export", self.pool, self.path, code="exists", has="remove that one first")
        self.fails("export", self.pool, self.pool, code="invalid", has="the pool itself")
        self.fails("export", self.pool, os.path.join(self.folder, "none", "out.db"), code="io",
                   has="its rights")
        pathlib.Path(self.out + "-wal").touch()  # of another database that existed before
        self.fails("export", self.pool, self.out, code="exists", has="-wal")
        os.remove(self.out + "-wal")
        text = os.path.join(self.folder, "text")
        pathlib.Path(text).write_bytes(b"no database\n" * 1000)
        self.fails("import", self.out, text, code="corrupt", has="not a database")
        bytes_of = bytearray(pathlib.Path(self.path).read_bytes())
        bytes_of[8192:12288] = bytes(range(256)) * 16
        damaged = os.path.join(self.folder, "damaged")
        pathlib.Path(damaged).write_bytes(bytes_of)
        self.fails("import", self.out, damaged, code="corrupt", has="damage")
        self.assertEqual(self.left(), [])
        self.assertFalse(os.path.exists(self.out))
        db = self.connect(path=self.pool)
        db.execute("select 1 from t").fetchone()
        self.ok("export", self.pool, self.out)  # beside the process that has it open
        os.remove(self.out)
        db.close()

    # An import that is killed at any moment has made a whole pool, or none of that name.
    def test_killed_imports(self):
        self.make(rows=30000).close()
        whole = 0
        for n in range(10):
            run = subprocess.Popen(
                [PERDURE, "sqlite", "import", self.pool, self.path, "--log-size", "1MiB"],
                stderr=subprocess.DEVNULL)
            time.sleep(0.02 * n)
            run.send_signal(signal.SIGKILL)
            run.wait()
            if os.path.exists(self.pool):
                whole += 1
                db = self.connect(path=self.pool)
                self.sound(db)
                self.assertEqual(db.execute("select count(*) from t").fetchone(), (30000,))
                db.close()
                os.remove(self.pool)
        self.assertLess(whole, 10)
        self.ok("import", self.pool, self.path)
        # The export recovers a pool that was not closed in order.
        subprocess.run(["/usr/bin/python3", "-c", CUT, LOAD,
                        self.uri(path=self.pool)], check=False, timeout=60)
        self.ok("export", self.pool, self.out)
        plain = sqlite3.connect(self.out)
        self.sound(plain)
        self.assertEqual(plain.execute("select count(*) from t").fetchone(), (100,))
        plain.close()


if __name__ == "__main__":
    unittest.main()
