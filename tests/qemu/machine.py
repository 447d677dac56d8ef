# SPDX-License-Identifier: BSD-3-Clause
"""The emulated machine of run.py: its kernel, its devices, one boot of it, and what its pools must
contain."""
import ctypes
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

POOLS = ["shadow.durable", "shadow.async", "undo.durable", "dudetm.group"]
DISK_MODULES = ["virtio_pci", "virtio_blk"]
MODULES = {
    "fsdax": ["nfit", "nd_pmem"],
    "devdax": ["nfit", "nd_pmem", "dax_pmem", "device_dax", *DISK_MODULES]
}
KERNELS = "^linux-image-6\\.1\\.0-[0-9]+-cloud-amd64$"
MIB = 1 << 20
DEVICE = 512 * MIB
PATIENCE = 120  # seconds without a line from the machine
PR_SET_PDEATHSIG = 1  # of prctl(2): the machine dies with this script


class Failure(Exception):
    """Something that was promised did not hold."""


class CannotRun(Exception):
    """The machine could not be made."""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False, **options)
    if done.returncode != 0:
        raise CannotRun(f"{command[0]} failed with {done.returncode}:\n{done.stdout}")
    return done.stdout


# ---- kernel and initramfs ------------------------------------------------------------------------


def unpacked_kernel(build):
    """The folder of a Debian kernel package, downloaded and unpacked once; never installed."""
    folder = build / "kernel"
    if not list(folder.glob("boot/vmlinuz-*")):
        names = [
            line.split()[0]
            for line in run("apt-cache", "search", "--names-only", KERNELS).splitlines()
        ]
        if not names:
            raise CannotRun(
                "found no kernel package linux-image-6.1.0-*-cloud-amd64 in apt's lists; run "
                "apt-get update, on Debian 12")
        newest = max(names, key=lambda name: int(name.split("-")[3]))
        print(f"==> qemu: downloading {newest}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=build) as fresh:
            run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", newest, cwd=fresh)
            run("dpkg-deb", "-x", next(pathlib.Path(fresh).glob("*.deb")),
                pathlib.Path(fresh) / "kernel")
            shutil.rmtree(folder, ignore_errors=True)
            (pathlib.Path(fresh) / "kernel").rename(folder)
    return folder


def load_order(kernel, wanted):
    """The modules' files, each after those that it names in its own `depends=`; a module without a
    file is built in."""
    files = {path.stem: path for path in kernel.glob("lib/modules/**/*.ko")}
    order = []

    def add(name):
        if name in files and files[name] not in order:
            for other in re.search(rb"\0depends=([^\0]*)",
                                   files[name].read_bytes())[1].decode().split(","):
                add(other)
            order.append(files[name])

    for name in wanted:
        add(name)
    return order


def make_initramfs(out, kernel, guest, case):
    root = out / "root"
    for name in ["bin", "dev", "proc", "sys", "pools", "modules"]:
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    shutil.copy(pathlib.Path(__file__).parent / "init", root / "init")
    run("strip", "-o", root / "guest", guest)
    order = load_order(kernel, MODULES.get(case, DISK_MODULES))
    for path in order:
        shutil.copy(path, root / "modules")
    (root / "modules/order").write_text("".join(f"{path.name}\n" for path in order),
                                        encoding="ascii")
    archive = out / "initramfs"
    run("sh", "-c", f"find . | cpio -o -H newc --quiet >'{archive}'", cwd=root)
    return archive


# ---- the machine ---------------------------------------------------------------------------------


class Machine:
    """One boot. line() returns lines of the guest; cut() ends it."""

    def __init__(self, lab, devices, arguments):
        self.console = lab.folder / "console.log"
        command = [
            "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-nodefaults", "-no-user-config",
            "-no-reboot", "-display", "none", "-kernel", lab.vmlinuz, "-initrd", lab.initramfs,
            "-serial", f"file:{self.console}", "-serial", "stdio", *devices, "-append",
            "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on -- " + " ".join(arguments)
        ]
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.lines = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.endswith(b"\n"):  # the cut may leave half a line
                self.lines.put(line.decode(errors="replace").strip())
        self.lines.put(None)

    def line(self, seconds=PATIENCE):
        """Returns the next line; None if there was none in this time."""
        try:
            line = self.lines.get(timeout=max(seconds, 0))
        except queue.Empty:
            return None
        if line is None:
            self.complain("the machine stopped by itself")
        if line.startswith("FAIL"):
            self.complain(line)
        return line

    def until(self, word, met=None):
        """Reads up to a line that begins with the word; every line is also passed to `met`."""
        while True:
            line = self.line()
            if line is None:
                self.complain(f"no line '{word}' within {PATIENCE} s")
            if met:
                met(line)
            if line.split(" ")[0] == word:
                return line
            if line.startswith("exit "):
                self.complain(f"the guest ended with '{line}', expected a line '{word}'")

    def complain(self, what):
        tail = self.console.read_text(
            errors="replace").splitlines()[-12:] if self.console.exists() else []
        raise Failure("\n  ".join([what, *tail]))

    def cut(self):
        """The power fails. Returns the lines that had left the machine by then."""
        self.process.kill()
        self.process.wait()
        self.reader.join()
        rest = []
        while (line := self.lines.get()) is not None:
            rest.append(line)
        return rest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Lab:
    """A case's kernel, disk and pools, and what each pool must contain."""

    def __init__(self, case, folder, kernel, guest):
        self.case, self.folder = case, folder
        self.vmlinuz = next(kernel.glob("boot/vmlinuz-*"))
        self.device = "pmem0" if case == "fsdax" else "vda"
        self.kind = "dax" if case == "fsdax" else "file"
        self.initramfs = make_initramfs(folder, kernel, guest, case)
        self.image, self.overlay = folder / "device", folder / "overlay.qcow2"
        with open(self.image, "wb") as image:
            image.truncate(DEVICE)
        start = 2 * MIB if case == "fsdax" else 0  # the start of the pfn device's data
        # Nothing is left that the guest would write later by itself.
        now = f"offset={start},lazy_itable_init=0,lazy_journal_init=0"
        run("mkfs.ext4", "-q", "-F", "-b", 4096, "-E", now, self.image,
            f"{(DEVICE - 4 * MIB) // 1024}k",
            env={**os.environ, "PATH": os.environ["PATH"] + ":/sbin"})
        self.least = dict.fromkeys(POOLS, 0)  # of each pool, the last update that must be present
        self.current = POOLS[0]               # the pool that the guest opened last
        # Bytes that it has appended to the plain file since then.
        self.unsynced = 0
        self.mediums = {}                     # the media that they reported, each once
        self.setup = "pfn" if case == "fsdax" else "none"

    def devices(self, broken=None):
        if self.case == "fsdax":
            return [
                "-machine", "q35,nvdimm=on", "-m", "384M,slots=1,maxmem=2G", "-object",
                f"memory-backend-file,id=m,share=on,mem-path={self.image},size={DEVICE}", "-device",
                "nvdimm,memdev=m"
            ]
        node = {"driver": "file", "filename": str(self.image)}
        if self.case == "disk":
            self.overlay.unlink(missing_ok=True)
            run("qemu-img", "create", "-q", "-f", "qcow2", "-o", "cluster_size=4096", "-F", "raw",
                "-b", self.image, self.overlay)
            node = {"driver": "qcow2", "file": {"driver": "file", "filename": str(self.overlay)},
                    # All of its tables fit: none is written before a flush.
                    "cache-clean-interval": 0, "l2-cache-size": 4 * MIB}
        elif broken:
            event, kind, n = ("flush_to_disk", "flush",
                              broken[1]) if broken[0] == "flush" else ("pwritev", "write",
                                                                       broken[1])
            node = {
                "driver": "raw", "file": {
                    "driver": "blkdebug", "image": node,
                    "set-state": [{"event": event, "state": i, "new_state": i + 1}
                                  for i in range(1, n)], "inject-error": [{
                                      "event": event, "state": n, "iotype": kind, "errno": 5,
                                      "once": True
                                  }]
                }
            }
        else:
            node = {"driver": "raw", "file": node}
        return ["-machine", "q35", "-m", "384M", *self.disk(node)]

    @staticmethod
    def disk(node):
        return [
            "-blockdev",
            json.dumps({"node-name": "d", **node}), "-device",
            "virtio-blk-pci,drive=d,write-cache=on"
        ]

    def boot(self, jobs, broken=None):
        machine = Machine(self, self.devices(broken), [self.device, self.setup, *jobs])
        self.setup = "none"
        return machine

    def settle(self):
        """The contents of the overlay's file become the disk. What only QEMU knew is lost: each
        block whose first write since the boot was not flushed. A block that had been flushed is
        written in place and stays, so logs should not wrap within a boot."""
        if self.case == "disk":
            run("qemu-img", "commit", "-q", self.overlay)

    def kind_of(self, _):
        return self.kind

    def job(self, what, pool, *more, kind=None):
        return ",".join([
            what, kind or self.kind_of(pool), *pool.split("."),
            str(self.least[pool]), *map(str, more)
        ])

    def checks(self, but=None):
        return [self.job("check", pool) for pool in POOLS if pool != but]

    def note(self, row):
        """Returns a function that updates what the pools must contain, line by line."""
        def met(line):
            word, *rest = line.split()
            if word == "opening":
                self.current = rest[0]
            elif word == "ack":
                self.least[self.current] = max(self.least[self.current], int(rest[0]))
                row["acks"] += 1
                self.unsynced = int(rest[1])
            elif word == "open":  # what recovery found is durable from here on
                self.least[self.current] = max(self.least[self.current], int(rest[1]))
                row["opened"] += 1
                row["recovered"] += int(rest[5])
            elif word == "medium" and not row["what"].startswith("no"):
                self.mediums[line.partition(" ")[2]] = None
            elif word == "control":
                row["lost"] = max(self.unsynced - int(rest[1]), 0)
                row["device_kept"] = int(rest[3])
                self.unsynced = 0
        return met
