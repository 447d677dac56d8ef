// SPDX-License-Identifier: BSD-3-Clause
//
// The report of the watchdog: the stacks of all threads of this process, from a signal handler.
// Each thread gets a signal of its own and stores its return addresses itself (backtrace()); the
// reporting thread prints them, first with the dynamic symbols, then with functions and lines if
// addr2line exists. A thread that does not answer within 2 s is named with its state. Everything is
// async-signal-safe as far as glibc's backtrace() is: that was called once before, so that it needs
// no more memory. Thread safety: any thread may be interrupted.
#pragma once

namespace perdure::test::stacks {

/// Installs the handlers and calls backtrace() once. The handler of a timer's signal first calls
/// `goes_on`: if it returns true, nothing is reported.
void install(bool (*goes_on)()) noexcept;

/// The signal that makes a process print its stacks and abort.
[[nodiscard]] int report_signal() noexcept;

/// What the report names as running, and within how many seconds it was expected to end.
void name(const char* what, double seconds) noexcept;

}  // namespace perdure::test::stacks
