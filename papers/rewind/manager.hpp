// SPDX-License-Identifier: BSD-3-Clause
//
// Manager: REWIND's transaction managers (papers: REWIND, VLDB '15, section 4): logging, commit,
// rollback, clearing and checkpoints, over one log (the paper's shared log) or one per thread or
// partition (its distributed log), in any composition.
//
//   update    An UPDATE record with old and new value is in the log; then the word is stored to the
//             data region (batch: when its group is in the log).
//   commit    Force: the stores to the data region were flushed as they were made and are fenced
//             now. Then ALLOC and DELETE records are written, then END with the commit's id.
//   clear     Force, at commit: the transaction's records are removed, oldest first, END last. The
//             newest END of a log stays, because it has the newest id.
//   rollback  A ROLLBACK record is written; then for each UPDATE, newest first, a CLR is written
//             and the old value is stored; then END.
//   checkpoint  No-force: a CHECKPOINT record, flush_all, the checkpoint id in the header; then the
//             records of transactions that had ended before are removed, ENDs last.
// Invariants:
// REWIND-1 An UPDATE or CLR is in the log before the data region may change (WAL).
// REWIND-2 The stores of a transaction that rolls back, and with force of every transaction, are
// durable before its END is in the log.
// REWIND-3 END is removed last.
// REWIND-4 No-force: all that a transaction up to the checkpoint id stored is durable before the
// header says so, and the header before one of the transaction's records is removed.
// REWIND-5 Log space for a transaction's CLRs, ROLLBACK and END is reserved.
// Thread safety: a ManagedTransaction belongs to one thread. Logs are shared under their mutex,
// which is held briefly to append and long to walk (section 4.7).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "papers/names.hpp"
#include "papers/rewind/rewind_log.hpp"
#include "perdure/engine/engine.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure::papers::rewind {

/// One point of the paper's design space (section 2).
struct Composition {
  unsigned layers = 1;
  bool force = false;
  LogVersion version = LogVersion::batch;
  /// Batch only. It is not part of the format: the log says how many of its records count.
  std::uint64_t group = RewindShape{}.group;
};

/// A log, and the log space that is reserved in it for transactions that have begun (REWIND-5).
struct ManagedLog {
  ManagedLog(medium::Medium& medium, const RewindPlace& place, const RewindShape& shape,
             RewindLog::Use use)
      : log(medium, place, shape, use) {}
  RewindLog log;
  // In records; from the start 2, for a CHECKPOINT and the one before it.
  std::uint64_t kept = 2;
  // Force: the newest commit whose END was left in the log, and that END's LSN.
  std::uint64_t last_id = 0, last_end = 0;
  std::vector<RewindLog::Cursor> found;  // used by clear()
};

/// The state of a running transaction.
struct ManagedTransaction {
  std::uint64_t id = 0;  ///< 0: it has logged nothing
  std::uint64_t last_lsn = 0;
  std::uint64_t updates = 0, kept = 0, records = 0;
  /// It rolls back: the write-back of its stores is started, without force too (REWIND-2).
  bool flushes = false;
  struct Waiting {
    std::uint64_t offset, value, number;  ///< stored when the log holds this many records
  };
  std::vector<Waiting> waiting;  ///< batch: stores whose group is not in the log
  /// The last value for each word since no store waited (including what has been stored meanwhile).
  tm::WriteIndex newest;
  /// Prepares it for the next transaction; the memory of `waiting` stays.
  void reset() noexcept {
    id = last_lsn = updates = kept = records = 0;
    flushes = false;
    waiting.clear();
    newest.clear();
  }
  /// Returns the value that waits for `offset`; null: none.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t offset) const noexcept {
    return waiting.empty() ? nullptr : newest.find(offset);
  }
};

class Manager {
 public:
  using Use = RewindLog::Use;
  /// `use`: the logs of a rehearsal write nothing.
  Manager(pool::OpenPool& file, const Composition& how, Use use = Use::real);

  /// Allocates what a session needs before its first transaction: a few records in each log
  /// (ALLOC-1). Returns `full` where the disk is full.
  Status reserve();
  /// Makes each log this session's, empty.
  Status format();
  /// Allocates more of the log, until `n` records fit beside what is reserved, or all of the log is
  /// allocated. Returns whether they fit; `full` where the disk is full.
  Result<bool> extend(ManagedLog& log, std::uint64_t n);
  /// The same between transactions, before it is needed. A failure is dropped: the space is asked
  /// for again when it is needed. The call is cheap.
  void prepare_ahead(ManagedLog& log, std::uint64_t n) noexcept;
  [[nodiscard]] ManagedLog& log_of(std::uint64_t number) noexcept {
    return *logs_[number < logs_.size() ? number : logs_.size() - 1];
  }

  /// Logs and stores a word. Returns false, with nothing changed, if the log is too full
  /// (REWIND-5). Throws error(too_big), std::bad_alloc.
  bool update(ManagedLog& log, ManagedTransaction& tx, std::uint64_t offset, std::uint64_t value);
  /// Batch: what the transaction has logged is put in the log, full group or not, and stored.
  void end_group(ManagedLog& log, ManagedTransaction& tx) noexcept;
  /// Reserves log space for `heap_records` and END, before the commit draws its id. Returns false
  /// if the log is too full.
  bool prepare(ManagedLog& log, ManagedTransaction& tx, std::uint64_t heap_records);
  /// Commits: the transaction is durable, with the commit id, when this returns ok. Its heap ops
  /// are not applied yet.
  template <class Ops>
  Status commit(ManagedLog& log, ManagedTransaction& tx, std::uint64_t commit_id,
                const Ops& ops) noexcept {
    const std::lock_guard lock(log.log.mutex());
    begin(log, tx);
    for (const pool::HeapOp& op : ops) append(log, tx, AriesRecord::heap(op, next_lsn(), tx.id));
    return end(log, tx, commit_id);
  }
  /// Force: removes the transaction's records, after its heap ops are durable, or after its
  /// rollback.
  Status clear(ManagedLog& log, const ManagedTransaction& tx) noexcept;
  /// Rolls back: the data region is as before the transaction.
  Status rollback(ManagedLog& log, ManagedTransaction& tx) noexcept;
  /// Compacts each log with few cells in use into fewer buckets.
  void compact();
  /// No-force: takes a checkpoint. Every transaction with a commit id up to `x` has ended, and its
  /// heap ops are stored.
  Status checkpoint(std::uint64_t x);

  static Status recover(pool::OpenPool& file, Recovery& report, const Composition& how);

  [[nodiscard]] std::uint64_t records() const noexcept;
  [[nodiscard]] std::uint64_t logs() const noexcept { return logs_.size(); }
  [[nodiscard]] const Composition& how() const noexcept { return how_; }

  // --- recovery's parts (recovery.cpp) ---
  /// Called for a record that was found: LSNs and transactions continue after it.
  void go_on_from(std::uint64_t lsn, std::uint64_t transaction) noexcept {
    lsn_ = std::max(lsn_.load(), lsn);
    ids_ = std::max(ids_.load(), transaction);
  }
  /// Makes `tx` the unfinished transaction `id`. `marks`: its ROLLBACK record is not in the log
  /// yet. `room` is the number of records reserved for it.
  void take_up(ManagedLog& log, ManagedTransaction& tx, std::uint64_t id, std::uint64_t last_lsn,
               std::uint64_t room, bool marks);
  /// Writes a CLR and stores the old value.
  void undo(ManagedLog& log, ManagedTransaction& tx, const AriesRecord& update) noexcept;
  /// Writes END. The log's mutex is held, or there is no other thread.
  Status end(ManagedLog& log, ManagedTransaction& tx, std::uint64_t commit_id) noexcept;

 private:
  // Called under the log's mutex, so that LSNs rise along the log.
  [[nodiscard]] std::uint64_t next_lsn() noexcept {
    return lsn_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  void must_fit(const ManagedLog& log, std::uint64_t records) const;
  void begin(ManagedLog& log, ManagedTransaction& tx) noexcept;
  void reserve(ManagedLog& log, ManagedTransaction& tx, std::uint64_t heap_records);
  std::uint64_t append(ManagedLog& log, ManagedTransaction& tx, AriesRecord&& record) noexcept;
  void store(ManagedLog& log, ManagedTransaction& tx, std::uint64_t offset, std::uint64_t value,
             std::uint64_t number) noexcept;
  void store_now(const ManagedTransaction& tx, std::uint64_t offset, std::uint64_t value) noexcept;
  void drain(ManagedLog& log, ManagedTransaction& tx) noexcept;

  pool::OpenPool& file_;
  medium::Medium& medium_;
  const Composition how_;
  std::vector<std::unique_ptr<ManagedLog>> logs_;
  std::atomic<std::uint64_t> lsn_{0}, ids_{0};
};

}  // namespace perdure::papers::rewind
