#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The README's table of numbers has what was measured: the figures of the page that it links to."""
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
README = (SOURCE / "README.md").read_text(encoding="utf-8")
WORKLOADS = ("hash-100", "bt-100", "tpccb-1", "ycsb-a", "ycsb-c")  # of the README's rows, in order
SYSTEMS = ("shadow:durable", "pmemobj", "lmdb", "sqlite")          # of its columns


def rows(text, first):
    """The cells of the table whose first column is headed `first`, the headings first."""
    table = re.search(rf"^\| {first} \|.*\n(?:\|.*\n)+", text, re.M)[0]
    lines = (line.strip("|\n").split("|") for line in table.splitlines())
    cells = [[cell.strip(" *") for cell in line] for line in lines]
    return [cells[0], *cells[2:]]


class Numbers(unittest.TestCase):
    def test_they_are_those_that_were_measured(self):
        page = SOURCE / re.search(r"\]\((\S+cross/figures\.md)\)", README)[1]
        headings, *measured = rows(page.read_text(encoding="utf-8"), "system")
        found = {line[0]: dict(zip(headings, line)) for line in measured}
        said = rows(README, "workload")[1:]
        self.assertEqual(len(said), len(WORKLOADS))
        for workload, line in zip(WORKLOADS, said):
            for system, number in zip(SYSTEMS, line[1:]):
                with self.subTest(workload=workload, system=system):
                    self.assertEqual(float(number), float(found[system][workload]))

    def test_the_range_is_that_of_the_table(self):
        least, most = re.search(r"\*\*(\d+) % to (\d+) %\*\*", README.replace("\n", " ")).groups()
        changing = [float(n) for line in rows(README, "workload")[1:-1] for n in line[2:]]
        self.assertEqual((int(least), int(most)),
                         (round(100 * min(changing)), round(100 * max(changing))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
