// SPDX-License-Identifier: BSD-3-Clause
//
// Persister: DudeTM's Persist step. Takes committed transactions from the threads' volatile logs in id order, writes them as one record to the
// pool's one ring, and says up to which id everything is durable.
//
// Ids are dense, so "in id order" needs no coordination: the next id is at the front of exactly one volatile log, or not there
// yet. Whoever waits for durability may run a step (the first waiter persists for all who are waiting: one sync, many commits); a
// background thread may too. Order: prefix. Recovery replays the ring until it ends.
// Invariants: P1 durable() rises only after the record's fence. P2 a record holds consecutive ids, and follows the record before.
// P3 a commit reserves its bytes in the ring before it draws its id, so that a step never lacks room: a checkpoint that waits for
// durability (its lines may hold newer values than the ring) can always be served, and a full ring can't block the two on each other.
// Source: DudeTM (ASPLOS '17) 3.3; group commit (DeWitt et al., SIGMOD '84).
// Thread safety: all calls but configure.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "perdure/base/thread_slot.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/log/volatile_log.hpp"

namespace perdure::log {

class Persister {
 public:
  enum class Outcome : std::uint8_t {
    busy,     ///< another step is in progress
    nothing,  ///< no transaction is next (or the medium has failed)
    wrote     ///< a record was made durable
  };

  void configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes, std::size_t unit);
  /// Registers a thread's log.
  void add(int slot, VolatileLog& log) noexcept;

  /// P3: promises room for a transaction of n payload words. False: the ring is too full; nothing was promised.
  [[nodiscard]] bool reserve(std::uint64_t words) noexcept {
    const std::uint64_t n = footprint(words);
    const std::uint64_t before = outstanding_.fetch_add(n, std::memory_order_acq_rel);  // pairs with step's subtraction, after tail moved
    if (ring_->used() + before + n <= ring_->bytes()) return true;
    outstanding_.fetch_sub(n, std::memory_order_relaxed);
    return false;
  }
  /// Takes back a promise: the commit failed before it drew its id.
  void unreserve(std::uint64_t words) noexcept { outstanding_.fetch_sub(footprint(words), std::memory_order_relaxed); }
  /// Bytes promised and not yet written.
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_.load(std::memory_order_relaxed); }

  /// Every transaction with an id <= this is durable.
  [[nodiscard]] std::uint64_t durable() const noexcept { return durable_.load(std::memory_order_acquire); }  // pairs with step's release

  /// Writes what has been committed as one record. Waits for the medium alone.
  Outcome step();
  /// Returns when durable() >= id (running steps as needed), or when the medium has failed.
  Status wait(std::uint64_t id);
  [[nodiscard]] Status status() const;

  [[nodiscard]] std::uint64_t groups() const noexcept { return groups_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::uint64_t footprint(std::uint64_t words) const noexcept {  // alone in a record, with an end mark
    return ((words + header_words + 2) * 8 + unit_ - 1) / unit_ * unit_;
  }
  std::uint64_t gather();
  void fail(const Status& status);
  Status write(std::uint64_t transactions);

  Ring* ring_ = nullptr;
  std::uint64_t unit_ = 64;
  std::uint64_t gathered_bytes_ = 0;  ///< promises of the transactions in the writer
  std::mutex stepping_;
  mutable std::mutex failure_;
  Status status_;
  std::atomic<bool> failed_{false};
  std::uint64_t max_group_ = 0;
  RecordWriter writer_;
  int last_log_ = 0;
  std::atomic<int> used_logs_{0};
  std::array<std::atomic<VolatileLog*>, base::max_threads> logs_{};
  alignas(128) std::atomic<std::uint64_t> outstanding_{0};
  alignas(128) std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint32_t> steps_{0};  ///< what waiters sleep on
  std::atomic<int> sleepers_{0};
  std::atomic<std::uint64_t> groups_{0};
};

}  // namespace perdure::log
