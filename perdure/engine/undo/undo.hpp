// SPDX-License-Identifier: BSD-3-Clause
//
// Undo logging as in PMDK (Rudoff, ";login:" 2017; libpmemobj's transactions): a store writes the
// data region at once, after its old value was made durable.
//
//   store     The first store to a 64-byte line in a transaction writes a record with the line's
//             old words and fences it, then stores to the data region (1 fence per line). Where the
//             caller isolates, the record has only the words stored: the line's other words may
//             belong to another transaction.
//   commit    The lines are flushed and fenced; then a commit record with the heap ops is fenced (2
//             fences). The heap's bits follow: they are applied to the data region, flushed and
//             fenced (1 more fence, only where a transaction allocated or freed).
//   rollback  Old values are stored back, flushed and fenced; then an empty commit record is
//             fenced.
//   recovery  A ring's undo records after its last commit record belong to a transaction in flight:
//             they are rolled back, newest first. Then the heap ops of commit records above the
//             checkpoint id are applied again, in id order over all rings: to a copy of directory
//             and bitmaps in DRAM, whose final state is stored to the data region (StagedTarget),
//             because data lies in the data region alone, which may be newer than an op.
// Invariants:
// UNDO-1 A line's old value is durable before the line in the data region may change (MEDIUM-2).
// UNDO-2 Data is durable before the commit record is.
// UNDO-3 A ring's records are truncated only when their transaction has ended and the data region
// holds its heap ops (the checkpoint id).
// The TM isolates; its locks are held until the commit record is durable.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "perdure/engine/data_at_commit.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::undo {

/// The words that a transaction has logged, by line (one bit per word). It is cleared in constant
/// time by a new generation.
class LineSet {
 public:
  LineSet() : cells_(256) {}
  /// Returns those of the words that are not in the set.
  [[nodiscard]] std::uint8_t missing(std::uint64_t line, std::uint8_t words) const noexcept {
    const Cell& c = cells_[find(line)];
    return c.generation == generation_ ? static_cast<std::uint8_t>(words & ~c.words) : words;
  }
  void insert(std::uint64_t line, std::uint8_t words) {
    if (lines_.size() * 2 >= cells_.size()) grow();
    Cell& c = cells_[find(line)];
    if (c.generation != generation_) {
      lines_.push_back(line);
      c = {line, generation_, 0};
    }
    c.words = static_cast<std::uint8_t>(c.words | words);
  }
  [[nodiscard]] const std::vector<std::uint64_t>& lines() const noexcept { return lines_; }
  void clear() noexcept {
    ++generation_;
    lines_.clear();
  }

 private:
  struct Cell {
    std::uint64_t line = 0, generation = 0;
    std::uint8_t words = 0;
  };
  [[nodiscard]] std::size_t find(std::uint64_t line) const noexcept {
    // Returns its cell, or the free one where it would be.
    std::size_t i = hash(line);
    while (cells_[i].generation == generation_ && cells_[i].line != line)
      i = (i + 1) & (cells_.size() - 1);
    return i;
  }
  [[nodiscard]] std::size_t hash(std::uint64_t line) const noexcept {
    return static_cast<std::size_t>(base::mix(line)) & (cells_.size() - 1);
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& c : old)
      if (c.generation == generation_) cells_[find(c.line)] = c;
  }
  std::vector<Cell> cells_;
  std::vector<std::uint64_t> lines_;
  std::uint64_t generation_ = 1;
};

template <class Tm>
class Undo : public DataAtCommit<Tm> {
  using Base = DataAtCommit<Tm>;

 public:
  static constexpr const char* name = "undo";
  static constexpr bool ring_records = true;

  class Transaction;

  static pool::Identity identity(const Config& config) { return Base::a_log_each(config); }
  static Status recover(pool::OpenPool& file, Recovery& report);

  Undo(pool::OpenPool& file, const Config& config, const Recovery& recovery);

  Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint() { return truncate_logs(); }
  Status close();
  Stats stats();
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  struct UndoLog {  // one ring and what a checkpoint must know about it
    log::Ring ring;
    std::atomic<std::uint64_t> ended{0};  // records below are of transactions that have ended
  };
  Status truncate_logs();

  using Base::core_, Base::heap_bits_, Base::tm_;
  ThreadLogs<UndoLog> logs_;
  // Used by the checkpoint (truncate_logs) under truncating_. It is allocated beforehand, because a
  // commit calls the checkpoint when nothing may be allocated any more.
  std::vector<std::uint64_t> heads_;
  std::mutex truncating_;
  std::atomic<std::uint64_t> checkpoints_{0}, checkpoint_id_{0};
  Transactions<Transaction> transactions_;
};

template <class Tm>
class Undo<Tm>::Transaction : public TransactionBase<Tm> {
  using Base = TransactionBase<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::shows_, Base::tm_, Base::view_;

 public:
  Transaction(Undo& engine, int slot);

  void write(std::uint64_t* a, std::uint64_t v) { write_words(a, &v, 1); }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0, k; i < n; i += k) {  // one line at a time
      k = std::min<std::uint64_t>(n - i, 8 - (reinterpret_cast<std::uintptr_t>(a + i) >> 3 & 7));
      tm_.own(a + i);
      snapshot(a + i, k);
    }
    for (std::uint64_t i = 0; i < n; ++i) tm_.undo().push(a + i, a[i]);
    core_.medium.store(data_ + offset_of(a), src, n * 8);
  }
  std::byte* alloc(std::uint64_t bytes) {
    return view_ + ops_.allocate(heap_, bytes, tm_, view_, directory_).offset;
  }
  void free(void* p) { ops_.free(heap_, offset_of(p), tm_); }
  std::uint64_t commit(Durability durability);
  void rollback() noexcept;

 private:
  friend class Undo;
  void snapshot(std::uint64_t* a, std::uint64_t n);
  [[noreturn]] void log_full(std::uint64_t bytes);
  Status flush_lines();
  void take_log();
  Status append(log::RecordKind kind, std::uint64_t id, std::uint32_t transactions);
  void end() noexcept;

  log::RecordWriter record_;
  LineSet logged_;
  const std::uint64_t data_;
  Undo& engine_;
  typename ThreadLogs<UndoLog>::Use use_;
  log::Ring* ring_;              // of use_
  std::uint64_t log_bytes_ = 0;  // of this transaction
  // It has thrown LogFull with this many bytes: if a caller swallowed that, commit throws it
  // again.
  std::uint64_t needed_ = 0;
  log::DataWriter data_writer_;
};

}  // namespace perdure::engine::undo
