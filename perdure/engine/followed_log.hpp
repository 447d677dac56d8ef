// SPDX-License-Identifier: BSD-3-Clause
//
// FollowedLog: the log of an open pool, as those see it who read it while transactions go on (the
// archive, backup/archive.hpp; the primary of a replicated pool, replication/primary.hpp). An
// engine whose rings hold redo records gives an object of this type from followed_log().
// Thread safety: any thread may make all calls.
#pragma once

#include <cstdint>

#include "perdure/base/callbacks.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/floors.hpp"
#include "perdure/log/log_cursor.hpp"

namespace perdure::engine {

class StatWriter;

class FollowedLog {
 public:
  FollowedLog(const FollowedLog&) = delete;
  FollowedLog& operator=(const FollowedLog&) = delete;

  /// The id up to which every transaction is durable: its record lies below its ring's tail.
  [[nodiscard]] virtual std::uint64_t followable_id() const noexcept = 0;
  /// Why the pool refuses work; 0 while it does not.
  [[nodiscard]] virtual std::uint32_t refuses() const noexcept = 0;
  /// A cursor before the first record of the session. Call it before the first transaction, and add
  /// a floor.
  [[nodiscard]] virtual log::LogCursor cursor() const = 0;
  [[nodiscard]] log::Floors& floors() noexcept { return floors_; }

  /// From now on the pool refuses work, and says `why` (EngineBase::depose).
  virtual void depose(const Status& why) noexcept = 0;
  /// Where the pool's live counters are.
  [[nodiscard]] virtual StatWriter& page() noexcept = 0;

  /// What close() does when everything is durable, before it empties the log: those that read the
  /// log read its rest. They are given the id of the last transaction. Add yours before the first
  /// transaction.
  base::Callbacks<std::uint64_t> before_close;

 protected:
  FollowedLog() = default;
  ~FollowedLog() = default;

 private:
  log::Floors floors_;
};

/// An engine's log; null where nothing can follow it.
template <class E>
[[nodiscard]] FollowedLog* followed_log_of(E& engine) noexcept {
  if constexpr (requires { engine.followed_log(); })
    return engine.followed_log();
  else
    return nullptr;
}

}  // namespace perdure::engine
