#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Links between this repository's documents lead somewhere: to a file or folder that is there, and
to a heading that it has; and docs/index.md leads to every page of docs/.
"""
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.S | re.M)


def documents():
    patterns = ("*.md", "docs/*.md", "perdure/**/README.md", "papers/**/README.md")
    return sorted(path for pattern in patterns for path in SOURCE.glob(pattern))


def headings(text):
    """The anchors of a document's headings, as forges make them."""
    found = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def broken(document, text):
    """The document's links that lead nowhere."""
    found = []
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists():
            found.append(link)
        elif anchor and target.suffix == ".md":
            if anchor not in headings(target.read_text(encoding="utf-8")):
                found.append(link)
    return found


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(documents()), 15)
        for document in documents():
            with self.subTest(document.relative_to(SOURCE).as_posix()):
                self.assertEqual(broken(document, document.read_text(encoding="utf-8")), [])

    def test_the_index_leads_to_every_page(self):
        index = SOURCE / "docs/index.md"
        linked = {(index.parent / link.partition("#")[0]).resolve()
                  for link in LINK.findall(index.read_text(encoding="utf-8"))}
        pages = {page.resolve() for page in SOURCE.glob("docs/*.md")} - {index}
        self.assertEqual(sorted(page.name for page in pages - linked), [])

    def test_what_is_broken_is_found(self):
        text = ("[a](nothing.md) [b](README.md#no-such-heading) [c](README.md#a-program) "
                "[d](https://x.y)")
        self.assertEqual(broken(SOURCE / "x.md", text), ["nothing.md", "README.md#no-such-heading"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
