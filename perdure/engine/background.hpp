// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's own threads. PoolThread is started when it is first needed and has a reserved thread
// slot. Background is one that sleeps without a time limit while there is nothing to do; the
// threads that commit wake it at the cost of two loads and a compiler barrier.
//
//   BG-1  A thread that makes work stores it, then executes a light fence, then checks whether the
//         background thread is asleep. The background thread stores that it is asleep, then
//         executes a heavy fence, then checks once more for work (Dekker's pattern). So one of them
//         sees the other: no work is left while the thread sleeps.
//
// "Asleep" includes "not started yet". Where no thread can be started (RLIMIT_NPROC, memory),
// notify() returns false, and the caller does what the thread would have done.
// Thread safety: as each call says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "perdure/base/signals.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/tm/asymmetric.hpp"

namespace perdure::engine {

/// Used under its owner's mutex, except for join().
class PoolThread {
 public:
  /// Starts a thread that runs `f` with a reserved slot, unless one was started. Returns false when
  /// none can be started: the caller may try again.
  template <class F>
  bool start(F&& f, int reserved = base::background_slot) noexcept {
    if (thread_.joinable()) return true;
    try {
      const base::BlockedSignals blocked;
      thread_ = std::thread([f = std::forward<F>(f), reserved] {
        const base::ReservedSlot slot(reserved);
        f();
      });
      return true;
    } catch (const std::exception&) {  // std::system_error, std::bad_alloc
      return false;
    }
  }
  /// Returns when the thread has ended, if one was started.
  void join() noexcept {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

class Background {
 public:
  /// `work` runs on the thread, which has this reserved slot, returns when the thread is to end,
  /// and must not throw.
  explicit Background(std::function<void()> work, int reserved = base::background_slot)
      : work_(std::move(work)), reserved_(reserved) {
    tm::prepare_asymmetric_fence();
  }
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Any thread calls this after it has stored work for the background thread: it wakes the thread
  /// if it sleeps. Returns false if there is no thread and none can be started now.
  bool notify() noexcept {
    tm::light_fence();  // BG-1; pairs with the heavy fence in sleep()
    return __builtin_expect(!asleep_.load(std::memory_order_relaxed), 1) || wake();
  }

  /// Called by the thread itself. Returns whether it is to end.
  [[nodiscard]] bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  /// Called by the thread itself. Waits for `time`. Returns false if the thread is to end.
  bool nap(std::chrono::microseconds time);
  /// Called by the thread itself. Returns when notify() has been called, or at once if `idle()`
  /// returns false, which means that there is work. Returns false if the thread is to end.
  template <class Idle>
  bool sleep(Idle&& idle) {
    asleep_.store(true, std::memory_order_relaxed);
    tm::heavy_fence();  // BG-1; pairs with the light fence in notify()
    if (!idle()) {
      asleep_.store(false, std::memory_order_relaxed);
      return true;
    }
    return wait_until_woken();
  }

  /// Ends the thread; none is started afterwards. One thread calls it, when no other calls notify()
  /// any more.
  void stop() noexcept;

 private:
  bool wake() noexcept;
  bool wait_until_woken();

  const std::function<void()> work_;
  const int reserved_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  PoolThread thread_;
  // Alone in its cache line, which committing threads only read.
  alignas(128) std::atomic<bool> asleep_{true};
};

}  // namespace perdure::engine
