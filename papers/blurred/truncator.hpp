// SPDX-License-Identifier: BSD-3-Clause
//
// Truncator: Mnemosyne's asynchronous log truncation (Volos, Tack, Swift, ASPLOS '11; papers:
// Blurred Persistence, section III-B): a thread that flushes what transactions have stored to the
// data region, one after the other, then makes the checkpoint id X say so.
//
// The thread is started by the first transaction that has stored to the data region. Where none can
// be started, a thread that waits does a round.
// TRUNCATE-1: X is drawn before the queue is taken; a transaction is in the queue before it stops
// being pending, so all up to X are in the queue or were.
// Thread safety: any thread may call push, wait and x; one calls stop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "papers/names.hpp"
#include "perdure/base/status.hpp"
#include "perdure/engine/background.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::papers::blurred {

class Truncator {
 public:
  using Lines = std::vector<std::uint64_t>;  ///< offsets in the data region
  /// A list of one element, made before the commit, where memory may still run out.
  using Node = std::list<Lines>;

  /// `low_watermark` returns an id up to which all have pushed. `note_checkpoint_id` makes X
  /// durable.
  Truncator(medium::Medium& medium, std::uint64_t x, std::function<std::uint64_t()> low_watermark,
            std::function<Status(std::uint64_t)> note_checkpoint_id);
  ~Truncator() { stop(); }
  Truncator(const Truncator&) = delete;
  Truncator& operator=(const Truncator&) = delete;

  /// Adds a transaction's lines, stored and not flushed, before its slot stops being pending.
  void push(Node& one) noexcept;
  /// Returns when the data region durably holds all transactions up to `id` and X says so, or with
  /// the medium's failure.
  Status wait(std::uint64_t id);
  // Acquire: pairs with the release in round(): X is durable.
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept {
    return x_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t rounds() const noexcept {
    return rounds_.load(std::memory_order_relaxed);
  }
  void stop();

 private:
  void work();
  bool start() noexcept;
  void round(std::unique_lock<std::mutex>& lock);
  medium::Medium& medium_;
  const std::function<std::uint64_t()> low_watermark_;
  const std::function<Status(std::uint64_t)> note_checkpoint_id_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::list<Lines> queue_;
  bool stopping_ = false, wanted_ = false;
  bool working_ = false;  // a thread is in round()
  Status failure_;
  std::atomic<std::uint64_t> x_, rounds_{0};
  PoolThread thread_;
};

}  // namespace perdure::papers::blurred
