# SPDX-License-Identifier: BSD-3-Clause
"""The case devdax of run.py: four NVDIMMs, each bound as a /dev/dax, which is one pool.

First they contain foreign bytes: no opening may take such a device for a blank one, or write to it.
Then they contain zeros, two of them random bytes except for the pages where a pool's header would
lie; half-way through the cycles, they contain the older pools themselves, with those pages zeroed.
Each time pools are made under power cuts, then written under power cuts, then filled. Logs have the
default size on every other device, and are small on the others; in the second half it is the other
way round. The plain file that must lose bytes lies on another disk.
"""
import hashlib
import os
import random
import shutil
import time

from cases import cut_after, cut_while_opening, cycles, look, must_find, new_row, report
from machine import MIB, POOLS, Failure, Lab

NVDIMM = 128 * MIB
# The offset of a /dev/dax in its NVDIMM: the bytes before it bind the namespace.
DATA = 2 * MIB
PAGE = 4096                 # the size of a page of a pool's header copies, which lie at
HEADERS = [0, 64 << 10]
UNFINISHED = b"PERDURE+"    # in the second one, while a pool is being made
SMALL_LOG = 64 << 10


class DeviceLab(Lab):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.setup = "dax"
        # In an order that need not be the guest's.
        self.images = [self.folder / f"nvdimm{n}" for n in range(len(POOLS))]
        self.logs = dict.fromkeys(POOLS, 0)
        for image in self.images:
            with open(image, "wb") as made:
                made.truncate(NVDIMM)

    def devices(self, broken=None):
        options = ["-machine", "q35,nvdimm=on", "-m", f"384M,slots={len(POOLS)},maxmem=4G"]
        for n, image in enumerate(self.images):
            options += [
                "-object", f"memory-backend-file,id=m{n},share=on,mem-path={image},size={NVDIMM}",
                "-device", f"nvdimm,memdev=m{n}"
            ]
        return [
            *options,
            *self.disk({"driver": "raw", "file": {"driver": "file", "filename": str(self.image)}})
        ]

    def kind_of(self, pool):
        return f"dax{POOLS.index(pool)}.0:{self.logs[pool]}"

    def new_pools(self, small):
        """From here on no pool must contain anything; the pools of the devices that are `small`
        modulo 2 get a small log."""
        for n, pool in enumerate(POOLS):
            self.least[pool] = 0
            self.logs[pool] = SMALL_LOG if n % 2 == small else 0


# ---- what lies on a device before ----------------------------------------------------------------


def put(nvdimm, offset, data):
    with open(nvdimm, "r+b") as image:
        image.seek(DATA + offset)
        image.write(data)


def zero(nvdimm):
    with open(nvdimm, "r+b") as image:
        image.truncate(DATA)
        image.truncate(NVDIMM)


def scribble(nvdimm, rng):
    for offset in range(0, NVDIMM - DATA, MIB):
        put(nvdimm, offset, rng.randbytes(MIB))


def tear_header(nvdimm, rng):
    """What a creation leaves that is interrupted while it writes the first copy of the header
    (docs/format.md)."""
    with open(nvdimm, "rb") as image:
        image.seek(DATA + HEADERS[0])
        lines = [image.read(64) for _ in range(PAGE // 64)]
    if not lines[0].startswith(b"PERDURE\0"):
        raise Failure(f"found no header of a pool in {nvdimm}")
    for n in rng.sample(range(8), 4):  # most of the others are zero anyway
        lines[n] = bytes(64)
    put(nvdimm, HEADERS[0], b"".join(lines))
    put(nvdimm, HEADERS[1], UNFINISHED.ljust(PAGE, b"\0"))


def digest(image):
    with open(image, "rb") as bytes_of:
        return hashlib.file_digest(bytes_of, "sha256").hexdigest()


def refused(lab, rng):
    """Foreign bytes: everywhere; at one place where a header would lie and not at the other; in the
    middle of the first page alone."""
    start, row = time.monotonic(), new_row(lab, 0, "all", "in use")
    for nvdimm in lab.images:
        scribble(nvdimm, rng)
    put(lab.images[1], HEADERS[0], bytes(PAGE))
    put(lab.images[2], HEADERS[1], bytes(PAGE))
    zero(lab.images[3])
    put(lab.images[3], 1024, rng.randbytes(1024))
    with lab.boot([]) as machine:  # binds the namespaces, which writes before DATA
        machine.until("done")
    before = [digest(image) for image in lab.images]
    with lab.boot(["control", *[lab.job("refuse", pool) for pool in POOLS]]) as machine:
        machine.until("done", lab.note(row))
    if [digest(image) for image in lab.images] != before:
        raise Failure("bytes of a device that is in use were changed, though it was refused")
    return report(row, start)


def creation_cut(lab, pool, rng):
    """The power fails while a pool is being made. At the next boot the pool may exist, and must be
    made if it does not."""
    start, row = time.monotonic(), new_row(lab, 0, pool, "cut in creation")
    cut_while_opening(lab, row, rng.uniform(0, 0.6), "cut when made")
    return report(row, start)


def full(lab):
    start, row = time.monotonic(), new_row(lab, 0, "all", "full")
    with lab.boot(["control", *[lab.job("fill", pool) for pool in POOLS]]) as machine:
        machine.until("done", lab.note(row))
    return report(row, start)


def stale(lab, pool):
    """A cut that loses everything that was written since the boot: the check must notice, otherwise
    it proves nothing."""
    start, row = time.monotonic(), new_row(lab, 0, pool, "nothing kept")
    for image in lab.images:
        shutil.copy(image, image.with_suffix(".before"))
    with lab.boot(["control", lab.job("write", pool, 1, 0)]) as machine:
        met = lab.note(row)
        machine.until("ack", met)
        cut_after(machine, met, 1)
    for image in lab.images:
        os.replace(image.with_suffix(".before"), image)
    return report(must_find(lab, row, pool), start)


def device_cuts(lab, arguments, rng):
    scribbler = random.Random(arguments.seed)
    yield refused(lab, scribbler)
    half = (arguments.cycles + 1) // 2
    for first, numbers in enumerate([range(1, half + 1), range(half + 1, arguments.cycles + 1)]):
        for n, nvdimm in enumerate(lab.images):
            if first == 0 and n < 2:
                zero(nvdimm)
            elif first == 0:
                scribble(nvdimm, scribbler)
            for offset in HEADERS:
                put(nvdimm, offset, bytes(PAGE))
        lab.new_pools(small=1 - first)
        for pool in POOLS:
            yield creation_cut(lab, pool, rng)
        yield look(lab, 0, "creation")
        for nvdimm in lab.images:
            tear_header(nvdimm, scribbler)
        lab.new_pools(small=1 - first)
        yield look(lab, 0, "header torn")
        yield from cycles(lab, numbers, rng)
        yield look(lab, numbers.stop, "last look")
        yield full(lab)
        yield stale(lab, POOLS[first])
