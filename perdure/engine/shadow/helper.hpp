// SPDX-License-Identifier: BSD-3-Clause
//
// Helper: decides whether the pool's own thread makes the next checkpoint on memory, beside the
// threads that commit, or whether they make it themselves.
//
// A checkpoint by another thread gains only if it runs on a processor that would be idle. The
// kernel says how long a thread was ready to run while other threads ran in its place (the second
// number of schedstat). A helper that had to wait for more than an eighth of the time that its
// checkpoint took had no idle processor: it rests, and the threads that commit make the next
// checkpoints. After `rest` of them it tries again. Where its thread may use one processor only, or
// the kernel does not say how long it waited, it makes none any more.
// Thread safety: as each call says.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "perdure/engine/shadow/options.hpp"

namespace perdure::engine::shadow {

class Helper {
 public:
  /// How many checkpoints the threads that commit make before the helper tries again.
  static constexpr int rest = 15;
  /// `automatic`: a log of fewer bytes for each writer is copied sooner than a thread is woken.
  static constexpr std::uint64_t min_log = std::uint64_t{1} << 20;

  /// Returns how long the calling thread was ready to run and did not; none if the kernel does not
  /// say.
  using Waited = std::optional<std::chrono::nanoseconds>() noexcept;
  [[nodiscard]] static Waited waited;

  /// `measure`: waited, or what a test gives.
  explicit Helper(ShadowOptions::Helper use, Waited* measure = waited) noexcept;

  /// Returns whether a checkpoint that is due is to be left to the pool's own thread. Any thread
  /// calls it.
  [[nodiscard]] bool wanted() const noexcept {
    return resting_.load(std::memory_order_relaxed) == 0;
  }
  /// Asks for a checkpoint: afterwards the caller wakes the pool's thread (BG-1). Any thread calls
  /// it.
  void ask() noexcept { asked_.store(true, std::memory_order_relaxed); }
  /// Returns whether a checkpoint was asked for and not begun. Any thread calls it.
  [[nodiscard]] bool asked() const noexcept { return asked_.load(std::memory_order_relaxed); }
  /// Some thread has finished a checkpoint. Called under the checkpoint's lock.
  void one_less_to_rest() noexcept;
  /// Returns how many checkpoints the pool's thread has finished. Any thread calls it.
  [[nodiscard]] std::uint64_t checkpoints() const noexcept {
    return checkpoints_.load(std::memory_order_acquire);  // pairs with end()
  }

  // What follows is called by the pool's thread.

  /// It begins what was asked for.
  void begin() noexcept;
  /// It has ended that. `worked`: it has done a part of a checkpoint; `finished`: the last part.
  void end(bool worked, bool finished) noexcept;

 private:
  Waited* const measure_;  // null: the helper is always wanted
  std::chrono::steady_clock::time_point begun_;
  std::chrono::nanoseconds waited_{0};  // by the pool's thread, until it began
  std::atomic<int> resting_{0};
  std::atomic<bool> asked_{false};
  std::atomic<std::uint64_t> checkpoints_{0};
};

}  // namespace perdure::engine::shadow
