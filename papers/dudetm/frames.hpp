// SPDX-License-Identifier: BSD-3-Clause
//
// Frames: software paging (DudeTM section 4.3). A page that is stored to is copied to a frame of
// DRAM; a one-level table, looked up at each access, says which. A page that comes or goes costs no
// fault and no call; each access pays for a look-up instead.
//
//   PAGING-4  A page's first store of all follows its entry in the table, and the entry follows the
//             copy's words. A page without a frame is read where the view shows home: all that was
//             committed to it is there (PAGING-2, paging.hpp).
//   PAGING-5  A reader looks at the entry again after the word. A frame is used for another page
//             only after its entry is gone, and its entry's generation never returns; so a word
//             read under one entry is the page's. Entry 0 does return, when the page was a frame's
//             and is home's again in between: then the word that the TM lets pass is the same,
//             since who stores to it owns its stripe first. Writers need not look: no page they are
//             in is dropped (PAGING-1). Pages that bitmaps lie in (a chunk's first) and the
//             directory are not here: the heap reads them in the view, where the hardware pages
//             them. The paper counts each page's users, so that none goes that is looked at; a
//             reader here looks twice and writes nothing.
// Source: DudeTM (ASPLOS '17) 4.3; looking twice: sequence locks (Lameter, 2005).
// Thread safety: load(), entry(): any thread; swap_in() of a page: one thread, told so by its
// state; drop(): the evictor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "perdure/engine/view.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::dudetm {

class Frames {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  using Entry = std::uint64_t;  ///< generation << 32 | frame + 1; 0: the view
  static constexpr std::uint32_t no_frame = ~std::uint32_t{0};

  /// Frames beyond `kept` are taken when there are no others, and go back to the system when they
  /// are free. Throws std::bad_alloc.
  Frames(std::byte* view, std::uint64_t max_home_bytes, std::uint64_t kept);

  /// Whether a page's copy is a frame.
  [[nodiscard]] static constexpr bool has(std::uint64_t page) noexcept {
    return page % (pool::chunk_bytes / page_bytes) != 0;
  }
  [[nodiscard]] Entry entry(std::uint64_t page) const noexcept {
    return __atomic_load_n(table_.data() + page, __ATOMIC_ACQUIRE);
  }  // pairs with swap_in
  /// Where a page with this entry has the word at home offset `offset`.
  [[nodiscard]] std::uint64_t* word(Entry entry, std::uint64_t offset) const noexcept {
    std::byte* const at =
        entry == 0 ? view_ + offset : frame((entry & low) - 1) + offset % page_bytes;
    return reinterpret_cast<std::uint64_t*>(at);
  }
  /// Where the word is, for a transaction that is in its page (PAGING-1).
  [[nodiscard]] std::uint64_t* at(std::uint64_t offset) const noexcept {
    return word(entry(offset / page_bytes), offset);
  }
  /// The word, whatever becomes of its page meanwhile (PAGING-5). `between`: for tests.
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const noexcept {
    return load(offset, [] {});
  }
  template <class F>
  [[nodiscard]] std::uint64_t load(std::uint64_t offset, F&& between) const {
    for (Entry seen = entry(offset / page_bytes);;) {
      between();
      const std::uint64_t word =
          // acquire: the entry is read again after it; pairs with swap_in's stores
          tm::load_word(this->word(seen, offset));
      const Entry now = entry(offset / page_bytes);
      // mutant: frame-entry-read-again
      if (__builtin_expect(now == seen, 1)) return word;
      seen = now;
    }
  }

  /// A free frame; throws std::bad_alloc.
  [[nodiscard]] std::uint32_t take();
  void give(std::uint32_t frame) noexcept;
  /// The page, of which the view shows home, goes to the frame.
  void swap_in(std::uint64_t page, std::uint32_t frame) noexcept;
  /// Returns when the page that somebody is swapping in is there.
  void wait(std::uint64_t page) const noexcept;
  /// The page is home's again.
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
  // below `kept`; the others. Room for all there are, so that give() can't fail
  std::vector<std::uint32_t> free_, extra_;
  std::vector<std::uint32_t> generations_;  // of each frame: how often it was a page's
};

}  // namespace perdure::engine::dudetm
