// SPDX-License-Identifier: BSD-3-Clause
//
// The report of the watchdog: the stacks of all threads of this process, from a signal handler.
// Each thread is asked by a signal of its own and writes down its return addresses itself
// (backtrace()); the thread that reports prints them, first with what the dynamic symbols say, then
// with functions and lines if addr2line is there. A thread that does not answer within 2 s is named
// with its state. Everything is async-signal-safe as far as glibc's backtrace() is: that was called
// once before, so that it needs no memory any more. Thread safety: any thread may be interrupted.
#pragma once

namespace perdure::test::stacks {

/// Installs the handlers and calls backtrace() once. `goes_on` is asked first when a timer's signal
/// comes, in its handler: if it says true, nothing is reported.
void install(bool (*goes_on)()) noexcept;

/// The signal that has a process print its stacks and abort.
[[nodiscard]] int report_signal() noexcept;

/// What the report says was running, and within how many seconds it was expected to end.
void name(const char* what, double seconds) noexcept;

}  // namespace perdure::test::stacks
