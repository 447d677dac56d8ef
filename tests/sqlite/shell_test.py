#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""SQLite's own shell, and Python's sqlite3, on pools: the everyday uses."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

from case import Case, LOAD, MEMORY


class Shell(Case):
    def test_what_one_run_has_made_the_next_one_finds(self):
        out, _ = self.shell("create table t (a, b);",
                            "insert into t values (1, 'one'), (2, 'two');",
                            "select b from t order by a;")
        self.assertEqual(out, "one\ntwo\n")
        out, _ = self.shell("select count(*) from t;", "pragma integrity_check;", ".tables")
        self.assertEqual(out.split(), ["2", "ok", "t"])
        self.assertEqual([
            p.name
            for p in pathlib.Path(self.folder).iterdir() if "journal" in p.name or "wal" in p.name
        ], [])

    def test_engines(self):
        for engine in ("shadow", "dudetm", "undo", "bppm", "softwrap"):
            path = os.path.join(self.folder, engine)
            db = self.connect(f"&engine={engine}", path)
            db.execute("create table t (a)")
            db.executemany("insert into t values (?)", [(n,) for n in range(100)])
            db.close()
            db = self.connect("", path)
            self.assertEqual(db.execute("select sum(a) from t").fetchone(), (4950,))
            self.sound(db)
            db.close()

    def test_what_is_wrong_is_said(self):
        for more in ("engine=nothing", "design=z", "log_size=many", "max_size=12Q", "delays=slow",
                     "design=a&engine=shadow"):
            with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
                sqlite3.connect(f"file:{self.path}?vfs=perdure&{more}",
                                uri=True).execute("create table t (a)")
            self.assertFalse(os.path.exists(self.path))
        out, error = self.shell(".log stderr", f".open file:{self.path}?vfs=perdure&engine=nothing",
                                "create table t (a);")
        self.assertRegex(out + error,
                         "engine 'nothing' is not in the list, expected one of: shadow")
        out, error = self.shell(".log stderr", f".open file:{self.path}.plain?vfs=unix",
                                "create table t (a);", f".open file:{self.path}.plain?vfs=perdure",
                                ".tables")
        self.assertRegex(out + error,
                         "a plain database of SQLite's, expected a pool; open it with vfs=unix")
        pathlib.Path(self.path).write_bytes(b"SQLite format 3\0" + bytes(8000))
        with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
            self.connect().execute("create table t (a)")
        self.assertEqual(pathlib.Path(self.path).read_bytes()[:15], b"SQLite format 3")


class Transactions(Case):
    def test_rollback_savepoints_and_spills(self):
        db = self.connect()
        db.execute("pragma cache_size=5")
        db.execute("create table t (a integer primary key, b)")
        db.execute("begin")
        # More than the cache can hold.
        db.executemany("insert into t values (?, ?)", [(n, "x" * 500) for n in range(3000)])
        db.execute("commit")
        db.execute("begin")
        db.execute("delete from t where a >= 1000")
        db.execute("savepoint one")
        db.execute("update t set b = 'y' || b")
        db.execute("rollback to one")
        db.execute("update t set b = 'z' where a = 7")
        self.assertEqual(db.execute("select count(*), sum(b = 'z') from t").fetchone(), (1000, 1))
        db.execute("rollback")
        self.assertEqual(
            db.execute("select count(*), sum(length(b)) from t").fetchone(), (3000, 1500000))
        self.sound(db)
        db.close()
        db = self.connect()
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (3000,))
        db.close()

    def test_journal_modes(self):
        for mode in ("delete", "truncate", "persist", "memory", "off"):
            db = self.connect()
            self.assertEqual(db.execute(f"pragma journal_mode={mode}").fetchone(), (mode,))
            db.execute("create table if not exists t (a)")
            db.execute("insert into t values (1)")
            if mode != "off":
                db.execute("begin")
                db.execute("delete from t")
                db.execute("rollback")
                self.assertGreater(db.execute("select count(*) from t").fetchone()[0], 0)
            self.sound(db)
            db.close()
        db = self.connect()
        # It stays as it was.
        self.assertEqual(db.execute("pragma journal_mode=wal").fetchone(), ("delete",))
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (5,))
        for synchronous in (0, 1, 2, 3):
            db.execute(f"pragma synchronous={synchronous}")
            db.execute("insert into t values (2)")
        db.close()
        self.assertEqual(self.connect().execute("select count(*) from t").fetchone(), (9,))

    def test_vacuum_page_sizes_attach_and_temp(self):
        db = self.connect()
        for page in (512, 4096, 65536):
            db.execute(f"pragma page_size={page}")
            db.execute("vacuum")
            self.assertEqual(db.execute("pragma page_size").fetchone(), (page,))
            db.execute("create table if not exists t (a, b)")
            db.executemany("insert into t values (?, zeroblob(300))", [(n,) for n in range(2000)])
            db.execute("delete from t where a % 3 != 0")
            before = db.execute("pragma page_count").fetchone()[0]
            db.execute("vacuum")
            self.assertLess(db.execute("pragma page_count").fetchone()[0], before)
            self.sound(db)
        other = os.path.join(self.folder, "other.db")
        db.execute("attach ? as other", (self.uri("", other),))
        plain = os.path.join(self.folder, "plain.db")
        db.execute("attach ? as plain", (f"file:{plain}?vfs=unix",))
        db.execute("create table other.u as select * from t")
        if self.design:  # a plain file has transactions of its own, see below
            db.execute("create table plain.v as select a from t")
        db.execute("begin")
        if not self.design:
            db.execute("create table plain.v as select a from t")
        db.execute("delete from other.u where a > 10")
        db.execute("update t set a = a + 1")
        db.execute("commit")
        db.execute("create temp table w as select * from t order by b, a desc")
        for schema in ("main", "other", "plain"):
            self.sound(db, schema)
        self.assertEqual(
            db.execute("select count(*) from temp.w").fetchone(),
            db.execute("select count(*) from plain.v").fetchone())
        db.close()


class Large(Case):
    def uri(self, more="", path=None):
        return f"file:{path or self.path}?vfs=perdure{more}"  # the default log and bound

    # 100 MB in one transaction, more than half of the default log.
    def test_create_index_and_drop_table(self):
        db = self.connect()
        db.execute("pragma secure_delete = on")
        db.execute("create table small (a)")
        db.execute("create table t (a integer primary key, b)")
        for part in range(10):
            db.execute(
                "with recursive i(x) as (select 1 union all select x + 1 from i where x < 1000) "
                "insert into t (b) select randomblob(10000) from i")
        db.execute("create index i on t (b)")
        self.sound(db)
        self.assertGreater(db.execute("pragma page_count").fetchone()[0] * 4096, 200_000_000)
        db.execute("insert into small values (1)")
        db.execute("drop table t")
        self.sound(db)
        db.execute("vacuum")
        db.close()
        db = self.connect()
        self.assertEqual(db.execute("select * from small").fetchall(), [(1,)])
        self.assertEqual(db.execute("select count(*) from sqlite_schema").fetchone(), (1,))
        self.sound(db)
        db.close()


# ATTACH and VACUUM INTO pass the connection's VFS on, unless their URI names another one.
class Others(Case):
    def setUp(self):
        super().setUp()
        self.plain = os.path.join(self.folder, "plain.db")
        db = sqlite3.connect(self.plain, isolation_level=None)
        db.execute("create table t (a)")
        db.execute("insert into t values (1)")
        db.close()
        self.db = self.connect()
        self.addCleanup(self.db.close)
        self.db.execute("create table t (a)")
        self.db.execute("insert into t values (2)")

    def is_pool(self, path):
        return pathlib.Path(path).read_bytes()[:7] == b"PERDURE"

    def test_plain_files_are_attached_as_they_are(self):
        for mode in ("delete", "wal"):
            db = sqlite3.connect(self.plain, isolation_level=None)
            self.assertEqual(db.execute(f"pragma journal_mode = {mode}").fetchone(), (mode,))
            if mode == "wal":  # with contents that are not in the database yet
                db.execute("pragma wal_autocheckpoint = 0")
                db.execute("insert into t values (10)")
            before = db.execute("select sum(a) from t").fetchone()
            for number, name in enumerate(
                (self.plain, f"file:{self.plain}", f"file:{self.plain}?vfs=unix")):
                self.db.execute("attach ? as other", (name,))
                self.assertEqual(
                    self.db.execute("select sum(a) from other.t").fetchone(), before, name)
                self.db.execute("insert into other.t values (?)", (100 + number,))
                self.db.execute("delete from other.t where a >= 100")
                self.sound(self.db, "other")
                self.db.execute("detach other")
            self.assertEqual(db.execute("select sum(a) from t").fetchone(), before)
            db.close()
        self.assertFalse(self.is_pool(self.plain))

    # A backup that SQLite has made of a pool is a plain file.
    def test_backups_are_attached(self):
        copy = os.path.join(self.folder, "backup.db")
        target = sqlite3.connect(copy)
        self.db.backup(target)
        target.close()
        self.db.execute("attach ? as other", (copy,))
        self.assertEqual(self.db.execute("select a from other.t").fetchall(), [(2,)])

    def test_who_asks_for_a_pool_gets_no_plain_file(self):
        with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
            self.db.execute("attach ? as other", (f"file:{self.plain}?vfs=perdure",))
        said = self.db.execute("pragma perdure_error").fetchone()[0]
        self.assertIn("a plain database", said)
        self.assertIn("vfs=unix", said)
        self.assertIn("perdure sqlite import", said)
        with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
            self.connect(path=self.plain).execute("select * from t")

    # A copy of a pool has the pool's addresses: both cannot be open at once.
    def test_a_copy_of_the_pool_itself(self):
        self.db.close()
        copy = os.path.join(self.folder, "copy.db")
        shutil.copy(self.path, copy)
        db = self.connect()
        for name in (copy, f"file:{copy}?mode=ro"):
            with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
                db.execute("attach ? as other", (name,))
            said = db.execute("pragma perdure_error").fetchone()[0]
            self.assertIn(f"a copy of the pool {self.path}", said)
            self.assertIn(f"perdure sqlite export {copy} PLAIN", said)
        db.close()
        db = self.connect(path=copy)  # alone, it opens
        self.assertEqual(db.execute("select a from t").fetchall(), [(2,)])
        db.close()

    def test_vacuum_into(self):
        pool, plain, there = (os.path.join(self.folder, name)
                              for name in ("new.db", "new-plain.db", "there.db"))
        self.db.execute("vacuum into ?", (pool,))
        self.assertTrue(self.is_pool(pool))
        self.db.execute("vacuum into ?", (f"file:{plain}?vfs=unix",))
        self.assertFalse(self.is_pool(plain))
        for name in (pool, plain):
            self.db.execute("attach ? as other", (name,))
            self.assertEqual(self.db.execute("select a from other.t").fetchall(), [(2,)])
            self.sound(self.db, "other")
            self.db.execute("detach other")
        self.connect(path=there).execute("create table u (b)")
        for name in (pool, plain, there):
            with self.assertRaisesRegex(sqlite3.OperationalError, "output file already exists"):
                self.db.execute("vacuum into ?", (name,))
        held = self.connect(path=there)  # and while another connection has it open
        held.execute("begin exclusive")
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            self.db.execute("vacuum into ?", (there,))
        held.close()

    def test_attach_makes_a_pool_where_nothing_is(self):
        new = os.path.join(self.folder, "new.db")
        self.db.execute("attach ? as other", (new,))
        self.db.execute("create table other.u (b)")
        self.db.execute("detach other")
        self.assertTrue(self.is_pool(new))

    def test_no_error_is_told_where_there_was_none(self):
        self.db.close()
        self.assertEqual(self.shell("pragma perdure_error;")[0], "\n")


# A process that has the pool open until it is told to close it.
HOLDS = """
import sqlite3, sys
m = sqlite3.connect(":memory:")
m.enable_load_extension(True)
m.load_extension(sys.argv[1])
db = sqlite3.connect(sys.argv[2], uri=True, isolation_level=None)
db.execute("insert into t values (1)")
print("open", flush=True)
sys.stdin.readline()
db.close()
print("closed", flush=True)
"""


class Connections(Case):
    def test_a_file_that_was_replaced_is_not_the_one_that_is_open(self):
        db = self.connect()
        db.execute("create table t (a)")
        os.remove(self.path)
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked|unable to open"):
            self.connect(timeout=0).execute("select * from t")
        db.close()
        db = self.connect()
        self.assertEqual(db.execute("select count(*) from sqlite_schema").fetchone(), (0,))
        db.close()

    def test_two_in_a_process(self):
        a, b = self.connect(timeout=0), self.connect(timeout=0)
        a.execute("create table t (a)")
        self.assertEqual(b.execute("select count(*) from t").fetchone(), (0,))
        a.execute("begin immediate")
        a.execute("insert into t values (1)")
        self.assertEqual(b.execute("select count(*) from t").fetchone(), (0,))  # readers continue
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            b.execute("insert into t values (2)")
        reading = b.execute("select * from t, (values (1), (2))")
        b.execute("begin")
        b.execute("select * from t").fetchall()
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            a.execute("commit")
        b.execute("commit")
        reading.close()
        a.execute("commit")
        self.assertEqual(b.execute("select count(*) from t").fetchone(), (1,))
        b.execute("insert into t values (2)")
        self.assertEqual(a.execute("select count(*) from t").fetchone(), (2,))
        a.close()
        b.close()

    def test_threads_open_and_close(self):
        db = self.connect()
        db.execute("create table t (a)")
        db.close()
        failed = []

        def work():
            try:
                for n in range(15):
                    mine = self.connect(timeout=30)
                    mine.execute("insert into t values (?)", (n,))
                    mine.close()
            except sqlite3.Error as e:
                failed.append(e)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failed, [])
        db = self.connect()
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (60,))
        self.sound(db)
        db.close()

    def test_another_process_is_refused(self):
        db = self.connect()
        db.execute("create table t (a)")
        _, error = self.shell("select * from t;", code=1)
        self.assertRegex(error, "locked")
        db.close()
        self.shell("select * from t;")

    def test_read_only(self):
        db = self.connect()
        db.execute("create table t (a)")
        db.close()
        db = self.connect("&mode=ro")
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (0,))
        with self.assertRaisesRegex(sqlite3.OperationalError, "readonly"):
            db.execute("insert into t values (1)")
        db.close()
        with self.assertRaisesRegex(sqlite3.OperationalError, "unable to open"):
            self.connect("&mode=rw", os.path.join(self.folder,
                                                  "none.db")).execute("select 1 from sqlite_master")


    def test_each_connection_has_its_own_mode(self):
        db = self.connect()
        db.execute("create table t (a)")
        db.close()
        reading = self.connect("&mode=ro", timeout=0)
        self.assertEqual(reading.execute("select count(*) from t").fetchone(), (0,))
        writing = self.connect(timeout=0)
        writing.execute("insert into t values (1)")
        self.assertEqual(reading.execute("select count(*) from t").fetchone(), (1,))
        # The first one, and one that is opened while another connection writes.
        for db in (reading, self.connect("&mode=ro", timeout=0)):
            with self.assertRaisesRegex(sqlite3.OperationalError, "readonly"):
                db.execute("insert into t values (2)")
            self.assertEqual(db.execute("select count(*) from t").fetchone(), (1,))
        writing.execute("insert into t values (2)")
        writing.close()
        self.assertEqual(reading.execute("select count(*) from t").fetchone(), (2,))
        reading.close()
        db.close()
        db = self.connect()
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (2,))
        self.sound(db)
        db.close()

    def test_who_reads_keeps_the_pool_until_its_transaction_ends(self):
        db = self.connect()
        db.execute("create table t (a)")
        db.close()
        reading = self.connect("&mode=ro", timeout=0)
        reading.execute("begin")
        reading.execute("select * from t").fetchall()
        writing = self.connect(timeout=0)
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            writing.execute("insert into t values (1)")
        reading.execute("commit")
        writing.execute("insert into t values (1)")
        self.assertEqual(reading.execute("select count(*) from t").fetchone(), (1,))
        writing.close()
        reading.close()

    # Another process has the pool for longer than one attempt takes, and for less than the timeout.
    def test_another_process_is_waited_for(self):
        db = self.connect()
        db.execute("pragma page_size = 8192")
        db.execute("pragma auto_vacuum = full")
        db.execute("create table t (a)")
        db.close()
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDS, LOAD, self.uri()], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        for cleanup in (other.stdin.close, other.stdout.close, other.kill):
            self.addCleanup(cleanup)
        self.assertEqual(other.stdout.readline(), "open\n")
        waiting = self.connect(timeout=30)  # while the other process has it
        impatient = self.connect(timeout=0)
        with self.assertRaisesRegex(sqlite3.OperationalError, "locked"):
            impatient.execute("select * from t")

        def go_on():
            other.stdin.write("close\n")
            other.stdin.flush()
            other.stdout.readline()

        letting_go = threading.Thread(target=go_on)
        letting_go.start()
        waiting.execute("insert into t values (2)")
        letting_go.join()
        self.assertEqual(other.wait(timeout=30), 0)
        self.assertEqual(waiting.execute("select count(*) from t").fetchone(), (2,))
        self.assertEqual(waiting.execute("pragma page_size").fetchone(), (8192,))
        self.assertEqual(waiting.execute("pragma auto_vacuum").fetchone(), (1,))
        self.sound(waiting)
        self.assertEqual(impatient.execute("select count(*) from t").fetchone(), (2,))
        waiting.close()
        impatient.close()


# The other design: SQLite's own journal, in the pool.
class TransactionsOnBlocks(Transactions):
    folders = MEMORY
    design = "&design=a"

    # After a crash SQLite's own VFS, which has the plain file, would see no journal of the pool,
    # and take the transaction for committed.
    def test_a_plain_file_has_transactions_of_its_own(self):
        plain = os.path.join(self.folder, "plain.db")
        for main, other in ((self.uri(), f"file:{plain}?vfs=unix"), (f"file:{plain}?vfs=unix",
                                                                     self.uri())):
            db = sqlite3.connect(main, uri=True, isolation_level=None)
            db.execute("attach ? as other", (other,))
            for schema in ("main", "other"):
                db.execute(f"create table if not exists {schema}.t (a)")
            db.execute("begin")
            db.execute("insert into main.t values (1)")
            db.execute("insert into other.t values (1)")
            with self.assertRaisesRegex(sqlite3.OperationalError, "disk I/O error"):
                db.execute("commit")
            if db.in_transaction:
                db.execute("rollback")
            for schema in ("main", "other"):
                self.assertEqual(db.execute(f"select count(*) from {schema}.t").fetchone(), (0,))
                db.execute(f"insert into {schema}.t values (2)")
                db.execute(f"delete from {schema}.t")
                self.sound(db, schema)
            db.close()


class ConnectionsOnBlocks(Connections):
    design = "&design=a"


if __name__ == "__main__":
    unittest.main()
