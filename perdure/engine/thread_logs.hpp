// SPDX-License-Identifier: BSD-3-Clause
//
// ThreadLogs: one log per writing thread. Threads beyond the number of logs, which a pool's header
// fixes, share the last one: a transaction holds its turn there from its first record to its end.
// Thread safety: add() is called before any other thread uses the object; any thread may call of()
// and operator[]; a Use belongs to one thread. Each log states its own thread safety.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace perdure::engine {

template <class Log>
class ThreadLogs {
 public:
  struct Place {
    template <class... Arguments>
    explicit Place(Arguments&&... arguments) : log(std::forward<Arguments>(arguments)...) {}
    Log log;
    std::mutex turn;
  };

  template <class... Arguments>
  Log& add(Arguments&&... arguments) {
    return places_.emplace_back(std::make_unique<Place>(std::forward<Arguments>(arguments)...))
        ->log;
  }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  [[nodiscard]] Log& operator[](std::size_t i) noexcept { return places_[i]->log; }
  [[nodiscard]] const Log& operator[](std::size_t i) const noexcept { return places_[i]->log; }
  [[nodiscard]] bool shared(int slot) const noexcept {
    return static_cast<std::size_t>(slot) >= places_.size() - 1;
  }
  [[nodiscard]] Place& of(int slot) noexcept {
    return *places_[std::min(static_cast<std::size_t>(slot), places_.size() - 1)];
  }

  /// One thread's use of its log. Precondition: at least one log was added.
  class Use {
   public:
    Use(ThreadLogs& logs, int slot)
        : place_(logs.of(slot)), shares_(logs.shared(slot)), turn_(place_.turn, std::defer_lock) {}
    [[nodiscard]] Log& log() const noexcept { return place_.log; }
    [[nodiscard]] bool shares() const noexcept { return shares_; }
    /// Whether no other thread writes to the log now: it is not shared, or this thread's turn.
    [[nodiscard]] bool ours() const noexcept { return !shares_ || turn_.owns_lock(); }
    /// Call this before a transaction's first record: it waits for the turn, where the log is
    /// shared. A repeated call does nothing.
    void begin() {
      if (__builtin_expect(shares_ && !turn_.owns_lock(), 0)) turn_.lock();
    }
    /// Call this when the transaction has ended. Without begin() it does nothing.
    void end() noexcept {
      if (__builtin_expect(turn_.owns_lock(), 0)) turn_.unlock();
    }
    /// Takes the turn until the result is destroyed, for a caller that does not hold it by begin().
    [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock(place_.turn); }

   private:
    Place& place_;
    const bool shares_;
    std::unique_lock<std::mutex> turn_;
  };

 private:
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace perdure::engine
