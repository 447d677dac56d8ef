# SPDX-License-Identifier: BSD-3-Clause
"""The links of documents that lead nowhere.

A document is a Markdown or HTML file that git has or would add. What is checked is every link to a
file of this repository, relative to the document, and every place in such a file: a heading in
Markdown, an id in HTML. Addresses of other hosts are not.
"""

import functools
import html.parser
import re
import sys
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "measures"))
from tree import paths_of  # noqa: E402

FENCED = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.M | re.S)
CODE = re.compile(r"(`+).*?\1", re.S)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)
ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")  # a scheme, or a host


class _Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


def links_of(path, text):
    if path.suffix == ".html":
        return _Page(text).links
    prose = CODE.sub("", FENCED.sub("", text))
    return [link[1] or link[2] for link in LINK.finditer(prose)]


def places_of(path):
    """What may stand behind the # of a link to this file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return _Page(text).ids
    found = {}
    for heading in HEADING.findall(FENCED.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, most in found.items() for n in range(most + 1)}


def breach(root, document, link, places):
    """Why a link of a document leads nowhere, or None. `places`: places_of(), or the same kept."""
    if ELSEWHERE.match(link):
        return None
    name, _, place = unquote(link).partition("#")
    target = (document.parent / name).resolve() if name else document
    if not target.is_relative_to(root) or not target.exists():
        return f"links to {link}, which is not there"
    if place and target.suffix in (".md", ".html") and place not in places(target):
        return f"links to {link}, where '{place}' is no heading or id"
    return None


def check(root):
    """(documents looked at, [DOCUMENT: what is wrong])"""
    root = Path(root).resolve()
    documents = [path for path in paths_of(root) if path.endswith((".md", ".html"))]
    found, places = [], functools.cache(places_of)
    for name in documents:
        document = root / name
        for link in links_of(document, document.read_text(encoding="utf-8")):
            if why := breach(root, document, link, places):
                found.append(f"{name}: {why}")
    return documents, found
