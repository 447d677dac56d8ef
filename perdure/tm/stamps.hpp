// SPDX-License-Identifier: BSD-3-Clause
//
// Stamps: transaction ids without a counter that threads share, from the invariant time-stamp
// counter. A counter would be in the write set of every hardware transaction, and abort all but one
// of those that run together (DudeTM, ASPLOS '17, section 4.2, which asks for other hardware).
//
// A stamp is start + (tick << 8 | slot) + 1: unique and rising, with gaps. It is drawn while what
// the transaction read and wrote is isolated:
//   D1  after all lines that the transaction has written are owned by its processor: no other
//       thread reads them or has them in a running transaction, and a thread that read an old value
//       had drawn its timestamp before. Otherwise a store could still wait for its line behind the
//       counter's reading. In a hardware transaction an MFENCE does that (Htm's drain()); a locked
//       instruction does not: the store buffer is drained at XEND only.
//   D2  and isolation ends only when the counter has gone on: who reads or overwrites what this
//       transaction wrote, or overwrites what it read, draws a later tick, not the same one with a
//       lower slot.
// So stamps are in the order in which transactions took effect: of reads, overwrites, and
// overwritten reads. Intel SDM vol. 3, 18.17 (invariant TSC); vol. 2, RDTSCP: it waits for all
// earlier loads and, behind an MFENCE, stores; later loads may pass it, hence the LFENCE behind.
// Thread safety: all calls.
#pragma once

#include <x86intrin.h>

#include <chrono>
#include <cstdint>

#include "perdure/base/cpu.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::tm {

/// The time-stamp counter; where it is not invariant a clock, which is slower.
class Ticks {
 public:
  [[nodiscard]] std::uint64_t operator()() const noexcept {
    if (__builtin_expect(!tsc_, 0))  // never under RTM, which is used only with the counter
      return static_cast<std::uint64_t>(
                 std::chrono::steady_clock::now().time_since_epoch().count()) >>
             tick_bits;
    unsigned processor;
    asm volatile("" : : : "memory");
    const std::uint64_t tsc = __rdtscp(&processor);
    // what follows is read later: complete() reads what other threads show after it has read the
    // time
    _mm_lfence();
    return tsc >> tick_bits;
  }

 private:
  // 16 cycles: with the slot 64 bits last for 12 years of one session at 3 GHz
  static constexpr int tick_bits = 4;
  const bool tsc_ = base::cpu_features().invariant_tsc;
};

/// Behind it all earlier stores of the thread are visible; those of the hardware transaction that
/// it is in lie in lines that its processor owns. MFENCE in front of RDTSCP is what Intel's manual
/// gives for "all previous stores are globally visible" (SDM vol. 2, RDTSCP). No transaction is
/// aborted by it.
inline void drain_store_buffer() noexcept { asm volatile("mfence" : : : "memory"); }

template <class Counter>
class StampClockOf {
 public:
  explicit StampClockOf(std::uint64_t start) noexcept : start_(start), zero_(ticks_()) {}

  /// Every stamp is above it that is drawn from now on; none is that was drawn by whose end the
  /// caller has seen anything (D2).
  [[nodiscard]] std::uint64_t now() const noexcept {
    return start_ + ((ticks_() - zero_) << slot_bits);
  }

  /// What the counter says now.
  [[nodiscard]] std::uint64_t tick() const noexcept { return ticks_(); }
  /// This slot's next stamp, by a transaction that owns what it has written (D1) and whose effects
  /// no other thread sees before it returns.
  [[nodiscard]] std::uint64_t draw(int slot) const noexcept { return draw(slot, ticks_()); }
  /// The same, of a counter that was read before.
  [[nodiscard]] std::uint64_t draw(int slot, std::uint64_t tick) const noexcept {
    // mutant: timestamp-tick-over
    while (ticks_() == tick) {}  // D2. No PAUSE: it aborts hardware transactions
    return start_ + ((tick - zero_) << slot_bits | static_cast<std::uint64_t>(slot)) + 1;
  }

 private:
  static constexpr int slot_bits = 8;
  static_assert(base::max_threads <= 1 << slot_bits);

  [[no_unique_address]] Counter ticks_;
  const std::uint64_t start_, zero_;
};
using StampClock = StampClockOf<Ticks>;

}  // namespace perdure::tm
