#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""SQLite on pools and fork(), in both designs: a child connects anew, to its parent's database when
the parent has closed it or has ended, to others at any time. The connections that it has inherited
are refused, and harmless when they are closed.

PERDURE_VFS is the extension. A child reports by its exit code; one that hangs is killed after 50 s.
"""
import contextlib
import hashlib
import os
import pathlib
import signal
import sqlite3
import threading
import traceback
import unittest

from case import Case


def fork(work):
    """Forks a child that runs `work`."""
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


class Fork(Case):
    def ends_well(self, child):
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def made(self, rows=3, path=None):
        db = self.connect(path=path)
        db.execute("create table t (a integer primary key, b)")
        db.executemany("insert into t values (null, ?)", ((n,) for n in range(rows)))
        return db

    def use(self, rows, path=None):
        """Connects, expects this number of rows, adds one, closes."""
        db = self.connect(path=path)
        self.assertEqual(db.execute("select count(*) from t").fetchone(), (rows,))
        db.execute("insert into t values (null, 'more')")
        self.sound(db)
        db.close()

    def refused(self, db, what, has, statement="select count(*) from t"):
        with self.assertRaisesRegex(sqlite3.OperationalError, what):
            db.execute(statement).fetchone()
        self.assertIn(has, db.execute("pragma perdure_error").fetchone()[0])

    def test_a_connection_of_the_parents(self):
        db, other = self.made(), os.path.join(self.folder, "other.db")

        def file():
            return hashlib.sha256(pathlib.Path(self.path).read_bytes()).digest()

        def work():
            self.refused(db, "disk I/O", "fork()")
            self.refused(db, "disk I/O", "fork()", "insert into t values (null, 'no')")
            mine = self.connect(timeout=0)
            self.refused(mine, "locked", f"process {os.getppid()}")
            db.close()
            self.refused(mine, "locked", f"process {os.getppid()}")
            self.made(path=other).close()
            self.use(3, other)

        before = file()
        self.ends_well(fork(work))
        self.assertEqual(file(), before)
        db.execute("insert into t values (null, 'more')")
        self.sound(db)
        db.close()
        self.use(4)
        self.use(4, other)

    # A connection with an open transaction, with pages that are not written and pages that are, in
    # the pool or its journal.
    def test_a_transaction_of_the_parents(self):
        db = self.made()
        db.execute("pragma cache_size = 10")
        db.execute("begin")
        db.executemany("insert into t values (null, ?)", (("x" * 3000,) for _ in range(100)))

        def work(ends):
            if ends == "commit":
                self.refused(db, "disk I/O", "fork()", ends)
            elif ends == "rollback":
                # SQLite rolls back what it has in its cache.
                with contextlib.suppress(sqlite3.OperationalError):
                    db.execute(ends)
            db.close()

        for ends in ("commit", "rollback", "close"):
            before = hashlib.sha256(pathlib.Path(self.path).read_bytes()).digest()
            self.ends_well(fork(lambda ends=ends: work(ends)))
            self.assertEqual(hashlib.sha256(pathlib.Path(self.path).read_bytes()).digest(), before)
        db.execute("commit")
        self.sound(db)
        db.close()
        self.use(103)

    def test_closed_before_the_fork(self):
        self.made().close()
        self.ends_well(fork(lambda: self.use(3)))
        self.use(4)

    def test_closed_after_the_fork(self):
        self.made().close()
        for number, copy in enumerate(("before", "after", "never")):
            db = self.connect()
            db.execute("select * from t").fetchall()
            closed, end = os.pipe()

            def work():
                os.close(end)
                os.read(closed, 1)
                if copy == "before":
                    db.close()
                self.use(3 + number)
                if copy == "after":
                    db.close()

            child = fork(work)
            db.close()
            os.close(end)
            self.ends_well(child)
            os.close(closed)
        self.use(6)

    def test_the_parent_has_ended(self):
        rows = 3
        self.made().close()
        for how in ("exit", "kill"):
            (ended, end), (report, told) = os.pipe(), os.pipe()

            def grandchild():
                os.close(end)
                os.read(ended, 1)
                self.use(rows + 1)
                os.write(told, b"y")

            def parent():
                db = self.connect()
                db.execute("insert into t values (null, 'parent')")
                fork(grandchild)
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)

            child = fork(parent)
            os.close(end)
            os.close(told)
            self.assertEqual(os.waitpid(child, 0)[1], signal.SIGKILL if how == "kill" else 0)
            self.assertEqual(os.read(report, 1), b"y")
            os.close(ended)
            os.close(report)
            rows += 2
            self.use(rows)
            rows += 1

    # Other threads are inside transactions of their own. (They must not be inside SQLite's calls:
    # it has mutexes of its own.)
    def test_beside_threads(self):
        self.made().close()
        inside, leave = threading.Barrier(4), threading.Event()

        def reader(statement):
            db = self.connect()
            db.execute("begin")
            db.execute(statement).fetchall()
            inside.wait()
            leave.wait()
            db.execute("commit")
            db.close()

        statements = ("select * from t", "insert into t values (null, 'thread')",
                      "select count(*) from t")
        threads = [threading.Thread(target=reader, args=(s,)) for s in statements]
        for thread in threads:
            thread.start()
        inside.wait()
        other = os.path.join(self.folder, "other.db")

        def work():
            self.refused(self.connect(timeout=0), "locked", "process ")
            self.made(path=other).close()
            self.use(3, other)

        try:
            self.ends_well(fork(work))
        finally:
            leave.set()
            for thread in threads:
                thread.join()
        self.use(4)


class ForkA(Fork):
    design = "&design=a"


if __name__ == "__main__":
    unittest.main()
