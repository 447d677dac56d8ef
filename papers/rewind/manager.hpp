// SPDX-License-Identifier: BSD-3-Clause
//
// Manager: REWIND's transaction managers (papers: REWIND, VLDB '15, section 4): logging, commit,
// rollback, clearing and checkpoints, over one log (the paper's shared log) or one a thread or
// partition (its distributed log), in any composition.
//
//   update    an UPDATE record with old and new value, in the log; then the store to home (batch:
//             when its group is in the log)
//   commit    force: home's stores flushed as they were made, now fenced. ALLOC and DELETE records,
//             then END, with the commit's id
//   clear     force, at commit: the transaction's records are removed, oldest first, END last. The
//             newest END of a log stays: it has the newest id
//   rollback  a ROLLBACK record, and for each UPDATE, newest first, a CLR, then the store of the
//             old value; END
//   checkpoint  no-force: a CHECKPOINT record, flush_all; X in the header; then what had ended
//               before is removed, ENDs last
// Invariants: K1 an UPDATE or CLR is in the log before home may change (WAL). K2 the stores of a
// transaction that rolls back, and with force of every one, are durable before its END is in the
// log. K3 END is removed last. K4 no-force: all that a transaction below X stored is durable before
// the header says so, and that before one of its records is removed. K5 room for a transaction's
// CLRs, ROLLBACK and END is kept.
// Thread safety: a Transaction is one thread's. Logs are shared under their mutex, short to append,
// long to walk (section 4.7).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "papers/rewind/rewind_log.hpp"
#include "perdure/engine/engine.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/pool_file.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure::engine::rewind {

/// One point of the paper's design space (section 2).
struct Composition {
  unsigned layers = 1;
  bool force = false;
  log::LogVersion version = log::LogVersion::batch;
  /// batch. Not of the format: the log says how many of its records count
  std::uint64_t group = log::RewindShape{}.group;
};

/// A log, and the room that is kept in it for those who have begun (K5).
struct ManagedLog {
  ManagedLog(medium::Medium& medium, const log::RewindPlace& place, const log::RewindShape& shape,
             log::RewindLog::Use use)
      : log(medium, place, shape, use) {}
  log::RewindLog log;
  // records; a CHECKPOINT's, and the one's before, from the start
  std::uint64_t kept = 2;
  std::uint64_t last_end = 0;                 // force: LSN of the END that was left in the log
  std::vector<log::RewindLog::Cursor> found;  // clear()'s
};

/// What a manager knows of a transaction while it runs.
struct Transaction {
  std::uint64_t id = 0;  ///< 0: it has logged nothing
  std::uint64_t last_lsn = 0;
  std::uint64_t updates = 0, kept = 0, records = 0;
  /// it rolls back: its stores to home start their write-back, without force too (K2)
  bool flushes = false;
  struct Waiting {
    std::uint64_t offset, value, number;  ///< stored when the log holds so many records
  };
  std::vector<Waiting> waiting;  ///< batch: home's stores whose group is not in the log
  /// what was to be stored last where, since nothing waited (what is home by now, too)
  tm::WriteIndex newest;
  /// For the next one; the memory of `waiting` stays.
  void reset() noexcept {
    id = last_lsn = updates = kept = records = 0;
    flushes = false;
    waiting.clear();
    newest.clear();
  }
  /// The value that waits for `offset`; null: none.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t offset) const noexcept {
    return waiting.empty() ? nullptr : newest.find(offset);
  }
};

class Manager {
 public:
  using Use = log::RewindLog::Use;
  /// `use`: a rehearsal's logs write nothing.
  Manager(pool::PoolFile& file, const Composition& how, Use use = Use::real);

  /// Allocates what a session needs before its first transaction: some records in each log
  /// (ALLOC-1). `full` where the disk is.
  Status reserve();
  /// Each log is this session's, empty.
  Status format();
  /// Allocates more of the log, until `n` records find room beside what is kept, or there is no
  /// more of it. Whether they do. `full` where the disk is.
  Result<bool> extend(ManagedLog& log, std::uint64_t n);
  /// The same between transactions, before it is needed: what can't be had now is asked for again
  /// then. Cheap.
  void prepare_ahead(ManagedLog& log, std::uint64_t n) noexcept;
  [[nodiscard]] ManagedLog& log_of(std::uint64_t number) noexcept {
    return *logs_[number < logs_.size() ? number : logs_.size() - 1];
  }

  /// Logs and stores a word. False, with nothing changed: the log is too full (K5). Throws
  /// error(too_big), std::bad_alloc.
  bool update(ManagedLog& log, Transaction& tx, std::uint64_t offset, std::uint64_t value);
  /// Batch: what the transaction has logged is in the log, full group or not, and stored.
  void end_group(ManagedLog& log, Transaction& tx) noexcept;
  /// Room for so many heap records and END. False: the log is too full. Before the commit draws its
  /// id.
  bool prepare(ManagedLog& log, Transaction& tx, std::uint64_t heap_records);
  /// The transaction is durable, and has the commit id, when this returns ok. Its heap ops are not
  /// applied yet.
  template <class Ops>
  Status commit(ManagedLog& log, Transaction& tx, std::uint64_t commit_id,
                const Ops& ops) noexcept {
    const std::lock_guard lock(log.log.mutex());
    begin(log, tx);
    for (const pool::HeapOp& op : ops)
      append(log, tx, log::AriesRecord::heap(op, next_lsn(), tx.id));
    return end(log, tx, commit_id);
  }
  /// Force: after its heap ops are durable, or after its rollback.
  Status clear(ManagedLog& log, const Transaction& tx) noexcept;
  /// Home is as before the transaction.
  Status rollback(ManagedLog& log, Transaction& tx) noexcept;
  /// Where few of a log's cells are in use, it takes fewer buckets.
  void compact();
  /// No-force: every transaction with a commit id up to `x` has ended and its heap ops are stored.
  Status checkpoint(std::uint64_t x);

  static Status recover(pool::PoolFile& file, Recovery& report, const Composition& how);

  [[nodiscard]] std::uint64_t records() const noexcept;
  [[nodiscard]] std::uint64_t logs() const noexcept { return logs_.size(); }
  [[nodiscard]] const Composition& how() const noexcept { return how_; }

  // --- recovery's parts (recovery.cpp) ---
  /// A record that was met: LSNs and transactions go on behind it.
  void go_on_from(std::uint64_t lsn, std::uint64_t transaction) noexcept {
    lsn_ = std::max(lsn_.load(), lsn);
    ids_ = std::max(ids_.load(), transaction);
  }
  /// `tx` becomes the unfinished transaction `id`; `marks`: its ROLLBACK record is not in the log
  /// yet. Its room is what its records leave.
  void take_up(ManagedLog& log, Transaction& tx, std::uint64_t id, std::uint64_t last_lsn,
               std::uint64_t room, bool marks);
  /// A CLR, and the old value's store.
  void undo(ManagedLog& log, Transaction& tx, const log::AriesRecord& update) noexcept;
  /// END; the log's mutex is held, or nobody else is there.
  Status end(ManagedLog& log, Transaction& tx, std::uint64_t commit_id) noexcept;

 private:
  // Under the log's mutex: rising along it.
  [[nodiscard]] std::uint64_t next_lsn() noexcept {
    return lsn_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  void must_fit(const ManagedLog& log, std::uint64_t records) const;
  void begin(ManagedLog& log, Transaction& tx) noexcept;
  void reserve(ManagedLog& log, Transaction& tx, std::uint64_t heap_records);
  std::uint64_t append(ManagedLog& log, Transaction& tx, log::AriesRecord&& record) noexcept;
  void store(ManagedLog& log, Transaction& tx, std::uint64_t offset, std::uint64_t value,
             std::uint64_t number) noexcept;
  void store_now(const Transaction& tx, std::uint64_t offset, std::uint64_t value) noexcept;
  void drain(ManagedLog& log, Transaction& tx) noexcept;

  pool::PoolFile& file_;
  medium::Medium& medium_;
  const Composition how_;
  std::vector<std::unique_ptr<ManagedLog>> logs_;
  std::atomic<std::uint64_t> lsn_{0}, ids_{0};
};

}  // namespace perdure::engine::rewind
