// SPDX-License-Identifier: BSD-3-Clause
//
// Retirer: the thread that retires alias tables, which means that it stores their values to the
// data region (papers: SoftWrAP, MSST '15, section IV-A), and that manages long-running wraps
// (IV-B).
//
// A round is a checkpoint of one table: the other table becomes the active one, and each log's
// wraps use its next bucket. When the last wrap of the old period has closed, the old table's
// values are stored to the data region, sorted by address so that each line is written back once,
// flushed, and made durable by one fence; then the checkpoint id X says so. When no wrap reads the
// table any more it is emptied.
//   RETIRE-1 X is the low watermark (`low_watermark`) at the switch: for all wraps up to it, every
//   value
//            is in a table that has been retired by then.
//   RETIRE-2 The data region gets values of closed wraps only (C). Wraps above X may be among them,
//            in part: their logs are whole, and are replayed.
//   RETIRE-3 A bucket begins again two periods after its wraps' own: these wrote in the tables of
//            two periods (ALIAS-2), and X has covered both.
// The thread is started by the first round that is wanted. Where none can be started, the thread
// that waits for the round's end does it.
// Long-running wraps: when a wrap of the old period stays open for longer than the threshold, new
// wraps are delayed. When it is still there after the threshold again, it is aborted at its next
// call; then the tables are emptied, and what was closed is replayed from the logs.
// A wrap that makes no call can't be aborted by another thread: what it has stored is in the
// tables, and only its own thread knows what was there before. After the threshold for the third
// time the other wraps continue without it, in the table and the buckets that are active; a wrap
// that needs others gets `busy` until it has ended.
// Thread safety: any thread may call everything except stop(), which one thread calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "papers/names.hpp"
#include "papers/softwrap/alias_tables.hpp"
#include "papers/softwrap/options.hpp"
#include "perdure/base/status.hpp"
#include "perdure/engine/background.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::papers::softwrap {

class Retirer {
 public:
  /// What the engine provides.
  struct House {
    AliasTables& tables;
    medium::Medium& medium;
    /// Returns an id up to which all wraps have closed and pushed.
    std::function<std::uint64_t()> low_watermark;
    /// Begins this bucket of all logs, with that base; the caller fences.
    std::function<void(unsigned, std::uint64_t)> begin_buckets;
    std::function<Status(std::uint64_t)> note_checkpoint_id;  ///< makes X durable
    /// Replays from the logs what was closed above X, durably.
    std::function<Status()> replay;
    std::function<void(const Status&)> failed;  ///< called once, when the medium has failed
  };
  Retirer(House house, std::uint64_t x, std::uint64_t entries, const SoftwrapOptions& options);
  ~Retirer() { stop(); }
  Retirer(const Retirer&) = delete;
  Retirer& operator=(const Retirer&) = delete;

  /// Called when a wrap has closed: starts a round if the active table has reached its threshold.
  void closed() noexcept {
    if (__builtin_expect(house_.tables.active().size() >= threshold_, 0)) wake();
  }
  /// Called before a wrap opens (SoftwrapOptions::wait_at_threshold): returns when the active table
  /// is below its threshold. It returns at once where a wrap that makes no call keeps the tables,
  /// and after a failure, of which the wrap will hear.
  void wait_at_threshold() {
    if (!waits_) return;
    // mutant: softwrap-waits-at-threshold
    while (house_.tables.active().size() >= threshold_)
      if (!next_period(0).ok() || stopping()) return;
  }
  using Lines = std::vector<std::uint64_t>;  ///< offsets in the data region
  /// A list of one element, made before the commit, where memory may still run out.
  using Node = std::list<Lines>;
  /// Adds lines that a wrap has stored to by itself (of the heap, and of words with local
  /// aliasing), before its slot stops being pending.
  /// RETIRE-1: they are flushed before X covers the wrap.
  void push(Node& one) noexcept;
  /// Returns when the present period has ended, so that new wraps find another table and other
  /// buckets. `entries`: the minimum size of that table, or 0. The calling thread has no wrap open.
  /// Returns `busy` while a wrap that makes no call uses the other table.
  Status next_period(std::uint64_t entries);
  /// Returns when the data region durably holds all that closed before, and X says so. Returns
  /// `busy` as next_period() does.
  Status drain();
  void stop();

  /// Opens a wrap on the thread of `slot`; waits where new wraps are delayed.
  AliasTables::Moment open(int slot) noexcept {
    for (;;) {
      const auto moment = house_.tables.open(slot);
      // seq_cst, after open's exchange; pairs with hold(): it sees the wrap, or the wrap sees it.
      if (__builtin_expect(!held_.load(std::memory_order_seq_cst), 1)) return moment;
      house_.tables.close(slot);
      wait_held();
    }
  }
  /// Returns whether wraps of this period are to end: each wrap checks it at every call.
  [[nodiscard]] bool expired(std::uint64_t period) const noexcept {
    // It pairs with nothing: it may be seen late.
    return __builtin_expect(expired_.load(std::memory_order_relaxed) > period, 0);
  }
  // Acquire: pairs with the release in flush_pushed(): X is durable.
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept {
    return x_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t rounds() const noexcept {
    return rounds_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t lines() const noexcept {
    return lines_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t replays() const noexcept {
    return replays_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t long_wrap_ms() const noexcept { return long_wrap_ms_; }

 private:
  void wake() noexcept;
  bool start() noexcept;
  void work();
  template <class Done>
  Status wait_for(std::unique_lock<std::mutex>& lock, Done&& done);
  void round_by_this_thread(std::unique_lock<std::mutex>& lock);
  Status round();
  Status retire(std::uint64_t x);
  Status evict(std::uint64_t period, std::uint64_t x);
  Status end_of_period(std::uint64_t period, std::uint64_t x);
  void stuck(bool yes) noexcept;
  [[nodiscard]] bool stopping() noexcept;
  Status flush_pushed(const Lines& lines, std::uint64_t x);
  Lines take_pushed();
  void hold(bool yes) noexcept;
  void wait_held() noexcept;
  template <class Done>
  bool wait_until(Done&& done, std::uint32_t at_most_ms);
  void tell() noexcept;

  const House house_;
  const std::uint32_t long_wrap_ms_;
  const bool waits_, stream_home_;  // SoftwrapOptions
  const std::uint64_t threshold_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::list<Lines> pushed_;
  std::uint64_t wanted_period_ = 0, wanted_entries_ = 0;
  bool stopping_ = false;
  bool working_ = false;  // a thread is in round()
  Status failure_;
  bool stuck_ = false;  // a wrap of the last period makes no call, and the others continue
  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> x_, rounds_{0}, lines_{0}, replays_{0};
  PoolThread thread_;
};

}  // namespace perdure::papers::softwrap
