// SPDX-License-Identifier: BSD-3-Clause
//
// ReaderGate: what a checkpoint does before it changes the data region, where processes may read
// the pool (engine/follow/follower.hpp). A reader that is reading shows up to which id it has made
// its pages private. The checkpoint waits until all have come as far as what it is about to write,
// then says so (READER-1). So a reader keeps its state for as long as it reads.
//
// It waits for `patience` at most. Readers that have not come by then are expelled: no checkpoint
// waits for them any more, and their next read finds that they were overtaken. A reader that is
// stopped, or too slow, so costs one wait, and nobody waits for one that attaches anew and keeps
// up. Correctness depends on no reader: this is courtesy.
// Thread safety: one checkpoint at a time; stats() from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/reader_words.hpp"

namespace perdure::engine::shadow {

class ReaderGate {
 public:
  /// How it sees readers and time; tests have others.
  struct World {
    /// Whether a reader shows a position in [from, to).
    std::function<bool(std::uint64_t from, std::uint64_t to)> reader_in;
    std::function<std::chrono::steady_clock::time_point()> now;
    std::function<void(std::chrono::microseconds)> nap;
  };
  ReaderGate(pool::ReaderWords& words, std::chrono::milliseconds patience, World world)
      : words_(words), patience_(patience), world_(std::move(world)) {}

  /// Of a session that begins: sets the words, which readers look at when serve_readers() is
  /// called. The data region has every transaction up to `checkpoint_id`; `durable_id` is
  /// ReaderWords'. Null if no other process can read the pool. `file` outlives the result.
  static std::unique_ptr<ReaderGate> of_session(pool::OpenPool& file,
                                                std::chrono::milliseconds patience,
                                                std::uint64_t checkpoint_id,
                                                std::uint64_t durable_id);

  /// The data region is about to get effects of transactions up to `id`.
  void pass(std::uint64_t id);

  [[nodiscard]] std::uint64_t waits() const noexcept {
    return waits_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t expelled() const noexcept {
    return expelled_.load(std::memory_order_relaxed);
  }

 private:
  pool::ReaderWords& words_;
  const std::chrono::milliseconds patience_;
  const World world_;
  std::uint64_t expelled_below_ = 0;  // positions below it are not waited for
  std::atomic<std::uint64_t> waits_{0}, expelled_{0};
};

}  // namespace perdure::engine::shadow
