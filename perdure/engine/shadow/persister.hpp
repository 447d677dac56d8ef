// SPDX-License-Identifier: BSD-3-Clause
//
// Persister: DudeTM's Persist step. Takes committed transactions from the threads' volatile logs in
// id order, writes them as one record to the pool's one ring, and says up to which id everything is
// durable. On demand it combines the transactions of a group and compresses the record.
//
// Ids are dense, so "in id order" needs no coordination: the next id is at the front of exactly one
// volatile log, or not there yet. Whoever waits for durability may run a step (the first waiter
// persists for all who are waiting: one sync, many commits); a background thread may too. Order:
// prefix. Recovery replays the ring until it ends.
// Invariants: P1 durable() rises only after the record's fence. P2 a record holds consecutive ids,
// and follows the record before.
// P3 a commit reserves its bytes in the ring before it draws its id, so that a step never lacks
// room: a checkpoint that waits for durability (its lines may hold newer values than the ring) can
// always be served, and a full ring can't block the two on each other. Without promises
// (DudeTM-Inf) a step that lacks room makes it: only where home is written from the log, which
// waits for nothing else. That the bytes are allocated (ALLOC-1) can't be made true so late: where
// nobody reserves, each thread has an allowance of bytes that are, and a commit that would exceed
// it asks for more before it draws its id.
// P4 of a group that is combined all transactions are durable at once: they are one record, and no
// other transaction is between them. Where ids are stamps, with gaps (tm/stamps.hpp), the next one
// is not known by its number. The TM says up to which stamp F every transaction is in its volatile
// log; a step merges the logs up to F and gives what it takes consecutive numbers, so records and
// recovery are as ever. Acknowledgements are by stamp:
// P5 durable() rises to F when all up to F is written, also where nothing had to be: somebody may
// wait for a stamp that bounds what he has read.
// Source: DudeTM (ASPLOS '17) 3.3; group commit (DeWitt et al., SIGMOD '84).
// Thread safety: all calls but configure.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/shadow/combiner.hpp"
#include "perdure/engine/shadow/kept.hpp"
#include "perdure/engine/shadow/volatile_log.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::log {

/// How transactions become records.
struct Grouping {
  /// combined, so many at most to a record; 0: a record has what there is when somebody comes,
  /// uncombined
  std::uint64_t transactions = 0;
  /// combined records are packed (packed.hpp) where that makes them shorter
  bool compress = false;
  std::uint64_t max_home_bytes = 0;  ///< the pool's, if they are combined
  /// given: nobody reserves, and a step that lacks room calls this until there is some
  std::function<Status()> make_room;
};

class Persister {
 public:
  enum class Outcome : std::uint8_t {
    busy,      ///< another step is in progress
    nothing,   ///< no transaction is next (or the medium has failed)
    gathered,  ///< some joined a group that is not full: nothing was written
    wrote      ///< a record was made durable
  };

  void configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes,
                 std::size_t unit);
  /// Before any thread; else nothing is combined. Throws std::bad_alloc.
  void configure(Grouping grouping);
  /// Ids are stamps. `complete()`: every transaction with a stamp <= its answer is in its volatile
  /// log; later answers may be lower. Before any thread.
  void configure(std::function<std::uint64_t()> complete);
  /// Registers a thread's log.
  void add(int slot, VolatileLog& log) noexcept;

  /// P3: promises room for a transaction of n payload words. False: the ring is too full; nothing
  /// was promised.
  [[nodiscard]] bool reserve(std::uint64_t words) noexcept {
    if (grouping_.make_room) return true;
    const std::uint64_t n = footprint(words);
    // pairs with step's subtraction, after tail moved
    const std::uint64_t before = outstanding_.fetch_add(n, std::memory_order_acq_rel);
    if (ring_->used() + before + n <= ring_->bytes() && ring_->ready(before + n)) return true;
    outstanding_.fetch_sub(n, std::memory_order_relaxed);
    return false;
  }
  /// Takes back a promise: the commit failed before it drew its id.
  void unreserve(std::uint64_t words) noexcept {
    if (!grouping_.make_room) outstanding_.fetch_sub(footprint(words), std::memory_order_relaxed);
  }
  /// After reserve() was refused: was it because the log's next bytes are not allocated?
  [[nodiscard]] bool lacks_blocks(std::uint64_t words) const noexcept {
    return !ring_->ready(outstanding() + footprint(words));
  }
  /// Between transactions: allocates them. `full` where the disk is; nothing has changed then.
  Status prepare(std::uint64_t words) { return ring_->prepare(outstanding() + footprint(words)); }
  /// Whether commits reserve. Else each has an allowance, and may commit n words if it is at least
  /// bytes_for(n), which are then taken from it.
  [[nodiscard]] bool promises() const noexcept { return !grouping_.make_room; }
  [[nodiscard]] std::uint64_t bytes_for(std::uint64_t words) const noexcept {
    return footprint(words);
  }
  /// No bound: the ring is allocated as a whole.
  static constexpr std::uint64_t no_bound = ~std::uint64_t{0};
  /// Between transactions: makes the calling thread's allowance at least bytes_for(words). `full`
  /// where the disk is.
  Status allow(std::uint64_t words, std::uint64_t& allowance);

  /// Bytes promised and not yet written.
  [[nodiscard]] std::uint64_t outstanding() const noexcept {
    return outstanding_.load(std::memory_order_relaxed);
  }

  /// Every transaction with an id <= this is durable.
  // pairs with step's release
  [[nodiscard]] std::uint64_t durable() const noexcept {
    return durable_.load(std::memory_order_acquire);
  }

  /// The number of the newest transaction in a durable record: durable() itself, unless ids are
  /// stamps.
  // pairs with write's release
  [[nodiscard]] std::uint64_t recorded() const noexcept {
    return recorded_.load(std::memory_order_acquire);
  }

  /// Writes what has been committed as one record. Waits for the medium alone. `whole`: a group
  /// that is not full is not written yet.
  Outcome step(bool whole = false);
  /// Transactions gathered and not yet written: of a group that is not full.
  [[nodiscard]] std::uint64_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  /// Returns when durable() >= id (running steps as needed), or when the medium has failed.
  Status wait(std::uint64_t id);
  [[nodiscard]] Status status() const;

  [[nodiscard]] std::uint64_t groups() const noexcept {
    return groups_.load(std::memory_order_relaxed);
  }
  /// Bytes of payload that transactions came with, after combination, and as written: what
  /// combination and compression saved.
  [[nodiscard]] std::uint64_t bytes_came() const noexcept {
    return came_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes_combined() const noexcept {
    return combined_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes_written() const noexcept {
    return written_.load(std::memory_order_relaxed);
  }
  /// What packed records say, for whoever applies them without a crash in between.
  [[nodiscard]] Kept& kept() noexcept { return kept_; }

 private:
  [[nodiscard]] std::uint64_t footprint(std::uint64_t words) const noexcept {
    // alone in a record, with an end mark
    return ((words + header_words + 2) * 8 + unit_ - 1) / unit_ * unit_;
  }
  /// The volatile log at whose front the next transaction is, or null.
  VolatileLog* next(VolatileLog::Item& item) noexcept {
    return complete_ ? oldest(item) : log_of(recorded() + gathered_ + 1, item);
  }
  VolatileLog* log_of(std::uint64_t id, VolatileLog::Item& item) noexcept;
  VolatileLog* oldest(VolatileLog::Item& item) noexcept;
  void look() noexcept;
  void take(VolatileLog& log, const VolatileLog::Item& item) noexcept;
  bool gather();
  bool gather_combined();
  bool take_in(const VolatileLog::Item& item) noexcept;
  void out_of_memory();
  void fail(const Status& status);
  Status write();
  Status append(RecordWriter& record, RecordKind kind, std::uint64_t last);

  Ring* ring_ = nullptr;
  std::uint64_t unit_ = 64;
  std::uint64_t gathered_bytes_ = 0;  ///< promises of the transactions gathered
  /// how many: numbers recorded() + 1 and those that follow
  std::uint64_t gathered_ = 0;
  std::function<std::uint64_t()> complete_;  ///< given: ids are stamps
  std::uint64_t up_to_ = 0;                  ///< of this step: complete()
  /// every transaction with a stamp <= this is gathered or written
  std::uint64_t taken_to_ = 0;
  Grouping grouping_;
  Combiner combiner_;
  std::vector<std::uint64_t> packed_;
  Kept kept_;
  std::mutex stepping_;
  mutable std::mutex failure_;
  Status status_;
  std::atomic<bool> failed_{false};
  std::uint64_t max_group_ = 0;
  RecordWriter writer_, packed_writer_;
  int last_log_ = 0;
  std::atomic<int> used_logs_{0};
  std::array<std::atomic<VolatileLog*>, base::max_threads> logs_{};
  alignas(128) std::atomic<std::uint64_t> outstanding_{0};
  std::atomic<std::uint64_t> allowed_{0};  ///< bytes of the ring that all threads' allowances were
  alignas(128) std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint32_t> steps_{0};  ///< what waiters sleep on
  std::atomic<int> sleepers_{0};
  std::atomic<std::uint64_t> groups_{0}, waiting_{0}, came_{0}, combined_{0}, written_{0};
};

}  // namespace perdure::log
