// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler: runs a program's threads one at a time and decides by a seed who is next, so that what
// several threads did, the library's own among them, is the same at every run with the same seed.
//
// Exactly one registered thread runs; at a switching point it may hand over to another, drawn by
// the seed, and now and then it is held back for long, while the others run as far as they can:
// what takes many steps of others within few of one is met, too (priorities that fall at random
// points: PCT, Burckhardt et al., ASPLOS '10). Switching points are the medium's
// events (call point() there) and wherever a thread would wait: the library's waits are the C
// library's (mutexes, condition variables, futexes, sleep, yield, join), which scheduler.cpp
// defines again for the whole test program. A registered thread never blocks in one: it hands over
// and tries again; a condition may wake without cause and a timed wait times out at once, which
// correct programs allow for. New threads of registered ones are registered.
// Not under ThreadSanitizer, which defines the same functions.
// Thread safety: start and stop by one thread; the rest by registered ones.
#pragma once

#include <cstdint>

namespace perdure::test {

class Scheduler {
 public:
  /// The calling thread is registered and runs; so will be the threads it makes.
  static void start(std::uint64_t seed);
  /// The calling thread is the last registered one: all others have ended.
  static void stop();
  /// A switching point.
  static void point() noexcept;
  /// From here on threads change only where they wait, and once more: at the n-th point of all
  /// threads but the caller, whose thread is held back while the others run as far as they can;
  /// then chance has it again. So every place where one preemption may strike can be gone through.
  static void preempt_at(std::uint64_t n) noexcept;
  /// The point is still to come.
  [[nodiscard]] static bool preempting() noexcept;
  /// How often the running thread changed since start().
  [[nodiscard]] static std::uint64_t switches() noexcept;
};

}  // namespace perdure::test
