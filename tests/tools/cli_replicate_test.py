#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perdure load, put, del --replicate, and perdure replicate status, copy, leave, over a folder."""

import os
import unittest

from cli import Case


class Replicated(Case):
    def setUp(self):
        super().setUp()
        self.log, self.backups = self.path("log"), self.path("backups")

    def status(self, pool=None, *options):
        return self.ok_json("replicate", "status", pool or self.pool, *options)

    def test_a_copy_takes_over(self):
        rows = b"".join(b"k%04d,%d\n" % (i, i) for i in range(2000))
        self.ok("load", self.pool, self.write("rows.csv", rows), "--replicate", self.log)
        self.ok("backup", self.pool, self.backups)
        self.ok("put", self.pool, "later", "1", "--replicate", self.log)
        said = self.status(None, "--log", self.log)
        self.assertTrue(said["replicated"] and said["own_term"])
        self.assertEqual(said["term"], 2)
        self.assertEqual(said["message"], said["log_message"])
        copy = self.path("copy")
        made = self.ok_json("replicate", "copy", self.backups, copy, "--log", self.log)
        self.assertGreater(made["id"], made["backup_id"])
        self.assertEqual(self.ok("export", copy), self.ok("export", self.pool))
        self.ok("del", copy, "later", "--replicate", self.log)
        self.assertFalse(self.status(copy)["own_term"] is False)
        self.check(copy)
        # The first one lacks that now.
        self.fails(3, "put", self.pool, "x", "1", "--replicate", self.log,
                   has=["has more", "backup"])
        self.assertIn(b"term 2", self.ok("replicate", "status", self.pool))

    def test_what_changes_a_replicated_pool_needs_its_log(self):
        self.ok("put", self.pool, "a", "1", "--replicate", self.log)
        for command in (["put", self.pool, "b", "2"], ["recover", self.pool],
                        ["compact", self.pool]):
            self.fails(3, *command, has=["replicated over a log", "replicate leave"])
        self.assertEqual(self.ok("get", self.pool, "a"), b"1")
        self.fails(3, "put", self.path("new"), "a", "1", "--replicate", self.log,
                   has=["an empty one"])
        self.assertFalse(os.path.exists(self.path("new")))
        self.assertTrue(self.ok_json("replicate", "leave", self.pool)["was_replicated"])
        self.ok("put", self.pool, "b", "2")
        self.assertFalse(self.status()["replicated"])
        self.assertFalse(self.ok_json("replicate", "leave", self.pool)["was_replicated"])


if __name__ == "__main__":
    unittest.main()
