#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs what hardware transactions were once found wrong in, again and again: on RTM where the
processor has it, and on the stand-in everywhere.

Cases: complete() beside commits that are still to come; readers of old values, by the order of
commit timestamps; a long view while its blocks are freed; retries in a recorded workload; records
that become durable after their transaction is visible, with power cuts beside threads; and the
stand-in's modelled store buffer under seeded schedules, with today's protocol and with one that
drains nothing inside a transaction, which must be found out.
Exit: 0 all passed, 1 a case failed, 2 wrong arguments.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

CASES = (  # name, program, filter
    ("complete() and commits to come", "tm/tm_htm_test",
     "Htms/*.CompleteNeverPassesWhatIsStillToCome"),
    ("old values and their readers", "tm/tm_htm_test", "Htms/*.AReaderOfAnOldValue*"),
    ("a long view, its blocks freed", "engine/engine_threads_test", "*AViewSeesOneState*/*htm*"),
    ("retries in a recorded workload", "engine/engine_recorder_test", "*/*htm*"),
    ("records after the transaction", "engine/engine_shadow_htm_test", "ShadowHtm.*"),
    ("modelled store buffer, 1,000 seeds", "tm/tm_store_buffer_test", "StoreBuffer.*"),
)
COMMITTED = re.compile(r"htm: (\d+) transactions committed without the lock")


def run(program, pattern, times, limit):
    """(failed runs, hardware transactions committed, seconds, last output of a failure)."""
    failed, committed, start, output = 0, 0, time.monotonic(), ""
    for _ in range(times):
        try:
            done = subprocess.run([program, f"--gtest_filter={pattern}"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=limit)
            text, bad = done.stdout, done.returncode != 0 or "[  PASSED  ] 0 tests" in done.stdout
        except subprocess.TimeoutExpired as late:
            text, bad = (late.stdout or
                         b"").decode(errors="replace") + f"\nno end after {limit} s", True
        committed += sum(int(n) for n in COMMITTED.findall(text))
        if bad:
            failed, output = failed + 1, text
    return failed, committed, time.monotonic() - start, output


def main():
    parser = argparse.ArgumentParser(prog="./dev explore --htm", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev", help="the build folder (%(default)s)")
    parser.add_argument("--times", type=int, default=100,
                        help="how often each case runs (%(default)s); the modelled one runs once")
    parser.add_argument("--limit", type=float, default=60,
                        help="seconds after which a run counts as hanging (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    if arguments.times < 1:
        parser.error(f"found --times {arguments.times}, expected 1 or more")
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    rtm = re.search(r"^flags\s*:.*\brtm\b", flags, re.MULTILINE) is not None
    rows = []
    if not arguments.json:
        has = ("has RTM: the hardware and the stand-in run" if rtm else
               "has no RTM: the stand-in runs alone")
        print(f"this processor {has}", flush=True)
    for name, program, pattern in CASES:
        times = 1 if program.endswith("store_buffer_test") else arguments.times
        failed, committed, seconds, output = run(f"{arguments.build}/tests/{program}", pattern,
                                                 times, arguments.limit)
        unseen = rtm and not program.endswith("store_buffer_test") and committed == 0
        rows.append({
            "case": name, "times": times, "failed": failed, "hardware_commits": committed,
            "seconds": round(seconds, 1), "good": failed == 0 and not unseen
        })
        if not arguments.json:
            print(
                f"{name:36} {times:>4} times, {failed:>3} failed, {committed:>12,} committed by "
                f"the hardware, {seconds:6.1f} s",
                flush=True)
        if failed:
            print(output, file=sys.stderr)
        if unseen:
            print(f"{name}: the processor has RTM, and no transaction was committed by it",
                  file=sys.stderr)
    if arguments.json:
        print(json.dumps({"rtm": rtm, "cases": rows}, indent=2))
    return 0 if all(row["good"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
