// SPDX-License-Identifier: BSD-3-Clause
//
// Paging: a shadow smaller than the pool (DudeTM section 4.3). The shadow is a private mapping of
// the data region beside the shared one that replay (Reproduce) writes. A page that no thread has
// stored to shows the data region; the first store makes a copy of it in DRAM (it is swapped in);
// when the copy is dropped, the page shows the data region again (it is evicted). Nothing is ever
// written back, because what the copy held is in the log, then in the data region. With hardware
// paging, by page tables, the copy lies in the mapping itself; with software paging in a frame
// (frames.hpp).
//
// A page may be dropped when the data region shows all that was ever committed to it, and while no
// thread stores to it:
//   PAGING-1  A writer shows that it is inside before it looks at a page's state, and it looks at a
//             page's state before a transaction's first store to the page. An evictor sets
//             `evicting`, executes the heavy fence, then waits for every writer that is inside. So
//             either a writer sees the mark, rolls back and waits, or the evictor waits for it.
//   PAGING-2  A transaction notes its id in every page it has stored to (the touching ID) before it
//             shows that it has left. The evictor reads the ids after that, and drops a page when
//             replay has reached its id.
//   PAGING-3  Heap ops change bitmaps at the commit, so the bitmaps' pages are touched when the op
//             is recorded, as by a store. The directory's pages are never dropped.
// Readers need no guard in the mapping: before the drop they see the words in the copy, afterwards
// the same words in the data region. Reading frames has a guard of its own (PAGING-5).
// The limit: transactions begin while fewer pages than that are copies. The pages that transactions
// in flight touch may exceed it.
// Source: DudeTM (ASPLOS '17) 4.3, which has the page faults by Dune; the clock (Corbato, 1968);
// eviction in batches, since each call of madvise interrupts the other processors.
// Thread safety: as each call says.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "papers/dudetm/frames.hpp"
#include "papers/names.hpp"
#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/waiters.hpp"

namespace perdure::papers::dudetm {

class Paging {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::size_t batch = 64;  ///< pages evicted at a time, at most

  /// The copies may take `limit` bytes. Pages below offset `unpaged` of the data region are not
  /// counted and never dropped. With `software` the copies are frames.
  Paging(std::byte* view, std::uint64_t max_data_bytes, std::uint64_t unpaged, std::uint64_t limit,
         bool software = false);

  /// What one thread shows to the evictor.
  struct alignas(128) Inside {
    std::atomic<std::uint64_t> count{0};  ///< odd while its thread may store
    tm::Waiters waiters;                  ///< evictors that wait for that to end
  };
  /// The pages that one thread's transaction has stored to. Used by its thread alone.
  class Use {
   public:
    Use(Paging& paging, int slot)
        : paging_(paging), inside_(paging.inside_[static_cast<std::size_t>(slot)]) {
      inside_.waiters.prepare();
    }
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Call it before the first store to the page at `offset` of the data region. Returns false if
    /// the page is being evicted: the transaction rolls back and waits.
    [[nodiscard]] bool touch(std::uint64_t offset) {
      const std::uint64_t page = offset / page_bytes;
      std::uint64_t& seen = seen_[page % seen_.size()];
      if (__builtin_expect(seen == page + 1, 1)) return true;
      return page < paging_.first_page_ || note(page, seen);
    }
    /// The transaction commits as `id`; the evictor still waits for it (PAGING-2).
    void committed(std::uint64_t id) noexcept;
    /// The transaction has ended: after committed(), or after a rollback.
    void leave() noexcept;

   private:
    bool note(std::uint64_t page, std::uint64_t& seen);
    void room_for_one();
    Paging& paging_;
    Inside& inside_;
    // By the page's low bits: page + 1 if this transaction has touched it.
    std::array<std::uint64_t, 256> seen_{};
    std::vector<std::uint64_t> touched_, copied_;
    std::uint32_t frame_ = Frames::no_frame;  // for the next page that is swapped in
  };

  /// Returns where copies are, or null with hardware paging.
  [[nodiscard]] const Frames* frames() const noexcept { return frames_.get(); }

  /// Returns whether the limit is reached: a thread that is between transactions then evicts. Any
  /// thread may call it.
  [[nodiscard]] bool full() const noexcept {
    return copies_.load(std::memory_order_relaxed) >= begin_at_;
  }
  /// Evicts a batch. `reproduced()` returns the id up to which the data region shows everything;
  /// `reproduce(id)` returns when that is at least `id`. The caller is between transactions. If
  /// another thread is evicting, the call returns when that thread has finished. Returns false if
  /// no page can be evicted. Any thread may call it.
  Result<bool> evict(const std::function<std::uint64_t()>& reproduced,
                     const std::function<Status(std::uint64_t)>& reproduce);
  /// Returns when no eviction is in progress.
  void wait() { const std::lock_guard lock(evicting_); }
  /// Like wait(), and no eviction begins while the result lives. It is for a transaction that
  /// evictions would otherwise stop again and again. A thread that holds it does not call evict().
  [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock(evicting_); }

  [[nodiscard]] std::uint64_t copies() const noexcept {
    return copies_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t evictions() const noexcept {
    return evictions_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

  /// For tests: called before a page's words are copied to its frame. It is set before any thread
  /// touches a page.
  std::function<void()> before_swap_in;

 private:
  // A page's state is its touching ID << 8 | flags.
  static constexpr std::uint64_t copy = 1, evicting = 2, used = 4, flags = 255;
  [[nodiscard]] std::uint64_t& state(std::uint64_t page) const noexcept {
    return states_.data()[page];
  }
  void choose(std::uint64_t reproduced);
  void quiesce() noexcept;
  Status drop();

  [[nodiscard]] bool in_frame(std::uint64_t page) const noexcept {
    return frames_ != nullptr && Frames::has(page);
  }

  std::byte* const view_;
  const std::uint64_t first_page_, limit_, begin_at_;
  const std::unique_ptr<Frames> frames_;
  LazyArray<std::uint64_t> states_;
  std::array<Inside, base::slot_count> inside_;
  std::atomic<std::uint64_t> copies_{0}, evictions_{0};
  std::mutex list_;                   // guards pages_
  std::vector<std::uint64_t> pages_;  // the pages that are copies
  std::mutex evicting_;               // held by the evictor; guards what follows
  std::size_t hand_ = 0;
  std::vector<std::uint64_t> victims_;
};

}  // namespace perdure::papers::dudetm
