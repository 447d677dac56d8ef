// SPDX-License-Identifier: BSD-3-Clause
//
// Locks: SQLite's locks on a database, among the connections of the process that has its pool open;
// other processes can't open it.
// Thread safety: any thread.
#pragma once

#include <mutex>

namespace perdure::sqlite {

/// SQLite's levels, in its order.
enum class Lock : int { none, shared, reserved, pending, exclusive };

class Locks {
 public:
  /// `from` is what the connection holds. Returns false if another connection's lock is in the way;
  /// on the way to EXCLUSIVE the connection may hold PENDING then.
  bool lock(Lock from, Lock to) {
    const std::lock_guard guard(mutex_);
    if (to == Lock::shared && from == Lock::none) {
      if (pending_ || exclusive_ || closed_) return false;
      ++shared_;
      return true;
    }
    if (from < Lock::reserved && to >= Lock::reserved) {
      if (reserved_) return false;
      reserved_ = true;
    }
    if (to == Lock::exclusive) {
      pending_ = true;
      if (shared_ > 1) {  // its own lock is among them
        // Otherwise it stays pending: no new readers.
        if (from < Lock::reserved) reserved_ = pending_ = false;
        return false;
      }
      exclusive_ = true;
    }
    return true;
  }
  void unlock(Lock from, Lock to) {
    const std::lock_guard guard(mutex_);
    if (from >= Lock::reserved && to < Lock::reserved) reserved_ = pending_ = exclusive_ = false;
    if (from >= Lock::shared && to == Lock::none) --shared_;
  }
  /// From now on no connection gets a lock. Returns false if one has a lock now; then nothing has
  /// changed.
  [[nodiscard]] bool close() {
    const std::lock_guard guard(mutex_);
    if (shared_ != 0) return false;
    closed_ = true;
    return true;
  }
  [[nodiscard]] bool closed() {
    const std::lock_guard guard(mutex_);
    return closed_;
  }
  [[nodiscard]] bool reserved() {
    const std::lock_guard guard(mutex_);
    return reserved_;
  }

 private:
  std::mutex mutex_;
  unsigned shared_ = 0;
  bool reserved_ = false, pending_ = false, exclusive_ = false, closed_ = false;
};

}  // namespace perdure::sqlite
