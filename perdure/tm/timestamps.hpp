// SPDX-License-Identifier: BSD-3-Clause
//
// Commit timestamps ("timestamps"): transaction ids from the invariant time-stamp counter, without
// a counter that threads share. A shared counter would be in the write set of every hardware
// transaction, and abort all but one of those that run at the same time (DudeTM, ASPLOS '17,
// section 4.2, which asks for other hardware).
//
// A timestamp is start + (tick << 8 | slot) + 1: unique and rising, with gaps. It is drawn while
// what the transaction read and wrote is isolated:
//   TIMESTAMP-1  It is drawn after all lines that the transaction has written are owned by its
//                processor: no other thread reads them or has them in a running transaction, and a
//                thread that read an old value had drawn its timestamp before. Otherwise a store
//                could still wait for its line behind the counter's reading. In a hardware
//                transaction an MFENCE guarantees that (Htm's drain()); a locked instruction does
//                not: the store buffer is drained at XEND only.
//   TIMESTAMP-2  Isolation ends only when the counter has moved on: a thread that reads or
//                overwrites what this transaction wrote, or overwrites what it read, draws a later
//                tick, not the same one with a lower slot.
// So timestamps are in the order in which transactions took effect: of reads, overwrites, and
// overwritten reads. Intel SDM vol. 3, 18.17 (invariant TSC); vol. 2, RDTSCP: it waits for all
// earlier loads and, behind an MFENCE, stores; later loads may pass it, hence the LFENCE behind it.
// Thread safety: any thread may make all calls.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "perdure/base/cpu.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::tm {

/// The time-stamp counter, or a clock, which is slower, where the counter is not invariant.
class Ticks {
 public:
  [[nodiscard]] std::uint64_t operator()() const noexcept {
    if (__builtin_expect(!tsc_, 0))  // never under RTM, which requires the invariant counter
      return static_cast<std::uint64_t>(
                 std::chrono::steady_clock::now().time_since_epoch().count()) >>
             tick_bits;
    unsigned processor;
    asm volatile("" : : : "memory");
    const std::uint64_t tsc = __rdtscp(&processor);
    // What follows is read later: complete() reads what other threads show after it has read the
    // time.
    _mm_lfence();
    return tsc >> tick_bits;
  }

 private:
  // 16 cycles: with the slot, 64 bits last for 12 years of one session at 3 GHz.
  static constexpr int tick_bits = 4;
  const bool tsc_ = base::cpu_features().invariant_tsc;
};

/// A counter that moves when it is read, so that a run under a scheduler can be repeated: for the
/// stand-in of the hardware. All threads share its line.
class CountedTicks {
 public:
  // Sequentially consistent, so it comes after all that the thread did before, as RDTSCP behind an
  // MFENCE does, and before what it does later.
  [[nodiscard]] std::uint64_t operator()() const noexcept {
    return readings_.fetch_add(1, std::memory_order_seq_cst);
  }

 private:
  mutable std::atomic<std::uint64_t> readings_{0};
};

/// When it has completed, all earlier stores of the thread are visible; those of the hardware
/// transaction that it is in lie in lines that its processor owns. MFENCE in front of RDTSCP is
/// what Intel's manual prescribes for "all previous stores are globally visible" (SDM vol. 2,
/// RDTSCP). It aborts no transaction.
inline void drain_store_buffer() noexcept { asm volatile("mfence" : : : "memory"); }

template <class Counter>
class StampClockOf {
 public:
  static constexpr int slot_bits = 8;
  /// By how much the time differs from one tick to the next.
  static constexpr std::uint64_t tick_step = std::uint64_t{1} << slot_bits;

  explicit StampClockOf(std::uint64_t start) noexcept : start_(start), zero_(ticks_()) {}

  /// A time below every timestamp that is drawn from now on, and at or above each timestamp of a
  /// transaction whose end the caller has seen any effect of (TIMESTAMP-2).
  [[nodiscard]] std::uint64_t now() const noexcept {
    return start_ + ((ticks_() - zero_) << slot_bits);
  }

  /// The counter's present value.
  [[nodiscard]] std::uint64_t tick() const noexcept { return ticks_(); }
  /// Draws this slot's next timestamp, for a transaction that owns what it has written
  /// (TIMESTAMP-1) and whose effects no other thread sees before this returns.
  [[nodiscard]] std::uint64_t draw(int slot) const noexcept { return draw(slot, ticks_()); }
  /// The same, with a counter value that was read before.
  [[nodiscard]] std::uint64_t draw(int slot, std::uint64_t tick) const noexcept {
    // mutant: timestamp-tick-over
    while (ticks_() == tick) {}  // TIMESTAMP-2. No PAUSE here: it aborts hardware transactions
    return start_ + ((tick - zero_) << slot_bits | static_cast<std::uint64_t>(slot)) + 1;
  }

 private:
  static_assert(base::max_threads <= 1 << slot_bits);

  [[no_unique_address]] Counter ticks_;
  const std::uint64_t start_, zero_;
};
using StampClock = StampClockOf<Ticks>;

}  // namespace perdure::tm
