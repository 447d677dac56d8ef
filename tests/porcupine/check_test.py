#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Twenty failovers whose history Porcupine finds right; and the same with something untrue."""

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

ARGUMENTS = None


class Histories(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "history")
        subprocess.run([ARGUMENTS.explorer, "--failovers", "20", "--history", path], check=True)
        with open(path, encoding="utf-8") as file:
            cls.terms = [json.loads(line) for line in file]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def judge(self, terms, status):
        path = os.path.join(self.folder.name, "changed")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(term) + "\n" for term in terms)
        done = subprocess.run([ARGUMENTS.check, "--json", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout) if status != 2 else done.stderr.decode()

    def some_term(self):
        """A copy of all terms, and one of them with more than ten answers of each kind."""
        terms = copy.deepcopy(self.terms)
        return terms, max(terms, key=lambda term: len(term["operations"]))

    def test_what_clients_were_told_can_be_true(self):
        found = self.judge(self.terms, 0)
        self.assertEqual(found["terms"], len(self.terms))
        self.assertGreaterEqual(len(self.terms), 20)
        self.assertGreater(found["operations"], 200)
        print(found)

    def test_another_answer_of_an_account(self):
        terms, term = self.some_term()
        told = [o for o in term["operations"] if o["number"] & 1 == 0 and o["answer"] is not None]
        told[len(told) // 2]["answer"] ^= 1
        self.assertIn("accounts", self.judge(terms, 1)["wrong"][0])

    def test_another_answer_of_a_register(self):
        terms, term = self.some_term()
        told = [o for o in term["operations"] if o["number"] & 1 == 1 and o["answer"] is not None]
        told[len(told) // 2]["answer"] = 12345
        self.assertIn("register", self.judge(terms, 1)["wrong"][0])

    def test_a_transfer_that_is_lost(self):
        terms, term = self.some_term()
        at = next(i for i, o in enumerate(term["operations"])
                  if o["number"] & 1 == 0 and o["number"] >> 10 & 63 != 0
                  and o["number"] >> 2 & 15 != o["number"] >> 6 & 15)
        del term["operations"][at]
        self.assertIn("accounts", self.judge(terms, 1)["wrong"][0])

    def test_an_operation_that_comes_before_one_that_had_returned(self):
        terms, term = self.some_term()
        operations = term["operations"]
        # Of one register, a read and the write that it saw: the write begins when it has returned.
        for at, read in enumerate(operations):
            write = next((o for o in operations if o["number"] == read["answer"]), None)
            if read["number"] & 1 == 1 and write is not None and read["answer"] is not None:
                write["invoked"] = read["returned"] + 1
                write["returned"] = read["returned"] + 2
                self.assertIn("register", self.judge(terms, 1)["wrong"][0])
                return
        self.fail("no read saw a write")

    def test_another_state_in_the_end(self):
        terms, term = self.some_term()
        term["end"]["accounts"][3] += 1
        self.assertIn("accounts", str(self.judge(terms, 1)["wrong"]))

    def test_a_state_that_changes_between_two_primaries(self):
        terms = copy.deepcopy(self.terms)
        terms[5]["begin"]["registers"][0] += 1
        self.assertIn("begins with another state", str(self.judge(terms, 1)["wrong"]))

    def test_a_file_that_is_no_history(self):
        self.assertIn("no term", self.judge([{"what": 1}], 2))
        self.assertIn("no term", self.judge([], 2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", required=True)
    parser.add_argument("--explorer", required=True)
    ARGUMENTS, others = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *others])
