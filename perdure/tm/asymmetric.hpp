// SPDX-License-Identifier: BSD-3-Clause
//
// An asymmetric fence: the frequent side pays a compiler barrier, the rare side interrupts every
// thread with membarrier(2).
//
// Dekker's pattern: the frequent side stores "I am inside" and then reads "are we stopped?"; the
// rare side stores "stopped" and then reads "which threads are inside?". Both need a store-load
// fence in between. Where the call is missing (old kernels), and under ThreadSanitizer, which does
// not know it, the frequent side pays a full fence instead. Thread safety: any thread may make all
// calls.
#pragma once

#include <atomic>

#include "perdure/base/thread_sanitizer.hpp"

namespace perdure::tm {

using base::under_thread_sanitizer;

namespace detail {
extern std::atomic<bool> membarrier_works;  // written once, before the first transaction
// the target of both sides' locked instruction where membarrier is missing
extern std::atomic<int> fence_word;
}  // namespace detail

/// Registers the process for membarrier; every domain's constructor calls it once. Returns whether
/// membarrier works.
bool prepare_asymmetric_fence() noexcept;

/// After the call above: does membarrier work, so that a compiler barrier may replace
/// light_fence()?
[[nodiscard]] inline bool asymmetric_fence_works() noexcept {
  return detail::membarrier_works.load(std::memory_order_relaxed);
}

/// The frequent side's fence. Pairs with heavy_fence().
inline void light_fence() noexcept {
  if (__builtin_expect(detail::membarrier_works.load(std::memory_order_relaxed), 1))
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else {
    // This is a locked instruction because ThreadSanitizer does not support atomic_thread_fence.
    detail::fence_word.fetch_add(0, std::memory_order_seq_cst);
  }
}

/// The rare side's fence. Pairs with light_fence().
void heavy_fence() noexcept;

}  // namespace perdure::tm
