# SPDX-License-Identifier: BSD-3-Clause
"""`./dev figures --verdicts`: of each figure of the papers, whether its conclusion holds over what
is kept, how our numbers compare with the paper's, and which tests don't hold."""

import json
import subprocess
import sys
from collections import Counter

from .conclusions import (BETTER, ELSEWHERE, FAILS, FILE, HOLDS, NOT_RUN, UNDECIDED, WITHIN,
                          WORSE, Measured, judge, load)
from .verdict import short


def doubtful(judged, documents):
    """Why what a row was judged over may say nothing of the sources as they are; empty: it does."""
    for row in judged.measurements:
        document = documents.get(row)
        if document is None:
            continue
        if str(document["machine"].get("revision", "")).endswith("-dirty"):
            return "measured with changes that were not committed"
        if document.get("quick"):
            return "measured by a quick run"
        if document.get("stale"):
            return "measured before its sources changed"
    return ""


def total(rows):
    count = Counter(judged.word for judged in rows)
    return (f"{len(rows)} conclusions: {count[HOLDS]} hold, {count[UNDECIDED]} are undecided, "
            f"{count[FAILS]} do not hold, {count[NOT_RUN]} were not run")


def _bounds(test):
    if test["kind"] == "crossing":
        return "below 1 at first, above it at last"
    least, most = test.get("least"), test.get("most")
    if least is not None and most is not None:
        return f"{short(least)} to {short(most)}"
    return f"at least {short(least)}" if most is None else f"at most {short(most)}"


def _found(samples):
    worst = samples if len(samples) <= 4 else [min(samples, key=lambda s: s.low),
                                               max(samples, key=lambda s: s.high)]
    between = " ... " if len(samples) > 4 else ", "
    return between.join(f"{short(s.middle)} ({short(s.low)} to {short(s.high)})" for s in worst)


def _magnitudes(judged):
    count = Counter(word for _, word, _ in judged.magnitudes)
    return ", ".join(f"{count[w]} {w}" for w in (BETTER, WITHIN, WORSE, ELSEWHERE, NOT_RUN)
                     if count[w])


def _lines(judged, doubt):
    row = judged.row
    mark = f"  [{doubt}]" if doubt else ""
    yield f"  {row['row']:8} {judged.word:14} {_magnitudes(judged)}{mark}"
    yield f"           {row['claim']}"
    if judged.why:
        yield f"           - {judged.why}"
    for test, word, samples in judged.tests:
        if word != HOLDS:
            yield (f"           - {word}: {test['says']}: {_bounds(test)}, found "
                   f"{_found(samples)}")
    for magnitude, word, ours in judged.magnitudes:
        if word in (WORSE, ELSEWHERE):
            yield (f"           - {word}: {magnitude['says']}: {magnitude['paper']} in the paper, "
                   f"{'none' if ours is None else short(ours)} here")


def _json(judged, doubt):
    return {
        "row": judged.row["row"], "conclusion": judged.word, "why": judged.why, "doubt": doubt,
        "tests": [{"says": test["says"], "word": word,
                   "found": [[s.middle, s.low, s.high] for s in samples]}
                  for test, word, samples in judged.tests],
        "magnitudes": [{"says": m["says"], "word": word, "paper": m["paper"], "ours": ours}
                       for m, word, ours in judged.magnitudes]
    }


def _conclusions_of(commit, root):
    name = FILE.relative_to(root).as_posix()
    done = subprocess.run(["git", "-C", str(root), "show", f"{commit}:{name}"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"found no {name} at '{commit}', expected a commit that has it: "
                         f"{done.stderr.strip()}")
    return load(done.stdout)


def show(args, documents, root):
    """Prints the verdicts of the wanted papers; returns the exit status."""
    kept = {row: document for own in documents.values() for row, document in own.items()}
    measured, wanted = Measured(kept), [paper.title for paper in args.papers]
    rows = [judge(row, measured) for row in load() if row["paper"] in wanted]
    doubts = [doubtful(judged, kept) for judged in rows]
    before = {}
    if args.against:
        try:
            before = {row["row"]: judge(row, measured).word
                      for row in _conclusions_of(args.against, root)}
        except ValueError as error:
            print(f"figures: {error}", file=sys.stderr)
            return 2
    changed = [(judged.row["row"], before.get(judged.row["row"], "not there"), judged.word)
               for judged in rows if args.against and before.get(judged.row["row"]) != judged.word]
    if args.json:
        print(json.dumps({"rows": [_json(*pair) for pair in zip(rows, doubts)],
                          "changed": [dict(zip(("row", "before", "now"), c)) for c in changed],
                          "total": dict(Counter(judged.word for judged in rows))}, indent=1))
        return 0
    for paper in dict.fromkeys(judged.row["paper"] for judged in rows):
        print(paper)
        for judged, doubt in zip(rows, doubts):
            if judged.row["paper"] == paper:
                print("\n".join(_lines(judged, doubt)))
    print(f"\n{total(rows)}\nof {sum(map(bool, doubts))} of them, what is kept is of other sources")
    if args.against:
        print(f"against {args.against}: " + ("the same verdicts" if not changed else "; ".join(
            f"{row} was {was}, and is {word}" for row, was, word in changed)))
    return 0
