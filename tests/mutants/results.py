# SPDX-License-Identifier: BSD-3-Clause
"""The results of the mutation gate, kept per mutant and commit: one JSON object per line, each
written as soon as it is known.

A run that is interrupted loses only the mutant in progress: a last line that is not whole is
ignored. A line is a mutant's result; or, with "calls", the list of the calls that the explorer
reaches, each of which is a mutant, too; or, with "took", the seconds that a program takes to pass
without any mutant. The explorer's results count only for the same --distinct and --engine.
"""

import json
import statistics
import subprocess


class DirtyTree(Exception):
    """The files are not exactly those of a commit."""


def commit_of(root):
    """The commit whose files a working tree has. Raises DirtyTree if there are changes."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", str(root), *arguments], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    changed = git("status", "--porcelain").splitlines()
    if changed:
        raise DirtyTree(
            f"found {len(changed)} changed files, such as {changed[0][3:]}, expected the files of a"
            " commit, since each result is kept with it; commit or stash the changes"
        )
    return git("rev-parse", "HEAD").strip()


def head(root):
    return subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def _lines(path):
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # a run was interrupted while it wrote this


class Results:
    """The results of one commit. For None, a tree with changes, no results are written to the
    file."""

    def __init__(self, path, commit, distinct, engine):
        self.path, self.commit = path, commit
        self.settings = {"distinct": distinct, "engine": engine}
        self.rows = {}  # mutant -> its last result
        self.took = {}  # program -> seconds without any mutant
        self.found_by = {}  # mutant -> what found it last, in any commit
        self.calls = None  # [{"mutant", "explained"}], once they are known
        self.never_reached = []
        self._seconds = {}
        for row in _lines(path):
            if "seconds" in row:
                self._seconds.setdefault(row["program"], []).append(row["seconds"])
                self.found_by[row["mutant"]] = row["by"]
            if row["commit"] == commit and commit is not None:
                self._take(row)

    def _take(self, row):
        if row.get("program", "explorer") == "explorer" and any(
            row[key] != value for key, value in self.settings.items()
        ):
            return
        if "calls" in row:
            self.calls, self.never_reached = row["calls"], row["never_reached"]
        elif "took" in row:
            self.took[row["program"]] = row["took"]
        else:
            self.rows[row["mutant"]] = row

    def _add(self, row):
        row = {"commit": self.commit, **row, **self.settings}
        self._take(row)
        if self.commit is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            whole = file.tell() == 0 or _last_byte(file) == b"\n"
            file.write((b"" if whole else b"\n") + json.dumps(row).encode() + b"\n")

    def add(self, row):
        """A mutant's result: mutant, kind, killed, by, explained, program, seconds."""
        self._seconds.setdefault(row["program"], []).append(row["seconds"])
        self._add(row)

    def add_without_any(self, program, seconds):
        """A program passes without any mutant."""
        self._add({"program": program, "took": round(seconds, 2)})

    def add_calls(self, calls, never_reached):
        self._add({"calls": calls, "never_reached": never_reached})

    def estimate(self, programs):
        """The seconds that one mutant of each of these programs takes, by the mean of those tried.

        None if none was tried yet.
        """
        known = [s for seconds in self._seconds.values() for s in seconds]
        if not known:
            return None
        return sum(statistics.fmean(self._seconds.get(program, known)) for program in programs)

    def standing(self, written):
        """What is known of the commit, where `written` are the names of the table's mutants."""
        names = [call["mutant"] for call in self.calls or []] + list(written)
        rows = [self.rows[name] for name in names if name in self.rows]
        survived = [row["mutant"] for row in rows if not row["killed"] and not row["explained"]]
        missing = [name for name in names if name not in self.rows]
        return {
            "commit": self.commit,
            **self.settings,
            "mutants": len(names),
            "calls_known": self.calls is not None,
            "results": len(rows),
            "killed": sum(row["killed"] for row in rows),
            "explained": sum(bool(row["explained"]) for row in rows),
            "survived": survived,
            "missing": missing,
            "green": self.calls is not None and not missing and not survived,
        }


def _last_byte(file):
    file.seek(-1, 2)
    return file.read(1)


def said(standing):
    """The present state in words."""
    lines = [
        f"commit {(standing['commit'] or 'none: the tree has changes')[:12]}: {standing['results']}"
        f" of {standing['mutants']} mutants have a result: {standing['killed']} killed,"
        f" {standing['explained']} survived as explained, {len(standing['survived'])} survived"
        " unexplained"
    ]
    if not standing["calls_known"]:
        lines.append(
            "  which calls of flush and fence are mutants beside those is not known yet: a run"
            " finds them"
        )
    lines += [f"  survived: {name}" for name in standing["survived"]]
    if standing["missing"]:
        lines.append(
            f"  {len(standing['missing'])} without a result, the first: {standing['missing'][0]};"
            " ./dev mutants --resume tries them"
        )
    lines.append(f"  the gate is {'green' if standing['green'] else 'not green'}")
    return "\n".join(lines)
