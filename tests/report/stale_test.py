#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A row is fresh while its systems' sources have the same meaning, apart from comments and layout;
every other row is marked, on the page and in the report."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "papers"), str(SOURCE / "tests" / "support")]

from figures import kept, page, report, sources  # noqa: E402
from figures.figure import as_json  # noqa: E402
from figures.papers import PAPER_OF, PAPERS  # noqa: E402
from limits import LimitedCase  # noqa: E402

# A small tree of the same shape: two engines over one shared layer.
TREE = {
    "perdure/base/shared.hpp": "#pragma once\nnamespace base {\n// What it adds.\ninline int "
                               "add(int a, int b) { return a + b; }\n}\n",
    "perdure/base/shared.cpp": '#include "perdure/base/shared.hpp"\n',
    "perdure/engine/shadow/instances.cpp": '#include "perdure/base/shared.hpp"\n#include '
                                           '<cstdint>\nstd::int64_t commit() { return '
                                           'base::add(1, 2); }\n',
    "papers/rewind/instances.cpp": '#include "perdure/base/shared.hpp"\nint undo(int x) {\n  '
                                   'return base::add(x, 4);  // four\n}\n',
}
EVERY = set(sources.SYSTEMS)


def git(root, *arguments):
    return subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C",
         str(root), *arguments], check=True, capture_output=True, text=True).stdout.strip()


class Stale(LimitedCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdure-stale-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def write(self, files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def changed_by(self, name, old, new):
        """The systems whose hash differs after one edit, which is undone."""
        before, text = sources.hashes(self.root), (self.root / name).read_text()
        self.assertIn(old, text)
        self.write({name: text.replace(old, new)})
        after = sources.hashes(self.root)
        self.write({name: text})
        self.assertEqual(before, sources.hashes(self.root))
        return {system for system in before if before[system] != after[system]}

    def test_a_hash_follows_the_meaning_of_its_systems_sources(self):
        self.write(TREE)
        self.assertEqual(
            set(),
            self.changed_by("papers/rewind/instances.cpp", "// four", "/* no longer\n five */"))
        self.assertEqual(
            set(),
            self.changed_by("papers/rewind/instances.cpp", "{\n  return base::add(x, 4);",
                            "{ return\tbase::add(x,\n4);"))
        self.assertEqual({"rewind"}, self.changed_by("papers/rewind/instances.cpp", "4)", "5)"))
        self.assertEqual(set(), self.changed_by("perdure/base/shared.hpp", "// What it adds.",
                                                "//"))
        self.assertEqual(EVERY, self.changed_by("perdure/base/shared.hpp", "a + b", "b + a"))
        self.assertEqual(
            set(),
            self.changed_by("perdure/engine/shadow/instances.cpp", "#include <cstdint>",
                            "#include <cstdint>\n#include <vector>"), "system headers")
        self.assertEqual(
            set(),
            self.changed_by("perdure/engine/shadow/instances.cpp", "std::",
                            "#if 0\nnothing\n#endif\nstd::"), "what is not compiled")

    def test_what_is_not_proved_fresh_is_stale(self):
        self.write(TREE)
        git(self.root, "init", "-q")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "one")
        first = git(self.root, "rev-parse", "--short", "HEAD")
        now = sources.hashes(self.root)

        def document(revision, **more):
            return {"machine": {"revision": revision}, **more}

        def why(of, systems=("rewind",)):
            return sources.stale(of, systems, found)

        rows = [
            document(first),
            document(f"{first}-dirty"),
            document("abcdef0"),
            document("unknown")
        ]
        found = sources.update(self.root, self.root / "out", rows)
        self.assertEqual("", why(document(first, sources=now)), "its hash is kept")
        self.assertEqual("", why(document("anything", sources=now)), "its hash is kept")
        self.assertEqual("", why(rows[0]), "no hash, but its commit is in the history")
        self.assertIn("nothing proves", why(rows[1]))
        self.assertIn("not committed", why(rows[1]))
        self.assertIn("not at hand", why(rows[2]))
        self.assertIn("nothing proves", why(rows[3]))
        self.write({"papers/rewind/instances.cpp": "int undo(int x) { return x; }\n"})
        found = sources.update(self.root, self.root / "out", rows)
        self.assertEqual(found, sources.load(self.root / "out"))
        for row in (rows[0], document("anything", sources=now)):
            self.assertIn("the sources of rewind have changed", why(row))
            self.assertEqual("", why(row, ("shadow",)))
            self.assertIn("rewind", why(row, ("shadow", "rewind")))

    def test_figures_refuses_a_dirty_tree(self):
        for folder in ("bench", "papers/figures"):
            shutil.copytree(SOURCE / folder, self.root / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
        self.write({**TREE, ".gitignore": "__pycache__/\n", "papers/rewind/figures.md": "a page\n"})
        git(self.root, "init", "-q")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "one")

        def measure():
            done = subprocess.run([
                sys.executable, "-B", self.root / "papers" / "figures" / "run.py", "--only",
                "R-Fig4R", "--build-dir", self.root / "nothing"
            ], capture_output=True, text=True, check=False)
            self.assertNotEqual(0, done.returncode)
            return done.stdout + done.stderr

        for name in ("perdure/base/shared.hpp", "perdure/engine/shadow/new.cpp"):
            text = (self.root / name).read_text() if (self.root / name).exists() else None
            self.write({name: "int changed;\n"})
            said = measure()
            self.assertIn("found changes that are not committed", said)
            self.assertIn(name, said)
            self.assertIn("git stash", said)
            if text is None:
                (self.root / name).unlink()
            else:
                self.write({name: text})
        shutil.rmtree(self.root / ".git")
        self.assertIn("found no git repository", measure())

    def test_what_a_run_writes_itself_is_no_change(self):
        self.write({
            "papers/rewind/rewind.hpp": "", "papers/rewind/figures.md": "",
            "papers/figures/run.py": ""
        })
        git(self.root, "init", "-q")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "one")
        papers = self.root / "papers"
        written = (*kept.written(papers, PAPERS.values()), papers / "report", Path("/elsewhere"))
        self.write({
            "papers/rewind/figures.md": "more", "papers/rewind/figures/R-Fig4R.json": "{}",
            "papers/figures/sources.json": "{}", "papers/report/index.html": "",
            "papers/cross/figures.md": ""
        })
        self.assertEqual([], sources.changes(self.root, written))
        others = [
            "papers/figures/run.py", "papers/figures/sources.json2", "papers/rewind/figures2.md",
            "papers/rewind/rewind.hpp"
        ]
        self.write(dict.fromkeys(others, "no page"))
        self.assertEqual(others, sorted(sources.changes(self.root, written)))

    def test_a_new_row_keeps_its_hashes(self):
        figure = next(f for f in PAPER_OF["R-Fig4R"].figures if f.row == "R-Fig4R")
        document = as_json(figure, [], 1, {"revision": "1"}, 5, False, {"rewind": "hash"})
        self.assertEqual({"rewind": "hash"}, document["sources"])
        for paper in PAPERS.values():
            for figure in paper.figures:
                self.assertLessEqual({*paper.systems, *figure.systems}, EVERY, figure.row)
                self.assertTrue(paper.systems, paper.name)

    def test_the_page_and_the_report_say_so(self):
        paper = PAPER_OF["R-Fig4R"]
        document = kept.load(SOURCE / "papers", paper)["R-Fig4R"] | {
            "stale": "the sources of rewind have changed since."
        }
        fresh = document | {"stale": ""}
        figure = next(f for f in paper.figures if f.row == "R-Fig4R")
        (self.root / paper.name).mkdir()
        text = "\n".join(page._section(paper, figure, document, self.root / paper.name))
        self.assertIn("**Stale:** the sources of rewind have changed since.", text)
        self.assertNotIn("Stale",
                         "\n".join(page._section(paper, figure, fresh, self.root / paper.name)))
        marked, unmarked = (report.render([paper], {paper.name: {"R-Fig4R": d}})
                            for d in (document, fresh))
        self.assertIn("1 of 1 measured rows are stale", marked)
        self.assertIn("<dd>the sources of rewind have changed since.</dd>", marked)
        self.assertEqual(1, marked.count('class="verdict stale"'))
        self.assertNotIn("stale</", unmarked)

    def test_kept_rows_are_marked_by_what_is_kept(self):
        """Each kept row either has hashes, or a commit whose hashes are kept, or is marked."""
        known = sources.load(SOURCE / "papers")
        self.assertEqual(EVERY, set(known["systems"]))
        for paper in PAPERS.values():
            for row, document in kept.load(SOURCE / "papers", paper).items():
                if "sources" not in document and known["revisions"].get(
                        sources.revision_of(document)) is None:
                    self.assertIn("nothing proves it fresh", document["stale"], row)

    def test_no_row_is_shown_as_fresh_that_is_stale_by_now(self):
        """Else: ./dev figures --pages, which marks it."""
        known = sources.load(SOURCE / "papers")
        now = known | {"systems": sources.hashes(SOURCE)}
        for paper in PAPERS.values():
            for figure in paper.figures:
                document = kept.load(SOURCE / "papers", paper).get(figure.row)
                if document is not None and not document["stale"]:
                    self.assertEqual(
                        "", sources.stale(document, (*paper.systems, *figure.systems), now),
                        f"{figure.row} is not marked: ./dev figures --pages")


if __name__ == "__main__":
    unittest.main(verbosity=2)
