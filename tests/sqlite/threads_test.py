#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Threads on pools through SQLite: any number of them one after another, 256 at a time, and what
the 257th is told.

PERDURE_VFS is the extension.
"""
import sqlite3
import threading
import unittest

from case import Case

MOST = 256  # threads that use pools at a time (docs/limits.md)


class Threads(Case):
    def setUp(self):
        super().setUp()
        db = self.connect()
        db.execute("create table t (a integer primary key, b)")
        db.close()
        self.failed = []

    def add(self, db):
        db.execute("insert into t values (null, ?)", (threading.get_ident(),))

    def thread(self, work):
        def told():
            try:
                work()
            except Exception as e:  # noqa: BLE001 - is looked at by the case
                self.failed.append(e)

        thread = threading.Thread(target=told)
        thread.start()
        return thread

    def test_300_one_after_another(self):
        shared = self.connect(check_same_thread=False)
        for _ in range(300):

            def work():
                self.add(shared)
                own = self.connect()
                self.add(own)
                own.close()

            self.thread(work).join()
        self.assertEqual(self.failed, [])
        self.assertEqual(shared.execute("select count(*) from t").fetchone(), (600,))
        self.sound(shared)
        shared.close()

    def test_more_than_256_at_a_time(self):
        main = self.connect()
        self.add(main)
        inside, leave = threading.Barrier(MOST), [threading.Event() for _ in range(MOST - 1)]

        def crowd(leave):
            db = self.connect(timeout=50)
            self.add(db)
            db.close()
            inside.wait()
            leave.wait()

        threads = [self.thread(lambda e=e: crowd(e)) for e in leave]
        try:
            inside.wait()
            self.assertEqual(self.failed, [])
            said = []

            def one_more():
                db = self.connect(timeout=0)
                for statement in ("select count(*) from t", "insert into t values (null, 'no')",
                                  "begin immediate"):
                    try:
                        db.execute(statement).fetchone()
                    except sqlite3.OperationalError as e:
                        said.append((e.sqlite_errorname, str(e),
                                     db.execute("pragma perdure_error").fetchone()[0]))
                db.close()

            self.thread(one_more).join()
            self.assertEqual(self.failed, [])
            self.assertEqual(len(said), 3)
            for name, text, reason in said:
                self.assertEqual((name, text), ("SQLITE_BUSY", "database is locked"))
                self.assertIn("more than 256 threads use Perdure at once", reason)
                self.assertIn("expected at most 256", reason)
                self.assertIn("let threads end", reason)
            self.add(main)  # the others continue

            # A connection with a timeout waits until a thread has ended.
            waiting = threading.Event()

            def patient():
                db = self.connect(timeout=50)
                waiting.set()
                self.add(db)
                db.close()

            last = self.thread(patient)
            waiting.wait()
            leave[0].set()
            last.join()
            self.assertEqual(self.failed, [])
        finally:
            for event in leave:
                event.set()
            for thread in threads:
                thread.join()
        self.assertEqual(main.execute("select count(*) from t").fetchone(), (MOST + 2,))
        self.sound(main)
        main.close()


class ThreadsA(Threads):
    design = "&design=a"


if __name__ == "__main__":
    unittest.main()
