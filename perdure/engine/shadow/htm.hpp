// SPDX-License-Identifier: BSD-3-Clause
//
// ShadowHtm, `shadow/htm`: the default engine's shadow, log and checkpoints under hardware
// transactions. A transaction's body is a hardware transaction on the shadow. Its isolation ends at
// XEND, and its record is appended and fenced afterwards, in the ring of its thread. What another
// transaction has seen of it before that, it depends on: its record names that record
// (DEPEND-1 to DEPEND-5, log/dependencies.hpp and ring_commits.hpp), and its thread waits until
// that one was acknowledged, too. No word is written by all transactions.
//
//   DEPEND-6 The checkpoint id covers only transactions below complete() (tm/htm.hpp): they are
//            acknowledged and have set their marks. A batch that was copied is written when
//            complete() has passed the time after its copy.
//   DEPEND-7 A transaction marks the lines of its words when it is visible, and before it stops
//            pending: an earlier checkpoint need not have them. The marks of heap words are set
//            with them, before isolation ends: a checkpoint that has seen a span's directory word
//            must find the marks of its bitmap (HEAP-4).
// Its pools have the strict order, and the feature `dependent records`. htm.md has the argument.
// Ids of callers are commit timestamps, ids of records and header are their upper 48 bits.
// Thread safety: transaction() and what is reached through it: the calling thread; everything else:
// any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "perdure/engine/redo_engine.hpp"
#include "perdure/engine/redo_transaction.hpp"
#include "perdure/engine/shadow/ring_commits.hpp"
#include "perdure/engine/view.hpp"

namespace perdure::engine::shadow {

class Checkpoint;

template <class Tm>
class ShadowHtm : public RedoEngine<ShadowHtm<Tm>, Tm, log::LogWriter> {
  using Base = RedoEngine<ShadowHtm<Tm>, Tm, log::LogWriter>;
  static_assert(tm::has_timestamps<Tm>);

 public:
  static constexpr const char* name = "shadow";
  static constexpr bool strict_only = true;
  static constexpr bool keeps_checksums = true;

  class Transaction;

  static pool::Identity identity(const Config& config) {
    return Base::identity_of(pool::CommitOrder::strict, config);
  }
  static Status supported() { return Tm::supported(); }

  /// Gives the pool the feature `dependent records`; throws error where its header can't be
  /// written.
  ShadowHtm(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~ShadowHtm();

  [[gnu::always_inline]] Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  /// Returns when all that a transaction with that id, which has ended, may have seen is durable.
  Status wait(std::uint64_t id);
  [[nodiscard]] std::uint64_t durable_id() const noexcept;
  /// What a transaction that stored nothing has seen need not be durable when it returns.
  [[nodiscard]] static constexpr bool strict() noexcept { return false; }
  Status checkpoint();
  Stats stats();
  /// Returns when what is needed is likely to be there. The caller's transaction was rolled back
  /// and holds nothing.
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  friend Base;
  template <class, class, class>
  friend class engine::RedoTransaction;
  using Base::background_, Base::core_, Base::followed_, Base::strict_, Base::rings_, Base::tm_,
      Base::writer_;

  // The threads that commit make the checkpoints, so the background thread has nothing to do.
  [[nodiscard]] static bool follow_log(std::chrono::microseconds /*nap*/) noexcept { return false; }
  [[nodiscard]] static bool nothing_to_follow() noexcept { return true; }
  [[nodiscard]] static bool persists_in_background() noexcept { return false; }
  [[nodiscard]] std::uint64_t last_recorded() const noexcept;
  [[nodiscard]] std::uint64_t bound_of_checkpoint() const noexcept;
  [[nodiscard]] std::size_t index_of(const log::Ring& ring) const noexcept;
  void slice(Transaction& transaction, bool all, std::uint64_t needed = 0);
  bool slice_locked(Transaction& transaction, std::size_t pages);

  Marks marks_;
  RingCommits commits_;
  std::unique_ptr<Checkpoint> checkpoint_;  // null if the pool is read-only
  std::mutex checkpointing_;
  std::atomic<std::uint64_t> checkpoints_{0}, checkpoint_id_{0};
  mutable std::atomic<std::uint64_t> durable_{0};  // the maximum that durable_id() has returned
  Transactions<Transaction> transactions_;
};

/// One thread's transaction. In a try of the hardware an abort takes back everything that it stores
/// here, too.
template <class Tm>
class ShadowHtm<Tm>::Transaction : public RedoTransaction<ShadowHtm<Tm>, Tm, log::LogWriter> {
  using Base = RedoTransaction<ShadowHtm<Tm>, Tm, log::LogWriter>;
  using Base::core_, Base::engine_, Base::offset_of, Base::ops_, Base::record_, Base::ring_,
      Base::target_, Base::tm_, Base::update_, Base::use_, Base::view_;

 public:
  Transaction(ShadowHtm& engine, int slot);

  void write(std::uint64_t* a, std::uint64_t v) {
    // SHADOW-2: what can fail comes before what can't, so the record has what was stored.
    tm_.own(a);
    tm_.keep(a);
    record_.word(offset_of(a), v);
    tm_.put(a, v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (i == 0 || (reinterpret_cast<std::uintptr_t>(a + i) & 63) == 0) tm_.own(a + i);
    for (std::uint64_t i = 0; i < n; ++i) tm_.keep(a + i);
    record_.words(offset_of(a), src, n);
    for (std::uint64_t i = 0; i < n; ++i) tm_.put(a + i, src[i]);
  }
  /// A commit that stored something is durable when it returns, whatever is asked for. One that
  /// stored nothing waits for what it saw unless it is `async`.
  std::uint64_t commit(Durability durability);

 private:
  friend class ShadowHtm;
  struct Named {
    std::size_t ring;
    std::uint64_t timestamp;
  };
  void apply_heap_ops();
  void mark_lines() noexcept;
  void name_open(std::uint64_t timestamp);
  bool become_durable(std::uint64_t timestamp);

  const Marks& mark_;
  std::size_t index_ = 0;     // of ring_
  std::vector<Named> named_;  // by the record that is being written
  std::uint64_t next_slice_ = 0;
};

}  // namespace perdure::engine::shadow
