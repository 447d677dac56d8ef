#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the README's commands in bare Debian 12 systems, each with something else installed before.

`./dev bare` calls this. For each variant it unpacks a system that debootstrap made (kept in
DIR/base.tar.gz), installs what the variant has beforehand, clones the last commit of this
repository into it, and runs the command there in a chroot. The archive and the way to it are the
host's own, read from apt at run time. Mounts exist only in a mount namespace of the command, and
its processes only in a process namespace: both end with it, in whatever way it ends.
"""

import argparse
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from system import CannotRun, System, make_base

# name: (what is installed beforehand, Debian packages, files, whether the command runs as a user)
VARIANTS = {
    "plain": ("nothing but git", [], {}, False),
    "gtest": ("libgtest-dev without libgmock-dev", ["libgtest-dev"], {}, False),
    "sqlite": ("libsqlite3-dev", ["libsqlite3-dev"], {}, False),
    "pmemobj": ("libpmemobj-dev", ["libpmemobj-dev"], {}, False),
    "python": (
        "another python3 first in PATH, which fails",
        [],
        {"usr/local/bin/python3": "#!/bin/sh\necho 'the wrong python3 was run' >&2\nexit 1\n"},
        False,
    ),
    "user": ("a user that is not root, and sudo", ["sudo"], {}, True),
}
COMMANDS = {
    "demo": ["./dev demo"],
    "test": ["./dev test"],
    # The packages that ./dev package has made outside are installed, used and purged.
    "package": ["bash tests/bare/packages.sh /packages"],
    # Set up and configure only: target `help` of Ninja's builds nothing.
    "configure": ["./dev build --preset release --target help", "./dev build --target help"],
}
TAIL = 40  # lines of a failed command's output that are shown


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def arguments():
    listed = "\n".join(f"  {name:10} {what[0]}" for name, what in VARIANTS.items())
    p = argparse.ArgumentParser(
        prog="./dev bare",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.splitlines()[0],
        epilog=f"variants, and what each has before the "
        f"command runs:\n{listed}\n\nNeeds root (chroot, mount). Arguments after -- go to the "
        "command: ./dev bare gtest --command test -- -R layering",
    )
    p.add_argument(
        "variants", nargs="*", metavar="VARIANT", help="the variants to run; all when none is named"
    )
    p.add_argument(
        "--command",
        choices=COMMANDS,
        default="demo",
        help="what is run in the clone (%(default)s); configure: set up, and configure release "
        "and dev; "
        "package: make the Debian packages outside; install, use and purge them inside",
    )
    p.add_argument(
        "--packages",
        type=Path,
        default=Path("build/package"),
        metavar="DIR",
        help="with --command package: where the packages lie (%(default)s)",
    )
    p.add_argument(
        "--minutes",
        type=float,
        default=90,
        metavar="N",
        help="limit for each variant (%(default)s)",
    )
    p.add_argument(
        "--dir",
        type=Path,
        default=Path("build/bare"),
        help="where systems and logs lie (%(default)s)",
    )
    p.add_argument("--fresh", action="store_true", help="make the base system again")
    p.add_argument("--no-ccache", action="store_true", help="do not share the host's ccache")
    p.add_argument("--json", action="store_true", help="print the table as JSON")
    own, more = sys.argv[1:], []
    if "--" in own:
        own, more = own[: own.index("--")], own[own.index("--") + 1 :]
    args = p.parse_args(own)
    for name in args.variants:
        if name not in VARIANTS:
            p.error(f"found variant '{name}', expected some of: {', '.join(VARIANTS)}")
    args.variants = args.variants or list(VARIANTS)
    args.more = more
    args.dir = args.dir.resolve()
    return args


def debian_packages(args):
    """The files that --command package installs."""
    found = sorted(args.packages.glob("*.deb")) if args.command == "package" else []
    if args.command == "package" and not found:
        raise CannotRun(
            f"found no Debian package in {args.packages}, expected those of ./dev package: "
            "run it first"
        )
    return found


def check_host(repository):
    if os.geteuid() != 0:
        raise CannotRun(
            "found a user that is not root, expected root: chroot and mount need it; "
            "run 'sudo ./dev bare'"
        )
    if shutil.which("debootstrap") is None:
        raise CannotRun("found no debootstrap; './dev setup bare' installs it")
    dirty = subprocess.run(
        ["git", "-C", str(repository), "status", "--porcelain"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if dirty:
        say("the tree has changes that are not committed: what runs is the last commit")


def run_variant(name, args, repository):
    """One row of the table."""
    _, packages, files, as_user = VARIANTS[name]
    log = args.dir / "logs" / f"{name}-{args.command}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    commands = [" ".join([c, *map(shlex.quote, args.more)]) for c in COMMANDS[args.command]]
    command = " && ".join(commands)
    say(f"{name}: {command} (output: {log})")
    start = time.monotonic()
    row = {"variant": name, "command": command, "seconds": 0.0, "result": "ok", "log": str(log)}
    with open(log, "wb") as out, System(args.dir, out, ccache=not args.no_ccache) as system:
        system.install(packages)
        system.write(files)
        system.clone(repository, as_user)
        system.copy(debian_packages(args), "packages")
        start = time.monotonic()  # what the command takes, not what comes before it
        code = system.run(command, as_user, 60 * args.minutes)
    row["seconds"] = round(time.monotonic() - start, 1)
    if code != 0:
        row["result"] = "over its time" if code is None else f"exit {code}"
        lines = log.read_text(errors="replace").splitlines()
        print("\n".join(lines[-TAIL:]), file=sys.stderr)
    say(f"{name}: {row['result']} after {row['seconds']:.0f} s")
    return row


def main():
    args = arguments()
    repository = Path(__file__).resolve().parents[2]
    rows = []

    def stop(number, _frame):  # unwinds: the system of the running variant is removed
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        debian_packages(args)
        check_host(repository)
        args.dir.mkdir(parents=True, exist_ok=True)
        with open(args.dir / "lock", "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CannotRun(
                    f"{args.dir}: in use by another ./dev bare; name another --dir"
                ) from None
            System.remove_left_over(args.dir)
            make_base(args.dir, args.fresh, say)
            for name in args.variants:
                rows.append(run_variant(name, args, repository))
    except CannotRun as e:
        print(f"bare: {e}", file=sys.stderr)
        return 3
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        width = max(len(row["command"]) for row in rows)
        print(f"{'variant':10} {'command':{width}} {'seconds':>8}  result")
        for row in rows:
            print(
                f"{row['variant']:10} {row['command']:{width}} {row['seconds']:8.0f}  "
                f"{row['result']}"
            )
    return 1 if any(row["result"] != "ok" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
