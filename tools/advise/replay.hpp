// SPDX-License-Identifier: BSD-3-Clause
//
// ReplayPool: a scratch pool of one engine, and the loop that replays a thread's transactions on
// it, compiled for that engine: one virtual call per stretch of transactions, none per access
// (replay_over.hpp). cell.hpp starts the threads and measures.
//
// A transaction's body may run more than once, so it sets everything that it changes outside the
// pool anew from its start.
// Thread safety: a ReplayState belongs to its thread; any thread may set stop.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "perdure/api/options.hpp"
#include "tools/advise/program.hpp"

namespace perdure::tool {

/// One thread of a replay.
struct ReplayState {
  explicit ReplayState(const ReplayThread& what)
      : plan(what), base(what.blocks), ready(what.ready.size()), left(what.ready.size()) {}
  const ReplayThread& plan;
  std::vector<std::byte*> base;  ///< of each block; 0: the arena
  // Blocks that no thread will free in the replay, and blocks allocated in advance to be freed.
  // Both change only when a transaction has committed.
  std::vector<std::byte*> strays;
  std::uint64_t stray_bytes = 0;
  std::vector<std::vector<std::byte*>> ready;
  std::vector<std::size_t> left, before;  ///< of `ready`, not yet freed; at the transaction's start
  std::size_t next = 0;                   ///< the next transaction
  std::uint64_t sum = 0;                  ///< of the words that were read
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(4096, 0x0101010101010101U);

  // What has been done.
  std::uint64_t transactions = 0, updates = 0, passes = 0;
  std::uint32_t stride = 1, until = 1;  ///< one of `stride` updates is timed
  std::vector<float> microseconds;

  bool one_pass = false;          ///< return at the end of the pass
  std::uint64_t stray_limit = 0;  ///< return when the strays have this many bytes
  /// Whether another pass finds the blocks that it frees.
  [[nodiscard]] bool supplied() const noexcept {
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i] < plan.ready[i].each_pass) return false;
    return true;
  }
};

class ReplayPool {
 public:
  ReplayPool() = default;
  ReplayPool(const ReplayPool&) = delete;
  ReplayPool& operator=(const ReplayPool&) = delete;
  virtual ~ReplayPool() = default;

  /// Makes the arena, filled with zeros.
  virtual std::byte* make_arena(std::uint64_t bytes) = 0;
  /// Runs transactions from state.next on, pass after pass, until stop is set or one of the state's
  /// own limits is reached.
  virtual void work(ReplayState& state, const std::atomic<bool>& stop) = 0;
  /// Waits until everything that the calling thread committed is durable.
  virtual void settle() = 0;
  /// Frees the strays and allocates the blocks that `passes` passes will free.
  virtual void supply(ReplayState& state, std::uint64_t passes) = 0;
  [[nodiscard]] virtual Stats stats() = 0;
  [[nodiscard]] virtual std::string describe_medium() = 0;
};

/// Opens a new pool for engine `options.engine`; throws perdure::error.
[[nodiscard]] std::unique_ptr<ReplayPool> open_replay(const std::string& path,
                                                      const Options& options);

}  // namespace perdure::tool
