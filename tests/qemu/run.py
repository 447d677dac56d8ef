#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Power cuts of an emulated machine: what had been acknowledged must be there when it boots again.

`./dev explore --qemu` runs this. QEMU, in software, boots Debian's kernel with nothing but /init
and /guest (guest.cpp), which writes pools and reports on a serial port what was acknowledged. Then
QEMU is killed, and with it the guest's page cache and, on the disk, the device's write cache; the
next boot recovers the pools, compares them in full, and continues. Cases:

  fsdax  ext4 -o dax on an NVDIMM: pools must be on MAP_SYNC mappings of it
  devdax four NVDIMMs, each /dev/dax and one pool, blank or with other bytes on it (devdax.py)
  disk   ext4 on a virtio disk that forgets what was not flushed: each boot writes to a new qcow2
         overlay in clusters of 4 KiB, and QEMU keeps the overlay's tables in its own memory until
         the guest flushes
  eio    the same file system; the n-th flush, or write, of the device fails: the pool must refuse
         everything, and be whole at the next boot

With each acknowledgement the guest appends to a plain file that is never synced. If nothing of it
is ever lost, nothing was tested, and that is a failure, as is a cycle without an acknowledgement.
Exit: 0 all held, 1 something did not, 2 it could not be run.
"""
import argparse
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

from cases import io_errors, power_cuts
from devdax import DeviceLab, device_cuts
from machine import CannotRun, Failure, Lab, unpacked_kernel

CASES = {"fsdax": power_cuts, "devdax": device_cuts, "disk": power_cuts, "eio": io_errors}


# ---- results -------------------------------------------------------------------------------------


def summary(case, rows, mediums, failure):
    rows = [r for r in rows if "found" not in r]
    cuts = [r for r in rows if r["acks"]]
    return {
        "case": case, "cuts": len(cuts), "cuts_in_recovery": sum(r["what"] == "cut in recovery"
                                                                 for r in rows),
        "cuts_in_creation": sum(r["what"] == "cut in creation" for r in rows),
        "acks": sum(r["acks"] for r in cuts), "recovered": sum(r["recovered"] for r in rows),
        "plain_lost": sum(r["lost"] != 0 for r in rows),
        "seconds": round(sum(r["seconds"] for r in rows), 1), "mediums": mediums, "failure": failure
    }


def judge(case, rows):
    """What must have been lost, so that a pool without losses proves something."""
    if not any(r["lost"] for r in rows):
        raise Failure("no byte of the plain file was lost, so nothing was tested")
    if case == "disk" and any(r["device_kept"] for r in rows):
        raise Failure(
            "a block that was written and not flushed was there after the cut: the disk's write "
            "cache is not lost")


def run_case(case, kernel, arguments, build):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{case}-", dir=build))
    rows, mediums, failure = [], [], ""
    try:
        lab = (DeviceLab if case == "devdax" else Lab)(case, folder, kernel, arguments.guest)
        rng = random.Random(f"{case} {arguments.seed}")
        for row in CASES[case](lab, arguments, rng):
            rows.append(row)
        mediums = list(lab.mediums)
        judge(case, rows)
    except Failure as e:
        failure = str(e)
        print(f"qemu: {case}: {failure}", file=sys.stderr)
    finally:
        if arguments.keep:
            print(f"qemu: {case}: disk and console are in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder)
    return rows, summary(case, rows, mediums, failure)


def options():
    parser = argparse.ArgumentParser(prog="./dev explore --qemu",
                                     description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--guest", required=True, type=pathlib.Path, help="perdure_qemu_guest")
    parser.add_argument("--build", default=pathlib.Path("build/qemu"), type=pathlib.Path,
                        help="for the kernel and the disks (build/qemu)")
    parser.add_argument("--cycles", type=int, default=10,
                        help="power cuts of fsdax, devdax and disk, each (10)")
    parser.add_argument("--errors", type=int, default=8, help="I/O errors (8)")
    parser.add_argument("--only", default=",".join(CASES), help="some of " + ",".join(CASES))
    parser.add_argument("--seed", type=int, default=1,
                        help="of the instants and of which call fails (1)")
    parser.add_argument("--keep", action="store_true",
                        help="leave the disks and the last boot's kernel messages")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    unknown = [case for case in arguments.only.split(",") if case not in CASES]
    if unknown or arguments.cycles < 1 or arguments.errors < 1:
        parser.error(
            f"found --only {arguments.only} --cycles {arguments.cycles} --errors "
            f"{arguments.errors}, "
            f"expected some of {','.join(CASES)}, and numbers above 0")
    return arguments


def main():
    arguments = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    build = arguments.build.resolve()
    build.mkdir(parents=True, exist_ok=True)
    try:
        for tool in ["qemu-system-x86_64", "qemu-img", "busybox", "cpio"]:
            if shutil.which(tool) is None:
                raise CannotRun(f"found no {tool}; ./dev setup qemu installs it")
        kernel = unpacked_kernel(build)
        results = [run_case(case, kernel, arguments, build) for case in arguments.only.split(",")]
    except (CannotRun, OSError, subprocess.TimeoutExpired) as e:
        print(f"qemu: {e}", file=sys.stderr)
        return 2
    summaries = [s for _, s in results]
    if arguments.json:
        print(
            json.dumps(
                {
                    "seed": arguments.seed, "cases": summaries,
                    "boots": [row for rows, _ in results for row in rows]
                }, indent=2))
    else:
        print(
            f"{'case':7}{'cuts':>6}{'in recovery':>13}{'in creation':>13}{'acks':>10}"
            f"{'recovered':>11}{'plain file lost':>17}{'seconds':>9}{'s a cut':>9}  ")
        for s in summaries:
            each = s["seconds"] / max(s["cuts"] + s["cuts_in_recovery"] + s["cuts_in_creation"], 1)
            print(
                f"{s['case']:7}{s['cuts']:6}{s['cuts_in_recovery']:13}{s['cuts_in_creation']:13}"
                f"{s['acks']:10,}{s['recovered']:11,}"
                f"{s['plain_lost']:17}{s['seconds']:9.0f}{each:9.1f}  "
                f"{'FAILED' if s['failure'] else 'all held'}")
        for s in summaries:
            for medium in s["mediums"]:
                print(f"{s['case']}: {medium}")
    return 1 if any(s["failure"] for s in summaries) else 0


if __name__ == "__main__":
    sys.exit(main())
