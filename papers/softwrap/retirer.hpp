// SPDX-License-Identifier: BSD-3-Clause
//
// Retirer: the thread that takes alias tables home (papers: SoftWrAP, MSST '15, section IV-A) and
// that manages long-running wraps (IV-B).
//
// A round: the other table becomes the active one, and each log's wraps go to its next bucket; when
// the last wrap of the old period has closed, the old table's values are stored to home, sorted by
// address so that each line goes home once, flushed, and made durable by one fence; X says so; when
// nobody looks at the table any more it is emptied.
//   R1 X is what was quiet at the switch: of all wraps up to it, every value is in a table that is
//      home by now.
//   R2 home gets values of closed wraps only (C). Wraps above X may be among them, as a part: their
//      logs are whole, and replayed.
//   R3 a bucket begins again two periods after its wraps' own: these wrote in the tables of two
//      periods (A2), and X has covered both. The thread is started by the first round that is
//      wanted. Where none can be had, the thread that
// waits for the round's end does it.
// Long-running wraps: when one of the old period stays open for longer than the threshold, new
// wraps are held back; when it is still there after another, it is aborted at its next call; then
// the tables are emptied, and what was closed is replayed from the logs.
// One that makes no call can't be aborted by another thread: what it has stored is in the tables,
// and
// only its own thread knows what was there before. After the threshold for the third time the
// others
// go on without it, in the table and the buckets that are active; who needs others gets `busy`
// until
// it has ended.
// Thread safety: any thread but stop(), by one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "papers/softwrap/alias_tables.hpp"
#include "perdure/base/status.hpp"
#include "perdure/engine/background.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::engine::softwrap {

class Retirer {
 public:
  /// What the engine lends it.
  struct House {
    log::AliasTables& tables;
    medium::Medium& medium;
    /// an id up to which all wraps have closed and pushed
    std::function<std::uint64_t()> quiet;
    /// of all logs, with that base; the caller fences
    std::function<void(unsigned, std::uint64_t)> begin_buckets;
    std::function<Status(std::uint64_t)> note_x;  ///< makes X durable
    /// what was closed above X goes home from the logs, durably
    std::function<Status()> replay;
    std::function<void(const Status&)> failed;  ///< the medium has failed: once
  };
  Retirer(House house, std::uint64_t x, std::uint64_t entries, std::uint32_t long_wrap_ms);
  ~Retirer() { stop(); }
  Retirer(const Retirer&) = delete;
  Retirer& operator=(const Retirer&) = delete;

  /// A wrap has closed: starts a round if the active table has reached its threshold, an eighth.
  void closed() noexcept {
    if (__builtin_expect(house_.tables.active().size() >= threshold_, 0)) wake();
  }
  using Lines = std::vector<std::uint64_t>;  ///< home offsets
  /// of one element: made before the commit, where memory may still run out
  using Node = std::list<Lines>;
  /// Lines of home that a wrap has stored to by itself (heap); before its slot stops pending. R1:
  /// they are flushed before X covers it.
  void push(Node& one) noexcept;
  /// Returns when the period has ended that is the present one, so that new wraps find another
  /// table and other buckets. `entries`: a table of at least so many entries, or 0. Called by
  /// nobody who has a wrap open. `busy` while a wrap that makes no call keeps the other table.
  Status next_period(std::uint64_t entries);
  /// Returns when all that closed before is home, durably, and X says so. `busy` as next_period().
  Status drain();
  void stop();

  /// A wrap opens on the thread of `slot`; waits where new wraps are held back.
  log::AliasTables::Moment open(int slot) noexcept {
    for (;;) {
      const auto moment = house_.tables.open(slot);
      // seq_cst, after open's exchange; pairs with hold(): it sees the wrap, or the wrap sees it
      if (__builtin_expect(!held_.load(std::memory_order_seq_cst), 1)) return moment;
      house_.tables.close(slot);
      wait_held();
    }
  }
  /// Whether wraps of this period are to end: each asks at every call.
  [[nodiscard]] bool expired(std::uint64_t period) const noexcept {
    // pairs with nothing: it comes when it comes
    return __builtin_expect(expired_.load(std::memory_order_relaxed) > period, 0);
  }
  // pairs with round(): X is durable
  [[nodiscard]] std::uint64_t x() const noexcept { return x_.load(std::memory_order_acquire); }
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
  const std::uint64_t threshold_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::list<Lines> pushed_;
  std::uint64_t wanted_period_ = 0, wanted_entries_ = 0;
  bool stopping_ = false;
  bool working_ = false;  // a thread is in round()
  Status failure_;
  bool stuck_ = false;  // a wrap of the last period makes no call, and the others go on
  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> x_, rounds_{0}, lines_{0}, replays_{0};
  PoolThread thread_;
};

}  // namespace perdure::engine::softwrap
