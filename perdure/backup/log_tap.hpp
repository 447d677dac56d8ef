// SPDX-License-Identifier: BSD-3-Clause
//
// LogTap: the records of an open pool's log, in id order and once they are durable, for one that
// copies them elsewhere while transactions go on: the archive (archive.hpp), the primary of a
// replicated pool (replication/primary.hpp). Its floor keeps in the log what is not copied yet.
//
//   TAP-1 Only what is durable in the pool's log is read: the copy never knows more than the pool
//         after any crash.
// Thread safety: one thread at a time; raise() and give_up() from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "perdure/engine/followed_log.hpp"
#include "perdure/log/floors.hpp"
#include "perdure/log/log_cursor.hpp"

namespace perdure::backup {

class LogTap {
 public:
  /// Begins with the session's first record; the copy has every transaction up to `copied`. Call it
  /// before the session's first transaction; the log outlives this object. What it reads stays in
  /// the log until raise() says that it is copied, by the policy (FLOOR-1). Throws std::bad_alloc.
  void start(engine::FollowedLog& log, const std::string& name, std::uint64_t copied,
             log::FloorPolicy policy, std::chrono::milliseconds patience = {}) {
    cursor_ = log.cursor();
    floor_ = log.floors().add(name, copied, policy, patience);
    log_ = &log;
  }
  [[nodiscard]] bool started() const noexcept { return log_ != nullptr; }
  /// REQUIRES: started(), for this and what follows.
  [[nodiscard]] engine::FollowedLog& log() const noexcept { return *log_; }

  enum class Found : std::uint8_t {
    all,      ///< nothing is left that was durable at the call
    more,     ///< more() has returned false
    given_up  ///< commits no longer wait for the copy
  };
  /// Calls take(record, bytes) for one record after the other, while more() returns true; `bytes`
  /// is what the record takes in the log. Throws what both throw; where take() has thrown, the
  /// record comes again.
  template <class More, class Take>
  Found read(More&& more, Take&& take) {
    const log::Floors::Reading reading(*floor_);
    if (!reading) return Found::given_up;
    // TAP-1: the id is read before the rings' tails.
    // mutant: archive-durable-only
    const std::uint64_t durable = log_->followable_id();
    cursor_.look();
    while (more()) {
      if (!next_.words && !cursor_.next(durable, next_)) return Found::all;
      take(std::as_const(next_), cursor_.bytes(next_));
      next_ = {};
    }
    return Found::more;
  }
  /// Bytes of the log that are not taken, of what the last read() found; `now`: of what there is,
  /// where nothing is read for a while. 0 before start().
  [[nodiscard]] std::uint64_t unread(bool now) noexcept {
    if (now) cursor_.look();
    return cursor_.ahead();
  }
  /// What was read up to `id` is copied durably.
  void raise(std::uint64_t id) { log_->floors().raise(*floor_, id); }
  void give_up() { log_->floors().give_up(*floor_); }

 private:
  engine::FollowedLog* log_ = nullptr;
  log::LogCursor cursor_;
  std::shared_ptr<log::Floors::Floor> floor_;  // the engine may use it longer
  log::RecordView next_;                       // passed by the cursor, and not taken
};

}  // namespace perdure::backup
