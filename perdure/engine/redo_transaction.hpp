// SPDX-License-Identifier: BSD-3-Clause
//
// RedoTransaction: the commit of a RedoEngine's transaction, in both orders, and what it needs: the
// redo record that the transaction's stores are gathered in, its log, and its volatile log. The
// stores are the engine's own: write() and write_words() put each into record_ (SHADOW-2) before
// they store it through tm_, and commit() chooses between commit_read_only(), commit_strict() and
// commit_pipelined(). shadow/shadow.hpp is the shortest example.
// Thread safety: used by its thread alone.
#pragma once

#include <cstdint>

#include "perdure/engine/redo_engine.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::engine {

/// `Engine` is a RedoEngine over `Tm` and `Writer`; it knows the pool's commit order.
template <class Engine, class Tm, class Writer>
class RedoTransaction : public TransactionBase<Tm> {
  using Base = TransactionBase<Tm>;
  using Rings = ThreadLogs<log::Ring>;

 public:
  void rollback() noexcept { (void)roll_back(); }
  std::byte* alloc(std::uint64_t bytes) { return view_ + record_alloc(bytes).offset; }
  void free(void* p) { (void)record_free(p); }

 protected:
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::ops_, Base::row_,
      Base::shows_, Base::tm_, Base::update_, Base::view_;

  /// `marks` receives the lines that heap ops change; null where the data region is not written
  /// from the mapping. `volatile_words` and `unbounded` are the volatile log's (volatile_log.hpp).
  /// `keeps_old`: the record has the old values (word(), words_over()), and the TM's undo log none.
  RedoTransaction(Engine& engine, int slot, const Marks* marks, std::uint64_t volatile_words,
                  bool unbounded, bool keeps_old)
      : Base(engine.tm_, engine.core_, slot),
        engine_(engine),
        use_(engine.rings_, slot),
        ring_(&engine.rings_[0]),
        target_(view_, marks),
        volatile_(engine.strict_ ? 16 : volatile_words, unbounded) {
    // A pool that is open for reading needs it too: commit asks whether the record is empty.
    record_.configure(ring_->seed(), ring_->max_record(), core_.medium.append_unit(), keeps_old);
    // The background thread commits nothing.
    if (!core_.file.read_only() && !engine.strict_ && slot < base::max_threads)
      engine.writer_.add(slot, volatile_);
  }
  ~RedoTransaction() = default;

  /// Take a block from the heap or give one back, and record it. What can fail comes before what
  /// can't.
  pool::HeapOp record_alloc(std::uint64_t bytes) { return record_alloc(bytes, tm_); }
  /// The same, where `owner` owns the lines of a new span's bitmap: own(a).
  template <class Owner>
  pool::HeapOp record_alloc(std::uint64_t bytes, Owner&& owner) {
    record_.room(2);
    const pool::HeapOp op = ops_.allocate(heap_, bytes, owner, view_, directory_);
    record_.heap_op(op);
    return op;
  }
  pool::HeapOp record_free(void* p) {
    record_.room(2);
    const pool::HeapOp op = ops_.free(heap_, this->offset_of(p), tm_);
    record_.heap_op(op);
    return op;
  }

  /// Takes back what the transaction stored. False: nothing was done, because it has committed
  /// (what failed came after) or the process is a forked child.
  bool roll_back() noexcept {
    return roll_back([]() noexcept {});
  }
  /// The same. `restored()` runs when the old values are back, before isolation ends.
  template <class Restored>
  bool roll_back(Restored&& restored) noexcept {
    if (!inside_) return false;
    inside_ = false;
    if (core_.forked()) return false;
    // Still isolated. Readers of other threads may look, and will see that the line is owned.
    // mutant: snapshot-restores-first
    const bool keeps_old = record_.keeps_old();
    // mutant: rollback-restores-old-values
    if (keeps_old)
      record_.each_old([this](std::uint64_t offset, std::uint64_t old) {
        tm::store_word(reinterpret_cast<std::uint64_t*>(view_ + offset), old);
      });
    // mutant: snapshot-restores-first-late
    restored();
    record_.reset();
    this->abandon();
    return true;
  }

  /// Ends a transaction that stored nothing. Returns the id that bounds what it saw.
  std::uint64_t commit_read_only(Durability durability) {
    const std::uint64_t seen = this->end_read_only();
    // The transaction changed nothing, but what it saw may not be durable yet, and its result may
    // reveal that (LAW-2). view() waits by itself.
    // mutant: read-acknowledged-durable
    if (update_ && !engine_.strict_ && durability != Durability::async)
      engine_.wait(seen).or_throw();
    return seen;
  }

  /// Strict order: takes a ring, or this thread's turn at the shared one, for commit_strict().
  /// Returns whether ring_ is another one than before.
  bool take_ring() {
    if (__builtin_expect(!use_.begin(), 1)) return false;
    ring_ = &use_.log();
    record_.bind(ring_->seed());
    return true;
  }
  /// Commits in the strict order, after take_ring(). `drawn(id)` runs within isolation, before the
  /// record is appended; `ended()` runs after isolation has ended.
  template <class Drawn, class Ended>
  [[gnu::always_inline]] std::uint64_t commit_strict(Drawn&& drawn, Ended&& ended) {
    struct Turn {
      Rings::Use& use;
      ~Turn() { use.end(); }
    } const turn{use_};
    const std::uint64_t bytes = record_.bytes();
    if (__builtin_expect(!ring_->fits(bytes) || !ring_->ready(bytes), 0))
      this->throw_log_full({bytes});
    std::uint64_t id = 0;
    bool durable = true;
    tm_.commit([&](std::uint64_t number) __attribute__((always_inline)) {
      id = number;
      // STRICT-1, the one fence: the record is durable before isolation ends, so before any thread
      // can read or overwrite what this transaction did, and before it is acknowledged. What it
      // read or overwrote may be lost: then it must not be durable without that (STRICT-2,
      // EngineBase::lost).
      // Heap bits change before the slot stops pending, so that the checkpoint id covers them
      // (shadow/checkpoint.hpp). No checkpoint may write them before the record is durable, so they
      // follow the fence, unless what a checkpoint copies beside this transaction counts only when
      // the transaction has ended (BESIDE-2), or it can't copy anything.
      drawn(number);
      const bool alone = tm_.alone();
      const auto meanwhile = [&] {
        count(bytes);
        if (alone && !ops_.empty()) apply_heap_ops();
      };
      // Nothing from here on throws.
      // mutant: strict-isolation-until-fence
      durable = this->persist_or_lose(
          number,
          [&]() __attribute__((always_inline)) {
            const std::uint64_t end = ring_->append(record_, log::RecordKind::commit, number, 1);
            meanwhile();
            return ring_->fence(end);
          },
          meanwhile);
      if (durable && !alone && !ops_.empty()) apply_heap_ops();
    });
    // mutant: strict-isolation-until-fence-late
    done(ended);
    if (__builtin_expect(!durable, 0)) core_.refuse();
    ring_->prepare_ahead();
    return id;
  }

  /// Commits in the pipelined order. Log space is promised before the id is drawn (LOGWRITER-3,
  /// log_writer.hpp). `drawn(id)` and `ended()` as in commit_strict().
  template <class Drawn, class Ended>
  std::uint64_t commit_pipelined(Durability durability, Drawn&& drawn, Ended&& ended) {
    const std::uint64_t words = record_.payload_words();
    if (__builtin_expect(!volatile_.fits(words), 0)) this->throw_log_full({0, Lack::volatile_log});
    volatile_.prepare(words);
    if (__builtin_expect(!engine_.writer_.reserve(words), 0))
      this->throw_log_full({record_.bytes() + 64});
    std::uint64_t id = 0;
    try {
      tm_.commit([&](std::uint64_t number) {
        id = number;
        drawn(number);
        if (!ops_.empty()) apply_heap_ops();  // before the push, so that durable() covers them
        volatile_.push(number, record_.payload(), words);
      });
    } catch (...) {
      if (id == 0) engine_.writer_.unreserve(words);
      throw;
    }
    end_pipelined(id, words, durability, ended);
    return id;
  }
  /// Called when transaction `id` has committed, with `words` of payload in the volatile log.
  template <class Ended>
  void end_pipelined(std::uint64_t id, std::uint64_t words, Durability durability, Ended&& ended) {
    count(words * 8);
    done(ended);
    if (durability == Durability::async) {
      engine_.commit_waits_for_nobody(id);
    } else {
      // mutant: pipelined-acknowledged-durable
      engine_.wait(id).or_throw();
    }
    ring_->prepare_ahead();
  }

  void apply_heap_ops() {
    target_.alone(tm_.alone());
    Base::apply_heap_ops(target_);
  }

  // Updates what a commit leaves behind, except the heap. Nothing of it depends on whether the
  // fence succeeds.
  void count(std::uint64_t bytes) noexcept {
    ThreadCounters::add(row_.commits);
    ThreadCounters::add(row_.log_bytes, bytes);
    record_.reset();
    show_ = shows_.due();
  }
  // Ends a commit, when its isolation has ended.
  template <class Ended>
  void done(Ended&& ended) {
    inside_ = false;
    ended();
    if (!ops_.empty()) {
      ops_.reusable(heap_);
      ops_.clear();
    }
    if (__builtin_expect(show_, 0)) EngineBase::show_stats(engine_);
  }

  log::RecordWriter record_;
  Engine& engine_;
  Rings::Use use_;   // strict order
  log::Ring* ring_;  // pipelined order: the pool's one; strict: the one that this thread has
  ViewTarget target_;
  log::VolatileLog volatile_;

 private:
  bool show_ = false;
};

}  // namespace perdure::engine
