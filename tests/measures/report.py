# SPDX-License-Identifier: BSD-3-Clause
"""The output of the measures: a JSON document, or a table, compared with a kept one on request.

Below the table are the parts of each number.
"""

import json

from measure import CannotMeasure

FORMAT = 1
ROWS = 12  # of each list or count below the table; the JSON document has all rows


def document(measures, commit, compiler):
    return {"format": FORMAT, **commit, "compiler": compiler,
            "measures": {name: measure.document() for name, measure in measures.items()}}


def load(path):
    """A document that --json printed."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise CannotMeasure(f"--compare: {path} can't be read ({e}), expected what "
                            "'./dev measures --json' printed") from None
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise CannotMeasure(f"--compare: found {path}, expected a document of format {FORMAT} that "
                            "'./dev measures --json' printed")
    return kept


def number(value):
    return "-" if value is None else f"{value:,}"


def verdict(met):
    return {None: "", True: "met", False: "NOT MET"}[met]


def table(now, before=None):
    """The rows of all measures that either document has, as text."""
    old, rows = before["measures"] if before else {}, []
    for name in dict.fromkeys([*now["measures"], *old]):
        new, was = now["measures"].get(name), old.get(name)
        shown = new or was
        target = "" if shown["target"] is None else f"<= {number(shown['target'])}"
        rows.append([shown["title"], number(was and was["value"]), number(new and new["value"]),
                     target, verdict(new and new["met"])])
    rows.insert(0, ["measure", "before", "now", "target", ""])
    if not before:
        rows = [[row[0], *row[2:]] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for name, *numbers, last in rows:
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:])]
        lines.append("  ".join([name.ljust(widths[0]), *cells, last]).rstrip())
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def one(value):
    if isinstance(value, list):
        return ", ".join(value)
    return number(value) if isinstance(value, (int, float)) else value


def detail_lines(details):
    for key, value in details.items():
        label = key.replace("_", " ")
        if not isinstance(value, (dict, list)):
            yield f"  {label}: {one(value)}"
        elif value:
            named = isinstance(value, dict)
            items = [f"{name}: {one(v)}" for name, v in value.items()] if named else value
            yield f"  {label}:"
            yield from (f"    {item}" for item in items[:ROWS])
            if len(items) > ROWS:
                yield f"    ... and {len(items) - ROWS} more (--json has all)"


def source(of):
    """The tree that a document describes."""
    changed = "" if of["clean"] else ", with changes that are not in it"
    return f"commit {of['commit']}{changed}" if of["commit"] else "no commit known"


def text(now, before=None):
    parts = [f"tree: {source(now)}; {now['compiler']}"]
    if before:
        parts.append(f"before: {source(before)}; {before['compiler']}")
    parts += ["", table(now, before)]
    for measure in now["measures"].values():
        lines = list(detail_lines(measure["details"]))
        if lines:
            parts += ["", f"{measure['title']}: {number(measure['value'])}", *lines]
    return "\n".join(parts)
