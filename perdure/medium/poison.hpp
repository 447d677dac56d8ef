// SPDX-License-Identifier: BSD-3-Clause
//
// Poison: once a medium has failed, every later durable call fails (LAW-9). After a failed sync
// the kernel may have dropped the dirty pages and marked them clean, so a second attempt would
// report a success that is not true.
//
// Thread safety: any thread. A caller that may share another thread's write or sync calls check()
// AFTER that write or sync has finished.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::medium {

class Poison {
 public:
  /// Records the first failure and returns it; a later call returns what check() returns.
  Status fail(Status first) {
    const std::lock_guard lock(mutex_);
    if (set_.load(std::memory_order_relaxed)) return later();
    first_ = std::move(first);
    set_.store(true, std::memory_order_release);  // pairs with the acquire in check()
    return first_;
  }

  [[nodiscard]] Status check() const {
    if (!set_.load(std::memory_order_acquire)) return {};  // pairs with the release in fail()
    const std::lock_guard lock(mutex_);
    return later();
  }

 private:
  [[nodiscard]] Status later() const {
    return failure(Code::poisoned, "", "the medium failed earlier: " + first_.message(), {},
                   "reopen the pool to recover");
  }

  mutable std::mutex mutex_;
  std::atomic<bool> set_{false};
  Status first_;
};

}  // namespace perdure::medium
