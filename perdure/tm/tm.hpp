// SPDX-License-Identifier: BSD-3-Clause
//
// Transactional memory: the concept, and what every instance of it shares: the clock, the threads'
// slots, the volatile undo.
//
// A TM isolates; it knows no persistence. Its commit calls before_publish(id) after the last point
// of failure and before any write is visible to others: there the engine makes the transaction
// durable, or draws its id and goes on. Ids rise in commit order and are dense: an abort draws
// none, because a commit draws its id with a compare-and-swap from the clock value it has validated
// at. Htm alone differs in both (has_stamps): its ids have gaps, and writes are visible before
// before_publish runs. It is for order `prefix` only. Pool data is touched in transactions only,
// and a change of how it is isolated waits for every slot: privatization is safe by that.
// Source: LSA (Riegel, Felber, Fetzer, DISC '06), TinySTM (Felber, Fetzer, Riegel, PPoPP '08),
// write-through with encounter-time locks.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <vector>

#include "perdure/base/thread_slot.hpp"
#include "perdure/tm/waiters.hpp"

namespace perdure::tm {

/// Thrown inside a transaction that must run again. Never reaches the user; a lambda that swallows
/// it is restarted at its commit. It says whose it is: a transaction on one pool may run inside one
/// on another.
struct Conflict {
  const void* whose = nullptr;
};

inline constexpr std::uint64_t no_id = ~std::uint64_t{0};

/// What one thread shows to the others.
struct alignas(128) Slot {
  std::atomic<std::uint64_t> active{0};       ///< odd inside a transaction
  std::atomic<std::uint64_t> pending{no_id};  ///< while committing: a lower bound of its id
  Waiters waiters;                            ///< for the end of its transaction

  /// The slot's thread: its transaction has ended, or has not begun after all. `even`: the next
  /// value of `active`.
  [[gnu::always_inline]] void end(std::uint64_t even) noexcept {
    active.store(even, std::memory_order_release);  // pairs with wait_until_outside
    waiters.notify();
  }
  /// Any other thread: returns when the slot is between transactions. It blocks if that takes long.
  void wait_until_outside() noexcept {
    // pairs with end
    waiters.wait([this] { return active.load(std::memory_order_acquire) % 2 == 0; });
  }
};

/// The clock and the slots: one a pool and TM.
class Domain {
 public:
  explicit Domain(std::uint64_t start) noexcept : quiet_(start) {
    clock.store(start, std::memory_order_relaxed);
    prepare_asymmetric_fence();
  }

  Slot& enter(int slot) noexcept {
    slots[slot].waiters.prepare();
    if (slot == base::background_slot) {
      background.store(true, std::memory_order_release);  // pairs with each
      return slots[slot];
    }
    int seen = used.load(std::memory_order_relaxed);
    // pairs with for_others
    while (seen <= slot && !used.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {
    }
    return slots[slot];
  }
  /// Every transaction with an id <= the result has returned from its before_publish.
  /// It never goes back, though a thread that failed to draw an id may have said for a moment that
  /// it pends.
  [[nodiscard]] std::uint64_t quiet_id() const noexcept {
    // acquire pairs with the release that drew an id: its owner's `pending`, stored before, is then
    // seen
    std::uint64_t quiet = clock.load(std::memory_order_acquire);
    each([&quiet](int, const Slot& s) {
      // pairs with the release that ends a commit
      const std::uint64_t p = s.pending.load(std::memory_order_acquire);
      if (p - 1 < quiet) quiet = p - 1;
    });
    // pairs with the exchange below: what was quiet for another is for us
    std::uint64_t before = quiet_.load(std::memory_order_acquire);
    while (before < quiet &&
           !quiet_.compare_exchange_weak(before, quiet, std::memory_order_acq_rel)) {}
    return before < quiet ? quiet : before;
  }
  template <class F>
  void for_others(int me, F&& f) const {
    each([&](int i, const Slot& s) {
      if (i != me) f(s);
    });
  }

  /// Returns when each slot but `me` has been seen between transactions. Blocks while one that is
  /// open goes on. The caller keeps new ones out: it has stored so, and fenced, before.
  void wait_for_others(int me) noexcept {
    each([&](int i, const Slot&) {
      if (i != me) slots[i].wait_until_outside();
    });
  }

  alignas(128) std::atomic<std::uint64_t> clock{0};  ///< the last id drawn
  /// of the program: below it may have been entered
  alignas(128) std::atomic<int> used{0};
  std::atomic<bool> background{false};  ///< its own thread has entered; it only copies
  Slot slots[base::background_slot + 1];

 private:
  // Calls f(number, slot) for the slots that were entered, and perhaps for others, which show
  // nothing.
  template <class F>
  void each(F&& f) const {
    const int n = used.load(std::memory_order_acquire);  // pairs with enter
    for (int i = 0; i < n; ++i) f(i, slots[i]);
    if (__builtin_expect(background.load(std::memory_order_acquire), 0))  // pairs with enter
      f(base::background_slot, slots[base::background_slot]);
  }
  mutable std::atomic<std::uint64_t> quiet_;  // the most that quiet_id has said
};

/// Old values of what a transaction stored, for rollback in DRAM (not a log: nothing of it is ever
/// durable).
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
  /// Restores newest first. Atomic stores: readers of other threads may look (and will see that the
  /// line is locked).
  void rollback() noexcept {
    while (next_ != entries_.data()) {
      --next_;
      // pairs with the acquire of a transactional read
      __atomic_store_n(next_->address, next_->old, __ATOMIC_RELEASE);
    }
  }
  /// Calls f(address, old) newest first and forgets them: for an engine whose stores go elsewhere
  /// than to the address.
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

/// A read of pool memory that another thread may be writing; acquire, so that what follows is not
/// read before.
inline std::uint64_t load_word(const std::uint64_t* a) noexcept {
  return __atomic_load_n(a, __ATOMIC_ACQUIRE);
}
inline void store_word(std::uint64_t* a, std::uint64_t v) noexcept {
  __atomic_store_n(a, v, __ATOMIC_RELEASE);
}

/// What an engine asks of a TM `M`. Context: one thread in one domain; used by that thread alone.
///   M::isolates          two transactions at a time never own one 64-byte line; else the caller
///                        keeps them from each other's words
///   begin(update)        may wait for others, and throw another context's Conflict; afterwards the
///                        transaction reads a consistent snapshot
///   read(a)              the word at a; throws Conflict
///   own(a)               a's stripe is this transaction's until it ends; throws Conflict. Before
///                        the first store to it
///   keep(a), put(a, v)   after own(a): the old word is remembered; then the new one may be stored.
///                        store(a, v): both
///   undo()               the volatile undo, for an engine that stores by itself after own(a)
///   direct()             reads and writes are plain
///   alone()              in an update: nobody else writes or copies
///   commit(f)            calls f(id) once, then shows the writes (Htm: the other way round);
///                        throws Conflict before f, never after
///   end_read_only()      ends a transaction that wrote nothing; returns the clock that bounds what
///                        it read; throws Conflict
///   mine(conflict)       it was thrown by this context
///   recheck(stale)       throws Conflict if `stale`, or if what was read holds no longer, unless
///                        direct()
///   rollback()           undoes and ends. backoff(): waits a little, longer each time; after
///                        several the next begin is irrevocable
///   copy_begin() / copy_line(dst, src) / copy_end(): a consistent 64-byte copy of what committed
///   transactions wrote
// clang-format off
template <class M>
concept TransactionalMemory =
    requires(typename M::Context& c, Domain& d, std::uint64_t* a, std::uint64_t v, void* p, bool b) {
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

/// Its ids are stamps (Htm): unique, rising in commit order, with gaps, of this session alone. It
/// has commit(isolated, f), where `isolated` stores what is to be seen with the writes and f runs
/// when all is seen; Shared has last(), the newest id given out, also by an update's end_read_only,
/// and complete(), up to which every f has returned. Clock and quiet_id() stand still.
template <class M>
concept has_stamps = requires { requires M::stamps; };

/// No id that was given out by a call that has returned is newer.
template <class M>
[[nodiscard]] std::uint64_t last_id(const typename M::Shared& shared) noexcept {
  if constexpr (has_stamps<M>)
    return shared.last();
  else
    return shared.domain.clock.load(std::memory_order_acquire);  // pairs with the draw of an id
}

/// read_by(a, load) reads a word of address a that lies elsewhere now (keep and put are told
/// where): what guards a guards what load() returns.
template <class Context>
concept reads_elsewhere = requires(Context& c, const std::uint64_t* a) {
  {
    c.read_by(a, [] { return std::uint64_t{}; })
  } -> std::same_as<std::uint64_t>;
};

/// It may begin and end views by a short way (OrecTm).
template <class Context>
concept has_direct_views = requires(Context& c) {
  { c.try_direct_view() } -> std::same_as<bool>;
  { c.end_direct_view() };
  { c.seen() } -> std::same_as<std::uint64_t>;
};

}  // namespace perdure::tm
