// SPDX-License-Identifier: BSD-3-Clause
//
// An asymmetric fence: the frequent side pays a compiler barrier, the rare side interrupts every
// thread with membarrier(2).
//
// Dekker's pattern: the frequent side stores "I am in" and then reads "are we stopped?"; the rare
// side stores "stopped" and then reads "who is in". Both need a store-load fence between. Where the
// call is missing (old kernels), and under ThreadSanitizer, which knows nothing of it, the frequent
// side pays a full fence instead. Thread safety: all calls.
#pragma once

#include <atomic>

#include "perdure/base/thread_sanitizer.hpp"

namespace perdure::tm {

using base::under_thread_sanitizer;

namespace detail {
extern std::atomic<bool> membarrier_works;  // written once, before the first transaction
// both sides' locked instruction where membarrier is missing
extern std::atomic<int> fence_word;
}  // namespace detail

/// Registers the process for membarrier; called once by every domain's constructor. Returns whether
/// the call works.
bool prepare_asymmetric_fence() noexcept;

/// After the above: does it, and may a compiler barrier stand for light_fence()?
[[nodiscard]] inline bool asymmetric_fence_works() noexcept {
  return detail::membarrier_works.load(std::memory_order_relaxed);
}

/// The frequent side's fence. Pairs with heavy_fence().
inline void light_fence() noexcept {
  if (__builtin_expect(detail::membarrier_works.load(std::memory_order_relaxed), 1))
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else {
    // a locked instruction rather than atomic_thread_fence, which ThreadSanitizer does not support
    detail::fence_word.fetch_add(0, std::memory_order_seq_cst);
  }
}

/// The rare side's fence. Pairs with light_fence().
void heavy_fence() noexcept;

}  // namespace perdure::tm
