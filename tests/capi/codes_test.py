# SPDX-License-Identifier: BSD-3-Clause
"""Error codes have one list: perdure::Code in perdure/base/status.hpp. Its numbers are consecutive;
perdure_code in perdure.h has the same names with the same numbers; name() knows each. Released
codes keep their numbers."""
import os
import re
import unittest

SOURCE = os.environ["PERDURE_SOURCE"]
# Each release appends to it; it is never changed.
RELEASED = [
    "ok", "io", "busy", "corrupt", "incompatible", "full", "too_big", "read_only", "not_found",
    "invalid", "unsupported", "poisoned", "exists", "closed", "out_of_memory", "too_many_threads"
]


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as source:
        return source.read()


def enumerators(text, head, pattern):
    """Returns [(name, number)] of the enumeration that begins with `head`."""
    body = text[text.index(head):]
    return [(name, int(number)) for name, number in re.findall(pattern, body[:body.index("}")])]


class Codes(unittest.TestCase):
    def setUp(self):
        self.codes = enumerators(read("perdure/base/status.hpp"), "enum class Code",
                                 r"(?m)^\s+([a-z_]+) = (-?\d+)")

    def test_numbers_follow_one_another(self):
        self.assertEqual([number for _, number in self.codes], list(range(len(self.codes))))

    def test_released_codes_keep_their_numbers(self):
        self.assertEqual([name for name, _ in self.codes][:len(RELEASED)], RELEASED)

    def test_the_c_interface_has_the_same(self):
        found = enumerators(read("perdure/perdure.h"), "typedef enum perdure_code",
                            r"(?m)^\s+PERDURE_([A-Z_]+) = (-?\d+)")
        self.assertEqual([(name.lower(), number) for name, number in found if number >= 0],
                         self.codes)

    def test_each_has_its_name(self):
        found = re.findall(r'case Code::([a-z_]+): return "([a-z_]+)";',
                           read("perdure/base/status.cpp"))
        self.assertEqual(found, [(name, name) for name, _ in self.codes])


if __name__ == "__main__":
    unittest.main()
