// SPDX-License-Identifier: BSD-3-Clause
//
// Resident: keeps the memory that the shadow's pages take below Options::max_resident. The shadow
// is a private mapping of the data region: a page that nobody has stored to shows the data region,
// the first store makes a copy in DRAM. After a checkpoint the data region has what the copies
// hold, and copies that were not stored to lately are given back.
//
//   RESIDENT-1 A copy is given back only while no thread can store to its page (tm::hold: the
//   ownership records of its lines are held, or no update runs), the page has no marks, and it
//   equals the data region's. So readers find the same words before and after, and a later store
//   copies the page with all that was committed. Without marks, no store followed what the last
//   checkpoint took: should a part of that still wait to be written, it is what the page holds.
//   RESIDENT-2 Heap ops change bitmaps and directory without ownership records. So pages that hold
//   those are given back only while no update runs.
//   RESIDENT-3 A page counts before the transaction that stored to it ends, or when a checkpoint
//   takes its marks: no copy stays uncounted through a checkpoint.
// Which copies: those that no checkpoint found marked since the last look at them (the clock
// algorithm; Corbato, 1968).
// Source: dropping pages of a private mapping is DudeTM's paging by hardware (ASPLOS '17, 4.3),
// which waits for replay instead of a checkpoint.
// Thread safety: as each call says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "perdure/engine/view.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

class Resident {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  /// Pages that one call of give_back() looks at, at most: some 100 us.
  static constexpr std::size_t step_pages = 64;

  Resident(medium::Medium& medium, const Marks& marks, std::byte* view,
           const pool::Directory& directory, std::uint64_t limit);

  /// RESIDENT-3, for a page that was stored to. Any thread may call it.
  void note(std::uint64_t page) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << page % 64;
    std::uint64_t* const word = copies_.data() + page / 64;
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0 &&
        (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit) == 0)
      count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// The same for all words of a record. Called by the record's thread.
  void note(const log::RecordWriter& record) noexcept {
    record.each_run([this](std::uint64_t offset, std::uint64_t words) {
      for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + words * 8; ++page)
        note(page);
    });
  }
  /// The same for a page whose marks a checkpoint has taken. Called under the checkpoint's lock.
  void note_marked(std::uint64_t page) noexcept {
    note(page);
    recent_.data()[page / 64] |= std::uint64_t{1} << page % 64;
  }

  /// Whether copies should be given back, or must be before more are made. Any thread may call
  /// them.
  [[nodiscard]] bool above() const noexcept { return pages() > begin_at(); }
  [[nodiscard]] bool over() const noexcept {
    return pages() > begin_at() + (limit_ - limit_ / 8 * 7);
  }
  /// Pages of the shadow that are copies, and how many have been given back. Any thread may call
  /// them.
  [[nodiscard]] std::uint64_t pages() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t given_back() const noexcept {
    return given_back_.load(std::memory_order_relaxed);
  }

  // What follows is called under the checkpoint's lock.

  /// Begins to give copies back, until a quarter of the limit is free.
  void begin() noexcept { left_ = 2 * data_pages(); }
  [[nodiscard]] bool giving_back() const noexcept { return left_ != 0; }
  /// Looks at some pages. `tm` is the caller's object of the TM, which runs no transaction. Throws
  /// std::bad_alloc, with nothing lost.
  template <class Tm>
  void give_back(Tm& tm) {
    tm.copy_begin();
    struct End {
      Tm& tm;
      ~End() { tm.copy_end(); }
    } const end{tm};
    for (std::size_t looked = 0; looked < step_pages && left_ != 0;) {
      const Run run = next_run();
      looked += run.pages + 1;
      if (run.pages != 0) give_back(tm, run);
      if (pages() <= limit_ / 4 * 3) left_ = 0;
    }
    if (left_ == 0) end_round();
  }

 private:
  struct Run {
    std::uint64_t page = 0, pages = 0;
  };

  [[nodiscard]] std::uint64_t begin_at() const noexcept {
    return begin_at_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t data_pages() const noexcept {
    return medium_.data_bytes() / page_bytes;
  }
  /// The next copies in a row that were not stored to lately, in one chunk; none where it found
  /// none among some thousand pages.
  Run next_run() noexcept;
  void end_round() noexcept;
  [[nodiscard]] bool may_go(std::uint64_t page) const noexcept;
  void drop(Run run) noexcept;
  template <class Tm>
  void give_back(Tm& tm, Run run) {
    std::unique_lock<std::mutex> lock;
    // mutant: resident-bitmaps
    if (!tm.direct()) lock = without_heap_words(run);
    if (run.pages == 0) return;
    // A page that is being stored to is left as it is.
    (void)tm::hold(tm, view_ + run.page * page_bytes, run.pages * page_bytes, [&] { drop(run); });
  }
  /// RESIDENT-2: leaves out the pages that hold words of the directory or of a bitmap. While the
  /// result lives, no other page comes to hold any.
  [[nodiscard]] std::unique_lock<std::mutex> without_heap_words(Run& run) const;

  medium::Medium& medium_;
  const Marks& marks_;
  std::byte* const view_;
  const pool::Directory directory_;
  const std::uint64_t limit_;
  LazyArray<std::uint64_t> copies_, recent_;  // a bit for each page
  std::atomic<std::uint64_t> count_{0}, given_back_{0};
  std::atomic<std::uint64_t> begin_at_;
  std::uint64_t hand_ = 0, left_ = 0;  // the page that is looked at next, and how many are left
};

}  // namespace perdure::engine::shadow
