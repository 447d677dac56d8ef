// SPDX-License-Identifier: BSD-3-Clause
//
// Persister: DudeTM's Persist step (section 3.3) over the product's log writer, with what the paper
// has and the default engine has not. Each is chosen before the first thread:
//
//   Groups: transactions are combined (combiner.hpp) and the record is compressed.
//     PERSIST-1  Of a group that is combined all transactions are durable at once: they are one
//                record, and no other transaction is between them.
//   No promises (DudeTM-Inf): commits reserve nothing, and a step that lacks log space makes it.
//     That is right only where the data region is written from the log, which waits for nothing
//     else. That the bytes are allocated (ALLOC-1) can't be made true so late. So each thread has
//     an allowance of bytes that are, and a commit that would exceed it asks for more before it
//     draws its id.
//   Commit timestamps with gaps for ids (tm/stamps.hpp): the next one is not known by its number.
//     The TM says up to which timestamp F every transaction is in its volatile log. A step merges
//     the logs up to F and gives what it takes consecutive numbers, so records and recovery are as
//     ever. Acknowledgements are by timestamp:
//     PERSIST-2  durable() rises to F when all up to F is written, also where nothing had to be
//                written: a thread may wait for a timestamp that bounds what it has read.
// Thread safety: all calls but configure.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "papers/dudetm/combiner.hpp"
#include "papers/dudetm/kept.hpp"
#include "perdure/log/log_writer.hpp"

namespace perdure::log {

/// How transactions become records.
struct Grouping {
  /// The maximum number of transactions combined to one record; 0: a record has what there is when
  /// a step is run, uncombined.
  std::uint64_t transactions = 0;
  /// Combined records are packed (packed.hpp) where that makes them shorter.
  bool compress = false;
  std::uint64_t max_home_bytes = 0;  ///< the pool's, if they are combined
  /// Given: no commit reserves, and a step that lacks log space calls this until there is enough.
  std::function<Status()> wait_for_log_space;
};

class Persister final : public LogWriter {
 public:
  using LogWriter::configure;
  /// After the ring. Throws std::bad_alloc.
  void configure(Grouping grouping);
  /// Ids are timestamps; after the ring. `complete()`: every transaction with a timestamp <= its
  /// answer is in its volatile log; later answers may be lower.
  void configure(std::function<std::uint64_t()> complete) {
    complete_ = std::move(complete);
    taken_to_ = durable();
  }

  /// Whether commits reserve. Else each thread has an allowance, and may commit n words if it is at
  /// least bytes_for(n), which are then taken from it.
  [[nodiscard]] bool promises() const noexcept { return !grouping_.wait_for_log_space; }
  /// No bound: the ring is allocated as a whole.
  static constexpr std::uint64_t no_bound = ~std::uint64_t{0};
  /// Between transactions: makes the calling thread's allowance at least bytes_for(words). `full`
  /// where the disk is.
  Status allow(std::uint64_t words, std::uint64_t& allowance);

  using LogWriter::step;
  /// `whole`: a group that is not full is not written yet.
  Outcome step(bool whole) { return step_unless(whole); }
  /// Transactions gathered and not yet written: of a group that is not full.
  [[nodiscard]] std::uint64_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  /// Bytes of payload that transactions brought, and what combination left of them.
  [[nodiscard]] std::uint64_t bytes_came() const noexcept {
    return came_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes_combined() const noexcept {
    return combined_.load(std::memory_order_relaxed);
  }
  /// What packed records say, for the thread that applies them without a crash in between.
  [[nodiscard]] Kept& kept() noexcept { return kept_; }

 private:
  void look() noexcept override;
  bool gather() override;
  [[nodiscard]] bool due(bool full, bool may_wait) const noexcept override {
    return full || grouping_.transactions == 0 || !may_wait;
  }
  Status append(std::uint64_t last) override;
  [[nodiscard]] std::uint64_t durable_with(std::uint64_t last) const noexcept override {
    return complete_ ? taken_to_ : last;
  }
  void stepped() noexcept override;

  VolatileLog* next(VolatileLog::Item& item) noexcept {
    return complete_ ? oldest(item) : log_of(recorded() + gathered_ + 1, item);
  }
  VolatileLog* oldest(VolatileLog::Item& item) noexcept;
  void take(VolatileLog& log, const VolatileLog::Item& item) noexcept {
    if (complete_) taken_to_ = item.id;
    LogWriter::take(log, item);
  }
  bool gather_combined();
  Status append_fence(RecordWriter& record, RecordKind kind, std::uint64_t last);

  std::function<std::uint64_t()> complete_;  ///< given: ids are timestamps
  std::uint64_t up_to_ = 0;                  ///< of this step: complete()
  /// every transaction with a timestamp <= this is gathered or written
  std::uint64_t taken_to_ = 0;
  Grouping grouping_;
  Combiner combiner_;
  RecordWriter packed_writer_;
  std::vector<std::uint64_t> packed_;
  Kept kept_;
  std::atomic<std::uint64_t> allowed_{0};  ///< bytes of the ring that all threads' allowances were
  std::atomic<std::uint64_t> came_{0}, combined_{0};
};

}  // namespace perdure::log
