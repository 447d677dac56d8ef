#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every relative link of this tree's documents leads somewhere; one that does not is found."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ.get("PERDURE_SOURCE", HERE.parents[1]))
sys.path[:0] = [str(HERE), str(SOURCE / "tests" / "support")]

import links  # noqa: E402
from limits import LimitedCase  # noqa: E402

PAGE = """# Two words: `code`, and [a link](a.md)

[above](../top.md), ![picture](p.png), [here](#two-words-code-and-a-link), [again](#again-1),
[web](https://example.org/no), `[code](no.md)` [titled](p.png "a title") [html](h.html#one)

```cpp
f[0](no);
```

## Again
## Again

[by name]: a.md
"""


class Links(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-links-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.put("d/a.md", PAGE)
        self.put("d/p.png", "")
        self.put("d/h.html", '<p id="one"><a href="a.md">a</a><img src="p.png"><a href="#one">b</a>'
                             "</p>")
        self.put("top.md", "[folder](d), [page](d/a.md#again)\n")

    def put(self, path, text):
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def found(self):
        return links.check(self.root)[1]

    def test_links_that_lead_somewhere(self):
        self.assertEqual(self.found(), [])
        a_page, h_page = (links.links_of(self.root / "d" / name, text) for name, text in
                          (("a.md", PAGE), ("h.html", '<a href="a.md">a</a><img src="p.png">')))
        self.assertEqual(len(a_page), 9, a_page)
        self.assertEqual(h_page, ["a.md", "p.png"])

    def test_links_that_lead_nowhere(self):
        for link in ("no.md", "a.md#no", "#no", "h.html#two", "../no/", "../../outside",
                     "#again-2"):
            with self.subTest(link=link):
                self.put("d/bad.md", f"# Again\n\nsee [this]({link})\n")
                self.assertEqual(len(self.found()), 1, self.found())
                self.assertIn(f"d/bad.md: links to {link}, ", self.found()[0])
        self.put("d/bad.md", "[name]: no.md\n")
        self.put("d/bad.html", '<a href="no.md">a</a><img src="no.png"><a href="#no">b</a>')
        self.assertEqual(len(self.found()), 4, self.found())

    def test_this_tree(self):
        documents, found = links.check(SOURCE)
        self.assertEqual(found, [])
        self.assertLessEqual({"README.md", "docs/index.md", "papers/rewind/figures.md",
                              "papers/report/index.html"}, set(documents))

    def test_the_index_leads_to_every_page(self):
        index = SOURCE / "docs" / "index.md"
        linked = {(index.parent / link.partition("#")[0]).resolve()
                  for link in links.links_of(index, index.read_text(encoding="utf-8"))}
        pages = {page.resolve() for page in SOURCE.glob("docs/*.md")} - {index.resolve()}
        self.assertEqual(sorted(page.name for page in pages - linked), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
