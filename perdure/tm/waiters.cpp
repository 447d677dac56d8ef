// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/tm/waiters.hpp"

namespace perdure::tm {

[[gnu::cold]] void Waiters::wake() noexcept {
  // If the count is `fenced`, this is WAIT-1's fence. Acquire and release pair with wait()'s: if a
  // waiter's instruction comes first, it is counted here; otherwise the waiter sees what this
  // thread ended.
  if (count_.fetch_add(0, std::memory_order_acq_rel) <= fenced) return;
  ends_.fetch_add(1, std::memory_order_release);  // WAIT-2; pairs with the acquires in wait()
  ends_.notify_all();
}

}  // namespace perdure::tm
