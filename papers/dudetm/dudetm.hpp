// SPDX-License-Identifier: BSD-3-Clause
//
// Dudetm: the decoupled engine as the paper has it (DudeTM, ASPLOS '17, section 3). Transactions
// run on a shadow in DRAM (Perform), a log writer makes their redo records durable (Persist,
// persister.hpp), and replay writes the data region from the log (Reproduce, replay.hpp). It has
// both of the product's commit orders (engine/redo_engine.hpp): the variants dudetm, dudetm-inf and
// dudetm-combined are pipelined, dudetm-sync is strict (variants.hpp). The shadow may be smaller
// than the pool (paging.hpp).
// With a TM whose ids are commit timestamps (tm/htm.hpp) the order is pipelined only, and there is
// no paging. Waits, receipts and durable_id() then use timestamps; records, the header, Replay and
// applied() use the dense numbers that the persister assigns. Only last_recorded() has both.
// README.md maps the paper to functions and lists departures.
// Thread safety: transaction() and what is reached through it belong to the calling thread; any
// thread may call everything else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "papers/dudetm/options.hpp"
#include "papers/dudetm/paging.hpp"
#include "papers/dudetm/persister.hpp"
#include "papers/dudetm/replay.hpp"
#include "papers/dudetm/variants.hpp"
#include "papers/names.hpp"
#include "perdure/engine/redo_engine.hpp"
#include "perdure/engine/redo_transaction.hpp"

namespace perdure::papers::dudetm {

template <class Tm>
class Dudetm : public RedoEngine<Dudetm<Tm>, Tm, Persister> {
  using Base = RedoEngine<Dudetm<Tm>, Tm, Persister>;

 public:
  static constexpr const char* name = "dudetm";
  static constexpr bool timestamps = tm::has_timestamps<Tm>;
  // A page's touching ID (the id of the last transaction that stored to it) is compared with the id
  // up to which the log has been replayed, so ids must be dense.
  static constexpr bool paged = !timestamps;
  static_assert(!paged || tm::reads_elsewhere<typename Tm::Transaction>);
  // Isolation has ended before the record is written.
  static constexpr bool pipelined_only = timestamps;

  class Transaction;

  static pool::Identity identity(const Config& config) {
    return Base::identity_of(variant_of(config).order, config);
  }
  static Status supported() {
    if constexpr (timestamps) return Tm::supported();
    return {};
  }
  /// Returns whether the shadow has a limit.
  [[nodiscard]] static bool limits_shadow(const Config& config) {
    return config.options.get<papers::DudetmOptions>().shadow_size != 0;
  }

  Dudetm(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~Dudetm() {
    background_.stop();
    stop_second_thread();
  }

  [[gnu::always_inline]] Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint();
  Stats stats();

  /// Returns when what is needed is likely to be there. The caller's transaction was rolled back
  /// and holds nothing.
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  // A shadow of less than half of what the pool holds is paged by software.
  static constexpr std::uint64_t small_share = 2;

  friend Base;
  template <class, class, class>
  friend class engine::RedoTransaction;
  using Base::background_, Base::core_, Base::strict_, Base::rings_, Base::tm_, Base::writer_;

  /// Returns the number that the newest transaction whose commit has returned has, or will have, in
  /// its record. With timestamps only transactions that have been recorded count.
  [[nodiscard]] std::uint64_t last_recorded() const noexcept {
    return timestamps ? writer_.recorded() : tm::last_id<Tm>(tm_);
  }
  [[nodiscard]] std::uint64_t checkpoint_id() noexcept;
  bool allocate_log(Transaction& transaction, std::uint64_t bytes);
  void start_replay();
  void group_transactions();
  bool persist(std::chrono::microseconds nap);
  bool follow_log(std::chrono::microseconds nap);
  [[nodiscard]] bool nothing_to_follow() const noexcept;
  [[nodiscard]] bool persists_in_background() const noexcept {
    return !strict_ || this->async_seen_.load(std::memory_order_relaxed);
  }
  // Whether Reproduce has a thread of its own, which the call starts if it sleeps.
  [[nodiscard]] bool second_thread_follows() noexcept {
    return standing_ && (nothing_to_follow() || reproduce_.notify());
  }
  void stop_second_thread() noexcept { reproduce_.stop(); }
  void reproduce();
  void evict();
  Status replay_up_to(std::uint64_t id);

  // Both are null if the pool is read-only; paging_ also if the shadow has no limit.
  std::unique_ptr<Replay> replay_;
  std::unique_ptr<Paging> paging_;
  std::atomic<std::uint64_t> checkpoint_id_{0};  // used with timestamps
  // Used by the background thread for a group that is not full: its naps since the group began, and
  // since a transaction was added.
  unsigned group_naps_ = 0, idle_naps_ = 0;
  const bool standing_ =
      !strict_ && !core_.file.read_only() &&
      core_.config.options.template get<papers::DudetmOptions>().standing_threads;
  Background reproduce_{[this] { this->guarded([this] { reproduce(); }); },
                        base::second_background_slot};
  Transactions<Transaction> transactions_;
};

/// One thread's transaction.
template <class Tm>
class Dudetm<Tm>::Transaction : public RedoTransaction<Dudetm<Tm>, Tm, Persister> {
  using Base = RedoTransaction<Dudetm<Tm>, Tm, Persister>;
  using Base::core_, Base::engine_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::record_, Base::ring_, Base::tm_, Base::update_, Base::view_, Base::volatile_;

 public:
  Transaction(Dudetm& engine, int slot);

  void begin(bool update) {
    if constexpr (paged)
      if (pages_) {
        if (core_.state() != 0) let_pages_go();  // begin() throws then
        if (update && !hold_.owns_lock() && engine_.paging_->full()) engine_.evict();
      }
    Base::begin(update);
  }
  [[nodiscard]] bool direct() const noexcept {
    if constexpr (paged)
      if (frames_ != nullptr) return false;  // each access looks up its page
    return tm_.direct();
  }
  /// False under software paging: its reads are not plain.
  [[nodiscard]] bool try_direct_view() noexcept {
    if constexpr (paged)
      if (frames_ != nullptr) return false;
    return Base::try_direct_view();
  }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    if constexpr (paged)
      if (__builtin_expect(frames_ != nullptr, 0)) return read_in_frame(a);
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    // What can fail comes before what can't, so a rollback finds each old value (SHADOW-2).
    tm_.own(a);
    const std::uint64_t offset = offset_of(a);
    touch(offset, 8);
    a = place(a, offset);
    tm_.keep(a);
    record_.word(offset, v);
    tm_.put(a, v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (i == 0 || (reinterpret_cast<std::uintptr_t>(a + i) & 63) == 0) tm_.own(a + i);
    const std::uint64_t offset = offset_of(a);
    touch(offset, n * 8);
    for (std::uint64_t i = 0; i < n; ++i) tm_.keep(place(a + i, offset + i * 8));
    record_.words(offset, src, n);
    for (std::uint64_t i = 0; i < n; ++i) tm_.put(place(a + i, offset + i * 8), src[i]);
  }
  std::byte* alloc(std::uint64_t bytes) {
    const pool::HeapOp op = this->record_alloc(bytes);
    touch_bitmap(op);
    return view_ + op.offset;
  }
  void free(void* p) { touch_bitmap(this->record_free(p)); }

  std::uint64_t commit(Durability durability);
  /// Releases what wait_for_log_space() may have taken for a transaction that was to be run again,
  /// because it will not be.
  void let_pages_go() noexcept {
    if (hold_.owns_lock()) hold_.unlock();
  }
  void rollback() noexcept {
    if (Base::roll_back()) leave_pages();
  }

 private:
  friend class Dudetm;
  // Called before the first store to a page, and for what a commit's heap op will store to in the
  // mapping (PAGING-3, paging.hpp).
  void touch(std::uint64_t offset, std::uint64_t n) {
    if constexpr (paged)
      if (__builtin_expect(pages_.has_value(), 0))
        for (std::uint64_t at = offset & ~(Paging::page_bytes - 1); at < offset + n;
             at += Paging::page_bytes)
          try {
            if (!pages_->touch(at)) stop();
          } catch (const std::bad_alloc&) {
            // A program that catches the error finds its commit refused, and runs again, because a
            // page that it stores to was not touched.
            stopped_ = true;
            throw;
          }
  }
  // Returns where a word lies that this transaction stores to. Call it after touch().
  [[nodiscard]] std::uint64_t* place(std::uint64_t* a, std::uint64_t offset) const noexcept {
    if constexpr (paged)
      if (__builtin_expect(frames_ != nullptr, 0)) return frames_->at(offset);
    return a;
  }
  [[nodiscard]] [[gnu::noinline]] std::uint64_t read_in_frame(const std::uint64_t* a)
    requires paged
  {
    return tm_.read_by(a, [this, a] { return frames_->load(offset_of(a)); });
  }
  void touch_bitmap(const pool::HeapOp& op) {
    if constexpr (paged)
      if (pages_ && op.cls < pool::small_classes) {
        const pool::ClassInfo& info = pool::classes[op.cls];
        // mutant: heap-op-touches-bitmap
        touch(pool::span_chunk_of(op.offset, info.chunks, directory_.first_chunk()) *
                  pool::chunk_bytes,
              info.first);
      }
  }
  [[noreturn]] [[gnu::cold]] void stop() {
    stopped_ = true;
    this->throw_log_full({0, Lack::page_eviction});
  }
  // Called in a commit, before its id may count as replayed, and before its slot stops pending.
  void note_pages(std::uint64_t id) noexcept {
    if constexpr (paged)
      if (__builtin_expect(pages_.has_value(), 0)) pages_->committed(id);
  }
  void leave_pages() noexcept {
    if constexpr (paged) {
      stopped_ = false;
      if (__builtin_expect(pages_.has_value(), 0)) {
        pages_->leave();
        let_pages_go();
      }
    }
  }
  // Called after a commit: its pages may be evicted, and restarts are counted from 0 again.
  void end_pages() noexcept {
    leave_pages();
    page_restarts_ = 0;
  }
  std::uint64_t commit_read_only(Durability durability);
  std::uint64_t commit_unpromised(Durability durability);

  std::uint64_t allowance_ = 0;  // used without promises: Persister
  std::optional<Paging::Use> pages_;
  const Frames* frames_ = nullptr;     // for software paging
  std::unique_lock<std::mutex> hold_;  // held: no eviction begins until this transaction ends
  unsigned page_restarts_ = 0;
  bool stopped_ = false;
};

template <class Tm>
std::uint64_t Dudetm<Tm>::Transaction::commit(Durability durability) {
  if constexpr (paged)
    // A page was refused, and the program swallowed the exception.
    if (__builtin_expect(stopped_, 0)) this->throw_log_full({0, Lack::page_eviction});
  if (record_.empty()) return commit_read_only(durability);
  if (core_.forked()) core_.refuse();
  const auto drawn = [this](std::uint64_t id) { note_pages(id); };
  const auto ended = [this] { end_pages(); };
  std::uint64_t id = 0;
  if (engine_.strict_) {
    (void)this->take_ring();
    id = this->commit_strict(drawn, ended);
  } else if (timestamps || !engine_.writer_.promises())
    id = commit_unpromised(durability);
  else
    id = this->commit_pipelined(durability, drawn, ended);
  // What is to be replayed is in the ring by now. Without the thread, wait_for_log_space() replays.
  if (engine_.strict_ || durability != Durability::async) (void)engine_.background_.notify();
  return id;
}

template <class Tm>
std::uint64_t Dudetm<Tm>::Transaction::commit_read_only(Durability durability) {
  if constexpr (paged)
    // Nothing was stored, although old values may have been saved. After the transaction has left
    // its pages, a rollback must not store to them.
    tm_.undo().reset();
  leave_pages();
  const std::uint64_t seen = Base::commit_read_only(durability);
  // This timestamp is in a receipt and above all that was committed. durable() rises to it only
  // when a thread does a step of the log writer.
  if constexpr (timestamps)
    if (update_ && durability == Durability::async) engine_.commit_waits_for_nobody(seen);
  return seen;
}

// Commits in the pipelined order without promises of log space: the thread's allowance covers the
// record (persister.hpp). With timestamps this is always used, because all threads share the
// promises' counter, and a hardware transaction that stores to it aborts those of other threads.
template <class Tm>
std::uint64_t Dudetm<Tm>::Transaction::commit_unpromised(Durability durability) {
  const std::uint64_t words = record_.payload_words();
  if (__builtin_expect(!volatile_.fits(words), 0)) this->throw_log_full({0, Lack::volatile_log});
  const std::uint64_t takes = engine_.writer_.bytes_for(words);
  if (__builtin_expect(allowance_ < takes, 0)) this->throw_log_full({record_.bytes() + 64});
  volatile_.prepare(words);
  std::uint64_t id = 0;
  const auto apply = [&] {
    if (!ops_.empty()) this->apply_heap_ops();  // before the push, so that durable() covers them
  };
  if constexpr (timestamps) {
    tm_.commit(apply, [&](std::uint64_t number) {
      id = number;
      volatile_.push(number, record_.payload(), words);
    });
  } else {
    tm_.commit([&](std::uint64_t number) {
      id = number;
      note_pages(number);
      apply();
      volatile_.push(number, record_.payload(), words);
    });
  }
  if (allowance_ != Persister::no_bound) allowance_ -= takes;
  this->end_pipelined(id, words, durability, [this] { end_pages(); });
  return id;
}

}  // namespace perdure::papers::dudetm
