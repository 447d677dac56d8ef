// SPDX-License-Identifier: BSD-3-Clause
//
// Paging: a shadow smaller than the pool (DudeTM section 4.3). The shadow is a private mapping of
// home beside the shared one that Reproduce writes: a page nobody has stored to shows home; the
// first store makes a copy of it in DRAM (it is swapped in); dropping the copy shows home again (it
// is evicted). Nothing is ever written back: what it held is in the log, then in home. Where the
// copy lies: by the hardware's page tables, in the mapping itself; by software, in a frame
// (frames.hpp).
//
// A page may be dropped when home shows all that was ever committed to it, and while nobody stores
// to it:
//   PAGING-1  A writer says that it is in (enter) before it looks at a page's state, and a page's
//             state is looked at before the page's first store of a transaction. An evictor sets
//             `evicting`, then the heavy fence, then waits for every writer that is in. So a writer
//             either meets the mark, rolls back and waits, or is waited for.
//   PAGING-2  A transaction notes its id in every page it has stored to (the touching ID) before it
//             says that it has left; the evictor reads the ids after that, and drops a page when
//             Reproduce has got to its id.
//   PAGING-3  Heap ops change bitmaps at the commit: their pages are touched when the op is
//             recorded, as if it were a store then. The directory's pages are never dropped.
// Readers need no guard in the mapping: they see the same words before, in the copy, and after, in
// home. Of frames: PAGING-5.
// The limit: transactions begin while fewer pages than that are copies; what those in flight touch
// may go beyond.
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
#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/waiters.hpp"

namespace perdure::engine::dudetm {

class Paging {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::size_t batch = 64;  ///< pages evicted at a time, at most

  /// `limit` bytes of copies; pages below home offset `unpaged` are not counted and never dropped.
  /// `software`: copies are frames.
  Paging(std::byte* view, std::uint64_t max_home_bytes, std::uint64_t unpaged, std::uint64_t limit,
         bool software = false);

  /// What one thread shows to an evictor.
  struct alignas(128) Inside {
    std::atomic<std::uint64_t> count{0};  ///< odd while its thread may store
    tm::Waiters waiters;                  ///< for that to end
  };
  /// What one thread's transaction has stored to. Used by its thread alone.
  class Use {
   public:
    Use(Paging& paging, int slot)
        : paging_(paging), inside_(paging.inside_[static_cast<std::size_t>(slot)]) {
      inside_.waiters.prepare();
    }
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Before the first store to the page of home offset `offset`. False: the page is being
    /// evicted; the transaction rolls back and waits.
    [[nodiscard]] bool touch(std::uint64_t offset) {
      const std::uint64_t page = offset / page_bytes;
      std::uint64_t& seen = seen_[page % seen_.size()];
      if (__builtin_expect(seen == page + 1, 1)) return true;
      return page < paging_.first_page_ || note(page, seen);
    }
    /// The transaction committed as `id`: still isolated from the evictor (PAGING-2).
    void committed(std::uint64_t id) noexcept;
    /// It is over: after committed(), or rolled back.
    void leave() noexcept;

   private:
    bool note(std::uint64_t page, std::uint64_t& seen);
    void room_for_one();
    Paging& paging_;
    Inside& inside_;
    // by the page's low bits: page + 1 where this transaction has touched it
    std::array<std::uint64_t, 256> seen_{};
    std::vector<std::uint64_t> touched_, copied_;
    std::uint32_t frame_ = Frames::no_frame;  // for the next page that is swapped in
  };

  /// Where copies are, or null: by hardware.
  [[nodiscard]] const Frames* frames() const noexcept { return frames_.get(); }

  /// The limit is reached: whoever is between transactions evicts. Any thread.
  [[nodiscard]] bool full() const noexcept {
    return copies_.load(std::memory_order_relaxed) >= begin_at_;
  }
  /// Evicts a batch; `reproduced()`: the id up to which home shows everything; `reproduce(id)`:
  /// returns when that is `id` at least. The caller is between transactions. Where another thread
  /// evicts, returns when it has. False: there is nothing that could go. Any thread.
  Result<bool> evict(const std::function<std::uint64_t()>& reproduced,
                     const std::function<Status(std::uint64_t)>& reproduce);
  /// Returns when no eviction is in progress.
  void wait() { const std::lock_guard lock(evicting_); }
  /// The same, and none begins while the result lives: for a transaction that would else meet one
  /// again and again. Who holds it does not call evict().
  [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock(evicting_); }

  [[nodiscard]] std::uint64_t copies() const noexcept {
    return copies_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t evictions() const noexcept {
    return evictions_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

 private:
  // A page's state: touching id << 8 | flags
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
  std::mutex list_;                   // pages_
  std::vector<std::uint64_t> pages_;  // the copies
  std::mutex evicting_;               // one evictor; guards what follows
  std::size_t hand_ = 0;
  std::vector<std::uint64_t> victims_;
};

}  // namespace perdure::engine::dudetm
