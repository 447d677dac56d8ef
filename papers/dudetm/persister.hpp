// SPDX-License-Identifier: BSD-3-Clause
//
// Persister: DudeTM's Persist step (section 3.3), a log writer with what the paper has and the
// default engine does not have. Each of these is configured before any thread runs:
//
//   Groups: transactions are combined (combiner.hpp) and the record is compressed.
//     PERSIST-1  All transactions of a combined group are durable at once: they are one record, and
//                no other transaction is between them.
//   No promises (DudeTM-Inf): commits reserve nothing, and a step that lacks log space makes it.
//     That is right only where the data region is written from the log, because replay waits for
//     nothing else. A step is too late to allocate the bytes (ALLOC-1). So each thread has an
//     allowance of bytes that are allocated, and a commit that would exceed it asks for more before
//     it draws its id.
//   Commit timestamps with gaps as ids (tm/timestamps.hpp): the next transaction is not known by
//   its
//     number. The TM says up to which timestamp F every transaction is in its volatile log. A step
//     merges the logs up to F and gives consecutive numbers to what it takes, so records and
//     recovery are the same as without timestamps. Acknowledgements are by timestamp:
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
#include "papers/names.hpp"
#include "perdure/log/log_writer.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::papers::dudetm {

/// How transactions become records.
struct Grouping {
  /// The maximum number of transactions combined into one record. 0: a record has what there is
  /// when a step runs, uncombined.
  std::uint64_t transactions = 0;
  /// Whether combined records are packed (packed.hpp) where that makes them shorter.
  bool compress = false;
  pool::Directory directory = 0;  ///< the pool's, if they are combined
  /// If it is set, no commit reserves, and a step that lacks log space calls it until there is
  /// enough.
  std::function<Status()> wait_for_log_space;
  /// DudetmOptions::combined.
  std::function<void(const std::uint64_t* payload, std::uint64_t words)> combined = nullptr;
};

class Persister final : public LogWriter {
 public:
  using LogWriter::configure;
  /// Call it after the ring is configured. Throws std::bad_alloc.
  void configure(Grouping grouping);
  /// Ids are timestamps. Call it after the ring is configured. Every transaction with a timestamp
  /// <= the result of `complete()` is in its volatile log; later results may be lower.
  void configure(std::function<std::uint64_t()> complete) {
    complete_ = std::move(complete);
    taken_to_ = durable();
  }

  /// Returns whether commits reserve bytes. Otherwise each thread has an allowance. It may commit n
  /// words if the allowance is at least bytes_for(n), which is then subtracted from it.
  [[nodiscard]] bool promises() const noexcept { return !grouping_.wait_for_log_space; }
  /// An allowance without a bound: the whole ring is allocated.
  static constexpr std::uint64_t no_bound = ~std::uint64_t{0};
  /// Makes the calling thread's allowance at least bytes_for(words). The caller is between
  /// transactions. Returns `full` if the disk is full.
  Status allow(std::uint64_t words, std::uint64_t& allowance);

  using LogWriter::step;
  /// Does a step. With `whole` a group that is not full is not written yet.
  Outcome step(bool whole) { return step_unless(whole, false); }
  /// Returns the number of transactions gathered in a group that is not yet written.
  [[nodiscard]] std::uint64_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  /// Return the bytes of payload that were added to groups, and the bytes after combination.
  [[nodiscard]] std::uint64_t bytes_in() const noexcept {
    return bytes_in_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes_combined() const noexcept {
    return combined_.load(std::memory_order_relaxed);
  }
  /// Returns the cached payloads of packed records, for the thread that applies them.
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

  std::function<std::uint64_t()> complete_;  ///< set if ids are timestamps
  std::uint64_t up_to_ = 0;                  ///< this step's complete()
  /// Every transaction with a timestamp <= this is gathered or written.
  std::uint64_t taken_to_ = 0;
  Grouping grouping_;
  Combiner combiner_;
  RecordWriter packed_writer_;
  std::vector<std::uint64_t> packed_;
  Kept kept_;
  std::atomic<std::uint64_t> allowed_{0};  ///< bytes ever added to all threads' allowances
  std::atomic<std::uint64_t> waiting_{0}, bytes_in_{0}, combined_{0};
};

}  // namespace perdure::papers::dudetm
