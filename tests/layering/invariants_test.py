#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is invariants.py able to fail? Plants one breach at a time and wants exactly that one found."""

import pathlib
import sys
import tempfile
import unittest

import invariants

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limits import LimitedCase  # noqa: E402

RING = "perdure/log/ring.hpp"
FIRST = """\
- **RING-1** A record follows
  another one.
  *Why:* Otherwise a crash would lose it (HEAP-2).
  *Defended by:* the explorer, `tests/log/ring_test.cpp`; mutants `ring-tail`, `ring-head`.
"""
OTHERS = """
## The heap

Stated in `perdure/pool/heap.hpp`:

- **HEAP-2** A block has one owner.
  *Why:* Two would overwrite each other's data.
  *Defended by:* none yet.
- **HEAP-10** A freed block is zero.
  *Why:* RING-1 asks for it.
  *Defended by:* mutant `ring-tail`.
"""


class Planted(LimitedCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.document(FIRST + OTHERS)
        marks = "  // mutant: ring-tail, ring-late\n  f();\n  // mutant: call ring-head\n  g();\n"
        self.put(RING, f"// RING-1 A record follows another one.\n{marks}")
        self.put("perdure/pool/heap.hpp", "// HEAP-2 one owner (RING-1). HEAP-10: it is zero.\n")
        self.put("tests/log/ring_test.cpp", "// HEAP-2 to HEAP-10: a block.\n")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def document(self, entries, after="| R1 | RING-1 |\n"):
        text = f"# Invariants\n\n{invariants.BEGIN}\n\n## Logs\n\nStated in `{RING}`:\n\n{entries}"
        self.put(invariants.DOCUMENT, f"{text}\n{invariants.END}\n{after}")

    def expect(self, *words):
        breaches = list(invariants.check_invariants(self.root))
        self.assertEqual(len(breaches), 1, breaches)
        for word in words:
            self.assertIn(word, breaches[0])

    def changed(self, old, new):
        """The document with one place of its entries changed."""
        self.assertEqual((FIRST + OTHERS).count(old), 1, old)
        self.document((FIRST + OTHERS).replace(old, new))

    def test_clean(self):
        self.assertEqual(list(invariants.check_invariants(self.root)), [])
        found = invariants.listed((self.root / invariants.DOCUMENT).read_text(encoding="utf-8"))
        self.assertEqual([e.name for e in found], ["RING-1", "HEAP-2", "HEAP-10"])
        self.assertEqual(found[0].stated, RING)
        self.assertEqual(found[0].part("Why"), "Otherwise a crash would lose it (HEAP-2).")
        self.assertEqual(found[1].part("Defended by"), "none yet.")

    def test_a_name_listed_twice(self):
        self.document(FIRST + FIRST + OTHERS)
        self.expect("docs/invariants.md:13", "RING-1", "listed in line 9 too")

    def test_a_name_of_another_form(self):
        self.put("perdure/pool/heap.hpp", "// HEAP-2, HEAP-10, RING-1\n")
        self.document(FIRST + "- **R-one** It is.\n  *Why:* It is.\n  *Defended by:* none yet.\n")
        breaches = "\n".join(invariants.check_invariants(self.root))
        self.assertIn("found the name R-one, expected one such as RING-2", breaches)

    def test_a_citation_that_leads_nowhere(self):
        cases = [
            ("perdure/log/a.cpp", "\n  f();  // RING-2: before the fence\n", "a.cpp:2"),
            ("papers/rewind/a.hpp", "// (RING-12)\n", "RING-12"),
            ("tests/log/a_test.cpp", '// "HEAP-1"\n', "HEAP-1"),
            ("tests/mutants/table/a.py", 'Mutant("a fence (RING-3)")\n', "RING-3"),
            ("tests/models/a.pml", "/* TIME-1 */\n", "TIME-1"),
            ("tools/a.hpp", "// RING-1, RING-4, HEAP-2\n", "RING-4"),
            ("docs/page.md", "**RING-5** A rule.\n", "page.md:1"),
            ("README.md", "See RING-6.\n", "RING-6"),
        ]
        for name, text, word in cases:
            with self.subTest(name):
                self.put(name, text)
                self.expect(name, word, "expected a name listed in docs/invariants.md")
                (self.root / name).unlink()

    def test_what_is_no_citation(self):
        self.put("perdure/log/a.cpp", "// BSD-3-Clause, UTF-8, X-1, RING-1x, a-RING-7, RING-7.5\n")
        self.put("papers/rewind/figures/a.md", "KEYS-100\n")
        self.put("tests/fuzz/corpus/a.txt", "KEYS-100\n")
        self.put("perdure/log/a.json", "KEYS-100\n")
        self.assertEqual(list(invariants.check_invariants(self.root)), [])

    def test_a_name_that_its_file_lacks(self):
        self.put("perdure/pool/heap.hpp", "// HEAP-2 one owner (RING-1). HEAP-100: it is zero.\n")
        breaches = "\n".join(invariants.check_invariants(self.root))
        self.assertIn("HEAP-10: perdure/pool/heap.hpp does not have the name", breaches)
        self.assertIn("perdure/pool/heap.hpp:1: found HEAP-100", breaches)

    def test_a_file_that_is_no_source(self):
        self.put("docs/format.md", "HEAP-2, HEAP-10\n")
        for file in ("perdure/pool/gone.hpp", "docs/format.md"):
            with self.subTest(file):
                self.changed("perdure/pool/heap.hpp", file)
                breaches = list(invariants.check_invariants(self.root))
                self.assertEqual(len(breaches), 2, breaches)
                self.assertIn(f"found 'Stated in `{file}`', expected a source file", breaches[0])

    def test_an_entry_without_a_file(self):
        self.changed("Stated in `perdure/pool/heap.hpp`:", "Of the heap:")
        breaches = list(invariants.check_invariants(self.root))
        self.assertEqual(len(breaches), 2, breaches)
        self.assertIn("expected 'Stated in `FILE`:' above it", breaches[0])

    def test_an_entry_without_a_part(self):
        self.changed("  *Why:* Two would overwrite each other's data.\n", "")
        self.expect("HEAP-2", "found no *Why:*")
        self.changed("*Defended by:* none yet.", "None yet.")
        self.expect("HEAP-2", "found no *Defended by:*")

    def test_a_test_or_mutant_that_is_gone(self):
        self.changed("`tests/log/ring_test.cpp`", "`tests/log/gone_test.cpp`")
        self.expect("RING-1", "no file tests/log/gone_test.cpp")
        self.changed("`ring-head`", "`ring-gone`")
        self.expect("RING-1", "no source file has the mark '// mutant: ring-gone'")
        self.changed("mutant `ring-tail`", "mutant `ring`")
        self.expect("HEAP-10", "'// mutant: ring'")

    def test_no_list(self):
        self.put(invariants.DOCUMENT, "# Invariants\n")
        self.expect("found no list")
        (self.root / invariants.DOCUMENT).unlink()
        self.expect("found no list")


if __name__ == "__main__":
    unittest.main()
