#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads real data into a durable pool, kills the loader again and again, and shows that nothing is
lost.

`./dev demo` runs this. Steps:
  1. input: the machine's largest apt Packages index (fetched with apt-get update where there is
     none), else Debian's UnicodeData.txt; or any TSV, CSV or Debian control file with --input.
  2. one load without kills, into a pool of its own: the rates and costs that are printed.
  3. the same load while this process kills it with SIGKILL (at least --kills times, at random
     instants, some during recovery) and starts it again. A kill counts only if the loader was
     alive. At every start the pool must hold at least the rows that had been reported durable.
  4. export, compared byte for byte with the input, and `perdure check`.
  5. the same load once more, with an archive of its log and three backups while it goes on. The
     pool is restored to a backup, to a transaction and to a time, each at random; each restored
     pool is checked, exported and compared with the input up to there.
Prints what it found, writes demo.json and demo.png to --out, removes its temporary folder. Exit
status: 0 all held, 1 something did not, 2 usage, 3 it could not be run.
"""

import argparse
import glob
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

APT_HELPER = "/usr/lib/apt/apt-helper"
UNICODE_DATA = "/usr/share/unicode/UnicodeData.txt"
UNICODE_KEYS = ["--format", "csv", "--delimiter", ";"]


class Failure(Exception):
    """Something that was promised did not hold."""


class CannotRun(Exception):
    """The demo could not be run at all."""


def say(text=""):
    print(text, flush=True)


# ---- input ---------------------------------------------------------------------------------------


def apt_index_files():
    """The Packages files that apt has, as it stores them (often compressed)."""
    try:
        out = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(FILENAME)", "Created-By: Packages"],
            capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [name for name in out.splitlines() if glob.glob(glob.escape(name) + "*")]


def apt_update():
    command = [
        "apt-get", "-q", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300", "update"
    ]
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            say("input: apt has no index, and fetching one needs root")
            return
        command = ["sudo", "-n"] + command
    say("input: apt has no index yet: " + " ".join(command))
    try:
        subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL, timeout=600,
                       check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        say(f"input: {e}")


def find_input(folder):
    """Returns (path, extra arguments of load, description)."""
    if shutil.which("apt-get") and os.access(APT_HELPER, os.X_OK):
        files = apt_index_files()
        if not files:
            apt_update()
            files = apt_index_files()
        if files:
            def stored_size(name):
                return max(os.path.getsize(f) for f in glob.glob(glob.escape(name) + "*"))
            largest = max(files, key=stored_size)
            path = os.path.join(folder, "Packages")
            with open(path, "wb") as out:
                done = subprocess.run([APT_HELPER, "cat-file", largest], stdout=out, check=False)
            if done.returncode == 0 and os.path.getsize(path) > 0:
                return path, [], "apt's Packages index " + os.path.basename(largest)
            say(f"input: {APT_HELPER} cat-file {largest} failed")
    if os.path.exists(UNICODE_DATA):
        return UNICODE_DATA, UNICODE_KEYS, "Debian's UnicodeData.txt"
    raise CannotRun(
        "no input: apt has no Packages index and the package unicode-data is not installed; name "
        "a file with --input FILE")


def input_of(options, folder):
    """The same, of --input where it is given."""
    if not options.input:
        return find_input(folder)
    source = os.path.abspath(options.input)
    if not os.path.isfile(source):
        raise CannotRun(
            f"{options.input}: no such file, expected a TSV, CSV or Debian control file")
    extra = UNICODE_KEYS if os.path.basename(source) == os.path.basename(UNICODE_DATA) else []
    return source, extra, options.input


# ---- the loader, watched -------------------------------------------------------------------------


class Loader:
    """One run of `perdure load`; its progress events arrive in a queue as they are read."""

    def __init__(self, perdure, pool, source, extra, batch):
        self.command = [
            perdure, "load", pool, source, "--progress", "json", "--json", "--batch",
            str(batch)
        ] + extra
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.events = queue.SimpleQueue()
        self.rows = 0             # durable, as last reported
        self.open = None          # the event "open": what the loader found
        self.history = []         # (time, rows)
        self.noise = []           # lines on standard error that are not events
        self.answer = b""
        self.threads = [
            threading.Thread(target=f, daemon=True) for f in (self._read_events, self._read_answer)
        ]
        for thread in self.threads:
            thread.start()

    def _read_events(self):
        for line in self.process.stderr:
            try:
                event = json.loads(line)
                kind = event["event"]
            except (ValueError, KeyError, TypeError):
                # A line that the kill cut short is not noise.
                if line.endswith(b"\n") and not line.startswith(b"{"):
                    self.noise.append(line.decode(errors="replace").rstrip())
                continue
            if kind == "open":
                self.open = event
            self.rows = event.get("rows", self.rows)
            self.history.append((event["time"], self.rows))
            self.events.put(self.rows)
        self.events.put(None)

    def _read_answer(self):
        self.answer = self.process.stdout.read()

    def wait(self):
        code = self.process.wait()
        for thread in self.threads:
            thread.join()
        return code

    def kill(self):
        """Sends SIGKILL now. Returns True if it hit a live loader."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def wait_for_rows(self, target):
        """Waits until that many rows are durable; returns False if the loader ended before."""
        while True:
            rows = self.events.get()
            if rows is None:
                return False
            if rows >= target:
                return True

    def summary(self):
        try:
            return json.loads(self.answer)
        except ValueError:
            return {}

    def explain(self, code):
        return f"{' '.join(self.command)} ended with {code}: " + (" | ".join(self.noise[-5:]) or
                                                                  "no message")


def clean_load(perdure, pool, source, extra, batch):
    """Runs a load to its end. Returns (summary, loader)."""
    loader = Loader(perdure, pool, source, extra, batch)
    code = loader.wait()
    if code != 0:
        raise CannotRun(loader.explain(code)) if code in (2, 3) else Failure(loader.explain(code))
    return loader.summary(), loader


class Plan:
    """When to kill next. Most kills are paced by progress: at a random row between the present one
    and the one where the remaining kills would end evenly spread, plus a random delay. Every fifth
    falls into opening and recovery, at a random instant after the start."""

    def __init__(self, seed, rows, seconds, startup, kills):
        self.random = random.Random(seed)
        self.rows, self.seconds, self.startup, self.kills = rows, seconds, startup, kills
        self.per_row = seconds / max(rows, 1)

    def strike(self, loader, begun, done):
        """Waits for the moment of the next kill. Returns its kind."""
        left = max(self.kills - done, 1)
        ahead = int(1.6 * (self.rows - begun) / (left + 1))
        if self.random.random() < 0.2 or ahead < 2:
            time.sleep(self.random.uniform(0, 1.3 * self.startup))
            return "start"
        target = begun + self.random.randint(1, ahead)
        if loader.wait_for_rows(target):
            time.sleep(self.random.uniform(0, self.per_row * min(ahead, 1000)))
        return "load"


def killed_load(perdure, pool, source, extra, batch, plan, state):
    """One pool, from nothing to complete, under kills. Adds to state["kills"] and
    state["curve"]."""
    reported = 0   # rows that a loader had reported durable
    while True:
        loader = Loader(perdure, pool, source, extra, batch)
        kind = "none"
        if len(state["kills"]) < plan.kills:
            kind = plan.strike(loader, reported, len(state["kills"]))
            hit = loader.kill()
        else:
            loader.wait()
            hit = False
        opened = loader.open
        if opened is not None and opened["rows"] < reported:
            raise Failure(
                f"the pool came back with {opened['rows']} rows; {reported} had been reported "
                "durable")
        if opened is not None and state["kills"]:
            state["recoveries"].append({
                "seconds": opened["seconds"], "replay_seconds": opened.get("recovery_seconds", 0.0),
                "records": opened.get("replayed_records", 0), "rows": opened["rows"]
            })
        state["curve"] += [(t - state["zero"], rows) for t, rows in loader.history]
        reported = max(reported, loader.rows)
        if hit:
            state["kills"].append({
                "time": loader_time(state), "rows": reported,
                "during": "load" if loader.history[1:] else "start", "aimed": kind
            })
            continue
        if loader.process.returncode != 0:
            raise Failure(loader.explain(loader.process.returncode))
        return loader.summary()


def loader_time(state):
    return time.monotonic() - state["zero"]


# ---- checking and telling ------------------------------------------------------------------------


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    return done.returncode, answer, done.stderr.strip()


def verify(perdure, pool, source, folder, what="export", end=None):
    """Exports the pool, compares it with the source up to `end` (all of it), checks the pool, and
    removes it. Returns what the check says."""
    exported = os.path.join(folder, "exported")
    done = subprocess.run([perdure, "export", pool, exported], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failure(f"{what}: export ended with {done.returncode}: {done.stderr.strip()}")
    with open(source, "rb") as file:
        expected = file.read(-1 if end is None else end)
    with open(exported, "rb") as file:
        found = file.read()
    if found != expected:
        raise Failure(
            f"{what} differs from {source}: {len(found)} bytes, expected {len(expected)}")
    code, answer, message = run_json([perdure, "check", pool, "--json"])
    if code != 0:
        raise Failure(f"{what}: check ended with {code}: {message or answer}")
    os.remove(exported)
    os.remove(pool)
    return answer


def backed_up_load(perdure, pool, source, extra, batch, folder, seed):
    """Loads with an archive and three backups under the load; restores the pool to the second
    backup, to a transaction and to a time, and compares each with the part of the input that it
    has."""
    archive = os.path.join(folder, "archive")
    summary, _ = clean_load(perdure, pool, source,
                            extra + ["--archive", archive, "--backups", "3"], batch)
    if len(summary.get("backups", [])) != 3:
        raise Failure(f"load made {len(summary.get('backups', []))} backups, expected 3")
    code, found, message = run_json([perdure, "verify", archive, "--restore", "--json"])
    if code != 0:
        raise Failure(f"verify ended with {code}: {message or found}")
    run = found["runs"][-1]
    numbers = random.Random(seed)
    time_ns = numbers.randint(found["backups"][0]["unix_ns"], run["last_unix_ns"])
    points = [("backup", str(found["backups"][2]["id"])),
              ("transaction", str(numbers.randint(found["backups"][0]["id"], run["last"]))),
              ("time", f"@{time_ns // 10**9}.{time_ns % 10**9:09}")]
    restored = []
    for n, (kind, point) in enumerate(points, 1):
        made = os.path.join(folder, f"restored-{n}.perdure")
        code, answer, message = run_json([perdure, "restore", archive, made, "--to", point,
                                          "--json"])
        if code != 0:
            raise Failure(f"restore to {kind} {point} ended with {code}: {message}")
        code, info, message = run_json([perdure, "info", made, "--json"])
        if code != 0:
            raise Failure(f"info {made} ended with {code}: {message}")
        loaded = info["store"]
        verify(perdure, made, source, folder, made, loaded.get("position", 0))
        restored.append({"to": kind, "id": answer["id"], "rows": loaded["rows"]})
    verify(perdure, pool, source, folder)
    shutil.rmtree(archive)
    return {
        "seconds": summary["seconds"],
        "made": [{key: backup[key] for key in ("rows", "position")}
                 for backup in summary["backups"]],
        "restored": restored
    }


def plot(path, title, state, total_rows):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as e:
        say(f"plot: left out ({e}); install python3-matplotlib")
        return None
    figure, axes = pyplot.subplots(figsize=(10, 5.5))
    times = [t for t, _ in state["curve"]]
    axes.plot(times, [rows for _, rows in state["curve"]], color="tab:blue", linewidth=1.2,
              label="rows reported durable")
    for kind, marker, colour in (("load", "x", "tab:red"), ("start", "+", "tab:orange")):
        hits = [k for k in state["kills"] if k["during"] == kind]
        label = (f"SIGKILL while loading ({len(hits)})"
                 if kind == "load" else f"SIGKILL while opening or recovering ({len(hits)})")
        axes.plot([k["time"] for k in hits], [k["rows"] for k in hits], marker, color=colour,
                  markersize=8, markeredgewidth=2, label=label)
    axes.axhline(total_rows, color="grey", linewidth=0.8, linestyle="--",
                 label=f"all {total_rows:,} rows")
    axes.set(xlabel="seconds", ylabel="rows", title=title)
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else 0.0


def report(result):
    plain, killed = result["plain"], result["killed"]
    say()
    say(f"input                      {result['what']}: {result['bytes']:,} bytes, "
        f"{plain['rows']:,} records")
    say("without kills")
    say(f"  records/s                {plain['records_per_second']:,.0f}  ({plain['seconds']:.2f} "
        f"s, batches of {result['batch']} records)")
    say(f"  commits                  {plain['commits']:,}")
    say(f"  fences (device syncs)    {plain['fences']:,} ({plain['syncs']:,})")
    say(f"  log bytes / user byte    {plain['log_bytes_per_user_byte']:.2f}")
    say("with kills")
    say(f"  kills survived           {killed['kills']} ({killed['kills_during_load']} while "
        "loading, "
        f"{killed['kills'] - killed['kills_during_load']} while opening or recovering), in "
        f"{killed['rounds']} load(s), {killed['seconds']:.2f} s in all")
    say(f"  recovery                 replay: median {killed['replay_median'] * 1e3:.1f} ms, "
        f"longest {killed['replay_max'] * 1e3:.1f} ms; opening in all: "
        f"median {killed['recovery_median'] * 1e3:.1f} ms, longest "
        f"{killed['recovery_max'] * 1e3:.1f} ms")
    say(f"  records replayed         {killed['replayed_records']:,}")
    say("  acknowledged rows lost   0")
    made = ", ".join(f"a {point['to']} ({point['rows']:,} records)"
                     for point in result["backups"]["restored"])
    say(f"backups while loading      3, and an archive; restored to {made}, each byte for byte the "
        "input up to there")
    say(f"export                     byte for byte the input ({result['bytes']:,} bytes)")
    found = result["check"]["summary"]
    say(f"check                      no problem: {found['heap_blocks']:,} blocks, "
        f"{found['leaked_blocks']} leaked, {found['blocks_used_twice']} used twice; "
        f"{found['rows']:,} rows, each with its key")


def demo(options, folder):
    source, extra, what = input_of(options, folder)
    extra = extra + options.load_arguments
    size = os.path.getsize(source)
    say(f"input: {what}, {size:,} bytes")

    # 1. Without kills: once to learn the number of rows and a batch small enough for many kills,
    #    once to measure.
    plain_pool = os.path.join(folder, "plain.perdure")
    summary, loader = clean_load(options.perdure, plain_pool, source, extra, 256)
    rows = summary["rows"]
    batch = options.batch or max(1, min(64, rows // 2000))
    os.remove(plain_pool)
    say(f"loading {rows:,} records without kills, in batches of {batch}")
    summary, loader = clean_load(options.perdure, plain_pool, source, extra, batch)
    plain = {
        "rows": rows,
        "seconds": summary["seconds"],
        "records_per_second": rows / max(summary["seconds"], 1e-9),
        "commits": summary["commits"],
        "fences": summary["fences"],
        "syncs": summary["syncs"],
        "log_bytes_per_user_byte": summary["log_bytes"] / max(size, 1),
    }
    verify(options.perdure, plain_pool, source, folder)

    # 2. Under kills; a load that ends before all kills are spent is started anew, in a new pool.
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    say(f"loading them again, killed {options.kills} times at random (seed {seed})")
    startup = loader.history[0][0] - loader.started if loader.history else 0.05
    plan = Plan(seed, rows, summary["seconds"], max(startup, 0.002), options.kills)
    state = {"kills": [], "curve": [], "recoveries": [], "zero": time.monotonic()}
    rounds, check = 0, {}
    while len(state["kills"]) < options.kills:
        rounds += 1
        if rounds > 20 + 2 * options.kills:
            raise CannotRun(
                f"only {len(state['kills'])} of {options.kills} kills hit a live loader: the "
                "input is too small for this machine")
        pool = os.path.join(folder, f"killed-{rounds}.perdure")
        final = killed_load(options.perdure, pool, source, extra, batch, plan, state)
        if final.get("rows") != rows:
            raise Failure(f"the load ended with {final.get('rows')} rows, expected {rows}")
        check = verify(options.perdure, pool, source, folder)
    seconds = time.monotonic() - state["zero"]

    # 3. With backups.
    say("loading them once more, with an archive and three backups while it goes on")
    backups = backed_up_load(options.perdure, os.path.join(folder, "backed-up.perdure"), source,
                             extra, batch, folder, seed)

    recoveries = [r["seconds"] for r in state["recoveries"]]
    replays = [r["replay_seconds"] for r in state["recoveries"]]
    result = {
        "what": what, "bytes": size, "batch": batch, "seed": seed, "plain": plain,
        "killed": {
            "kills": len(state["kills"]),
            "kills_during_load": sum(k["during"] == "load" for k in state["kills"]),
            "rounds": rounds, "seconds": seconds, "recovery_median": median(recoveries),
            "recovery_max": max(recoveries, default=0.0), "replay_median": median(replays),
            "replay_max": max(replays, default=0.0),
            "replayed_records": sum(r["records"] for r in state["recoveries"]),
            "each_kill": state["kills"], "each_recovery": state["recoveries"],
        },
        "backups": backups, "export_identical": True, "check": check, "ok": True,
    }
    os.makedirs(options.out, exist_ok=True)
    result["plot"] = plot(os.path.join(options.out, "demo.png"),
                          f"{rows:,} records, {len(state['kills'])} kills, nothing lost", state,
                          rows)
    return result


def run_demo(options, name, programs, demo_of, tell):
    """Runs demo_of(options, folder) -> result in a folder of its own, tells the result, writes
    NAME.json. Returns the exit status."""
    options.out = os.path.abspath(options.out)
    result_stream = sys.stdout
    if options.json:
        sys.stdout = sys.stderr
    folder, status, result = None, 0, {"ok": False}
    try:
        for program in programs:
            if not os.access(program, os.X_OK):
                raise CannotRun(f"{program}: no such program; ./dev demo makes it, or name another")
        os.makedirs(options.out, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="perdure-demo-", dir=options.dir or options.out)
        result = demo_of(options, folder)
        tell(result)
        if result["plot"]:
            say(f"plot                       {result['plot']}")
        say("\nThe demo succeeded.")
    except Failure as e:
        result["failure"], status = str(e), 1
        say(f"\nThe demo FAILED: {e}")
    except (CannotRun, OSError) as e:
        result["failure"], status = str(e), 3
        say(f"\nThe demo could not be run: {e}")
    except KeyboardInterrupt:
        status = 3
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    if folder:
        with open(os.path.join(options.out, name + ".json"), "w", encoding="utf-8") as out:
            json.dump(result, out, indent=2)
    if options.json:
        json.dump(result, result_stream, indent=2)
        result_stream.write("\n")
    return status


def add_common_options(parser, name):
    """Those of both demos."""
    parser.add_argument("--perdure", default="build/release/tools/perdure",
                        help="the perdure command (default: %(default)s)")
    parser.add_argument(
        "--input", metavar="FILE",
        help="load this TSV, CSV or Debian control file (default: apt's Packages index)")
    parser.add_argument("--seed", type=int,
                        help="of the random instants (default: a new one each time; it is printed)")
    parser.add_argument("--out", metavar="DIR", default="build/demo",
                        help=f"where {name}.png and {name}.json go (default: %(default)s)")
    parser.add_argument(
        "--dir", metavar="DIR",
        help="where the temporary folder with the pool goes (default: the one of --out, so no "
             "tmpfs)")
    parser.add_argument(
        "--json", action="store_true",
        help="print the result as JSON, too; everything else goes to standard error")


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()),
                                     epilog="Example: ./dev demo --input my.csv --kills 50",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser, "demo")
    parser.add_argument("--kills", type=int, default=25, metavar="N",
                        help="kill the loader so many times (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=0, metavar="N",
                        help="records a transaction (default: by the input's size, at most 64)")
    parser.add_argument("load_arguments", nargs="*", metavar="-- LOAD-OPTION",
                        help="options of `perdure load` for --input, e.g. -- --key id")
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"found --kills {options.kills}, expected 1 or more")
    options.perdure = os.path.abspath(options.perdure)
    return run_demo(options, "demo", [options.perdure], demo, report)


if __name__ == "__main__":
    sys.exit(main())
