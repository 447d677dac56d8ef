// SPDX-License-Identifier: BSD-3-Clause
//
// RingCommits: what the writer of each ring shows to the other threads of shadow/htm (htm.hpp): the
// commit timestamp of its newest transaction that is visible, and of its newest that may be
// acknowledged. By them a transaction finds what it may have seen and what was not durable yet.
//
//   DEPEND-4 `committed` is stored where the transaction is still isolated, so a thread that has
//            seen anything of the transaction and then loads it finds this timestamp or a later one
//            of the ring. A ring's writer commits its next transaction only when the one before was
//            acknowledged, and none where that is lost: so a later timestamp means that the earlier
//            transaction was acknowledged, and one word for each ring suffices.
//   DEPEND-5 `acknowledged` rises when the transaction's record is durable and every record that it
//            names was acknowledged. So what a thread finds acknowledged is kept by recovery, with
//            all that it depends on, and need not be named.
// A thread waits only for lower timestamps than its own, so threads do not wait in a circle.
// Thread safety: any thread may call everything; stores to a ring's words are made by the thread
// that has the ring.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perdure/tm/waiters.hpp"

namespace perdure::engine::shadow {

class RingCommits {
 public:
  explicit RingCommits(std::size_t rings) : rings_(rings) {
    // The interrupts of membarrier(2) abort hardware transactions.
    for (Ring& r : rings_) r.waiters.always_fenced();
  }
  [[nodiscard]] std::size_t size() const noexcept { return rings_.size(); }

  /// Shows ring `ring`'s transaction with this timestamp. It is called before isolation ends.
  void committed(std::size_t ring, std::uint64_t timestamp) noexcept {
    // Release: pairs with the acquire in open_at(), for what was acknowledged on this ring before.
    rings_[ring].committed.store(timestamp, std::memory_order_release);
  }
  /// Calls f(ring, timestamp) for each other ring whose newest transaction is not acknowledged and
  /// below `timestamp`. It is called when the caller's own transaction is visible: the rings' words
  /// may be in the write set of other hardware transactions, which a load in one would abort.
  /// point() is called between two rings.
  template <class F, class Point>
  void each_open(std::size_t ring, std::uint64_t timestamp, F&& f, Point&& point) const {
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      if (i == ring) continue;
      if (const std::uint64_t t = open_at(i, timestamp); t != 0) f(i, t);
      point();
    }
  }
  /// The transaction may be acknowledged (DEPEND-5).
  void acknowledge(std::size_t ring, std::uint64_t timestamp) noexcept {
    // Release: pairs with the acquires in open_at() and wait(). The record was fenced before.
    rings_[ring].acknowledged.store(timestamp, std::memory_order_release);
    rings_[ring].waiters.notify();
  }
  /// The ring's transaction will not be acknowledged: whatever waits for it looks whether the pool
  /// is poisoned.
  void failed(std::size_t ring) noexcept { rings_[ring].waiters.notify(); }
  /// Returns when the ring's transaction was acknowledged, true; or when poisoned() is, false.
  template <class Poisoned>
  [[nodiscard]] bool wait(std::size_t ring, std::uint64_t timestamp, Poisoned&& poisoned) noexcept {
    Ring& r = rings_[ring];
    // Acquire: pairs with the release in acknowledge().
    const auto done = [&] { return r.acknowledged.load(std::memory_order_acquire) >= timestamp; };
    if (done()) return true;
    r.waiters.wait([&] { return done() || poisoned(); });
    return done();
  }
  /// Waits in this way for every ring's transaction with a timestamp up to `bound`, so for all that
  /// a transaction with that bound, which has ended, can have seen.
  template <class Poisoned>
  [[nodiscard]] bool wait_up_to(std::uint64_t bound, Poisoned&& poisoned) noexcept {
    bool all = true;
    for (std::size_t i = 0; i < rings_.size(); ++i)
      if (const std::uint64_t t = open_at(i, bound + 1); t != 0) all &= wait(i, t, poisoned);
    return all;
  }
  /// Returns the largest bound up to `bound` below which no ring's transaction is open.
  [[nodiscard]] std::uint64_t below_open(std::uint64_t bound) const noexcept {
    std::uint64_t result = bound;
    for (std::size_t i = 0; i < rings_.size(); ++i)
      if (const std::uint64_t t = open_at(i, bound + 1); t != 0) result = std::min(result, t - 1);
    return result;
  }

 private:
  struct alignas(128) Ring {
    std::atomic<std::uint64_t> committed{0}, acknowledged{0};
    tm::Waiters waiters;
  };
  // The timestamp of the ring's newest transaction if that is below `timestamp` and not
  // acknowledged; otherwise 0.
  [[nodiscard]] std::uint64_t open_at(std::size_t ring, std::uint64_t timestamp) const noexcept {
    const Ring& r = rings_[ring];
    // Acquire: pairs with the release in committed(). In this order: what is acknowledged between
    // the two loads is not open.
    const std::uint64_t t = r.committed.load(std::memory_order_acquire);
    // mutant: dependent-names-only-lower
    if (t >= timestamp) return 0;
    return r.acknowledged.load(std::memory_order_acquire) < t ? t : 0;  // acknowledge()
  }

  std::vector<Ring> rings_;
};

}  // namespace perdure::engine::shadow
