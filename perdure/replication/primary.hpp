// SPDX-License-Identifier: BSD-3-Clause
//
// Primary: appends the log of an open pool to the replicated one, while transactions go on. Before
// that, it makes the opening an election: the copy becomes the primary of a new term, or is
// refused.
//
//   PRIMARY-1 Only what is durable in this copy is appended (TAP-1), in id order: after any crash
//             this copy has all that the log has of it.
//   PRIMARY-2 A record leaves the pool's own log only when the replicated one has it. So what a
//             crash has kept from there is appended by the next opening, before the session empties
//             the pool's log.
//   PRIMARY-3 is in claims.hpp.
//   PRIMARY-4 When another term has begun, the pool refuses work before anyone is told.
// What the log has of other copies is compared with what this copy has before it claims a term:
//   nothing that this copy lacks, and nothing here that the other one began without: it may go on;
//   the log has more: this copy is behind (`deposed`), or an older copy of the file
//   (`incompatible`); this copy has more than another one began with: it has `diverged`.
// Thread safety: open() to start() in the thread that opens the pool; then as each call says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "perdure/backup/frame.hpp"
#include "perdure/backup/log_tap.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/replication/claims.hpp"
#include "perdure/replication/log_service.hpp"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/options.hpp"
#include "perdure/replication/standbys.hpp"
#include "perdure/replication/stream.hpp"

namespace perdure::replication {

class Primary {
 public:
  /// Opens the log. `file` is open, and not yet recovered. Errors: `invalid`, `unavailable`, and
  /// the log's.
  static Result<std::unique_ptr<Primary>> open(const ReplicateOptions& options,
                                               const pool::OpenPool& file);
  /// Ends the thread; what the log has not got stays in the pool's own. The engine is still there.
  ~Primary();
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;

  /// After recovery and before the session: makes this copy the primary of a new term, and appends
  /// what the log lacks. The file outlives this object. Errors: `incompatible`, `deposed` and
  /// `diverged` as above, `unavailable`, `corrupt` where the log has lost or changed something
  /// (STREAM-2), the medium's.
  Status take_over(pool::OpenPool& file);
  /// In the session, before its first transaction: from now on its log is appended. The engine
  /// outlives this object. Errors: `unavailable`, `deposed`, and the medium's.
  Status start(engine::FollowedLog& log);

  /// Returns when transaction `id`, which is durable here, has got that far. Any thread. Errors: as
  /// Receipt::wait(Ack).
  Status wait(std::uint64_t id, Ack level);
  /// Whether it has. Any thread.
  [[nodiscard]] bool has(std::uint64_t id, Ack level) const noexcept;
  [[nodiscard]] ReplicationStats stats() const;  ///< any thread
  /// The pool is closed: what is not in the log is not waited for any more. Any thread.
  void end() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t frame_bytes = 1 << 20;  // of entries, about
  Primary(const ReplicateOptions& options, const pool::OpenPool& file, OpenedLog log);
  Status on_frame(const backup::Frame& frame, const StreamPlace& after);
  Status claim();
  Status append_rest();
  void run();
  Status step();
  backup::LogTap::Found gather();
  Status append_gathered(std::uint64_t data_bytes);
  Status append_header();
  Status append(backup::FrameHeader header, const void* payload, std::uint64_t bytes);
  static bool has_ended(const Result<Stream::State>& state) noexcept;
  Status take(const Result<Stream::State>& state);
  Status deliver(Status s, Clock::time_point late);
  Status append_all(Clock::time_point late);
  Status header_changed();
  Status finish(std::uint64_t last);
  Status deposed();
  void note_place();
  Status append_rest_of(std::uint64_t last);
  void show(const std::string& problem);
  void show_counters();
  Status look_at_standbys();
  /// Whether the log says what `quorum` needs.
  [[nodiscard]] bool proven() const noexcept { return traits_.synced && traits_.replicas >= 3; }
  /// `unsupported` or `invalid` where the level can't be reached.
  [[nodiscard]] Status allows(Ack level) const;

  const ReplicateOptions options_;
  const std::shared_ptr<LogService> service_;
  const std::string path_, name_;  // of the pool; of this copy
  const LogTraits traits_;

  engine::FollowedLog* log_ = nullptr;
  pool::OpenPool* file_ = nullptr;
  backup::LogTap tap_;

  std::mutex mutex_;  // guards what follows, once the thread runs
  std::optional<Stream> stream_;
  Claims claims_;
  std::uint64_t last_ = 0;  // before the session: of all that this copy has
  backup::EntryGatherer entries_;
  bool more_ = false;            // was durable when entries_ was full
  Clock::time_point appended_;   // when the frame was begun that is under way
  std::uint64_t appending_ = 0;  // its bytes
  Clock::time_point watched_;    // when the log's end was last looked at, or appended to
  bool finished_ = false;

  std::atomic<std::uint64_t> shipped_{0};   // every transaction up to it is in the log
  std::atomic<int> waiting_{0};             // threads that are in wait()
  Standbys standbys_;                       // looked at by the thread
  mutable std::atomic<bool> asked_{false};  // for a level standby(n)
  Clock::time_point looked_;                // when the thread last looked at the standbys
  mutable std::mutex shown_mutex_;          // guards what follows; locked after mutex_
  std::condition_variable changed_;
  ReplicationStats shown_;
  std::optional<Clock::time_point> oldest_;  // since when something that was read is not in the log
  Status over_;                              // why nothing more gets into the log; ok: it may

  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace perdure::replication
