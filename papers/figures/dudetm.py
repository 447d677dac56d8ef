# SPDX-License-Identifier: BSD-3-Clause
"""DudeTM's figures (papers: DudeTM, ASPLOS '17, section 5)."""

from . import dudetm_beside, dudetm_criteria, dudetm_log, dudetm_text, dudetm_throughput
from .figure import Paper
from .verdict import attach

_ORDER = [
    "D-Fig2", "D-OwnTM", "D-Tab1", "D-Tab2", "D-Empty", "D-Tab3", "D-Next", "D-Fig3", "D-Groups",
    "D-Fig4", "D-Fig5", "D-Tab4", "D-Recovery"
]

PAPER = Paper(
    name="dudetm",
    title="DudeTM",
    medium=
    "emulated medium, a persist waits max(1000 cycles, bytes / 1 GB/s) unless the figure says "
    "otherwise",
    about=[
        "Liu, Zhang, Chen, Qian, Wu, Zheng, Ren: DudeTM: Building Durable Transactions with "
        "Decoupling for Persistent Memory (ASPLOS '17), section 5. The emulated",
        "medium has the paper's delay, on tmpfs. The paper's machine had 12 cores, its tables "
        "four threads that Perform; this one has two, so that one thread",
        "Performs unless the figure says otherwise, and Persist and Reproduce share the other "
        "core.",
        "",
        "Volatile-STM is `volatile/stm`, DudeTM `dudetm/stm`, asynchronous, its log of 64 MiB "
        "and its volatile logs of 1 MiB a thread; DudeTM-Inf and -Sync are",
        "`dudetm-inf/stm` and `dudetm-sync/stm`. What `update` has not made durable when the "
        "time is over is waited for, and the wait is in the figure. NVML's place is taken by",
        "libpmemobj, whose flushes and drains are charged the same delay, Mnemosyne's by its "
        "protocol in an engine of ours (`redo-mne-past`). D-Tab4 (HTM) needs a processor with "
        "Intel's RTM."
    ],
    systems=("dudetm", "shadow", "volatile"),
    figures=attach(
        dudetm_criteria.CRITERIA,
        sorted([
            *dudetm_throughput.FIGURES, *dudetm_beside.FIGURES, *dudetm_text.FIGURES,
            *dudetm_log.FIGURES
        ], key=lambda figure: _ORDER.index(figure.row))),
)
