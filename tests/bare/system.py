# SPDX-License-Identifier: BSD-3-Clause
"""A bare Debian 12 system in a folder, in which commands run by chroot.

Nothing of this repository names an archive: `apt-get indextargets` says which archives the host's
apt uses for Debian 12, and `apt-config` how it reaches them (proxies, certificates). Credentials
of the host's apt (auth.conf) are not copied.

Every command runs in mount and process namespaces of its own (unshare). When it ends, is killed,
or when this process dies, the kernel ends its processes and its mounts; so removing the folder
never reaches what was mounted into it.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

RELEASE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = "tester"
# Mounts what a program expects; $1 is the system's folder, $2 the host's ccache or nothing.
MOUNTS = """
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/dev/shm"
mount --rbind -o ro /sys "$1/sys"
if [ -n "$2" ]; then mkdir -p "$1/ccache"; mount --bind "$2" "$1/ccache"; fi
"""


class CannotRun(Exception):
    """What is asked for cannot be run here; the message says why and what to do."""


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        words = getattr(e, "stderr", "") or str(e)
        raise CannotRun(
            f"{' '.join(command)}: {words.strip()}; expected a Debian system with apt"
        ) from None
    return done.stdout


def sources():
    """[(address, suite, [component])] of the host's apt for this release, its main suite first."""
    found = {}
    listed = output_of(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)|$(RELEASE)|$(COMPONENT)",
        "Created-By: Packages",
    )
    for line in listed.splitlines():
        address, suite, component = line.split("|")
        if suite == RELEASE or suite.startswith((RELEASE + "-", RELEASE + "/")):
            components = found.setdefault((address, suite), [])
            if component not in components:
                components.append(component)
    rows = sorted(((a, s, c) for (a, s), c in found.items()), key=lambda row: row[1])
    if not rows or rows[0][1] != RELEASE:
        raise CannotRun(
            f"apt's sources have no suite '{RELEASE}', expected the archive of Debian 12; "
            "add it, then 'apt-get update'"
        )
    return rows


def apt_configuration():
    """How the host's apt reaches its archives: proxies, certificates, retries."""
    lines = output_of("apt-config", "dump").splitlines()
    return "".join(line + "\n" for line in lines if line.startswith("Acquire::"))


def proxies():
    names = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
    return {n: os.environ[n] for low in names for n in (low, low.upper()) if n in os.environ}


def unshared(*command):
    """The command in mount and process namespaces of its own, which die with this process."""
    return [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--kill-child",
        *map(str, command),
    ]


def make_base(folder, fresh, say):
    """folder/base.tar.gz: Debian 12 with git, nothing else. Kept from run to run."""
    base = folder / "base.tar.gz"
    if base.exists() and not fresh:
        return
    address = sources()[0][0]
    say("making the base system with debootstrap (once; kept in " + str(base) + ")")
    with tempfile.TemporaryDirectory(prefix="root-", dir=folder) as root:
        log = folder / "logs" / "debootstrap.log"
        log.parent.mkdir(exist_ok=True)
        with open(log, "wb") as out:
            command = unshared(
                "debootstrap",
                "--variant=minbase",
                "--include=git,ca-certificates",
                RELEASE,
                root,
                address,
            )
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "PATH": PATH},
                check=False,
            ).returncode
        if code != 0:
            raise CannotRun(f"debootstrap ended with {code}, expected 0; its output is {log}")
        shutil.rmtree(Path(root) / "var/cache/apt/archives", ignore_errors=True)
        part = base.with_suffix(".part")
        subprocess.run(["tar", "-C", root, "--numeric-owner", "-czf", part, "."], check=True)
        part.rename(base)


def host_ccache():
    """The folder of the host's ccache, if there is one."""
    try:
        done = subprocess.run(
            ["ccache", "--get-config", "cache_dir"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    folder = Path(done.stdout.strip())
    return folder if folder.is_dir() else None


class System:
    """Unpacked on entry, removed on exit. Not for several threads."""

    def __init__(self, folder, out, ccache):
        self.out = out
        self.ccache = host_ccache() if ccache else None
        self.holder = tempfile.TemporaryDirectory(prefix="root-", dir=folder)
        self.root = Path(self.holder.name)
        self.base = folder / "base.tar.gz"

    @staticmethod
    def remove_left_over(folder):
        """Systems of runs that were killed; the caller holds the folder's lock."""
        for root in folder.glob("root-*"):
            shutil.rmtree(root)

    def __enter__(self):
        try:
            self._unpack()
        except BaseException:
            self.holder.cleanup()
            raise
        return self

    def __exit__(self, *_):
        self.holder.cleanup()

    def _unpack(self):
        subprocess.run(["tar", "-C", self.root, "--numeric-owner", "-xzf", self.base], check=True)
        os.chmod(self.root, 0o755)
        (self.root / "var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)
        apt = self.root / "etc/apt"
        lines = [
            f"deb {address} {suite} {' '.join(components)}\n"
            for address, suite, components in sources()
        ]
        (apt / "sources.list").write_text("".join(lines))
        (apt / "apt.conf.d/90host").write_text(apt_configuration())
        for kind in ("trusted.gpg.d", "keyrings"):  # public keys
            if (Path("/etc/apt") / kind).is_dir():
                shutil.copytree(Path("/etc/apt") / kind, apt / kind, dirs_exist_ok=True)
        for name in ("resolv.conf", "hosts"):
            if (Path("/etc") / name).exists():
                shutil.copyfile(Path("/etc") / name, self.root / "etc" / name)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def copy(self, files, folder):
        """Copies files of the host into a folder of the system, which is made if there are any."""
        for file in files:
            (self.root / folder).mkdir(exist_ok=True)
            shutil.copy(file, self.root / folder)

    def install(self, packages):
        """Installs what the variant has before; leaves no package lists behind, as a bare system
        has none."""
        if not packages:
            return
        code = self.run(
            "apt-get -q update && DEBIAN_FRONTEND=noninteractive"
            " apt-get -q -y --no-install-recommends install "
            + " ".join(packages)
            + " && apt-get clean && rm -rf /var/lib/apt/lists/*",
            False,
            1200,
        )
        if code != 0:
            raise CannotRun(
                f"installing {' '.join(packages)} in the bare system ended with {code}; "
                f"see {self.out.name}"
            )

    def clone(self, repository, as_user):
        home = self._home(as_user)
        if as_user:
            self._must(
                f"useradd --create-home --shell /bin/bash {USER} && "
                f"echo '{USER} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{USER} && "
                f"chmod 440 /etc/sudoers.d/{USER}"
            )
        target = self.root / home.lstrip("/") / "perdure"
        subprocess.run(
            ["git", "clone", "-q", "--no-hardlinks", repository, target],
            check=True,
            stdout=self.out,
            stderr=self.out,
        )
        if as_user:
            self._must(f"chown -R {USER}:{USER} {home}/perdure")

    @staticmethod
    def _home(as_user):
        return f"/home/{USER}" if as_user else "/root"

    def _must(self, command):
        if self.run(command, False, 300, folder="/") != 0:
            raise CannotRun(f"'{command}' failed in the bare system; see {self.out.name}")

    def run(self, command, as_user, seconds, folder=None):
        """The command's exit status, or None when it took longer than `seconds`."""
        home = self._home(as_user)
        clone = f"{home}/perdure"
        folder = folder or (clone if (self.root / clone.lstrip("/")).is_dir() else "/")
        environment = {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", **proxies()}
        for name in ("PERDURE_JOBS", "CI"):
            if name in os.environ:
                environment[name] = os.environ[name]
        if self.ccache:
            environment["CCACHE_DIR"] = "/ccache"
            if as_user:  # it only reads the host's files; its own temporary ones lie elsewhere
                environment["CCACHE_READONLY"] = "1"
                environment["CCACHE_TEMPDIR"] = "/tmp/ccache"
        inside = [
            "chroot",
            self.root,
            "/usr/bin/env",
            "-i",
            *(f"{k}={v}" for k, v in environment.items()),
        ]
        if as_user:
            inside += ["runuser", "-u", USER, "--"]
        inside += ["bash", "-c", f"cd {folder} && {command}"]
        # The first process of a process namespace must reap the others, which a shell does.
        shell = MOUNTS + 'shift 2\n"$@"\n'
        process = subprocess.Popen(
            unshared("bash", "-c", shell, "bare", self.root, self.ccache or "", *inside),
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.out,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                process.kill()  # the namespaces' processes go with it
                process.wait()
