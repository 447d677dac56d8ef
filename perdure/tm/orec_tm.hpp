// SPDX-License-Identifier: BSD-3-Clause
//
// stm and biased: a word-based, time-based STM (LSA, in TinySTM's variant), write-through with
// encounter-time locks, and bias on top of it.
//
// An ownership record (orec) guards a 64-byte stripe: version << 16 | incarnation << 1 when free,
// slot << 1 | 1 when owned. A reader reads orec, word, orec; a version above its snapshot makes it
// extend the snapshot (validate its read set at a newer clock). A writer owns the stripe from its
// first store to its end. An abort restores the version with the next incarnation, so that a reader
// that saw a dirty word does not take it for clean, and no id is spent; when the incarnations of a
// version run out, it takes the clock's value instead.
//
// Bias (OrecTm<true>): `bias` says which threads may do without orecs. One slot: it is exclusive,
// its loads and stores are plain, no other transaction may run beside it, and it needs no read set.
// `shared`: any number of readers, whose reads are plain, and no writer. `none`: orecs. A thread
// that finds a bias against it revokes the bias: it announces the change, issues a heavy fence,
// then waits until every slot in question is between transactions. A thread that is alone for 1,000
// transactions, or readers that see no commit for as long, are given a bias. The exclusive bias is
// also the irrevocable mode: a transaction that was aborted 8 times runs in it.
// GRANT-1 A slot's grant says that a view of its thread may read plainly: under the thread's own
// bias or the shared one. It is given under `change`, after the bias that allows it, and taken back
// by each change of the bias, before the change's heavy fence. So a view that sees its grant after
// its light fence is one that the change waits for. A pool that refuses takes all grants back.
// Copies beside an exclusive bias (copy_beside) leave it as it is. They hold `change` meanwhile, so
// that the bias stays and no transaction is irrevocable.
// BESIDE-1 The marks of the lines are taken, then a heavy fence is issued, then the biased thread
// is seen between transactions, and only then are lines copied. So each store that found its line's
// mark set is complete when the copy begins, and a later one finds the mark cleared and sets it.
// BESIDE-2 A copy counts when the biased thread has been seen between transactions once more: every
// transaction of which it may hold a store has ended.
// BESIDE-3 It counts only if none of them was rolled back: no rollback was counted since the first
// of the two moments. A rollback is counted when the old words are back. Otherwise the lines are
// copied again, at last by copy_begin(), which revokes the bias. Marks are never set again: the
// biased thread sets its own by a load and a store, and would lose one that came in between.
// BIAS-1 Bias changes only while no thread is inside a transaction, so a transaction runs under one
// regime from begin to end.
// BIAS-2 Orec versions are not written under bias; ids and the clock are. So every snapshot taken
// later is newer than what was stored then.
// Source: TinySTM (PPoPP '08); biased locking (Kawachiya, Koseki, Onodera, OOPSLA '02) for the idea
// of revocation.
// Thread safety: a transaction belongs to its thread; transactions of one Shared may run
// concurrently. Memory orders name their partner.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::tm {

using Orec = std::atomic<std::uint64_t>;

namespace orec {
inline constexpr std::uint64_t incarnations = 0x7fff;
[[nodiscard]] constexpr bool owned(std::uint64_t v) noexcept { return (v & 1) != 0; }
[[nodiscard]] constexpr std::uint64_t version(std::uint64_t v) noexcept { return v >> 16; }
[[nodiscard]] constexpr std::uint64_t of_version(std::uint64_t id) noexcept { return id << 16; }
}  // namespace orec

/// What all threads of a pool share. The orec table covers addresses modulo 2^18 stripes (16 MiB);
/// an alias is a false conflict, not an error.
class OrecShared {
 public:
  static constexpr int table_bits = 18;
  static constexpr std::uint64_t bias_none = 0, bias_shared = no_id - 1, bias_changing = no_id;

  explicit OrecShared(std::uint64_t start);
  ~OrecShared();
  OrecShared(const OrecShared&) = delete;
  OrecShared& operator=(const OrecShared&) = delete;

  [[nodiscard]] Orec& of(const void* a) noexcept {
    return orecs_[(reinterpret_cast<std::uintptr_t>(a) >> 6) & ((1U << table_bits) - 1)];
  }

  /// Makes the bias none or `wanted`; the caller is outside any transaction. Waits for the
  /// transactions that the change concerns.
  void set_bias(int me, std::uint64_t wanted);
  /// Begins a change of the bias, under `change`: returns when no other thread is inside.
  void keep_others_out(int me);
  /// Gives the slot its grant if the bias is the shared one; the caller is outside any transaction.
  void grant_view(int me);
  /// Ends an irrevocable transaction's hold on `change`; afterwards there is no bias.
  void end_irrevocable();
  /// tm::knows_updates.
  void wait_for_updates() noexcept { domain.wait_for_updates(); }
  [[nodiscard]] bool no_update() const noexcept { return domain.no_update(); }

  Domain domain;
  alignas(128) std::atomic<std::uint64_t> bias{bias_none};  ///< none, shared, changing, or slot + 1
  /// held while the bias is changing, and by an irrevocable transaction
  alignas(128) std::mutex change;
  std::atomic<std::uint64_t> revocations{0}, grants{0};

 private:
  Orec* orecs_ = nullptr;
};

/// The parts of a transaction that are not on the hot path (orec_tm.cpp).
class OrecTransactionBase {
 public:
  OrecTransactionBase(OrecShared& shared, int slot);

  [[nodiscard]] bool direct() const noexcept { return direct_; }
  [[nodiscard]] bool alone() const noexcept { return direct_; }
  [[nodiscard]] UndoLog& undo() noexcept { return undo_; }
  /// Called before an error is reported that a stale snapshot may have caused: throws Conflict if
  /// the snapshot is stale.
  void recheck(bool stale) {
    if (!direct_ && (stale || !valid(snapshot_))) conflict();
  }
  void rollback() noexcept;
  void backoff() noexcept;
  [[nodiscard]] bool mine(const Conflict& c) const noexcept { return c.whose == this; }
  void copy_line(void* to, const void* from) noexcept;
  /// tm::hold(): owns every stripe of [from, from + n), at most the table's 16 MiB, and gives them
  /// back as they were. Throws std::bad_alloc, with nothing owned.
  template <class F>
  [[nodiscard]] bool hold(const void* from, std::size_t n, F&& f) {
    // mutant: hold-owns
    if (direct_) return f(), true;
    if (!own_all(from, n)) return false;
    f();
    give_all_back();
    return true;
  }
  void copy_end() noexcept { leave(); }
  /// tm::copy() while another thread has the exclusive bias, which it keeps. Returns false where
  /// that is not possible: then copy() counts for nothing, and take() may have been called.
  template <class Take, class Copy>
  [[nodiscard]] bool copy_beside(Take&& take, Copy&& copy) {
    std::unique_lock lock(shared_.change, std::defer_lock);
    Slot* const biased = biased_other(lock);
    if (biased == nullptr) return false;
    take();
    // BESIDE-1: pairs with enter()'s light fence. A transaction that is not seen below finds the
    // marks cleared.
    heavy_fence();
    for (int turn = 0; turn < turns_beside; ++turn) {
      // mutant: beside-waits-before
      biased->wait_for_an_end();
      // pairs with the release in rollback(): the words that it has put back are seen
      const std::uint64_t rollbacks = biased->rollbacks.load(std::memory_order_acquire);
      copy([](std::uint64_t* to, const std::byte* from) { copy_words(to, from); });
      // BESIDE-2. Each word was loaded by an acquire, which pairs with its store: a transaction of
      // which the copy holds a store is seen active here, or after its end.
      // mutant: beside-waits-after
      biased->wait_for_an_end();
      // BESIDE-3; pairs with the release in rollback()
      // mutant: beside-counts-rollbacks
      if (biased->rollbacks.load(std::memory_order_acquire) == rollbacks) return true;
    }
    return false;
  }

 protected:
  struct Lock {
    Orec* orec;
    std::uint64_t before;
  };
  // Only the owner stores to `active`.
  [[gnu::always_inline]] void leave() noexcept {
    // even; pairs with the waits in set_bias(), begin_slow(), copy_beside() and wait_for_updates()
    slot_.end(slot_.active.load(std::memory_order_relaxed) + 1);
  }
  // The transaction that has been entered is a view: an opening of a snapshot, which may wait for
  // it by now, need not do so.
  void is_view() noexcept {
    // pairs with wait_for_an_update()
    slot_.view.store(slot_.active.load(std::memory_order_relaxed), std::memory_order_release);
    slot_.waiters.notify();
  }
  [[gnu::always_inline]] void enter() noexcept {
    // odd
    slot_.active.store(slot_.active.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // pairs with the heavy fences in keep_others_out(), copy_beside() and wait_for_updates()
    light_fence();
  }
  // The attempts to copy a batch beside a bias, before the bias is revoked.
  static constexpr int turns_beside = 4;
  // Returns the slot of another thread that has the exclusive bias, with `change` held; or null,
  // without it.
  [[nodiscard]] Slot* biased_other(std::unique_lock<std::mutex>& lock) noexcept;
  static void copy_words(std::uint64_t* to, const void* from) noexcept {
    const auto* const in = static_cast<const std::uint64_t*>(from);
    for (int i = 0; i < 8; ++i) to[i] = load_word(in + i);
  }
  [[noreturn]] void conflict() {
    doomed_ = true;
    throw Conflict{this};
  }
  [[nodiscard]] bool valid(std::uint64_t snapshot) const noexcept;
  // load() returns the word, by an acquire. Throws Conflict.
  template <class Load>
  [[nodiscard]] std::uint64_t read_orec_by(const std::uint64_t* a, Load&& load) {
    Orec& o = shared_.of(a);
    for (;;) {
      // pairs with release_locks() and rollback()
      std::uint64_t v = o.load(std::memory_order_acquire);
      if (__builtin_expect(orec::owned(v), 0)) {
        if (v == mine_) return load();
        v = wait_unowned(o);
      }
      const std::uint64_t word = load();  // acquire: the orec is read again after it
      if (__builtin_expect(o.load(std::memory_order_relaxed) != v, 0)) continue;
      if (__builtin_expect(orec::version(v) > snapshot_, 0)) {
        extend();
        continue;
      }
      if (log_reads_ && (reads_.empty() || reads_.back() != &o)) reads_.push_back(&o);
      return word;
    }
  }
  std::uint64_t read_orec(const std::uint64_t* a);  // throws Conflict
  [[gnu::noinline, gnu::cold]] std::uint64_t read_orec_slow(const std::uint64_t* a);
  void own_orec(const std::uint64_t* a);  // throws Conflict
  void extend();                          // takes a newer snapshot, or throws Conflict
  std::uint64_t wait_unowned(Orec& o);    // waits a bounded time; throws Conflict
  void own_slow(Orec& o);
  [[nodiscard]] bool own_all(const void* from, std::size_t n);
  void give_all_back() noexcept;  // of stripes that were owned and not stored to
  // Called before an orec is taken: an orec that we own and that is in no list would stay owned.
  void room_for_a_lock() {
    if (__builtin_expect(locks_.size() == locks_.capacity(), 0)) locks_.reserve(locks_.size() * 2);
  }
  [[nodiscard]] bool lacks_grant() const noexcept {
    return views_directly_ && slot_.grant.load(std::memory_order_relaxed) == 0 &&
           !shared_.domain.grants_refused();
  }
  std::uint64_t draw_id();  // validates the read set; throws Conflict
  void begin_slow(bool update, bool want_exclusive);
  void begin_considering_bias(bool update);
  void consider_bias();
  void release_change() noexcept {
    holds_change_ = false;
    shared_.end_irrevocable();
  }
  void release_locks(std::uint64_t id) noexcept {
    // pairs with a reader's first load
    for (const Lock& l : locks_) l.orec->store(orec::of_version(id), std::memory_order_release);
    locks_.clear();
  }

  OrecShared& shared_;
  Slot& slot_;
  std::uint64_t me_;     // slot + 1: the value of `bias` that means this thread
  std::uint64_t mine_;   // the value of an orec that this thread owns
  bool views_directly_;  // where membarrier is missing, no view has a grant
  bool direct_ = false;
  bool update_ = false;
  bool log_reads_ = false;  // a view reads without a read set until it has failed once
  // This transaction has thrown a Conflict: if the lambda has swallowed it, its end throws it
  // again.
  bool doomed_ = false;
  bool holds_change_ = false;
  std::uint64_t snapshot_ = 0;
  std::uint32_t failures_ = 0;
  std::uint32_t streak_ = 0;
  std::uint64_t seen_clock_ = 0, seen_others_ = 0;  // at the last consider_bias()
  bool streak_updates_ = false;
  std::uint64_t random_;
  std::vector<Orec*> reads_;
  std::vector<Lock> locks_;
  UndoLog undo_;
};

template <bool Biased>
struct OrecTm {
  static constexpr const char* name = Biased ? "biased" : "stm";
  static constexpr bool isolates = true;
  static constexpr std::uint32_t irrevocable_after = 8;  ///< consecutive failures
  /// After this many transactions with orecs a bias may be worth its fence.
  static constexpr std::uint32_t consider_after = 1000;

  using Shared = OrecShared;

  class Transaction : public OrecTransactionBase {
   public:
    Transaction(Shared& shared, int slot) : OrecTransactionBase(shared, slot) {
      if constexpr (Biased)
        if (shared.domain.used.load(std::memory_order_relaxed) == slot + 1 && nobody_else(slot))
          shared.set_bias(slot, me_);
    }

    void begin(bool update) {
      update_ = update;
      if (__builtin_expect(failures_ >= irrevocable_after, 0)) return begin_slow(update, true);
      enter();
      // pairs with set_bias()'s release
      const std::uint64_t bias = shared_.bias.load(std::memory_order_acquire);
      if (__builtin_expect(bias == me_, 1)) {
        direct_ = true;
        return;
      }
      if (bias == OrecShared::bias_none) {
        if (Biased && __builtin_expect(streak_ >= consider_after, 0))
          return begin_considering_bias(update);
        start_orecs();
        return;
      }
      // A view of a thread that had no slot when the bias was given has no grant yet.
      if (bias == OrecShared::bias_shared && !update && !lacks_grant()) {
        is_view();
        direct_ = true;
        return;
      }
      begin_slow(update, false);
    }

    // The biased path is inlined into the user's lambda, the other one is called: otherwise neither
    // would be inlined, and fewer cache misses would overlap.
    [[nodiscard]] [[gnu::always_inline]] std::uint64_t read(const std::uint64_t* a) {
      if (__builtin_expect(direct_, 1)) return *a;
      return read_orec(a);
    }
    template <class Load>
    [[nodiscard]] std::uint64_t read_by(const std::uint64_t* a, Load&& load) {
      if (direct_) return load();
      return read_orec_by(a, load);
    }
    [[gnu::always_inline]] void own(const std::uint64_t* a) {
      if (__builtin_expect(!direct_, 0)) own_orec(a);
    }

    void keep(std::uint64_t* a) { undo_.push(a, *a); }
    // A release store: a reader that sees it sees the orec owned, and copy_words() the slot active.
    void put(std::uint64_t* a, std::uint64_t v) noexcept { store_word(a, v); }
    void store(std::uint64_t* a, std::uint64_t v) {
      keep(a);
      put(a, v);
    }

    template <class F>
    [[gnu::always_inline]] void commit(F&& before_publish) {
      auto& clock = shared_.domain.clock;
      std::uint64_t id = 0;
      if (__builtin_expect(direct_, 1)) {
        id = clock.load(std::memory_order_relaxed) + 1;      // exclusive: no other thread draws
        slot_.pending.store(id, std::memory_order_release);  // pairs with low_watermark()
        clock.store(id, std::memory_order_release);          // pairs with low_watermark()
      } else {
        id = draw_id();
      }
      before_publish(id);
      if (!direct_) release_locks(id);
      slot_.pending.store(no_id, std::memory_order_release);  // pairs with low_watermark()
      finish(true);
    }

    std::uint64_t end_read_only() {
      if (__builtin_expect(doomed_, 0)) conflict();
      // An update's snapshot may be older than what it read: what is stored under bias gets no
      // version. With a newer snapshot the result is the instant as of which it read.
      if (!direct_ && update_) extend();
      const std::uint64_t seen =
          direct_ ? shared_.domain.clock.load(std::memory_order_acquire) : snapshot_;
      if (!direct_ && !locks_.empty()) give_all_back();
      finish(false);
      return seen;
    }

    /// Begins a view whose reads are plain, or returns false: then begin(false) is needed, or the
    /// thread is inside a transaction. It makes few loads and stores, because the cache misses of
    /// one view overlap with the next one's only as far as the processor's load and store queues
    /// reach. It can't fail, so failures_ stays.
    [[gnu::always_inline]] bool try_direct_view() noexcept {
      if constexpr (!Biased) return false;
      Slot& slot = slot_;  // loaded once: the fence below is a barrier for the compiler
      const std::uint64_t even = slot.active.load(std::memory_order_relaxed);
      if (__builtin_expect(even % 2 != 0, 0)) return false;
      slot.view.store(even + 1, std::memory_order_relaxed);
      // A release, which pairs with wait_for_an_update(): the view is known as one.
      slot.active.store(even + 1, std::memory_order_release);
      if constexpr (under_thread_sanitizer)
        light_fence();
      else
        // This is light_fence() where membarrier works; only there are grants given.
        std::atomic_signal_fence(std::memory_order_seq_cst);
      // pairs with give_grants()
      if (__builtin_expect(slot.grant.load(std::memory_order_acquire) == 0, 0)) {
        leave();
        return false;
      }
      direct_ = true;
      return true;
    }
    [[gnu::always_inline]] void end_direct_view() noexcept {
      Slot& slot = slot_;
      slot.views.store(slot.views.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      // even; pairs with the waits in set_bias() and begin_slow()
      slot.end(slot.active.load(std::memory_order_relaxed) + 1);
    }
    /// Whether the thread is between a begin and an end, of a direct view too.
    [[nodiscard]] bool is_active() const noexcept {
      return slot_.active.load(std::memory_order_relaxed) % 2 != 0;
    }
    /// An upper bound of the ids that a view has read, to be called before the view ends.
    [[nodiscard]] std::uint64_t seen() const noexcept {
      return shared_.domain.clock.load(std::memory_order_acquire);  // pairs with the draw of an id
    }

    /// This is not a transaction: it can't fail, so it is never irrevocable, however often this
    /// thread has just failed.
    void copy_begin() {
      const std::uint32_t failures = std::exchange(failures_, 0);
      begin(false);
      failures_ = failures;
    }

   private:
    void start_orecs() {
      direct_ = false;
      if (!update_) is_view();
      log_reads_ = update_ || failures_ != 0;
      // An update begins at the newest id that this thread has seen, and takes a newer snapshot
      // where it reads something newer. So its begin does not load the clock, whose line every
      // commit of another thread takes away. What it reads has not changed since, so the
      // transaction is as of its begin all the same. A view keeps no list of its reads, and could
      // not take a newer snapshot.
      if (!update_ || failures_ != 0)
        snapshot_ = shared_.domain.clock.load(std::memory_order_acquire);  // pairs with draw_id()
    }
    [[nodiscard]] bool nobody_else(int slot) const noexcept {
      bool others = false;
      shared_.domain.for_others(
          slot, [&](const Slot& s) { others |= s.active.load(std::memory_order_relaxed) != 0; });
      return !others;
    }
    void finish(bool wrote) {
      undo_.reset();
      reads_.clear();
      failures_ = 0;
      const bool was_direct = direct_;
      leave();
      if (__builtin_expect(holds_change_, 0)) {
        release_change();
      } else if constexpr (Biased) {
        if (__builtin_expect(!was_direct, 0)) {
          streak_updates_ |= wrote;
          ++streak_;
        }
      }
    }
  };
};

using Stm = OrecTm<false>;
using Biased = OrecTm<true>;

}  // namespace perdure::tm
