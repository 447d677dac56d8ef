// SPDX-License-Identifier: BSD-3-Clause
//
// A limit for each case of a test program. A case that runs longer ends the program: it prints the
// case, the limit and the stacks of all threads on standard error, does the same in each child
// process that was forked from it, and aborts. No thread is added to the program: a POSIX timer
// sends a signal, whose handler starts a second timer that sends SIGKILL after 30 s if the report
// hangs.
//
// A busy machine does not end a case that works. The limit is extended by a sixth at a time, at
// most to ten times the limit, while the program in the last sixth read from a device or wrote to
// one, or used a processor for more than 2 % of that time and has not had the limit's worth of
// processor time. A case that waits ends at the limit. The limit begins again for a process that
// was stopped (SIGSTOP).
//
// GoogleTest programs get it by linking (perdure_add_test): 60 s for every case unless the
// program's CASE_LIMIT says more, four times that with a sanitizer. The environment variable
// PERDURE_CASE_LIMIT=SECONDS overrides both; 0 switches it off, for debuggers.
// Thread safety: one thread at a time calls the functions.
#pragma once

namespace perdure::test {

/// Seconds that a case may take in this program, or 0 for no limit.
[[nodiscard]] double case_limit() noexcept;

/// Begins a limit of `seconds` (more than 0; 0: none) for `what`, replacing the previous one.
/// `what` is copied, up to 255 bytes.
void watch(const char* what, double seconds) noexcept;

/// Begins the current limit again; does nothing if there is none. For a case of many rounds (seeds,
/// kills), each of which has the whole limit.
void watch_again() noexcept;

/// Ends the limit.
void unwatch() noexcept;

}  // namespace perdure::test

/// watch_again() for C.
extern "C" void perdure_test_watch_again(void);
