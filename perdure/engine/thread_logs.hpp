// SPDX-License-Identifier: BSD-3-Clause
//
// ThreadLogs: the logs of a pool, leased to the threads that write. A thread takes a log at its
// first transaction that needs one, and has it until the thread ends: then the next thread that
// looks for one takes it. The last log is never leased. It is for all threads that find no other,
// and a transaction holds its turn there from its first record to its end. So a thread that only
// reads has no log, and with n logs n threads write without waiting for each other.
// Invariants:
// LEASE-1 A lease is taken from a slot only while no thread has the slot's number, and none can
// take it (base::while_free): so no thread is inside a transaction that uses the log.
// LEASE-2 A thread draws an id only while it has the log alone, by its lease or its turn: so ids
// rise along each log.
// Thread safety: add() is called before any other thread uses the object; any thread may call
// operator[]; a Use belongs to one thread. Each log states its own thread safety.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "perdure/base/thread_slot.hpp"

namespace perdure::engine {

template <class Log>
class ThreadLogs {
  struct Place;

 public:
  template <class... Arguments>
  Log& add(Arguments&&... arguments) {
    return places_.emplace_back(std::make_unique<Place>(std::forward<Arguments>(arguments)...))
        ->log;
  }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  [[nodiscard]] Log& operator[](std::size_t i) noexcept { return places_[i]->log; }
  [[nodiscard]] const Log& operator[](std::size_t i) const noexcept { return places_[i]->log; }

  /// One thread's use of a log. Precondition: at least one log was added.
  class Use {
   public:
    Use(ThreadLogs& logs, int slot)
        : logs_(logs),
          slot_(slot),
          place_(logs.places_.front().get()),
          turn_(logs.places_.back()->turn, std::defer_lock) {}
    /// The log that begin() or look() has found; before, the first of all, for its dimensions.
    [[nodiscard]] Log& log() const noexcept { return place_->log; }
    /// Whether no other thread writes to the log now: it is leased, or it is this thread's turn.
    [[nodiscard]] bool ours() const noexcept { return leased_ || turn_.owns_lock(); }
    /// Call this before a transaction's first record: it takes a log, or waits for the turn at the
    /// shared one. Returns whether it took one, so that log() may be another than before. A
    /// repeated call does nothing.
    [[nodiscard]] bool begin() {
      if (__builtin_expect(leased_, 1)) return false;
      return begin_without_lease();
    }
    /// Takes a log if this thread has none, and waits for nothing.
    void look() {
      if (__builtin_expect(!looked_, 0)) logs_.lease(*this);
    }
    /// Call this when the transaction has ended. Without begin() it does nothing.
    void end() noexcept {
      if (__builtin_expect(turn_.owns_lock(), 0)) turn_.unlock();
    }
    /// Takes the turn until the result is destroyed, for a caller that does not hold it by begin().
    [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock(place_->turn); }

   private:
    friend class ThreadLogs;
    void lose() noexcept { looked_ = leased_ = false; }
    [[gnu::noinline]] bool begin_without_lease() {
      if (turn_.owns_lock()) return false;
      if (looked_ && turn_.try_lock()) return false;
      // A thread that would have to wait for its turn looks for a log that has become free.
      const bool looks = !looked_ || logs_.may_lease();
      if (looks) logs_.lease(*this);
      if (!leased_) turn_.lock();
      return looks;
    }

    ThreadLogs& logs_;
    const int slot_;
    Place* place_;
    bool looked_ = false, leased_ = false;
    std::unique_lock<std::mutex> turn_;  // at the last log
  };

 private:
  static constexpr int none = -1;
  struct Place {
    template <class... Arguments>
    explicit Place(Arguments&&... arguments) : log(std::forward<Arguments>(arguments)...) {}
    Log log;
    std::mutex turn;
    // The thread slot that has leased it, and its Use. Both change under leasing_.
    std::atomic<int> slot{none};
    Use* use = nullptr;
  };

  /// Whether a log is free; a hint.
  [[nodiscard]] bool may_lease() const noexcept {
    for (std::size_t i = 0; i + 1 < places_.size(); ++i)
      // Relaxed: lease() looks again.
      if (const int slot = places_[i]->slot.load(std::memory_order_relaxed);
          slot == none || base::is_free(slot))
        return true;
    return false;
  }
  void lease(Use& use) {
    const std::lock_guard lock(leasing_);
    use.place_ = places_.back().get();
    use.looked_ = true;
    for (std::size_t i = 0; i + 1 < places_.size(); ++i) {
      Place& place = *places_[i];
      const int slot = place.slot.load(std::memory_order_relaxed);
      // mutant: lease-of-ended-threads-only
      if (slot != none && !base::while_free(slot, [&] { place.use->lose(); })) continue;
      place.slot.store(use.slot_, std::memory_order_relaxed);
      place.use = &use;
      use.place_ = &place;
      use.leased_ = true;
      return;
    }
  }

  std::vector<std::unique_ptr<Place>> places_;
  std::mutex leasing_;
};

}  // namespace perdure::engine
