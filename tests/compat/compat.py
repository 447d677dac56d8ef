#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pools that earlier builds of the library wrote: kept compressed in tests/compat/pools, opened by
every build.

Each folder there has a manifest.json and an archive pools.xz, which holds the manifest's pools in
its order.

  compat.py check --program COMPAT_POOL [--only NAME]
      unpacks every kept pool into a scratch folder, opens, recovers, checks, compares and rewrites
      it with this build, in one process one after the other; or sees it refused with the words of
      the manifest
  compat.py make --program COMPAT_POOL FOLDER [--only REGEX] [--note TEXT]
      makes the pools with this build and writes them to tests/compat/pools/FOLDER with their
      manifest; FOLDER must be new

A manifest (manifest.json) has for each pool: the engine instance that wrote it, the order, the
grain of its log, how its process ended (closed; killed by SIGKILL; cut: what a power cut leaves),
the format version, the number of transactions that were acknowledged and the digest of the contents
after them, and, where this build must refuse the pool, the words of the refusal.
"""
import argparse
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

POOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pools")
LIMIT = 2 << 20  # bytes, of all kept files together


PIECE = 256  # bytes: a piece that is all zero is left out


def pack(image):
    """The pool in the archive's format: its length, then its runs of pieces that are not all zero,
    each with offset and length."""
    runs, zero = [], bytes(PIECE)
    for at in range(0, len(image), PIECE):
        if image[at:at + PIECE] == zero[:len(image) - at]:
            continue
        if runs and runs[-1][1] == at:
            runs[-1][1] = min(at + PIECE, len(image))
        else:
            runs.append([at, min(at + PIECE, len(image))])
    out = [struct.pack("<QQ", len(image), len(runs))]
    for begin, end in runs:
        out += [struct.pack("<QQ", begin, end - begin), image[begin:end]]
    return b"".join(out)


def unpack(archive, target):
    """Writes the archive's next pool, with holes for what is left out."""
    def words():
        return struct.unpack("<QQ", archive.read(16))

    with open(target, "wb") as out:
        size, runs = words()
        for _ in range(runs):
            offset, length = words()
            out.seek(offset)
            out.write(archive.read(length))
        out.truncate(size)


def kept_pools(only, scratch):
    """Yields (folder, entry, the path of the unpacked pool) for each kept pool; the file is removed
    when the next one is requested."""
    for folder in sorted(os.listdir(POOLS)):
        with open(os.path.join(POOLS, folder, "manifest.json"), encoding="utf-8") as source:
            pools = json.load(source)["pools"]
        with lzma.open(os.path.join(POOLS, folder, "pools.xz")) as archive:
            for entry in pools:
                path = os.path.join(scratch, "pool")
                unpack(archive, path)
                if only in (None, entry["file"], f"{folder}/{entry['file']}"):
                    yield folder, entry, path
                os.remove(path)
            if archive.read(1):
                sys.exit(f"compat: {folder}: found more in pools.xz than its manifest lists")


def check(program, only):
    size = sum(
        os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(POOLS)
        for name in names)
    if size > LIMIT:
        sys.exit(
            f"compat: the kept pools take {size} bytes, expected at most {LIMIT}; keep fewer or "
            "smaller ones")
    scratch = tempfile.mkdtemp(prefix="perdure-compat-", dir=os.environ.get("PERDURE_TEST_DIR"))
    found = bad = 0
    try:
        with subprocess.Popen([program, "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as checker:
            for folder, entry, path in kept_pools(only, scratch):
                found += 1
                fields = [
                    path, entry["file"], entry["engine"], entry["order"], entry["append_unit"],
                    entry["ended"], entry["format_version"],
                    int(entry["survives"]),
                    int(entry["large"]), entry["transactions"], entry["digest"],
                    entry.get("refused", "-")
                ]
                checker.stdin.write("\t".join(map(str, fields)) + "\n")
                checker.stdin.flush()
                answer = checker.stdout.readline().rstrip("\n").split("\t", 1)
                if len(answer) != 2:
                    print(f"{folder}/{entry['file']}: the checking process ended")
                    bad += 1
                    break
                if answer[1] != "ok":
                    print(f"{folder}/{entry['file']}: {answer[1]}")
                    bad += 1
            checker.stdin.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if found == 0:
        sys.exit("compat: found no kept pool" + (f" named {only}" if only else ""))
    print(f"compat: {found} kept pools, {bad} of them not as expected")
    return 1 if bad else 0


def make(program, folder, only, note):
    target = os.path.join(POOLS, folder)
    if os.path.exists(target):
        sys.exit(
            f"compat: {target} exists already; kept pools are never rewritten, choose a new folder")
    names = subprocess.run([program, "list"], capture_output=True, text=True,
                           check=True).stdout.split()
    names = [name for name in names if only is None or re.search(only, name)]
    scratch = tempfile.mkdtemp(prefix="perdure-compat-", dir=os.environ.get("PERDURE_TEST_DIR"))
    pools, archive = [], []
    try:
        for name in names:
            path = os.path.join(scratch, name)
            made = subprocess.run([program, "make", name, path], capture_output=True, text=True,
                                  check=False)
            if made.returncode != 0:
                sys.exit(f"compat: {name}: {made.stderr}")
            with open(path, "rb") as source:
                archive.append(pack(source.read()))
            os.remove(path)
            pools.append(json.loads(made.stdout))
            print(f"{name}: {len(archive[-1])} bytes before compression")
        # Each engine and order must have a pool whose data region lacks what its log contains:
        # otherwise only opening would be tested.
        for key in {(p["file"].split(".")[0], p["order"]) for p in pools
                    if p["survives"] and p["ended"] != "closed"}:
            if not any(p["changed_by_recovery"]
                       for p in pools if (p["file"].split(".")[0], p["order"]) == key):
                sys.exit(f"compat: no pool of {key[0]}, order {key[1]}, has anything to recover")
        os.makedirs(target)
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
        with open(os.path.join(target, "pools.xz"), "wb") as out:
            out.write(
                lzma.compress(b"".join(archive), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64,
                              filters=filters))
        with open(os.path.join(target, "manifest.json"), "w", encoding="utf-8") as out:
            lines = ",\n    ".join(json.dumps(entry) for entry in pools)
            out.write('{\n  "note": ' + json.dumps(note) + ',\n  "pools": [\n    ' + lines +
                      "\n  ]\n}\n")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"compat: {len(pools)} pools in {target}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("check", "make"):
        one = commands.add_parser(command)
        one.add_argument("--program", required=True,
                         help="the program compat_pool of the build that is meant")
        one.add_argument(
            "--only",
            help="check: one pool's name; make: a regular expression that its name matches")
        if command == "make":
            one.add_argument("folder", help="the new folder below tests/compat/pools")
            one.add_argument("--note", default="",
                             help="kept in the manifest: what wrote these pools")
    args = parser.parse_args()
    if args.command == "check":
        return check(args.program, args.only)
    return make(args.program, args.folder, args.only, args.note)


if __name__ == "__main__":
    sys.exit(main())
