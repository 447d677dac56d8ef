// SPDX-License-Identifier: BSD-3-Clause
//
// Floors: who still reads a live log, and from which id on. A checkpoint truncates the rings only
// up to the lowest floor, so a reader finds every record above its own.
//
// FLOOR-1 No byte of a record above a floor's id is overwritten until the floor is raised, removed
//         or given up: a checkpoint reads lowest() before it decides where a ring's head goes
//         (engine/shadow/publish_checkpoint.hpp). A floor is added before the session's first
//         record.
// A reader that is slow fills the log. Then a writer that needs room calls wait(): under
// Policy::wait until the floor moves (writers go at the reader's pace); under Policy::give_up for
// `patience` at most, after which the floor is given up: it holds nothing any more. A floor is not
// given up while its reader reads (reading()), which it does for a short time, and never while it
// waits for anything.
// Thread safety: any thread may make all calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace perdure::log {

/// What a writer does that finds no room in the log because of a floor.
enum class FloorPolicy : std::uint8_t { wait, give_up };

class Floors {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  /// One reader's floor: it needs the records above the id.
  struct Floor {
    std::string name;  ///< for messages and statistics
    FloorPolicy policy = FloorPolicy::wait;
    std::chrono::milliseconds patience{0};  ///< give_up: how long one writer waits
    std::atomic<std::uint64_t> id{0};
    std::atomic<bool> given_up{false};
    std::mutex in_use;  ///< held while its reader reads, and while the floor is given up
  };
  /// Held while the floor's reader reads the log. It holds nothing if the floor was given up: then
  /// the bytes may be others by now.
  class Reading {
   public:
    explicit Reading(Floor& floor) : lock_(floor.in_use) {
      // Relaxed: it changes under the lock.
      if (floor.given_up.load(std::memory_order_relaxed)) lock_.unlock();
    }
    explicit operator bool() const noexcept { return lock_.owns_lock(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Adds a floor at `id`. Throws std::bad_alloc. REQUIRES: no record above `id` was released.
  std::shared_ptr<Floor> add(std::string name, std::uint64_t id,
                             FloorPolicy policy = FloorPolicy::wait,
                             std::chrono::milliseconds patience = {});
  /// The reader no longer needs the records up to `id`.
  void raise(Floor& floor, std::uint64_t id);
  /// The reader can't go on: the floor holds nothing any more.
  void give_up(Floor& floor);

  /// Returns the lowest id above which the log is still needed; `none` if nobody reads it.
  [[nodiscard]] std::uint64_t lowest() const noexcept {
    // Acquire: pairs with the release in found(). What the reader of the floor has read is read
    // before its bytes are overwritten.
    return lowest_.load(std::memory_order_acquire);
  }
  /// For a writer without room, where a checkpoint up to `checkpoint_id` has not helped. Returns at
  /// once where no floor is below that id; otherwise when the lowest floor has moved, or by its
  /// policy, or when `stop` returns true, which is asked every 50 ms or so.
  template <class Stop>
  void wait(std::uint64_t checkpoint_id, Stop&& stop) {
    std::unique_lock lock(mutex_);
    const std::uint64_t seen = lowest();
    if (seen >= checkpoint_id) return;
    const auto from = std::chrono::steady_clock::now();
    ++waits_;
    ++waiting_;
    asked_.notify_all();
    while (lowest() == seen && !stop()) {
      moved_.wait_for(lock, std::chrono::milliseconds(50));
      if (lowest() == seen) give_up_after(std::chrono::steady_clock::now() - from);
    }
    --waiting_;
  }
  /// For a reader that has read everything: returns after `nap`, or as soon as a writer waits for
  /// room, or wake() is called; at once where wakes() is not `seen` any more. Returns whether a
  /// writer waits. `whole`: a writer that waits does not end it; for a reader that can't do
  /// anything for it now.
  bool nap(std::chrono::microseconds nap, bool whole = false,
           std::optional<std::uint64_t> seen = {});
  /// Ends all naps.
  void wake();
  /// How often wake() was called.
  [[nodiscard]] std::uint64_t wakes() const;
  /// Returns how often a writer had to wait for a floor.
  [[nodiscard]] std::uint64_t waits() const;

 private:
  void found() noexcept;
  void give_up_after(std::chrono::steady_clock::duration waited);

  mutable std::mutex mutex_;
  std::condition_variable moved_, asked_;
  std::vector<std::shared_ptr<Floor>> floors_;
  std::atomic<std::uint64_t> lowest_{none};
  std::uint64_t waits_ = 0, waiting_ = 0, wakes_ = 0;
};

}  // namespace perdure::log
