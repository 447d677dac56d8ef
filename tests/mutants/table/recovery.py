# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of recovery and of sessions: an omitted test, an omitted step."""

from operations import always, exchange, instead, leave_out, never, succeed
from .mutant import Mutant

# Tests of recovery, omitted.
CHECKS = (
    Mutant("a record's checksum", {"record-checksum": always()}),
    Mutant(
        "a record's checksum knows its position",
        {"record-checksum-position": instead("0", part="argument 1 of 2")},
    ),
    Mutant(
        "a record's checksum knows its epoch", {"record-checksum-epoch": exchange("epoch", "0")}
    ),
    Mutant(
        "a record of damaged size or kind",
        {"record-plausible-size": always(part="1 of 3")},
        explained=(
            "what has a right checksum has a right size and kind; asked first, it "
            "spares most of the checksums, and each of this and the next keeps the "
            "scan inside the mapping"
        ),
    ),
    Mutant(
        "a record inside one lap",
        {"record-within-ring": always(part="2 of 3")},
        explained="a record that reaches into its own beginning has no right checksum",
    ),
    Mutant(
        "damage below a whole record (LAW-10)",
        {"ring-damage-below-whole-record": never()},
        by="damage",
    ),
    Mutant(
        "redo takes ids above X only",
        {"redo-above-checkpoint-id": always()},
        explained=(
            "the header names X and, in one, each ring's first record above it: none below is found"
        ),
    ),
    Mutant("redo in the order of ids", {"redo-id-order": leave_out()}, by="threads"),
    Mutant(
        "dependent records in the order of timestamps (DEPEND-2)",
        {"dependent-timestamp-order": leave_out()},
        by="dependencies",
    ),
    Mutant(
        "a dependent record only with what it names (DEPEND-1)",
        {"dependent-needs-named": never()},
        by="dependencies",
    ),
    Mutant(
        "a dependent record names lower timestamps of other rings (DEPEND-1)",
        {"dependent-names-lower": leave_out()},
        by="dependencies",
    ),
    Mutant(
        "a record that is not kept is its ring's last (DEPEND-3)",
        {"dependent-dropped-is-last": never()},
        by="dependencies",
    ),
    Mutant(
        "redo without gaps (prefix)",
        {"redo-no-gaps": never()},
        by="fuzz",
        explained=(
            "records follow each other by position, so that no record can be missing "
            "between two whole ones"
        ),
    ),
    Mutant("redo inside home", {"redo-within-data-region": never()}, by="fuzz"),
    Mutant("redo of blocks that there are", {"redo-possible-blocks": never()}, by="fuzz"),
    Mutant(
        "undo takes ids above X only",
        {"undo-above-checkpoint-id": always(part="1 of 2")},
        explained="as for redo: a ring's head lies behind what X covers",
    ),
    Mutant("undo looks before it touches home", {"undo-validates-first": never()}, by="fuzz"),
    Mutant("the header's checksum", {"header-checksum": always()}),
    Mutant(
        "the newer copy of the header",
        {"header-newer-copy": never(part="test", when="b_good")},
        explained=(
            "HEADER-1: nothing is given up before both copies are written, so that "
            "recovery finds all it needs by the older one too"
        ),
    ),
    Mutant("a header that contradicts itself", {"header-contradiction": always()}, by="fuzz"),
    Mutant(
        "a span made anew only where its word is another (HEAP-4)",
        {"span-word-differs": always()},
    ),
    Mutant(
        "bitmaps of spans that are there in the end",
        {"span-bitmaps-present": always(part="2 of 2")},
    ),
)

# The steps that begin and end a session.
SESSIONS = (
    Mutant(
        "what recovery only reads is flushed (REDO-4)",
        {"recovery-rewrites-read-words": never()},
    ),
    Mutant("a session raises the epoch", {"session-raises-epoch": leave_out()}),
    Mutant("a session is not clean", {"session-not-clean": leave_out()}),
    Mutant("a session begins with empty rings", {"session-empty-rings": leave_out()}),
    Mutant("growth is in the header", {"growth-in-header": succeed()}),
    Mutant(
        "first the copy that was not read (HEADER-1)",
        {"header-write-order": exchange("write_b_first", "false", times=2)},
    ),
    Mutant("closed when all is home", {"close-checkpoints": succeed()}),
    Mutant(
        "a trim takes spans without a block only",
        {"trim-only-empty-spans": never()},
        by="trim",
    ),
    Mutant(
        "a trim says first that there are holes (TRIM-1)",
        {"trim-feature-first": succeed()},
        by="trim",
    ),
    Mutant(
        "a trim clears words before it makes holes (TRIM-1)",
        {"trim-words-fence": succeed()},
        by="trim",
    ),
    Mutant(
        "a trim's header precedes the cut (TRIM-2)",
        {"trim-header-before-cut": succeed()},
        by="trim",
    ),
    Mutant(
        "a raised limit that contradicts the header",
        {"header-raised-limit": never()},
        by="header",
    ),
    Mutant(
        "no block lies over words of the directory",
        {"possible-not-in-directory": never(part="2 of 2")},
        by="raise",
    ),
    Mutant(
        "the heap skips the words of a section (RAISE-2)",
        {"cursor-skips-words": leave_out()},
        by="raise",
    ),
    Mutant(
        "growth goes to a section that holds the block",
        {"growth-past-words": instead("data + chunks * chunk_bytes", part="argument 1 of 1")},
        by="raise",
    ),
    Mutant(
        "a trim leaves the words of a section (RAISE-2)",
        {"trim-leaves-words": never()},
        by="raise",
    ),
    Mutant(
        "a trim makes holes after a checkpoint (TRIM-3)",
        {"trim-after-checkpoint": succeed()},
        by="trims",
    ),
)
