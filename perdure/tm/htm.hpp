// SPDX-License-Identifier: BSD-3-Clause
//
// htm: hardware transactions, and a global lock for those that the hardware fails (DudeTM, ASPLOS
// '17, sections 4.2 and 5.7: five tries, then the lock).
//
// Htm<Hardware> runs on Rtm (rtm.hpp), or on RtmStandIn (rtm_stand_in.hpp), a software one for
// machines without RTM: tries, lock, commit timestamps and what a thread shows are the same code. A
// try reads the lock right after it has begun, so a thread that takes the lock aborts it: the
// holder is alone. Reads and writes are plain. An undo log is kept nevertheless: an exception must
// leave a transaction, so rollback() undoes and then commits a transaction that has changed
// nothing. Ids are commit timestamps (timestamps.hpp), drawn in the try after everything else, or
// by the holder before it releases the lock. Isolation ends before before_publish runs, which may
// store to lines that other threads read. Therefore Htm is for the pipelined order, where nothing
// is acknowledged before the log writer has seen every transaction up to its timestamp, and for
// records that name what they count with (log/dependencies.hpp). What a thread shows
// (Slot::pending) is stored outside the try, since no other thread sees a store in it:
//   HTM-1  pending <= the commit timestamp is visible to every thread before the timestamp's
//          counter is read, until before_publish has returned. The store alone does not guarantee
//          that: it may wait in the store buffer while the counter is read. drain() lies between. A
//          locked instruction in its place does not suffice: in a transaction of RTM it leaves the
//          store buffer as it is (seen on a Xeon: one commit in 3,000 was not shown in time).
//   HTM-2  complete() reads the time first and the pendings afterwards. A pending that it misses
//          became visible later, so its thread reads the counter later still (HTM-1), and that
//          timestamp is above complete()'s time.
// The same drain() gives TIMESTAMP-1 of timestamps.hpp: the lines that the try has written are
// owned before its timestamp is drawn.
// Thread safety: a transaction belongs to its thread; transactions of one Shared may run
// concurrently.
#pragma once

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "perdure/base/status.hpp"
#include "perdure/tm/timestamps.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::tm {

/// Why a try ended without a commit.
enum class Abort : std::uint8_t {
  none,
  conflict,
  capacity,
  lock_held,  ///< not counted as a try: the holder continues, and the next try waits for it
  not_here,   ///< something that no try can do: the lock is taken at once
  other       ///< an interrupt, a system call, a page fault
};
inline constexpr int abort_causes = 6;

template <class Hardware>
struct Htm {
  static constexpr const char* name = Hardware::name;
  static constexpr bool isolates = true;
  static constexpr bool timestamps = true;
  static constexpr int max_tries = 5;

  static Status supported() { return Hardware::supported(); }
  /// A place where tests of the stand-in let another thread continue. Nothing on the hardware.
  static void point() noexcept { Hardware::point(); }

  class Shared {
   public:
    explicit Shared(std::uint64_t start) : clock(start), domain(start), start_(start) {
      freed.always_fenced();
    }

    /// The newest id that was given out, by a commit or as the bound of what an update read. The id
    /// of a call that is just returning may be missing.
    [[nodiscard]] std::uint64_t last() const noexcept {
      std::uint64_t newest = start_;
      // pairs with enter()
      const int n = domain.used.load(std::memory_order_acquire);
      // pairs with commit()
      for (int i = 0; i < n; ++i)
        newest = std::max(newest, own[i].newest.load(std::memory_order_acquire));
      return newest;
    }
    /// Every transaction with a commit timestamp <= the result has returned from before_publish. A
    /// later result may be lower; the earlier one remains valid.
    [[nodiscard]] std::uint64_t complete() const noexcept {
      std::uint64_t all = clock.now();  // must come first (HTM-2)
      Hardware::point();
      // This pairs with enter(): a slot that is missed draws later.
      const int n = domain.used.load(std::memory_order_acquire);
      for (int i = 0; i < n; ++i)
        // mutant: timestamp-below-pending
        // pairs with the release that ends a commit
        all = std::min(all, domain.slots[i].pending.load(std::memory_order_acquire) - 1);
      return all;
    }
    /// The number of tries that committed.
    [[nodiscard]] std::uint64_t committed() const noexcept {
      std::uint64_t sum = 0;
      for (const Own& o : own) sum += o.committed.load(std::memory_order_relaxed);
      return sum;
    }
    /// The number of tries that ended for this reason.
    [[nodiscard]] std::uint64_t aborts(Abort why) const noexcept {
      std::uint64_t sum = 0;
      for (const Own& o : own)
        sum += o.aborts[static_cast<std::size_t>(why)].load(std::memory_order_relaxed);
      return sum;
    }
    /// The number of failed tries for which the transactions throw nothing, so that nothing else
    /// counts them.
    [[nodiscard]] std::uint64_t unseen_aborts() const noexcept {
      std::uint64_t sum = 0;
      for (const Own& o : own) sum += o.unseen_aborts();
      return sum;
    }
    /// The number of transactions that ran under the lock.
    [[nodiscard]] std::uint64_t locked() const noexcept {
      std::uint64_t sum = 0;
      for (const Own& o : own) sum += o.locked.load(std::memory_order_relaxed);
      return sum;
    }

    /// One slot's counters, beside Slot: only its thread writes them, and never in a try.
    struct alignas(128) Own {
      std::atomic<std::uint64_t> newest{0}, locked{0}, committed{0};
      std::atomic<std::uint64_t> aborts[abort_causes]{};
      [[nodiscard]] std::uint64_t unseen_aborts() const noexcept {
        std::uint64_t sum = 0;
        if constexpr (Hardware::returns_to_start)
          for (int i = 1; i < abort_causes; ++i) sum += aborts[i].load(std::memory_order_relaxed);
        return sum;
      }
    };

    const typename Hardware::Clock clock;
    static constexpr std::uint64_t tick_step = Hardware::Clock::tick_step;
    Domain domain;  ///< only its slots are used; its clock stands still
    alignas(128) std::atomic<bool> held{false};
    alignas(128) Waiters freed;  ///< for the lock; not in its line, which every try reads
    typename Hardware::Shared hardware;
    Own own[base::slot_count];

   private:
    const std::uint64_t start_;
  };

  class Transaction {
   public:
    Transaction(Shared& shared, int slot)
        : shared_(shared),
          slot_(shared.domain.enter(slot)),
          own_(shared.own[slot]),
          me_(slot),
          try_(shared.hardware, shared.held, slot) {}

    void begin(bool update) {
      update_ = update;
      // Aborts a try of another pool: inside it, this try's end would not commit.
      Hardware::leave();
      while (tries_ < max_tries) {
        wait_until_free();
        // mutant: pending-before-try
        if (update) show_pending();
        // An abort of Rtm returns here, with everything as it was.
        const Abort why = try_.start();
        if (why == Abort::none) {
          // Subscribed: a thread that takes the lock aborts this try. The acquire pairs with
          // free_lock().
          if (!shared_.held.load(std::memory_order_acquire)) return;
          try_.abort_held();
          count(Abort::lock_held);  // only for the stand-in; Rtm is at start() again
          continue;
        }
        count(why);
      }
      take_lock();
      add(own_.locked);
    }
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) { return holds_ ? *a : try_.read(a); }
    void own(const std::uint64_t* a) {
      if (!holds_) try_.own(a);
    }
    void keep(std::uint64_t* a) {
      if (!Hardware::buffers || holds_)
        undo_.push(a, *a);
      else
        try_.keep(a);
    }
    void put(std::uint64_t* a, std::uint64_t v) noexcept {
      if (holds_)
        store_word(a, v);  // atomic: a try of the stand-in may be reading it, and aborts
      else
        try_.put(a, v);
    }
    void store(std::uint64_t* a, std::uint64_t v) {
      keep(a);
      put(a, v);
    }
    [[nodiscard]] bool direct() const noexcept { return !Hardware::buffers || holds_; }
    // In a try of Rtm everything that it stores is isolated.
    [[nodiscard]] bool alone() const noexcept { return direct() || try_.committing(); }
    [[nodiscard]] UndoLog& undo() noexcept { return undo_; }
    /// The number of retries of this thread slot without a Conflict: the hardware returned to
    /// begin().
    [[nodiscard]] std::uint64_t unseen_aborts() const noexcept { return own_.unseen_aborts(); }

    /// `isolated()` runs where nothing can fail any more, and no thread sees what it stores before
    /// everything is visible. So does drawn(id), with the commit timestamp. before_publish(id) runs
    /// when everything is visible.
    template <class Isolated, class Drawn, class F>
    void commit(Isolated&& isolated, Drawn&& drawn, F&& before_publish) {
      if (holds_)
        // It is not shown earlier: a holder may take long, and other threads need not wait for it
        // to become durable.
        show_pending();
      else
        try_.last_point_of_failure(shared_.clock);
      isolated();
      // mutant: store-buffer-drained
      try_.drain();  // HTM-1, TIMESTAMP-1
      const std::uint64_t id = holds_ ? shared_.clock.draw(me_) : try_.draw(shared_.clock, me_);
      drawn(id);
      end();
      before_publish(id);
      own_.newest.store(id, std::memory_order_release);  // pairs with last()
      finish();
    }
    template <class Isolated, class F>
    void commit(Isolated&& isolated, F&& before_publish) {
      commit(
          std::forward<Isolated>(isolated), [](std::uint64_t) {}, std::forward<F>(before_publish));
    }
    template <class F>
    void commit(F&& before_publish) {
      commit([] {}, std::forward<F>(before_publish));
    }
    std::uint64_t end_read_only() {
      // The time is read while what was read is unchanged: it is above everything that was read,
      // and below everything that overwrites it.
      const std::uint64_t seen = holds_ ? shared_.clock.now() : try_.time_of_reads(shared_.clock);
      end();
      // It may be a receipt's id. The release pairs with last().
      if (update_) own_.newest.store(seen, std::memory_order_release);
      finish();
      return seen;
    }
    void recheck(bool stale) {
      if (!holds_)
        try_.recheck(stale);
      else if (stale && Hardware::buffers)
        try_.abort_conflict();  // a doomed try may still free the block: it ends without us
    }
    void rollback() noexcept {
      undo_.rollback();
      if (holds_)
        free_lock();
      else
        try_.cancel();
      slot_.pending.store(no_id, std::memory_order_release);  // pairs with complete()
      if (const Abort why = try_.take_cause(); why != Abort::none)
        count(why);
      else
        tries_ = 0;  // the try was left by the caller, it has not failed
    }
    void backoff() noexcept { std::this_thread::yield(); }
    [[nodiscard]] bool mine(const Conflict& c) const noexcept { return c.whose == &try_; }

    void copy_begin() { take_lock(); }
    void copy_line(void* to, const void* from) const noexcept { std::memcpy(to, from, 64); }
    void copy_end() noexcept { free_lock(); }

   private:
    static void add(std::atomic<std::uint64_t>& c) noexcept {
      c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    // HTM-1; pairs with complete()
    void show_pending() noexcept { try_.show(slot_.pending, shared_.clock.now() + 1); }
    void count(Abort why) noexcept {
      add(own_.aborts[static_cast<std::size_t>(why)]);
      if (why == Abort::not_here) tries_ = max_tries;
      if (why != Abort::lock_held) ++tries_;
    }
    void wait_until_free() noexcept {
      // pairs with free_lock()
      if (__builtin_expect(!shared_.held.load(std::memory_order_acquire), 1)) return;
      // This pairs with complete(): the thread has drawn nothing.
      slot_.pending.store(no_id, std::memory_order_release);
      // pairs with free_lock()
      shared_.freed.wait([this] { return !shared_.held.load(std::memory_order_acquire); });
    }
    void take_lock() noexcept {
      do wait_until_free();
      // The acquire pairs with free_lock().
      while (shared_.held.exchange(true, std::memory_order_acq_rel));
      try_.shut_out();
      slot_.pending.store(no_id, std::memory_order_release);  // pairs with complete()
      holds_ = true;
    }
    void free_lock() noexcept {
      holds_ = false;
      try_.let_in();
      // pairs with wait_until_free(), take_lock() and a try's first load
      shared_.held.store(false, std::memory_order_release);
      shared_.freed.notify();  // pairs with wait_until_free()
    }
    void end() noexcept {
      if (holds_)
        free_lock();
      else {
        try_.end();
        add(own_.committed);
      }
    }
    void finish() noexcept {
      // This pairs with complete(): the effects of before_publish are seen.
      slot_.pending.store(no_id, std::memory_order_release);
      undo_.reset();
      tries_ = 0;
    }

    Shared& shared_;
    Slot& slot_;
    typename Shared::Own& own_;
    const int me_;
    int tries_ = 0;  // failed tries of this transaction
    bool update_ = false, holds_ = false;
    typename Hardware::Try try_;
    UndoLog undo_;
  };
};

}  // namespace perdure::tm
