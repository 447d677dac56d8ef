// SPDX-License-Identifier: BSD-3-Clause
//
// Claim: the free chunks that a trim holds while it gives their blocks back to the file system and
// transactions run. engine/trim.hpp runs the steps of a trim; Heap has the calls.
//
//   claimed   -> the chunks are in no list: no transaction can reserve them
//   clearing  -> a transaction frees the spans among them that have no block in use: the directory
//                has the word 0 for each of the chunks afterwards, in every copy and in the log
//   claimed   -> the trim waits for the transactions that may have seen older contents, and takes a
//                checkpoint
//   punching  -> their blocks are given back
// A transaction that finds no other free chunk takes the claim back in the state `claimed`. In the
// other two states it first waits for the end of the step: clearing ends when its transaction
// commits or is rolled back, and punching only makes calls of the medium. So a trim makes no
// transaction fail with `full` and no data region grow, unless clearing takes longer than max_wait.
// Invariants: TRIM-3, TRIM-4 (engine/trim.hpp).
// Thread safety: the caller holds the heap's mutex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::pool {

struct HeapOp;

/// Consecutive chunks of the data region.
struct ChunkRange {
  std::uint64_t first = 0, count = 0;
};

/// What a trim has claimed.
struct FreeClaim {
  std::vector<ChunkRange> runs;   ///< all chunks that are claimed, by address
  std::vector<ChunkRange> spans;  ///< in these: spans without a block in use, whose words are not 0
  bool more = false;              ///< there may be more to claim
};

class Claim {
 public:
  /// Returns when no other thread has a claim; the mutex is released meanwhile.
  void begin(std::unique_lock<std::mutex>& lock);
  /// Replaces what is claimed. Throws std::bad_alloc, with nothing changed.
  void add(const FreeClaim& claim);
  /// Whether it holds chunks. After a transaction has taken the claim back it holds none.
  [[nodiscard]] bool held() const noexcept { return state_ != State::none; }
  [[nodiscard]] const std::vector<ChunkRange>& runs() const noexcept { return claim_.runs; }
  [[nodiscard]] bool begin_clearing() noexcept;
  /// The op that clears the words of the span at `offset`, if the calling thread is clearing it;
  /// otherwise `other`.
  Result<HeapOp> clear(std::uint64_t offset, const Result<HeapOp>& other);
  [[nodiscard]] bool is_clearing(std::uint64_t offset) const noexcept;
  /// Call this when the transaction that has this op has committed or was rolled back. Returns
  /// false if the op is not one of this claim.
  bool op_ended(const HeapOp& op) noexcept;
  /// The body that called clear() has ended.
  void cleared() noexcept;
  [[nodiscard]] bool begin_punching() noexcept;
  /// Empties the claim: the chunks belong to the caller from now on, not to the thread that claimed
  /// them.
  void forget() noexcept;
  /// The thread that called begin() is done: another one may begin.
  void end() noexcept;
  /// Waits until the claim's chunks may be taken back or the claim has none, and returns true.
  /// Returns false if clearing takes longer than max_wait. The mutex is released meanwhile.
  bool wait_while_used(std::unique_lock<std::mutex>& lock);
  /// A commit takes less. A bound is needed, since two threads may share a log: the thread that
  /// clears may then wait for the log of the transaction that waits here.
  static constexpr std::chrono::seconds max_wait{1};

 private:
  enum class State : std::uint8_t { none, claimed, clearing, punching };
  [[nodiscard]] const ChunkRange* span_at(std::uint64_t offset) const noexcept;
  void change(State state) noexcept {
    state_ = state;
    changed_.notify_all();
  }

  State state_ = State::none;
  bool begun_ = false;
  bool in_body_ = false;   // clearing: the transaction's body is running
  std::uint64_t ops_ = 0;  // clearing: ops that have neither been committed nor taken back
  int slot_ = -1;          // clearing: the thread's slot
  FreeClaim claim_;
  std::condition_variable changed_;
};

}  // namespace perdure::pool
