// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/tm/asymmetric.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perdure::tm {

std::atomic<bool> detail::membarrier_works{false};
std::atomic<int> detail::fence_word{0};

bool prepare_asymmetric_fence() noexcept {
  if constexpr (under_thread_sanitizer) return false;
  // This uses no static local, because a forked child could wait for ever for its initialisation. A
  // second registration does nothing; a forked child inherits the first.
  if (asymmetric_fence_works()) return true;
  const bool works = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (works) detail::membarrier_works.store(true, std::memory_order_relaxed);
  return works;
}

void heavy_fence() noexcept {
  if (detail::membarrier_works.load(std::memory_order_relaxed)) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  } else {
    detail::fence_word.fetch_add(0, std::memory_order_seq_cst);
  }
}

}  // namespace perdure::tm
