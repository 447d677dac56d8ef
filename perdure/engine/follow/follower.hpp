// SPDX-License-Identifier: BSD-3-Clause
//
// Follower: a pool that this process reads while another one writes it. It has the state of one
// commit id, as long as anybody reads it, and moves on to newer ones in between. It needs nothing
// but permission to read the pool's file, and makes no writer wait.
//
// The writer (shadow) works on a copy in its own memory. Other processes see two things of it: its
// log, record by record, and the data region, which checkpoints change in any order of pages. So
// the follower maps the data region privately, and
//   1. attaches: it reads the header, whose checkpoint id X says that the data region has every
//      transaction up to X, and applies the log's records above X, up to Y;
//   2. reads ahead: it makes the pages private that further records name, before a checkpoint can
//      change them in the data region (FOLLOW-1, private_state.hpp). `copied` is the id up to which
//      it has done so;
//   3. when nobody reads, applies those records: the state is now that of `copied`.
//
//   FOLLOW-2 A word is right if, after it was loaded, the data region has no effect of a
//            transaction above `copied` (READER-1), and nothing has changed it besides (READER-2).
//            A page that is not private is named by no record from X to `copied`, so what it shows
//            is the state of X, which is also that of Y. Each read looks; where the answer is no,
//            the follower was overtaken, and attaches anew.
//   FOLLOW-3 is in private_state.hpp.
//   FOLLOW-4 What is shown is durable: in the pipelined order the writer says up to which id. In
//            the strict order, and where no process writes the pool any more, a record may be
//            visible before it is durable; the follower makes the log's bytes durable itself before
//            it shows them.
// While somebody reads, the follower shows `copied` to the writer, as the position of a lock on the
// file (FileLock::show_position). A checkpoint waits until it is far enough, up to a patience
// (engine/shadow/reader_gate.hpp): that is what makes long views possible, and nothing that is
// right depends on it.
//
// During the attachment itself pages may be copied while a checkpoint changes them. That is mended
// by applying records up to `home_clock`, as recovery does for a data region that a crash has torn.
//
// A pool that no process writes is followed, too: a writer may come. If it was not closed in order,
// the follower applies its whole log to its private pages, with recovery's own scan (damage is
// refused as recovery refuses it, LAW-10), and leaves the file as it is. Then whoever opens the
// pool for writing changes `sequence` before the data region.
//
// Looking for records costs one system call a ring, so a view does it only where the last look is
// `staleness` old. A thread reads ahead while somebody reads the state, and for a while afterwards;
// then it sleeps, so that a program that does not read the pool has no wake-ups.
// Source: docs/readers.md is the overview.
// Thread safety: any thread may make all calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/engine/background.hpp"
#include "perdure/engine/follow/log_reader.hpp"
#include "perdure/engine/follow/private_state.hpp"
#include "perdure/engine/reader_options.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine::follow {

/// Counters of a follower: Stats has them.
struct FollowerStats {
  std::uint64_t attached = 0;       ///< how often it attached
  std::uint64_t overtaken = 0;      ///< how often it had to, because a writer was ahead of it
  std::uint64_t records = 0;        ///< records that it has read
  std::uint64_t private_bytes = 0;  ///< of pages that are private
};

class Follower {
 public:
  using Clock = std::chrono::steady_clock;

  /// `file` follows (OpenPool::following()), and outlives this object.
  Follower(pool::OpenPool& file, const ReaderOptions& options);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Attaches for the first time. Errors: `busy` where a program has the pool open that does not
  /// serve readers, or does not within ReaderOptions::patience; `corrupt`, `expired`, `io`.
  Status attach();
  /// What every later attachment asks before its state is shown: whether it still has this
  /// program's layout.
  void must_keep(std::function<Status()> layout) { layout_ = std::move(layout); }

  /// Begins to read the state: it does not change until leave(). Where it is old, or the follower
  /// was overtaken, it moves on first, if nobody else reads. Throws error(expired, busy, corrupt,
  /// io) and std::bad_alloc.
  void enter();
  /// Ends it.
  void leave() noexcept;
  /// Moves on to the newest state that is durable. Waits for threads that read, up to `patience`;
  /// the state stays what it is if they do not leave, or if it is held. Returns its id. Not between
  /// enter() and leave(). Throws as enter().
  std::uint64_t refresh(std::chrono::milliseconds patience);
  std::uint64_t refresh() { return refresh(options_.patience); }
  /// Keeps the state as it is until release(), for any number of reads. Returns what generation()
  /// is until the follower attaches anew: then the state is gone. Sets `id` to its id.
  std::uint64_t hold(std::uint64_t& id);
  void release(std::uint64_t generation) noexcept;
  /// Whether the state that hold() has returned `generation` for is still there. Also after end().
  [[nodiscard]] bool holds(std::uint64_t generation) const noexcept;
  /// enter() of a state that is held: it does not move on. Returns false where that is gone.
  [[nodiscard]] bool enter_held(std::uint64_t generation) noexcept;
  /// Whether a state is held that is not gone.
  [[nodiscard]] bool anything_held() const noexcept;
  /// Whether end() was called.
  [[nodiscard]] bool ended() const noexcept;
  [[nodiscard]] std::uint64_t generation() const noexcept {
    // Acquire: pairs with the release in an attachment.
    return generation_.load(std::memory_order_acquire);
  }

  /// FOLLOW-2: whether what was loaded before this call is of the state.
  [[nodiscard]] [[gnu::always_inline]] bool right() const noexcept {
    // Acquire: the loads before this call come first (x86 keeps loads in order), and they pair with
    // the writer's exchange of home_clock and its store of sequence.
    std::atomic_thread_fence(std::memory_order_acquire);
    // mutant: follower-looks-at-home-clock, follower-looks-at-sequence
    return file_.told().home_clock.load(std::memory_order_acquire) <=
               good_until_.load(std::memory_order_acquire) &&
           file_.told().sequence.load(std::memory_order_acquire) ==
               sequence_.load(std::memory_order_acquire);
  }
  /// The state's id.
  [[nodiscard]] std::uint64_t id() const noexcept {
    return applied_.load(std::memory_order_acquire);  // pairs with the stores under mutex_
  }
  [[nodiscard]] FollowerStats stats() const noexcept;
  /// No state that is held can be entered any more; returns when nobody reads, with the thread that
  /// reads ahead ended. No call may follow but id(), stats(), release(), holds() and enter_held().
  void end() noexcept;
  /// The same where nobody reads.
  void stop() noexcept { ahead_.stop(); }

 private:
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  // What is read ahead and not yet applied.
  struct Ahead {
    struct Record {
      std::size_t at, words;  // of its payload, in `words`
      std::uint64_t id;
    };
    std::vector<Record> records;
    std::vector<std::uint64_t> words;
    bool dropped = false;  // there were too many: the next state comes from a new attachment
  };

  // Under reading_.
  // Why an attempt to attach has failed; all but `failed` may be over soon.
  enum class Attempt : std::uint8_t { failed, again, silent, changing };
  void show_position() noexcept;
  void invalidate() noexcept;
  [[nodiscard]] Status busy() const;
  [[nodiscard]] bool is_right(std::uint64_t good_until, std::uint64_t sequence) const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);  // as right()
    return file_.told().home_clock.load(std::memory_order_acquire) <= good_until &&
           file_.told().sequence.load(std::memory_order_acquire) == sequence;
  }
  Status attach_until(Clock::time_point deadline);
  Status try_attach(Attempt& attempt);
  Status apply_live_log();
  Status apply_dead_log(const pool::Header& header);
  Status read_ahead();           // all that may be shown
  Status read_some(bool& more);  // a part of it
  Status take(const log::RecordView& r);
  Status apply_ahead();
  Status make_records_durable();
  void give_back();
  [[nodiscard]] std::uint64_t limit() const noexcept;

  // Under mutex_.
  [[nodiscard]] bool due(Clock::time_point now) const noexcept;
  bool nobody_reads(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience);
  void begin(std::unique_lock<std::mutex>& lock);
  void move_on(std::unique_lock<std::mutex>& lock, bool anew);

  void work();

  pool::OpenPool& file_;
  const ReaderOptions options_;
  const bool strict_;
  std::function<Status()> layout_;
  PrivateState state_;
  LogReader log_;

  // FOLLOW-2: what right() compares.
  std::atomic<std::uint64_t> good_until_{0}, sequence_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> applied_{0}, generation_{0};

  std::mutex reading_;      // the log, and the private pages; locked after mutex_ is released
  bool live_ = false;       // a process had the pool open for writing when it attached
  bool attaching_ = false;  // records are applied as they are read
  std::uint64_t copied_ = 0, given_back_ = 0;
  std::vector<LogReader::Place> unsure_;  // records that nobody has said to be durable
  Status failed_sync_;                    // why they can't be made so
  Ahead pending_;
  std::atomic<std::uint64_t> attached_{0}, overtaken_{0}, records_{0};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  unsigned inside_ = 0, held_ = 0, wanted_ = 0;
  bool moving_ = false, ended_ = false;
  Clock::time_point looked_{}, last_view_{}, asked_for_writer_{};
  Clock::duration pause_{};  // between attempts to move on beside others that read
  Background ahead_;
};

}  // namespace perdure::engine::follow
