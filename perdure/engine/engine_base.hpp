// SPDX-License-Identifier: BSD-3-Clause
//
// What every engine needs around its protocol: the table of transactions, the state that refuses
// work (poisoned, closed, forked), the heap operations of a transaction, counters. It contains no
// protocol.
//
// Thread safety: refuse(), poison() and state() from any thread; a transaction and its HeapOps
// belong to one thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/engine.hpp"
#include "perdure/engine/stat_page.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine {

/// What a transaction waits for, rolled back, before it runs again.
enum class Lack : std::uint8_t {
  log_space,      ///< bytes in its log, or blocks for them (ALLOC-1)
  volatile_log,   ///< its volatile log is full (redo_transaction.hpp)
  page_eviction,  ///< a page that it stores to is being evicted (papers/dudetm/paging.hpp)
  nothing         ///< it only has to run in another way (shadow/writer.hpp)
};
struct LogSpace {
  std::uint64_t bytes = 0;  ///< log_space: how many
  Lack lack = Lack::log_space;
};
/// Thrown inside an engine: the transaction finds too little log space. It is rolled back, and runs
/// again after wait_for_log_space().
struct LogFull {
  LogSpace needed;
  /// The TM of the transaction: a transaction on one pool may run inside one on another pool.
  const void* whose;
};

/// One thread's counters; only its owner writes.
struct alignas(128) ThreadCounters {
  std::atomic<std::uint64_t> commits{0}, reads{0}, aborts{0}, log_bytes{0};
  [[gnu::always_inline]] static void add(std::atomic<std::uint64_t>& c,
                                         std::uint64_t n = 1) noexcept {
    c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

class EngineBase {
 public:
  EngineBase(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~EngineBase();
  EngineBase(const EngineBase&) = delete;
  EngineBase& operator=(const EngineBase&) = delete;

  /// Returns 0 while the pool accepts work. It costs one relaxed load at every begin.
  [[nodiscard]] std::uint32_t state() const noexcept {
    return state_.load(std::memory_order_relaxed);
  }
  /// Returns whether this is the child of a fork(). Nothing of the parent's may be touched there:
  /// the mapping of the data is gone, and the log and the data region are still the parent's.
  [[nodiscard]] bool forked() const noexcept {
    return __builtin_expect((state() & forked_bit) != 0, 0);
  }
  /// Throws the error that state() stands for.
  [[noreturn]] void refuse() const;
  /// Returns that error as a Status. It needs no memory: after a commit nothing else may be thrown
  /// instead.
  [[nodiscard]] Status why() const noexcept;
  /// Called after a failure of the medium (LAW-9). The first failure is stored, and all later
  /// errors name it.
  void poison(const Status& status) noexcept;
  /// From now on the pool refuses work with `why`, unless it refuses already.
  void depose(const Status& why) noexcept;
  /// Poisons the pool if the medium has failed, and returns whether it has. Called where a call of
  /// the medium failed outside a commit, such as an allocation of log space: the medium may have
  /// failed on another thread, which has not told the pool yet.
  bool poison_with_medium() noexcept;
  [[nodiscard]] bool poisoned() const noexcept {
    return __builtin_expect((state() & poisoned_bit) != 0, 0);
  }
  /// STRICT-2: the transaction `id` committed, but its record may not be durable. Call this before
  /// releasing locks, so that every dependent transaction sees poisoned() at its own commit: it
  /// must neither become durable nor be acknowledged without `id`.
  void lost(std::uint64_t id, const Status& status) noexcept;
  /// Returns a bound: every finished id below it is durable (in engines that hold locks through the
  /// fence).
  [[nodiscard]] std::uint64_t first_lost() const noexcept {
    return first_lost_.load(std::memory_order_relaxed);
  }
  void closed() noexcept { refusing(closed_bit); }
  /// Names the domain of the engine's TM, whose grants are taken back when the pool refuses. Called
  /// once, by the engine's constructor.
  void views_in(tm::Domain& domain) noexcept { domain_ = &domain; }
  /// Waits for the end of each transaction of another thread that is open now
  /// (Domain::wait_for_open). REQUIRES: the caller is in no transaction.
  void wait_for_open_transactions() noexcept {
    if (domain_ != nullptr) domain_->wait_for_open(base::thread_slot());
  }
  static constexpr std::uint32_t poisoned_bit = 1, closed_bit = 2, forked_bit = 4,
                                 read_only_bit = 8;

  /// Changes the header under its lock and publishes it.
  template <class F>
  Status publish(F&& change) {
    return file.publish([&](pool::Header& h) { change(h); });
  }
  void fill(Stats& stats) const;
  void show(const Stats& stats) noexcept;  ///< stores them into the live page
  template <class Engine>
  static void show_stats(Engine& engine) noexcept {
    try {
      engine.core().show(engine.stats());
    } catch (const std::bad_alloc&) {  // the next call stores them
    }
  }
  [[nodiscard]] StatWriter& page() noexcept { return page_; }

  pool::OpenPool& file;
  medium::Medium& medium;
  const Config config;
  const Recovery recovery;
  std::array<ThreadCounters, base::slot_count> rows;

 private:
  static void in_forked_child();
  // Sets the bit, so that begin() refuses, and then ends direct views, which do not look at it.
  void refusing(std::uint32_t bit) noexcept;
  static const int marked_;  // the result of pthread_atfork
  std::atomic<std::uint32_t> state_{0};
  tm::Domain* domain_ = nullptr;
  std::atomic<std::uint64_t> first_lost_{tm::no_id};
  mutable std::mutex mutex_;
  Status failure_;
  StatWriter page_;
};

/// Decides which of a thread's commits update the live page: the first, then one after 2 more, 4
/// more, ..., up to one in 4,096 (one in 64 where a fence is a sync). So a program that becomes
/// idle has shown at least half of its commits, or all but the last 4,096 (64).
class ShowTimer {
 public:
  explicit ShowTimer(bool fence_is_sync) noexcept : most_(fence_is_sync ? 64 : 4096) {}
  /// Called for each commit. Returns whether to update the page.
  [[nodiscard]] bool due() noexcept {
    if (__builtin_expect(--left_ != 0, 1)) return false;
    left_ = step_ = std::min(step_ * 2, most_);
    return true;
  }

 private:
  std::uint32_t left_ = 1, step_ = 1;
  const std::uint32_t most_;
};

/// The blocks that a transaction allocated and freed, in order.
class HeapOps {
 public:
  [[nodiscard]] bool empty() const noexcept { return ops_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return ops_.begin(); }
  [[nodiscard]] auto end() const noexcept { return ops_.end(); }
  void clear() noexcept {
    ops_.clear();
    if (!index_.empty()) index_.clear();
  }
  /// Throws std::bad_alloc with the op left out.
  void add(const pool::HeapOp& op) {
    ops_.push_back(op);
    if (ops_.size() >= indexed_from) index(op);
  }
  /// Returns the latest op on the block at `offset`, or null.
  [[nodiscard]] const pool::HeapOp* latest(std::uint64_t offset) const {
    if (!index_.empty()) {
      const auto it = index_.find(offset);
      return it == index_.end() ? nullptr : &ops_[it->second];
    }
    for (std::size_t i = ops_.size(); i-- > 0;)
      if (ops_[i].offset == offset) return &ops_[i];
    return nullptr;
  }
  /// Allocates `bytes` and returns the op; throws error(full, invalid). `view`: offset 0's address.
  /// Where the mapping has no span yet for the block, the commit will zero the span's bitmap, on
  /// memory that was data: of blocks freed since other transactions began. No orec would invalidate
  /// transactions that still read it, and no owner would delay one that has stored to it and will
  /// restore its old value. So this transaction owns the bitmap's lines, as if it had stored the
  /// zeros; will_zero(from, bytes), if `tm` has it, is told of them.
  template <class Tm>
  pool::HeapOp allocate(pool::Heap& heap, std::uint64_t bytes, Tm& tm, const std::byte* view,
                        const pool::Directory& directory) {
    const pool::HeapOp op = reserve(heap, bytes);
    if (op.cls < pool::small_classes) {
      const pool::ClassInfo& info = pool::classes[op.cls];
      const std::uint64_t chunk =
          pool::span_chunk_of(op.offset, info.chunks, directory.first_chunk());
      const auto word = [view](std::uint64_t offset) {
        return reinterpret_cast<const std::uint64_t*>(view + offset);
      };
      // Acquire: pairs with the targets' store: a thread that sees the span's word sees its bitmap.
      if (__builtin_expect(__atomic_load_n(word(directory.word(chunk)), __ATOMIC_ACQUIRE) !=
                               pool::span_word(op.cls).bits,
                           0))
        try {
          for (std::uint64_t at = 0; at < info.first; at += 64)
            tm.own(word(chunk * pool::chunk_bytes + at));
          // Another transaction may have made the span before these lines were owned: it applies
          // its ops first, so they are a bitmap by now, and no data.
          if constexpr (requires { tm.will_zero(word(0), info.first); })
            // mutant: snapshot-span-made-meanwhile
            if (__atomic_load_n(word(directory.word(chunk)), __ATOMIC_ACQUIRE) !=
                pool::span_word(op.cls).bits)
              tm.will_zero(word(chunk * pool::chunk_bytes), info.first);
        } catch (...) {
          take_back_last(heap);
          throw;
        }
    }
    return op;
  }
  /// Frees the block at `offset`, allocated by a committed transaction or by this one, and returns
  /// the op; throws error(invalid). Where another transaction is freeing it, or has freed it since
  /// `tm` began, that is a conflict: the pointer that led to the block is about to change.
  template <class Tm>
  pool::HeapOp free(pool::Heap& heap, std::uint64_t offset, Tm& tm) {
    auto op = prepare_free(heap, offset);
    if (__builtin_expect(!op.ok(), 0)) {
      tm.recheck(op.code() == Code::busy);
      op.status().or_throw();
    }
    try {
      add(*op);
    } catch (...) {
      heap.release(*op);
      throw;
    }
    return *op;
  }
  /// First step of an abort, while the transaction is still isolated: later transactions may free
  /// the same blocks.
  void forget_frees(pool::Heap& heap) noexcept;
  /// Second step, after the TM's rollback: releases what was allocated. So old values are restored
  /// only in blocks that no other transaction can have.
  void release(pool::Heap& heap) noexcept;
  /// Called after commit: freed blocks may be reserved again.
  void reusable(pool::Heap& heap) noexcept {
    for (const auto& op : ops_)
      if (!op.set) heap.reusable(op);
  }

 private:
  void index(const pool::HeapOp& op);
  void take_back_last(pool::Heap& heap) noexcept;
  pool::HeapOp reserve(pool::Heap& heap, std::uint64_t bytes);
  Result<pool::HeapOp> prepare_free(pool::Heap& heap, std::uint64_t offset);
  static constexpr std::size_t indexed_from = 64;  // from here on look-ups use a hash index
  std::vector<pool::HeapOp> ops_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

/// The transactions of an engine, one per thread slot, made at a thread's first transaction. A
/// thread that takes over a slot takes its transaction.
template <class Transaction>
class Transactions {
 public:
  ~Transactions() {
    for (auto& c : table_) delete c.load(std::memory_order_relaxed);
  }
  template <class Make>
  [[gnu::always_inline]] Transaction& get(Make&& make) {
    const auto slot = static_cast<std::size_t>(base::thread_slot());
    // Acquire: pairs with the release in add() by an earlier owner of the slot.
    Transaction* const c = table_[slot].load(std::memory_order_acquire);
    return __builtin_expect(c != nullptr, 1) ? *c : add(slot, make);
  }
  template <class F>
  void for_each(F&& f) {
    for (auto& entry : table_)
      if (Transaction* c = entry.load(std::memory_order_acquire)) f(*c);  // pairs with add()
  }

 private:
  template <class Make>
  [[gnu::noinline]] Transaction& add(std::size_t slot, Make& make) {
    Transaction* const c = make(static_cast<int>(slot)).release();
    table_[slot].store(c, std::memory_order_release);
    return *c;
  }
  std::array<std::atomic<Transaction*>, base::slot_count> table_{};
};

/// What a change of a transaction threw. What threw it may be in the middle of a container's call,
/// so a lambda that catches it has left that call half done: the transaction must not commit, and
/// its end throws it again. Containers tell of their own exceptions, too, where these may come
/// between two changes.
/// REFUSED-1 A transaction in which a change has thrown does not commit, whether its lambda catches
/// that or not. The one exception is error(invalid) of Tx::free(): what is no block is not freed,
/// and nothing has changed.
/// Thread safety: its transaction's thread.
class Refusal {
 public:
  /// Called in a handler: keeps the exception in flight, unless one is kept already.
  [[gnu::cold, gnu::noinline]] void keep() noexcept;
  /// The same, for a free(): not error(invalid).
  [[gnu::cold, gnu::noinline]] void keep_of_free() noexcept;
  [[nodiscard]] bool kept() const noexcept { return what_ != nullptr; }
  [[gnu::cold, gnu::noinline]] void forget() noexcept { what_ = nullptr; }
  /// Throws what was kept.
  [[noreturn, gnu::cold, gnu::noinline]] void again();

 private:
  std::exception_ptr what_;
};

/// Makes log space for a transaction that was rolled back. Throws error(full) where the disk is
/// full, and error(poisoned), for every later call too, where the medium has failed (LAW-9).
template <class E, class Transaction>
void make_log_space(E& engine, Transaction& transaction, LogSpace needed) {
  try {
    engine.wait_for_log_space(transaction, needed);
  } catch (const error&) {
    if (engine.core().poison_with_medium()) engine.core().refuse();
    throw;
  }
}

/// run() in the calling thread's transaction, which the caller has looked up.
template <class E, class Transaction, class F>
std::uint64_t run_in(E& engine, Transaction& transaction, bool update, Durability durability,
                     F&& body) {
  if (__builtin_expect(transaction.inside(), 0)) {
    if (update && transaction.in_view())
      throw error(failure(Code::invalid, "", "update() called inside view()",
                          "a change to start its own transaction", "leave the view first"));
    body(transaction);
    return joined;
  }
  for (;;) {
    transaction.begin(update);
    const auto roll_back = [&transaction]() noexcept {
      transaction.rollback();
      transaction.refusal().forget();
    };
    try {
      body(transaction);
      // mutant: refused-transaction-commits
      if (__builtin_expect(transaction.refusal().kept(), 0)) transaction.refusal().again();
      return transaction.commit(durability);
    } catch (const LogFull& full) {
      roll_back();
      if (!transaction.mine(full)) throw;
      make_log_space(engine, transaction, full.needed);
    } catch (const tm::Conflict& conflict) {
      roll_back();
      if (!transaction.mine(conflict)) throw;
      transaction.backoff();
    } catch (...) {
      roll_back();
      engine.core().poison_with_medium();  // LAW-9: the medium may be what threw
      throw;
    }
  }
}

/// Runs `body(transaction)` until it commits; nested calls join the outer one. Returns
/// the id that bounds it: its own or, where it changed nothing, that of the newest transaction that
/// it may have seen (0 before the first); `joined` when nested.
template <class E, class F>
std::uint64_t run(E& engine, bool update, Durability durability, F&& body) {
  return run_in(engine, engine.transaction(), update, durability, body);
}

/// The short path of a view, to be inlined into its caller: outside any transaction and with plain
/// reads. Where it is false, run() is needed.
template <class Transaction>
class DirectView {
 public:
  [[gnu::always_inline]] explicit DirectView(Transaction& transaction) noexcept
      : transaction_(transaction) {
    if constexpr (requires { transaction.try_direct_view(); })
      inside_ = transaction.try_direct_view();
  }
  [[gnu::always_inline]] ~DirectView() {
    if (__builtin_expect(inside_, 0)) transaction_.leave_direct_view();
  }
  DirectView(const DirectView&) = delete;
  DirectView& operator=(const DirectView&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return inside_; }
  /// Ends it. Returns the id that bounds what it saw if `bound` is set, otherwise 0.
  [[gnu::always_inline]] std::uint64_t end(bool bound) {
    inside_ = false;
    return transaction_.end_direct_view(bound);
  }

 private:
  Transaction& transaction_;
  bool inside_ = false;
};

}  // namespace perdure::engine
