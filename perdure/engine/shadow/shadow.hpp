// SPDX-License-Identifier: BSD-3-Clause
//
// The decoupled engine (DudeTM, ASPLOS '17, section 3), and the default carried further.
// Transactions run on a DRAM shadow (Perform), their stores are gathered in a redo record that is
// made durable (Persist), and home is brought up to date later (Reproduce).
//
// Shadow<Tm, Reproduce>: who isolates, and how home is written: Reproduce::checkpoint copies
// changed lines from the shadow (checkpoint.hpp), Reproduce::replay applies the log (replay.hpp,
// the paper's way).
// Order, one rule a pool, in its header:
//   held    A ring a thread. The record is appended and fenced before isolation ends, so whatever a
//           transaction read or overwrote was
//           durable before it drew its id. One fence a commit. Recovery replays every valid record
//           above X.
//   prefix  Isolation ends at once; records go through volatile logs and one persister to one ring
//           in id order (engine/shadow/persister.hpp).
//           Acknowledgements wait for the durable id. Recovery takes a prefix.
// With replay (DudeTM): `forms`, which the instance's name says, and a shadow smaller than the pool
// (paging.hpp). With a TM whose ids are stamps (tm/htm.hpp): prefix and replay only, and no paging.
// Waits, receipts and durable_id() are in stamps; records, the header, Replay and applied() in the
// dense numbers that the persister gives. The two meet in last_recorded() alone.
// README.md maps the paper to functions and lists departures.
// Thread safety: context() and what is reached through it: the calling thread; everything else: any
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "perdure/engine/background.hpp"
#include "perdure/engine/context.hpp"
#include "perdure/engine/core.hpp"
#include "perdure/engine/shadow/checkpoint.hpp"
#include "perdure/engine/shadow/dudetm_options.hpp"
#include "perdure/engine/shadow/forms.hpp"
#include "perdure/engine/shadow/paging.hpp"
#include "perdure/engine/shadow/persister.hpp"
#include "perdure/engine/shadow/replay.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

enum class Reproduce : std::uint8_t { checkpoint, replay };

template <class Tm, Reproduce How>
class Shadow {
 public:
  static constexpr const char* name = How == Reproduce::checkpoint ? "shadow" : "dudetm";
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shadow;
  static constexpr bool marks = How == Reproduce::checkpoint;
  static constexpr bool ring_records = true;
  static constexpr bool stamps = tm::has_stamps<Tm>;
  // a page's touching ID is compared with what is reproduced
  static constexpr bool paged = How == Reproduce::replay && !stamps;
  static_assert(!paged || tm::reads_elsewhere<typename Tm::Context>);
  // isolation has ended before the record is written
  static constexpr bool prefix_only = stamps;
  // a checkpoint compares marks' ids with the durable one
  static_assert(!stamps || How == Reproduce::replay);

  class Context;

  static pool::Identity identity(const Config& config);
  static Status recover(pool::PoolFile& file, Recovery& report);
  static Status supported() {
    if constexpr (stamps) return Tm::supported();
    return {};
  }

  /// Whether the shadow has a limit.
  [[nodiscard]] static bool limits_shadow(const Config& config) {
    return config.options.get<papers::DudetmOptions>().shadow_size != 0;
  }

  Shadow(pool::PoolFile& file, const Config& config, const Recovery& recovery);
  ~Shadow();

  [[gnu::always_inline]] Context& context() {
    return contexts_.get([this](int slot) { return std::make_unique<Context>(*this, slot); });
  }
  Status wait(std::uint64_t id);
  [[nodiscard]] std::uint64_t durable_id() const noexcept {
    // quiet_id first: an id is lost before its slot stops pending, which quiet_id acquires
    const std::uint64_t quiet = held_ ? tm_.domain.quiet_id() : 0;
    return held_ ? std::min(quiet, core_.first_lost() - 1) : persister_.durable();
  }
  Status checkpoint();
  Status close();
  Stats stats();
  [[nodiscard]] Core& core() noexcept { return core_; }
  [[nodiscard]] bool held() const noexcept { return held_; }

  /// Returns when a record of `bytes` is likely to fit (`page_is_evicted`: when that is over); the
  /// caller holds nothing and was rolled back.
  void make_room(Context& context, std::uint64_t bytes);
  static constexpr std::uint64_t page_is_evicted = ~std::uint64_t{0};

 private:
  // the background thread's: nothing has come for 3 ms
  static constexpr std::chrono::microseconds long_nap{1600};
  // a shadow of less than half of what the pool holds is paged by software
  static constexpr std::uint64_t small_share = 2;
  // one device write; larger groups gain nothing and wait longer
  static constexpr std::uint64_t max_group = 1 << 20;

  [[nodiscard]] log::Ring& ring_of(int slot) noexcept { return rings_[ring_index(slot)]; }
  [[nodiscard]] std::size_t ring_index(int slot) const noexcept {
    const auto last = static_cast<std::size_t>(ring_count_) - 1;
    return static_cast<std::size_t>(slot) < last ? static_cast<std::size_t>(slot) : last;
  }
  /// The newest id whose commit has returned, as it is in a record or will be: with stamps, of
  /// those that have been recorded.
  [[nodiscard]] std::uint64_t last_recorded() const noexcept {
    return stamps ? persister_.recorded() : tm::last_id<Tm>(tm_);
  }
  [[nodiscard]] std::uint64_t applied_id() noexcept;
  bool allocate_log(Context& context, std::uint64_t bytes);
  void slice(Context& context, bool all);
  bool slice_locked(Context& context, std::size_t pages);
  void start_replay();
  void group_transactions();
  bool persist(std::chrono::microseconds nap);
  bool reproduce(std::chrono::microseconds nap);
  void evict();
  Status replay_up_to(std::uint64_t id);
  Status finish_checkpoint();
  void background();
  void work();
  [[nodiscard]] bool log_is_half_full() const noexcept {
    return core_.config.fence_is_sync && rings_[0].used() > rings_[0].bytes() / 2;
  }
  [[nodiscard]] bool nothing_to_do() const noexcept;
  void commit_waits_for_nobody(std::uint64_t id);

  Core core_;
  typename Tm::Shared tm_;
  const bool held_;
  const std::uint32_t ring_count_;
  std::unique_ptr<log::Ring[]> rings_;
  std::mutex last_ring_;  // held: threads beyond the rings share the last one
  std::unique_ptr<Marks> marks_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Replay> replay_;
  std::unique_ptr<Paging> paging_;
  std::mutex checkpointing_;
  std::atomic<std::uint64_t> checkpoints_{0}, applied_{0};
  std::atomic<bool> async_seen_{false};
  // the background thread's, of a group that is not full: since it began; since one came
  unsigned group_naps_ = 0, idle_naps_ = 0;
  log::Persister persister_;
  Contexts<Context> contexts_;
  Background background_{[this] { background(); }};  // last: it ends before what it uses
};

/// One thread's transaction.
template <class Tm, Reproduce How>
class Shadow<Tm, How>::Context : public ContextBase<Tm> {
  using Base = ContextBase<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::max_home_, Base::offset_of, Base::ops_,
      Base::row_, Base::shows_, Base::tm_, Base::update_, Base::view_;

 public:
  Context(Shadow& engine, int slot);

  void begin(bool update) {
    if constexpr (paged)
      if (pages_) {
        if (core_.state() != 0) let_pages_go();  // begin() throws
        if (update && !hold_.owns_lock() && engine_.paging_->full()) engine_.evict();
      }
    Base::begin(update);
  }
  [[nodiscard]] bool direct() const noexcept {
    if constexpr (paged)
      if (frames_ != nullptr) return false;  // each access looks its page up
    return tm_.direct();
  }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    if constexpr (paged)
      if (__builtin_expect(frames_ != nullptr, 0)) return read_in_frame(a);
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    // What can fail comes before what can't: whoever swallows an error and commits finds in the
    // view what the record says (S2).
    tm_.own(a);
    const std::uint64_t offset = offset_of(a);
    touch(offset, 8);
    a = place(a, offset);
    tm_.keep(a);
    record_.word(offset, v);
    // here: in a pass over the record at the commit it cost sps-64 a quarter
    if constexpr (marks) mark_.mark(offset, tm_.alone());
    tm_.put(a, v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (i == 0 || (reinterpret_cast<std::uintptr_t>(a + i) & 63) == 0) tm_.own(a + i);
    const std::uint64_t offset = offset_of(a);
    touch(offset, n * 8);
    for (std::uint64_t i = 0; i < n; ++i) tm_.keep(place(a + i, offset + i * 8));
    record_.words(offset, src, n);
    if constexpr (marks) mark_.mark(offset, n * 8, tm_.alone());
    for (std::uint64_t i = 0; i < n; ++i) tm_.put(place(a + i, offset + i * 8), src[i]);
  }
  std::byte* alloc(std::uint64_t bytes) {
    record_.room(2);  // first, as in write
    const pool::HeapOp op = ops_.allocate(heap_, bytes, tm_, view_, max_home_);
    record_.heap_op(op);
    touch_bitmap(op);
    return view_ + op.offset;
  }
  void free(void* p) {
    record_.room(2);
    const pool::HeapOp op = ops_.free(heap_, offset_of(p), tm_);
    record_.heap_op(op);
    touch_bitmap(op);
  }

  std::uint64_t commit(Durability durability) {
    if constexpr (paged)
      // and it was swallowed
      if (__builtin_expect(stopped_, 0)) this->throw_need_room(page_is_evicted);
    if (record_.empty()) {
      if constexpr (paged)
        // nothing was stored, whatever was kept for it: once out of its pages a rollback must not
        // store to them
        tm_.undo().reset();
      leave_pages();
      const std::uint64_t seen = this->end_read_only();
      // It changed nothing, but what it saw may not be durable yet, and what it returns tells of
      // that (law L2). view() asks for itself.
      // mutant: read-acknowledged-durable
      if (update_ && !engine_.held_ && durability != Durability::async)
        engine_.wait(seen).or_throw();
      // a receipt's, and newer than all that was committed: durable() rises to it only when
      // somebody looks
      if constexpr (stamps)
        if (update_ && durability == Durability::async) engine_.commit_waits_for_nobody(seen);
      return seen;
    }
    if (core_.forked()) core_.refuse();
    return engine_.held_ ? commit_held() : commit_prefix(durability);
  }
  /// What make_room() may have taken for the transaction that is to be run again: it will not be.
  void let_pages_go() noexcept {
    if (hold_.owns_lock()) hold_.unlock();
  }
  void rollback() noexcept {
    if (!inside_) return;  // it committed, and what failed came after
    inside_ = false;
    if (core_.forked()) return;
    record_.reset();
    this->abandon();
    leave_pages();
  }

 private:
  friend class Shadow;
  // Before the first store to a page; and what a commit's heap op will store to in the view (E3,
  // paging.hpp).
  void touch(std::uint64_t offset, std::uint64_t n) {
    if constexpr (paged)
      if (__builtin_expect(pages_.has_value(), 0))
        for (std::uint64_t at = offset & ~(Paging::page_bytes - 1); at < offset + n;
             at += Paging::page_bytes)
          try {
            if (!pages_->touch(at)) stop();
          } catch (const std::bad_alloc&) {
            // who swallows it runs again at the commit: a page was to be touched that was not
            stopped_ = true;
            throw;
          }
  }
  // Where a word lies that this transaction stores to; after touch().
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
        touch(pool::span_chunk_of(op.offset, info.chunks, pool::first_chunk(max_home_)) *
                  pool::chunk_bytes,
              info.first);
      }
  }
  [[noreturn]] [[gnu::cold]] void stop() {
    stopped_ = true;
    this->throw_need_room(page_is_evicted);
  }
  // In a commit, before its id counts as reproduced or its slot as quiet.
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
  void apply_heap_ops() {
    target_.alone(tm_.alone());
    Base::apply_heap_ops(target_);
  }
  // What a commit leaves behind but for the heap: nothing of it depends on whether the fence
  // succeeds.
  void count(std::uint64_t bytes) noexcept {
    Row::add(row_.commits);
    Row::add(row_.log_bytes, bytes);
    record_.reset();
    show_ = shows_.due();
  }
  void done() {
    inside_ = false;
    leave_pages();
    page_restarts_ = 0;
    if (!ops_.empty()) {
      ops_.reusable(heap_);
      ops_.clear();
    }
    if (__builtin_expect(show_, 0)) Core::show_stats(engine_);
  }

  std::uint64_t commit_held() {
    std::unique_lock<std::mutex> shared(engine_.last_ring_, std::defer_lock);
    if (__builtin_expect(shares_ring_, 0)) shared.lock();
    const std::uint64_t bytes = record_.bytes();
    if (__builtin_expect(!ring_.fits(bytes) || !ring_.ready(bytes), 0))
      this->throw_need_room(bytes);
    std::uint64_t id = 0;
    bool durable = true;
    tm_.commit([&](std::uint64_t drawn) {
      id = drawn;
      // The one fence: the record is durable before isolation ends, so before anybody can read,
      // overwrite or be told of what it did. What this one read or overwrote may be lost: then it
      // must not be durable without it (Core::lost).
      // Heap bits before the slot stops pending: X then covers them (checkpoint.hpp). No checkpoint
      // may copy them before the record is durable, so they follow the fence, unless no checkpoint
      // can while this transaction is in.
      note_pages(drawn);
      const bool alone = tm_.alone();
      const auto meanwhile = [&] {
        count(bytes);
        if (alone && !ops_.empty()) apply_heap_ops();
      };
      // Nothing from here on throws.
      // mutant: strict-isolation-until-fence
      durable = this->persist_or_lose(
          drawn,
          [&] { return ring_.append_fence(record_, log::RecordKind::commit, drawn, 1, meanwhile); },
          meanwhile);
      if (durable && !alone && !ops_.empty()) apply_heap_ops();
    });
    // mutant: strict-isolation-until-fence-late
    done();
    if (__builtin_expect(!durable, 0)) core_.refuse();
    ring_.prepare_ahead();
    if (shares_ring_) shared.unlock();
    if constexpr (How == Reproduce::replay) (void)engine_.background_.notify();
    if constexpr (marks)
      if (__builtin_expect(ring_.tail() >= next_slice_, 0)) engine_.slice(*this, false);
    return id;
  }

  std::uint64_t commit_prefix(Durability durability) {
    const std::uint64_t words = record_.payload_words();
    log::Persister& persister = engine_.persister_;
    if (__builtin_expect(!volatile_.fits(words), 0)) this->throw_need_room(0);
    const bool promises = !stamps && persister.promises();
    const std::uint64_t takes = persister.bytes_for(words);
    if (__builtin_expect(!promises && allowance_ < takes, 0))
      this->throw_need_room(record_.bytes() + 64);
    volatile_.prepare(words);
    std::uint64_t id = 0;
    const auto apply = [&] {
      if (!ops_.empty()) apply_heap_ops();  // before the push: durable() then covers them
    };
    if constexpr (stamps) {
      // no promise of room: its counter is all threads', and a hardware transaction that stores to
      // it aborts theirs
      tm_.commit(apply, [&](std::uint64_t drawn) {
        id = drawn;
        volatile_.push(drawn, record_.payload(), words);
      });
    } else {
      if (__builtin_expect(!persister.reserve(words), 0))
        this->throw_need_room(record_.bytes() + 64);
      try {
        tm_.commit([&](std::uint64_t drawn) {
          id = drawn;
          note_pages(drawn);
          apply();
          volatile_.push(drawn, record_.payload(), words);
        });
      } catch (...) {
        if (id == 0) persister.unreserve(words);
        throw;
      }
    }
    if (!promises && allowance_ != log::Persister::no_bound) allowance_ -= takes;
    count(words * 8);
    done();
    if (durability == Durability::async) {
      engine_.commit_waits_for_nobody(id);
    } else {
      // mutant: pipelined-acknowledged-durable
      engine_.wait(id).or_throw();
      // What is to be replayed is in the ring by now. Without the thread make_room() replays.
      if constexpr (How == Reproduce::replay) (void)engine_.background_.notify();
    }
    engine_.rings_[0].prepare_ahead();
    if constexpr (marks)
      if (!core_.config.fence_is_sync &&
          __builtin_expect(engine_.rings_[0].tail() >= next_slice_, 0))
        engine_.slice(*this, false);
    return id;
  }

  log::RecordWriter record_;
  const Marks& mark_;
  const bool shares_ring_;
  bool show_ = false;
  Shadow& engine_;
  log::Ring& ring_;
  std::uint64_t next_slice_ = 0;
  std::uint64_t allowance_ = 0;  // without promises: log::Persister
  ViewTarget target_;
  log::VolatileLog volatile_;
  std::optional<Paging::Use> pages_;
  const Frames* frames_ = nullptr;     // software paging
  std::unique_lock<std::mutex> hold_;  // no eviction may begin until this transaction ends
  unsigned page_restarts_ = 0;
  bool stopped_ = false;
};

}  // namespace perdure::engine::shadow
