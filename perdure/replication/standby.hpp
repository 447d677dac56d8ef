// SPDX-License-Identifier: BSD-3-Clause
//
// StandbyCopy: a copy of a replicated pool that follows its log by a thread of its own, and can
// become the primary. perdure::Standby (api/standby.hpp) adds the reader of it.
//
//   STANDBY-1 A frame is applied when it counts (STREAM-2), in the log's order, and once: what this
//             copy has above another copy's TERM frame ends it as `diverged` (STREAM-5).
//   STANDBY-2 A promotion claims a term with everything applied that the log has before it; the
//             pool's next opening finds the claim in its header (PRIMARY-3).
//   STANDBY-3 A copy says that it has a transaction when that is on its disk: for the level
//             standby(n) of the primary's.
// Thread safety: any thread may make all calls, close() and claim() last.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "perdure/replication/claims.hpp"
#include "perdure/replication/log_service.hpp"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/replica.hpp"
#include "perdure/replication/silence.hpp"
#include "perdure/replication/standby_options.hpp"
#include "perdure/replication/stream.hpp"

namespace perdure::replication {

class StandbyCopy {
 public:
  /// Opens the copy, or makes it first (StandbyOptions::backups), and begins to follow. Errors:
  /// those of Replica::open() and make_copy(), `unavailable` where the log does not answer,
  /// `not_found` where there is neither file nor backup.
  static Result<std::unique_ptr<StandbyCopy>> open(const std::string& path,
                                                   const StandbyOptions& options);
  /// Without close(), the next opening recovers the pool.
  ~StandbyCopy();
  StandbyCopy(const StandbyCopy&) = delete;
  StandbyCopy& operator=(const StandbyCopy&) = delete;

  [[nodiscard]] StandbyStatus status() const;
  /// Waits until this copy has all that the log had at the call. Errors: why it has ended;
  /// `unavailable` after `patience`.
  Status catch_up(std::chrono::milliseconds patience);
  /// Waits until this copy has taken over by itself; false after `patience`. Errors: why it has
  /// ended.
  Result<bool> took_over(std::chrono::milliseconds patience);
  /// Stops following, and closes the pool in order.
  Status close();
  /// Stops following, makes this copy the primary of a new term (STREAM-3), and closes the pool. It
  /// then opens with Options::replicate and the same log. Errors: `unavailable` where the log does
  /// not answer within the patience: this copy may be the primary of a term or not, and may claim
  /// again; why it has ended; the medium's. Where it has taken over by itself, it closes the pool
  /// alone.
  Status claim();

 private:
  using Clock = std::chrono::steady_clock;
  StandbyCopy(std::string path, const StandbyOptions& options, OpenedLog log,
              std::unique_ptr<Replica> replica);
  void run();
  Status claim_next(std::uint64_t instead_of);
  bool takes_over();
  Status confirm(std::uint64_t id, bool at_end);
  Status on_frame(const backup::Frame& frame, const StreamPlace& after);
  Status end_following();
  Status close_file();
  void show_place(const StreamPlace& place);
  void show(const Status& s, bool at_end);
  void show_problem(const Status& s);
  void show_counters();

  const std::string path_;
  const StandbyOptions options_;
  const std::shared_ptr<LogService> service_;
  std::unique_ptr<Replica> replica_;  // null when it is closed
  Stream stream_;
  Claims claims_;
  Silence silence_;
  std::uint64_t taking_over_ = 0;  // from this term: a claim may be in the log; 0: none
  const bool confirms_;            // the log carries what this copy says
  Confirmed said_;                 // the last thing that it has said
  Clock::time_point said_at_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  StandbyStatus shown_;
  Clock::time_point had_all_ = Clock::now();
  std::uint64_t readings_ = 0;    // of the log to its end, that were begun
  std::uint64_t had_all_of_ = 0;  // the last of them that has come to it

  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace perdure::replication
