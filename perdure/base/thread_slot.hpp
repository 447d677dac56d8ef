// SPDX-License-Identifier: BSD-3-Clause
//
// A small dense number for the calling thread, for per-thread rows of counters, rings and transaction contexts.
//
// A number is taken at a thread's first call and given back when it ends; two live threads never share one. Thread safety: all
// calls may be made from any thread. The thread_local is constinit and its guard a second variable: a thread_local with a
// constructor costs an initialisation test at every access (measured: up to 8 times the access).
#pragma once

#include <cstdint>

namespace perdure::base {

/// How many threads may use Perdure at once in one process.
inline constexpr int max_threads = 256;

namespace detail {
extern thread_local constinit int slot_of_this_thread;
int take_thread_slot();  // throws perdure::error (full) when max_threads are alive
}  // namespace detail

/// The calling thread's number, 0 <= slot < max_threads.
[[nodiscard]] inline int thread_slot() {
  const int slot = detail::slot_of_this_thread;
  return __builtin_expect(slot >= 0, 1) ? slot : detail::take_thread_slot();
}

/// Counts how many times this process is a fork of the one that loaded the library (0, 1, ...): a handle remembers it, and a
/// forked child's copy of a handle is refused.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

/// Runs `f(arg)` in a forked child before fork() returns there; never removed. Thread safe.
void at_fork_child(void (*f)(void*), void* arg);

}  // namespace perdure::base
