# SPDX-License-Identifier: BSD-3-Clause
"""The list of workloads for commands and figures: what a name means, and which ones a benchmark
runs by default.

A structure is what a session fills (bench/workloads/list.hpp); a workload is
"<structure>-<parameter>".
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    name: str
    workloads: tuple  # those that run unless one is named
    about: str  # what one operation is; {} takes the parameter
    source: str  # the paper or project that defined it


STRUCTURES = {
    s.name: s for s in (
        Structure("sps", (
            "sps-1", "sps-8",
            "sps-64"), "swaps of two 8-byte words a transaction ({}), in an array of 1 M",
                  "NV-Heaps; REWIND, Blurred Persistence"),
        Structure(
            "hash", ("hash-100", "hash-10", "hash-0"),
            "{} % updates, chained hash table of 1 M buckets, 500 k of 1 M keys; an update "
            "inserts an absent key or removes a present one", "NV-Heaps; Blurred Persistence"),
        Structure(
            "rb", ("rb-100", "rb-10", "rb-0"),
            "{} % updates, red-black tree, 500 k of 1 M keys; an update inserts an absent key or "
            "removes a present one",
            "NV-Heaps; Blurred Persistence"),
        Structure("bt", (
            "bt-100", "bt-10",
            "bt-0"), "{} % updates, B+-tree of 100 k records of 32 bytes of 200 k keys", "REWIND"),
        Structure("bp", (
            "bp-100",
        ), "{} % updates, B+-tree with nodes of 4 KiB, 100 k of 200 k keys", "Blurred Persistence"),
        Structure("hashv", ("hashv-100", ), "{} % updates, hash table with values of --value-bytes",
                  "Blurred Persistence"),
        Structure(
            "kvstore", ("kvstore-100", ),
            "{} % updates, ordered store of 16-byte keys and 100-byte values, 100 k of 200 k keys",
            "Blurred Persistence"),
        Structure(
            "tchash", ("tchash-100", ),
            "{} % updates, hash table of Tokyo Cabinet's design, 16-byte keys and 100-byte values, "
            "100 k of 200 k keys",
            "Blurred Persistence"),
        Structure(
            "ht", ("ht-1", ),
            "inserts a random key of 1 M into a hash table of fixed size with open addressing",
            "DudeTM"),
        Structure("bpt", ("bpt-1", ),
                  "inserts a random key into a B+-tree of sorted nodes of 16 pairs", "DudeTM"),
        Structure("tpcch", (
            "tpcch-1", ), "TPC-C's new order over hash tables (2: a district a thread)",
                  "TPC-C 5.11; DudeTM, REWIND"),
        Structure("tpccb", (
            "tpccb-1", ), "TPC-C's new order over B+-trees (2: a district a thread)",
                  "TPC-C 5.11; DudeTM, REWIND"),
        Structure("tatph", (
            "tatph-1",
        ), "TATP's Update Location over a hash table of 100 k subscribers", "TATP 1.0; DudeTM"),
        Structure("tatpb", ("tatpb-1", ),
                  "TATP's Update Location over a B+-tree of 100 k subscribers", "TATP 1.0; DudeTM"),
        Structure(
            "session", ("session-99", ),
            "YCSB's session store, 10 k records of 8 bytes, Zipf {} / 100: half reads, half "
            "updates",
            "DudeTM"),
        Structure("store", ("store-99", ),
                  "updates of whole records of 1 KB, Zipf {} / 100, 10 k records", "DudeTM"),
        Structure("ycsb", tuple(f"ycsb-{letter}" for letter in "abcdef"),
                  "YCSB's core workload {}: 50 k records of ten fields of 104 bytes, Zipf 0.99",
                  "YCSB (SoCC '10)"),
        Structure("kv", ("kv-100", ),
                  "one put a transaction: 16-byte keys, 200 k of them, {}-byte values", "ours"),
        Structure(
            "hfind", ("hfind-0", "hfind-1"),
            "a row of 100 k found in a hash map, read whole (0: it lies in the node, 1: it is a "
            "record)", "ours"),
        Structure("mfind", ("mfind-0", "mfind-1"), "the same in a B+-tree map", "ours"),
        Structure("sessions", ("sessions-90", ),
                  "calls of a session store with expiry, {} % look-ups, 50 k of 100 k tokens",
                  "ours: examples/sessions.hpp"),
        Structure("jobs", ("jobs-5", ),
                  "jobs taken and finished, with a new one for each; {} % fail; 10 k wait",
                  "ours: examples/jobs.hpp"),
        Structure("book", ("book-40", ),
                  "orders placed in a limit order book, {} % cancelled; 10 k rest",
                  "ours: examples/order_book.hpp"),
        Structure("raw", (
            "raw-4096", "raw-65536"
        ), "groups of {} bytes written with O_DIRECT|O_DSYNC into a prewritten file", "ours"),
    )
}


def structure_of(workload):
    """The Structure of a workload's name; the ValueError lists the known names."""
    name, dash, parameter = workload.rpartition("-")
    if not dash or name not in STRUCTURES or not parameter:
        raise ValueError(
            f"found workload '{workload}', expected <structure>-<parameter> with a structure of "
            f"{', '.join(STRUCTURES)}, such as ycsb-a or hash-100; ./dev bench list names them all")
    return STRUCTURES[name]


def title(workload):
    return structure_of(workload).about.format(workload.rpartition("-")[2])


def by_structure(workloads):
    """Returns {structure: [its workloads]}, in the order of the list above."""
    found = {name: [w for w in workloads if structure_of(w).name == name] for name in STRUCTURES}
    return {name: ws for name, ws in found.items() if ws}
