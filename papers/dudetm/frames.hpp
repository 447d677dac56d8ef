// SPDX-License-Identifier: BSD-3-Clause
//
// Frames: software paging (DudeTM section 4.3). A page that is stored to is copied to a frame of
// DRAM. A one-level table, looked up at each access, has the frame of each page. Swapping a page in
// or out costs no page fault and no system call; instead each access pays for a look-up.
//
//   PAGING-4  A page's first store of all follows its entry in the table, and the entry follows the
//             copy's words. A page without a frame is read where the mapping shows the data region,
//             which has all that was committed to the page (PAGING-2, paging.hpp).
//   PAGING-5  A reader looks at the entry again after it has read the word. A frame is used for
//             another page only after its entry is gone, and an entry's generation never returns,
//             so a word read under one entry is the page's. Entry 0 does return, when the page was
//             swapped in and dropped in between. Then the word that the TM accepts is the same,
//             because a thread that stores to it owns its stripe first. Writers need not look
//             again: no page is dropped while they are inside (PAGING-1).
// Pages with bitmaps (the first of each chunk) and the directory are not here: the heap reads them
// in the mapping, where the hardware pages them. The paper counts each page's users, so that no
// page is dropped while it is read; a reader here looks twice and writes nothing.
// Source: DudeTM (ASPLOS '17) 4.3; looking twice: sequence locks (Lameter, 2005).
// Thread safety: any thread may call load() and entry(). The thread that set a page's state calls
// swap_in() for it, the evictor calls drop().
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "papers/names.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::papers::dudetm {

class Frames {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  using Entry = std::uint64_t;  ///< generation << 32 | frame + 1; 0: the mapping
  static constexpr std::uint32_t no_frame = ~std::uint32_t{0};

  /// Frames beyond `kept` are taken only when there are no others, and their memory is returned to
  /// the system when they are free. Throws std::bad_alloc.
  Frames(std::byte* view, std::uint64_t max_data_bytes, std::uint64_t kept);

  /// Returns whether a page's copy is a frame.
  [[nodiscard]] static constexpr bool has(std::uint64_t page) noexcept {
    return page % (pool::chunk_bytes / page_bytes) != 0;
  }
  [[nodiscard]] Entry entry(std::uint64_t page) const noexcept {
    return __atomic_load_n(table_.data() + page, __ATOMIC_ACQUIRE);
  }  // pairs with swap_in
  /// Returns where a page with this entry has the word at `offset` of the data region.
  [[nodiscard]] std::uint64_t* word(Entry entry, std::uint64_t offset) const noexcept {
    std::byte* const at =
        entry == 0 ? view_ + offset : frame((entry & low) - 1) + offset % page_bytes;
    return reinterpret_cast<std::uint64_t*>(at);
  }
  /// Returns where the word is, for a transaction that is inside its page (PAGING-1).
  [[nodiscard]] std::uint64_t* at(std::uint64_t offset) const noexcept {
    return word(entry(offset / page_bytes), offset);
  }
  /// Returns the word, even if its page is swapped meanwhile (PAGING-5). `between` is for tests.
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const noexcept {
    return load(offset, [] {});
  }
  template <class F>
  [[nodiscard]] std::uint64_t load(std::uint64_t offset, F&& between) const {
    for (Entry seen = entry(offset / page_bytes);;) {
      between();
      const std::uint64_t word =
          // The acquire orders the second reading of the entry after it; pairs with swap_in's
          // stores.
          tm::load_word(this->word(seen, offset));
      const Entry now = entry(offset / page_bytes);
      // mutant: frame-entry-read-again
      if (__builtin_expect(now == seen, 1)) return word;
      seen = now;
    }
  }

  /// Returns a free frame. Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t take();
  void give(std::uint32_t frame) noexcept;
  /// Copies the page, which the mapping shows as it is in the data region, to the frame.
  void swap_in(std::uint64_t page, std::uint32_t frame) noexcept;
  /// Returns when the page that another thread is swapping in is there.
  void wait(std::uint64_t page) const noexcept;
  /// Removes the page's entry, so that the page is read in the mapping again, and frees its frame.
  void drop(std::uint64_t page) noexcept;

 private:
  static constexpr std::uint64_t low = 0xffffffff;
  [[nodiscard]] std::byte* frame(std::uint64_t n) const noexcept {
    return frames_.data() + n * page_bytes;
  }

  std::byte* const view_;
  const std::uint64_t kept_;
  LazyArray<Entry> table_;
  LazyArray<std::byte> frames_;
  std::mutex free_list_;  // guards what follows
  // The free frames below `kept`, and the others. Their capacity is that of all frames, so that
  // give() can't fail.
  std::vector<std::uint32_t> free_, extra_;
  std::vector<std::uint32_t> generations_;  // for each frame: how often it was given to a page
};

}  // namespace perdure::papers::dudetm
