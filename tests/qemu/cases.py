# SPDX-License-Identifier: BSD-3-Clause
"""What run.py does with a machine: cycles of power cuts, cuts in recovery, I/O errors. Each boot
gives one row of the result."""
import sys
import time

from machine import POOLS, Failure


def new_row(lab, cycle, pool, what):
    return {"case": lab.case, "cycle": cycle, "pool": pool, "what": what,
            "acks": 0, "opened": 0, "recovered": 0, "lost": 0, "device_kept": 0}


def report(row, start):
    row["seconds"] = round(time.monotonic() - start, 1)
    print(
        f"{row['case']:6} {row['cycle']:4}  {row['what']:16} {row['pool']:14} {row['acks']:6} "
        f"acks {row['recovered']:7} recovered"
        f" {row['lost']:8} B of the plain file lost {row['seconds']:6.1f} s"
        f"{'  as it must: ' + row['found'] if 'found' in row else ''}", file=sys.stderr, flush=True)
    return row


def cut_after(machine, met, seconds):
    """Listens for this time, then cuts the power."""
    end = time.monotonic() + seconds
    while (line := machine.line(end - time.monotonic())) is not None:
        met(line)
    for line in machine.cut():
        if line.startswith("FAIL"):
            machine.complain(line)
        met(line)


def cut_while_opening(lab, row, seconds, opened):
    """Cuts the power this many seconds after the opening of the row's pool began; `opened` is the
    row's name if the opening had finished by then."""
    with lab.boot(["control", lab.job("check", row["pool"])]) as machine:
        met = lab.note(row)
        machine.until("opening", met)
        cut_after(machine, met, seconds)
    if row["opened"]:
        row["what"] = opened


def recovery_cut(lab, cycle, rng):
    """The power fails during the opening of the pool that was written last."""
    start, row = time.monotonic(), new_row(lab, cycle, lab.current, "cut in recovery")
    cut_while_opening(lab, row, rng.uniform(0, 0.25), "cut when opened")
    lab.settle()
    return report(row, start)


def cycles(lab, numbers, rng):
    """Writes, cuts the power, and compares at the next boot, once per number."""
    for cycle in numbers:
        if cycle % 4 == 0:
            yield recovery_cut(lab, cycle, rng)
        start, pool, quiet = time.monotonic(), POOLS[(cycle - 1) // 2 % len(POOLS)], cycle % 5 == 0
        row = new_row(lab, cycle, pool, "cut when closed" if quiet else "cut")
        every, stop = (1, 200) if lab.case == "disk" else (16, 2000)
        with lab.boot(
            ["control", *lab.checks(but=pool),
             lab.job("write", pool, every, stop if quiet else 0)]) as machine:
            met = lab.note(row)
            machine.until("quiet" if quiet else "ack", met)
            cut_after(machine, met, 0 if quiet else rng.uniform(0, 3))
        lab.settle()
        if row["acks"] == 0:
            raise Failure(
                f"cycle {cycle}: nothing was acknowledged before the cut, so nothing was tested")
        yield report(row, start)


def power_cuts(lab, arguments, rng):
    yield from cycles(lab, range(1, arguments.cycles + 1), rng)
    yield look(lab, arguments.cycles + 1, "last look")
    if lab.case == "disk":
        yield without(lab, "nodsync", "shadow.durable", lab.kind)
        yield without(lab, "nosync", "undo.durable", lab.kind)
    else:
        yield without(lab, "nosync", "shadow.group", "emulated")


def look(lab, cycle, what):
    """Opens every pool and compares it; makes those that do not exist."""
    start, row = time.monotonic(), new_row(lab, cycle, "all", what)
    with lab.boot(["control", *lab.checks()]) as machine:
        machine.until("done", lab.note(row))
    lab.settle()
    return report(row, start)


def without(lab, sync, pool, kind):
    """A cut after syncs that did nothing (and, emulated, on mappings without MAP_SYNC): the check
    must notice, otherwise it proves nothing."""
    start, row = time.monotonic(), new_row(lab, 0, pool, sync)
    lab.least.setdefault(pool, 0)
    with lab.boot(["control", lab.job(sync, pool, 1, 0, kind=kind)]) as machine:
        met = lab.note(row)
        machine.until("writing", met)
        cut_after(machine, met, 2)
    lab.settle()
    return report(must_find(lab, row, pool, kind), start)


def must_find(lab, row, pool, kind=None):
    """Opens a pool that has lost something: the check must report it."""
    with lab.boot([lab.job("check", pool, kind=kind)]) as machine:
        machine.until("opening")
        try:
            machine.until("open")
        except Failure as found:
            row["found"] = str(found).split("\n", maxsplit=1)[0]
    if not row.get("found", "").startswith("FAIL"):
        raise Failure(
            f"{row['acks']} acknowledgements with {row['what']}, and nothing was missing after "
            "the cut: nothing was tested")
    return row


def io_errors(lab, arguments, rng):
    yield look(lab, 0, "creation")
    for cycle in range(1, arguments.errors + 1):
        call, n = [("flush", rng.randint(150, 500)), ("write", rng.randint(500, 1500))][cycle % 2]
        start, pool = time.monotonic(), POOLS[(cycle - 1) // 2 % len(POOLS)]
        row = new_row(lab, cycle, pool, f"{call} {n} fails")
        with lab.boot(["control", lab.job("write", pool, 1, 0)], (call, n)) as machine:
            met = lab.note(row)
            machine.until("poisoned", met)
            cut_after(machine, met, 0)
        if row["acks"] == 0:
            raise Failure(
                f"nothing was acknowledged before {call} {n} failed, so nothing was tested")
        yield report(row, start)
        yield look(lab, cycle, "look")
