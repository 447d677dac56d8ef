// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler: runs a program's threads one at a time and decides by a seed which one is next, so
// that several threads, including the library's own, do the same at every run with the same seed.
//
// Exactly one registered thread runs; at a switching point it may hand over to another one, drawn
// by the seed, and at random points it is delayed for long, while the others run as far as they
// can: this also reaches schedules in which many steps of others fall between a few steps of one
// thread (priorities that fall at random points: PCT, Burckhardt et al., ASPLOS '10). Switching
// points are the medium's events (call point() there) and the places where a thread would wait: the
// library's waits are the C library's (mutexes, condition variables, futexes, sleep, yield, join),
// which scheduler.cpp defines again for the whole test program. A registered thread never blocks in
// one: it hands over and tries again; a condition may wake without cause and a timed wait times out
// at once, which correct programs allow for. New threads of registered ones are registered.
// Not for use with ThreadSanitizer, which defines the same functions.
// Thread safety: one thread calls start and stop; registered threads call the rest.
#pragma once

#include <cstdint>

namespace perdure::test {

class Scheduler {
 public:
  /// Registers the calling thread, which runs; threads that it makes will be registered, too.
  static void start(std::uint64_t seed);
  /// Called by the last registered thread: all others have ended.
  static void stop();
  /// A switching point.
  static void point() noexcept;
  /// From here on threads change only where they wait, and once more: at the n-th point of all
  /// threads except the caller, whose thread is delayed while the others run as far as they can;
  /// after that changes are random again. In this way a test can try every place of one preemption.
  static void preempt_at(std::uint64_t n) noexcept;
  /// Whether the point is still to come.
  [[nodiscard]] static bool preempting() noexcept;
  /// The number of times that the running thread changed since start().
  [[nodiscard]] static std::uint64_t switches() noexcept;
};

}  // namespace perdure::test
