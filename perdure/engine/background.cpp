// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/background.hpp"

namespace perdure::engine {

bool Background::wake() noexcept {
  const std::lock_guard lock(mutex_);
  // Another thread may have woken it.
  if (!asleep_.load(std::memory_order_relaxed) || stopping_) return true;
  if (!thread_.start([this] { work_(); }, reserved_)) return false;
  // Under the mutex, because wait_until_woken() checks it under the mutex.
  asleep_.store(false, std::memory_order_relaxed);
  changed_.notify_one();
  return true;
}

bool Background::wait_until_woken() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !asleep_.load(std::memory_order_relaxed); });
  return !stopping_;
}

bool Background::nap(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  if (!stopping_) changed_.wait_for(lock, time);
  return !stopping_;
}

void Background::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace perdure::engine
