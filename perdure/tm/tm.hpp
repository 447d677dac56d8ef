// SPDX-License-Identifier: BSD-3-Clause
//
// Transactional memory: the concept, and what all its instances share: the clock, the threads'
// slots, the volatile undo log.
//
// A TM isolates transactions; it knows no persistence. TM-1: its commit calls before_publish(id)
// after the last point of failure and before any write is visible to other threads; there the
// engine makes the transaction durable, or only records its id. Ids rise in commit order and are
// dense: an abort draws none, because a commit draws its id with a compare-and-swap from the clock
// value it has validated at. Only Htm differs in both (has_timestamps): its ids have gaps, and its
// writes are visible before before_publish runs. Therefore it is for the pipelined order, and for
// engines whose records name what they count with. Pool data is accessed only in transactions, and
// a change of how it is isolated waits for every slot; that makes privatization safe.
// Source: LSA (Riegel, Felber, Fetzer, DISC '06), TinySTM (Felber, Fetzer, Riegel, PPoPP '08),
// write-through with encounter-time locks.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "perdure/base/thread_slot.hpp"
#include "perdure/tm/waiters.hpp"

namespace perdure::tm {

/// Thrown inside a transaction that must run again. It never reaches the user; a lambda that
/// swallows it is restarted at its commit. It says which transaction it belongs to, because a
/// transaction on one pool may run inside one on another.
struct Conflict {
  const void* whose = nullptr;
};

inline constexpr std::uint64_t no_id = ~std::uint64_t{0};

/// What one thread shows to the other threads.
struct alignas(128) Slot {
  std::atomic<std::uint64_t> active{0};  ///< odd inside a transaction
  /// OrecTm: what `active` is in the newest view, stored by views so that updates store no more.
  std::atomic<std::uint64_t> view{0};
  std::atomic<std::uint64_t> grant{0};        ///< not 0: the thread's views may be direct (GRANT-1)
  std::atomic<std::uint64_t> views{0};        ///< direct views that have ended; the thread's own
  std::atomic<std::uint64_t> pending{no_id};  ///< while committing: a lower bound of its id
  std::atomic<std::uint64_t> rollbacks{0};    ///< transactions that were rolled back (BESIDE-3)
  Waiters waiters;                            ///< threads that wait for its transaction's end

  /// Whether a slot whose `active` was `seen` is inside that transaction still, and it is an
  /// update, in OrecTm. It may take a view for an update until it sees the view's store.
  [[nodiscard]] bool updates(std::uint64_t seen) const noexcept {
    return seen % 2 != 0 && view.load(std::memory_order_acquire) != seen &&
           active.load(std::memory_order_acquire) == seen;  // pairs with end()
  }

  /// Called by the slot's thread: its transaction has ended, or has not begun after all. `even` is
  /// the next value of `active`.
  [[gnu::always_inline]] void end(std::uint64_t even) noexcept {
    // pairs with the acquires in wait_until_outside and wait_for_an_end
    active.store(even, std::memory_order_release);
    waiters.notify();
  }
  /// Called by any other thread: returns when the slot is between transactions. Blocks if that
  /// takes long.
  void wait_until_outside() noexcept {
    // pairs with the release in end()
    waiters.wait([this] { return active.load(std::memory_order_acquire) % 2 == 0; });
  }
  /// Called by any other thread: returns when no transaction is open, or the one that was open at
  /// the call has ended. Blocks if that takes long; a thread that runs one transaction after
  /// another does not delay it for longer than one of them.
  void wait_for_an_end() noexcept {
    const std::uint64_t seen = active.load(std::memory_order_acquire);  // pairs with end()
    if (seen % 2 == 0) return;
    // pairs with the release in end()
    waiters.wait([this, seen] { return active.load(std::memory_order_acquire) != seen; });
  }
  /// The same, in OrecTm, where views are not waited for.
  void wait_for_an_update() noexcept {
    const std::uint64_t seen = active.load(std::memory_order_acquire);  // pairs with end()
    // pairs with the release in end()
    if (seen % 2 != 0) waiters.wait([this, seen] { return !updates(seen); });
  }
};

/// The clock and the slots: one Domain per pool and TM.
class Domain {
 public:
  explicit Domain(std::uint64_t start) noexcept : highest_watermark_(start) {
    clock.store(start, std::memory_order_relaxed);
    prepare_asymmetric_fence();
  }

  Slot& enter(int slot) noexcept {
    slots[slot].waiters.prepare();
    if (slot == base::background_slot) {
      background.store(true, std::memory_order_release);  // pairs with the acquire in each()
      return slots[slot];
    }
    int seen = used.load(std::memory_order_relaxed);
    // pairs with the acquire in each()
    while (seen <= slot && !used.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {
    }
    return slots[slot];
  }
  /// TM-2, the low watermark: every transaction with an id <= the result has returned from its
  /// before_publish. It never goes back, although a thread that failed to draw an id may have shown
  /// for a moment that it was pending.
  [[nodiscard]] std::uint64_t low_watermark() const noexcept {
    // The acquire pairs with the release that drew an id: the owner's `pending`, stored before it,
    // is then seen.
    std::uint64_t watermark = clock.load(std::memory_order_acquire);
    each([&watermark](int, const Slot& s) {
      // pairs with the release that ends a commit
      const std::uint64_t p = s.pending.load(std::memory_order_acquire);
      if (p - 1 < watermark) watermark = p - 1;
    });
    // pairs with the exchange below: what was complete for another thread is complete for this one
    std::uint64_t before = highest_watermark_.load(std::memory_order_acquire);
    while (before < watermark && !highest_watermark_.compare_exchange_weak(
                                     before, watermark, std::memory_order_acq_rel)) {}
    return before < watermark ? watermark : before;
  }
  template <class F>
  void for_others(int me, F&& f) const {
    each([&](int i, const Slot& s) {
      if (i != me) f(s);
    });
  }

  /// Returns when each slot except `me` has been seen between transactions. Blocks while an open
  /// transaction continues. The caller has prevented new ones before: it has stored its intention
  /// and fenced.
  void wait_for_others(int me) noexcept {
    each([&](int i, const Slot&) {
      if (i != me) slots[i].wait_until_outside();
    });
  }

  /// Waits for the end of each transaction of another thread that was open at the call, or was
  /// ending its commit. It does not wait for transactions that begin later: they see every commit
  /// that happened before the call. GlobalLock and Htm do not show their open updates here. In
  /// these TMs no update runs beside a commit that could change what it has read, so a caller that
  /// has itself run an update before the call need not wait for older updates.
  void wait_for_open(int me) noexcept {
    // Pairs with the light fence of a begin: a transaction that the loop below does not see, sees
    // what happened before this fence.
    heavy_fence();
    each([&](int i, const Slot&) {
      if (i == me) return;
      Slot& slot = slots[i];
      slot.wait_for_an_end();
      // Htm shows only its commits here; a commit ends after all that follows its writes.
      const auto pending = [&slot] {
        return slot.pending.load(std::memory_order_acquire);  // pairs with the end of a commit
      };
      const std::uint64_t seen = pending();
      while (seen != no_id && pending() == seen) std::this_thread::yield();
    });
  }

  /// OrecTm: waits for the end of each update that is open at the call. One that begins later sees
  /// what happened before the call. REQUIRES: the caller is in no update.
  void wait_for_updates() noexcept {
    heavy_fence();  // pairs with the light fence of a begin
    each([this](int i, const Slot&) { slots[i].wait_for_an_update(); });
  }
  /// OrecTm: returns whether no update is open, without waiting. One that begins later sees what
  /// happened before the call.
  [[nodiscard]] bool no_update() const noexcept {
    heavy_fence();  // pairs with the light fence of a begin
    bool none = true;
    each([&none](int, const Slot& s) {
      // pairs with the release in end()
      none &= !s.updates(s.active.load(std::memory_order_acquire));
    });
    return none;
  }

  /// Takes every grant back; a view that sees its own no more begins as a transaction does.
  void take_grants() noexcept {
    const int n = used.load(std::memory_order_seq_cst);
    for (int i = 0; i < n; ++i) slots[i].grant.store(0, std::memory_order_seq_cst);
    slots[base::background_slot].grant.store(0, std::memory_order_seq_cst);
  }
  /// No grant is given from now on: the pool refuses views, or looks at each.
  void refuse_grants() noexcept {
    // Dekker's pattern with give_grants(): one of the two sees the other's store.
    refused_.store(true, std::memory_order_seq_cst);
    take_grants();
  }
  /// Gives slots [from, to) their grant.
  void give_grants(int from, int to) noexcept {
    if (refused_.load(std::memory_order_relaxed)) return;
    // It is a release, too, which pairs with the acquire of a view that sees it.
    for (int i = from; i < to; ++i) slots[i].grant.store(1, std::memory_order_seq_cst);
    if (refused_.load(std::memory_order_seq_cst)) take_grants();
  }
  [[nodiscard]] bool grants_refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }
  /// Direct views of all threads that have ended.
  [[nodiscard]] std::uint64_t direct_views() const noexcept {
    std::uint64_t n = 0;
    each([&n](int, const Slot& s) { n += s.views.load(std::memory_order_relaxed); });
    return n;
  }

  alignas(128) std::atomic<std::uint64_t> clock{0};  ///< the last id drawn
  /// The program's slots below this number may have been entered.
  alignas(128) std::atomic<int> used{0};
  std::atomic<bool> background{false};  ///< the pool's own thread has entered; it only copies
  Slot slots[base::background_slot + 1];

 private:
  // Calls f(number, slot) for the slots that were entered, and possibly for others, which show no
  // transaction.
  template <class F>
  void each(F&& f) const {
    const int n = used.load(std::memory_order_acquire);  // pairs with enter()
    for (int i = 0; i < n; ++i) f(i, slots[i]);
    if (__builtin_expect(background.load(std::memory_order_acquire), 0))  // pairs with enter()
      f(base::background_slot, slots[base::background_slot]);
  }
  std::atomic<bool> refused_{false};
  mutable std::atomic<std::uint64_t>
      highest_watermark_;  // the maximum that low_watermark() has returned
};

/// The old values of what a transaction stored, for rollback in DRAM (not a log: nothing of it is
/// ever durable).
class UndoLog {
 public:
  UndoLog() : entries_(1024) {
    reset();
    end_ = next_ + entries_.size();
  }
  void push(std::uint64_t* address, std::uint64_t old) {
    if (__builtin_expect(next_ == end_, 0)) grow();
    *next_++ = {address, old};
  }
  void reset() noexcept { next_ = entries_.data(); }
  [[nodiscard]] bool empty() const noexcept { return next_ == entries_.data(); }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(next_ - entries_.data());
  }
  /// Restores the old values, newest first. The stores are atomic, because readers of other threads
  /// may look (and will see that the line is locked).
  void rollback() noexcept {
    while (next_ != entries_.data()) {
      --next_;
      // pairs with the acquire of a transactional read
      __atomic_store_n(next_->address, next_->old, __ATOMIC_RELEASE);
    }
  }
  /// Calls f(address, old) for all entries, newest first, and forgets them: for an engine whose
  /// stores do not go to the address itself.
  template <class F>
  void take_back(F&& f) {
    while (next_ != entries_.data()) {
      --next_;
      f(next_->address, next_->old);
    }
  }

 private:
  struct Entry {
    std::uint64_t* address;
    std::uint64_t old;
  };
  void grow() {
    const auto n = entries_.size();
    entries_.resize(n * 2);
    next_ = entries_.data() + n;
    end_ = entries_.data() + entries_.size();
  }
  Entry* next_ = nullptr;
  Entry* end_ = nullptr;
  std::vector<Entry> entries_;
};

/// Reads pool memory that another thread may be writing. It is an acquire, so that no later read
/// precedes it.
inline std::uint64_t load_word(const std::uint64_t* a) noexcept {
  return __atomic_load_n(a, __ATOMIC_ACQUIRE);
}
inline void store_word(std::uint64_t* a, std::uint64_t v) noexcept {
  __atomic_store_n(a, v, __ATOMIC_RELEASE);
}

/// What an engine requires of a TM `M`. A Transaction is one thread in one domain, for one
/// transaction after another; only that thread uses it.
///   M::isolates          true: two transactions never own one 64-byte line at the same time;
///                        false: the caller must keep transactions away from each other's words
///   begin(update)        may wait for other threads, and throw another transaction's Conflict;
///                        afterwards the transaction reads a consistent snapshot
///   read(a)              the word at a; throws Conflict
///   own(a)               a's stripe belongs to this transaction until it ends; throws Conflict.
///                        Must precede the first store to the stripe
///   keep(a), put(a, v)   after own(a): the first remembers the old word; then the second may store
///                        the new one. store(a, v) does both
///   undo()               the volatile undo log, for an engine that stores by itself after own(a)
///   direct()             reads and writes are plain
///   alone()              in an update: no other thread writes, and none copies but by copy(),
///                        which waits for its end
///   commit(f)            calls f(id) once, then publishes the writes (Htm: in the opposite order);
///                        throws Conflict before f, never after
///   end_read_only()      ends a transaction that wrote nothing; returns the clock that bounds what
///                        it read; throws Conflict
///   mine(conflict)       this transaction has thrown it
///   recheck(stale)       throws Conflict if `stale`, or if what was read is no longer valid,
///                        unless direct()
///   rollback()           undoes and ends
///   backoff()            waits a little, longer each time; after irrevocable_after failures (8 in
///                        OrecTm) the next begin is irrevocable
///   copy_begin() / copy_line(dst, src) / copy_end(): a consistent 64-byte copy of what committed
///   transactions wrote. Unless the transaction has hold() (OrecTm), no update of another thread
///   runs between copy_begin() and copy_end()
// clang-format off
template <class M>
concept TransactionalMemory =
    requires(typename M::Transaction& c, Domain& d, std::uint64_t* a, std::uint64_t v, void* p,
             bool b) {
  typename M::Shared;
  { M::isolates } -> std::convertible_to<bool>;
  { c.begin(b) };
  { c.read(a) } -> std::same_as<std::uint64_t>;
  { c.own(a) };
  { c.store(a, v) };
  { c.keep(a) };
  { c.put(a, v) };
  { c.alone() } -> std::same_as<bool>;
  { c.undo() } -> std::same_as<UndoLog&>;
  { c.direct() } -> std::same_as<bool>;
  { c.commit([](std::uint64_t) {}) };
  { c.end_read_only() } -> std::same_as<std::uint64_t>;
  { c.recheck(b) };
  { c.rollback() };
  { c.backoff() };
  { c.mine(Conflict{}) } -> std::same_as<bool>;
  { c.copy_begin() };
  { c.copy_line(p, p) };
  { c.copy_end() };
};
// clang-format on

/// Its ids are commit timestamps (Htm): unique, rising in commit order, with gaps, and valid only
/// in this session. It has commit(isolated, f), where `isolated` stores what becomes visible
/// together with the writes, and f runs when everything is visible. Shared has last(), the newest
/// id given out, also by an update's end_read_only, and complete(), up to which every f has
/// returned. Clock and low_watermark() stand still.
template <class M>
concept has_timestamps = requires { requires M::timestamps; };

/// An upper bound of all ids that were given out by calls that have returned.
template <class M>
[[nodiscard]] std::uint64_t last_id(const typename M::Shared& shared) noexcept {
  if constexpr (has_timestamps<M>)
    return shared.last();
  else
    return shared.domain.clock.load(std::memory_order_acquire);  // pairs with the draw of an id
}

/// read_by(a, load) reads a word of address a whose value lies elsewhere now (keep and put receive
/// that address): what guards a also guards what load() returns.
template <class Transaction>
concept reads_elsewhere = requires(Transaction& c, const std::uint64_t* a) {
  {
    c.read_by(a, [] { return std::uint64_t{}; })
  } -> std::same_as<std::uint64_t>;
};

/// Copies lines of what committed transactions wrote, beside running transactions. take() takes the
/// marks of the lines; copy(line) calls line(to, from) for each of them: `from` is the line, `to`
/// its copy. take() is called once, copy() possibly again: then only what its last call copied
/// counts. `transaction` is the caller's, which runs none.
template <class Transaction, class Take, class Copy>
void copy(Transaction& transaction, Take&& take, Copy&& copy) {
  bool taken = false;
  const auto take_once = [&] {
    if (!std::exchange(taken, true)) take();
  };
  if constexpr (requires { transaction.copy_beside(take_once, copy); })
    if (transaction.copy_beside(take_once, copy)) return;
  transaction.copy_begin();
  take_once();
  copy([&](std::uint64_t* to, const std::byte* from) { transaction.copy_line(to, from); });
  transaction.copy_end();
}

/// Its copy() lets the updates of other threads run meanwhile (OrecTm).
template <class M>
concept copies_beside = requires(typename M::Transaction& c) {
  {
    c.copy_beside([] {}, [](auto&&) {})
  } -> std::same_as<bool>;
};

/// Between copy_begin() and copy_end(): calls f() while no other thread's transaction stores to the
/// n bytes from `from` on, and returns true; or returns false, because one does just now.
template <class Transaction, class F>
[[nodiscard]] bool hold(Transaction& transaction, const void* from, std::size_t n, F&& f) {
  if constexpr (requires { transaction.hold(from, n, f); })
    return transaction.hold(from, n, f);
  else
    return f(), true;
}

/// It knows its open updates, and tells them from views. Shared has wait_for_updates(), which waits
/// for the end of each update of another thread that is open at the call, where the caller is in
/// none, and no_update(), which returns whether none is, without waiting. An update that begins
/// later sees what happened before the call.
template <class M>
concept knows_updates = requires(typename M::Shared& shared) {
  { shared.wait_for_updates() };
  { shared.no_update() } -> std::same_as<bool>;
};

/// It may begin and end views by a shorter path (OrecTm).
template <class Transaction>
concept has_direct_views = requires(Transaction& c) {
  { c.try_direct_view() } -> std::same_as<bool>;
  { c.is_active() } -> std::same_as<bool>;
  { c.end_direct_view() };
  { c.seen() } -> std::same_as<std::uint64_t>;
};

}  // namespace perdure::tm
