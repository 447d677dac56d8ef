// SPDX-License-Identifier: BSD-3-Clause
//
// Waiters: threads that wait for something that another thread will end, most often a transaction.
// They spin for a few microseconds and are then blocked in the kernel. The thread that ends it pays
// one load and one predicted branch while no thread waits.
//
//   WAIT-1  The thread that ends something stores that, then issues a light fence, then checks
//           whether waiters are counted. A waiter counts itself, then issues a heavy fence, then
//           checks whether it has to wait (Dekker's pattern). So the waiter sees the end, or the
//           ending thread sees the waiter.
//   WAIT-2  A waiter reads `ends_` before it checks, and sleeps only while `ends_` has that value.
//           A thread that sees waiters raises `ends_` after its end, and then wakes them all. So no
//           waiter sleeps through an end that comes after its check.
//
// Where membarrier(2) is missing, and where its interrupts would harm, the count has the bit
// `fenced`: then both sides execute a locked instruction on the count, and one of the two comes
// first. Source of the pattern: asymmetric.hpp. Checked by tests/models/waiters.pml. Thread safety:
// any thread may make all calls except prepare() and always_fenced().
#pragma once

#include <atomic>
#include <cstdint>

#include "perdure/tm/asymmetric.hpp"

namespace perdure::tm {

class Waiters {
 public:
  /// Must precede the first notify(): both sides use a locked instruction if membarrier(2) is
  /// missing.
  void prepare() noexcept {
    if (!asymmetric_fence_works()) always_fenced();
  }
  /// Must precede the first notify(): both sides use a locked instruction. For what ends rarely,
  /// and for hardware transactions, which membarrier's interrupts abort.
  void always_fenced() noexcept { count_.fetch_or(fenced, std::memory_order_relaxed); }

  /// Called by the thread that has ended something, after the store that says so.
  [[gnu::always_inline]] void notify() noexcept {
    // WAIT-1: the light fence; pairs with wait()'s heavy fence
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(count_.load(std::memory_order_relaxed) != 0, 0)) wake();
  }

  /// Returns when `ended()` is true. `ended` loads, with acquire, what the other thread stores
  /// before it calls notify(). It is called many times and must not block.
  template <class Ended>
  void wait(Ended&& ended) noexcept {
    for (int turn = 0; turn < spins; ++turn) {
      if (ended()) return;
      __builtin_ia32_pause();
    }
    // WAIT-1. Acquire and release pair with wake()'s: if wake()'s comes first, its thread's end is
    // seen below. The heavy fence pairs with notify()'s light fence.
    if ((count_.fetch_add(one, std::memory_order_acq_rel) & fenced) == 0) heavy_fence();
    for (;;) {
      // WAIT-2. This pairs with wake(): the end before it is seen.
      const std::uint32_t seen = ends_.load(std::memory_order_acquire);
      if (ended()) break;
      ends_.wait(seen, std::memory_order_acquire);  // pairs with wake()
    }
    count_.fetch_sub(one, std::memory_order_relaxed);
  }

 private:
  // Shorter than a wake-up, longer than most transactions: what ends soon costs no system call.
  static constexpr int spins = 200;
  static constexpr std::uint32_t fenced = 1, one = 2;

  void wake() noexcept;

  // the number of threads in wait() past its spinning, times `one`, and the bit `fenced`
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> ends_{0};  // the word that they sleep on
};

}  // namespace perdure::tm
