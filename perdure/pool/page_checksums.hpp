// SPDX-License-Identifier: BSD-3-Clause
//
// PageChecksums: a checksum of each page of the data region, beside the data (feature data
// checksums). It finds what storage does to bytes at rest: flipped bits, pages that were written to
// another place, or not at all. It is no protection against someone who changes a page and its
// checksum.
//
// The checksum of a page is the sum, modulo 2^64, of a term for each pair of its words (NH,
// base/checksum.hpp), with the page's number as the seed. So where a line changes, the terms of its
// old words are subtracted and those of the new ones added, and the rest of the page is not read:
// what had been damaged there stays damaged by its checksum, too. 0 stands for "no checksum".
//
// Checksums lie in whole chunks of the data region, one word for each page up to the limit
// (directory.hpp says which chunks; they are allocated as the data region grows). A page gets its
// checksum when a checkpoint first writes to it. Pages of chunks that were given back, and the
// checksums themselves, have none. The word of the checksums' own first page is the *mark* instead:
// the checkpoint id, plus 1, upon which the data region was last changed.
//
// Crash invariants:
//   CHECKSUM-1 Before a checkpoint, or recovery, changes the data region, the mark durably has the
//              header's checkpoint id. So at an opening, a mark with another id means that every
//              page with a checksum is as its checksum says.
//   CHECKSUM-2 A page that an interrupted checkpoint or recovery has changed is one that the log
//              names above the checkpoint id, since what was copied is durable (CKPT-1). Recovery
//              computes the checksums of the pages that it stores to, from all of the page where
//              the mark has the header's id, and otherwise from the words that it replaces. They
//              are durable before the header says that there is nothing to recover.
//   CHECKSUM-3 (readers) A page's checksum is 0 while the page is being changed. It is stored, and
//              stores to the page wait for it, and the new one waits for them. So who loads a
//              checksum, then the page, then the same checksum again has a page that the checksum
//              is of (a seqlock: Boehm, "Can Seqlocks Get Along With Programming Language Memory
//              Models?", MSPC '12).
//   CHECKSUM-4 The words of a chunk are 0, durably, before it becomes a hole (TRIM-1, TRIM-3): the
//              next structure there begins without checksums.
// Thread safety: one thread at a time changes checksums; any thread, also of other processes, may
// load them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/reader_words.hpp"

namespace perdure::pool {

/// The terms of one page's checksum.
class PageSum {
 public:
  static constexpr std::uint64_t page_bytes = 4096, line_bytes = 64;
  explicit constexpr PageSum(std::uint64_t page) noexcept : seeded_(page) {}

  /// The term of the two words at 16 * `pair` in the page.
  [[nodiscard]] constexpr std::uint64_t pair(std::uint64_t pair, std::uint64_t a,
                                             std::uint64_t b) const noexcept {
    base::Checksum c = seeded_;
    c.skip(pair);
    c.add(a, b);
    return c.linear();
  }
  /// The terms of a line, whose 64 bytes are at `bytes`.
  [[nodiscard]] std::uint64_t line(std::uint64_t line, const void* bytes) const noexcept {
    base::Checksum c = seeded_;
    c.skip(line * 4);
    std::uint64_t w[8];
    std::memcpy(w, bytes, sizeof w);
    for (int i = 0; i < 8; i += 2) c.add(w[i], w[i + 1]);
    return c.linear();
  }
  /// Whether a line of page `page` has terms: that of the reader words, which no checkpoint writes,
  /// has none.
  [[nodiscard]] static constexpr bool counts(std::uint64_t page, std::uint64_t line) noexcept {
    return page != 0 || line != reader_words_offset / line_bytes;
  }
  /// All terms of page `page`.
  [[nodiscard]] static std::uint64_t of(std::uint64_t page, const std::byte* bytes) noexcept {
    const PageSum sum(page);
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < page_bytes / line_bytes; ++i)
      if (counts(page, i)) all += sum.line(i, bytes + i * line_bytes);
    return all;
  }

 private:
  base::Checksum seeded_;
};

class PageChecksums {
 public:
  static constexpr std::uint64_t page_bytes = PageSum::page_bytes;
  /// Pages of a chunk.
  static constexpr std::uint64_t chunk_pages = chunk_bytes / page_bytes;

  /// REQUIRES: the header has the feature.
  PageChecksums(medium::Medium& medium, const Header& header) noexcept
      : medium_(medium),
        directory_(header),
        offset_(header.checksums_offset),
        pages_(header.checksums_bytes / 8) {}
  /// Whether the pool has them, which does not change in a session.
  [[nodiscard]] static bool has(const Header& header) noexcept;

  /// Where the word of a page lies in the data region.
  [[nodiscard]] std::uint64_t offset(std::uint64_t page) const noexcept {
    return offset_ + page * 8;
  }
  /// Whether the page can have a checksum, and the data region has its word.
  [[nodiscard]] bool covers(std::uint64_t page) const noexcept {
    return page < pages_ && offset(page) < medium_.data_bytes() &&
           !directory_.holds_checksums(page / chunk_pages);
  }
  /// The checksum of a page; 0: none. REQUIRES: covers(page).
  [[nodiscard]] std::uint64_t load(std::uint64_t page) const noexcept {
    // Acquire: pairs with the fences between what set() stores and the page's lines (CHECKSUM-3).
    return __atomic_load_n(
        reinterpret_cast<const std::uint64_t*>(medium_.at(medium_.log_bytes() + offset(page))),
        __ATOMIC_ACQUIRE);
  }
  /// Stores a checksum, and starts its write-back if `flush`.
  void set(std::uint64_t page, std::uint64_t sum, bool flush = true) noexcept {
    const std::uint64_t at = medium_.log_bytes() + offset(page);
    medium_.store(at, &sum, sizeof sum);
    if (flush) medium_.flush(at, sizeof sum);
  }
  /// The checksum of a page as it is in the data region.
  [[nodiscard]] std::uint64_t computed(std::uint64_t page) const noexcept {
    return PageSum::of(page, medium_.data() + page * page_bytes);
  }

  /// CHECKSUM-1: the data region is about to be changed upon this checkpoint id. The caller fences
  /// before it is.
  void mark(std::uint64_t checkpoint_id) noexcept;
  /// It was changed, and is durable: no interruption is to be seen any more. Not fenced.
  void unmark() noexcept { set(offset_ / page_bytes, 0); }
  /// Whether it may have been changed since the header has this checkpoint id.
  [[nodiscard]] bool marked(std::uint64_t checkpoint_id) const noexcept;

  /// The pages of these chunks have no checksums from now on. The caller fences.
  void forget(std::uint64_t chunk, std::uint64_t count) noexcept;
  /// Calls f(page) for every page of a data region of `data_bytes` that is in use, according to its
  /// directory, and can have a checksum.
  void each_page(std::uint64_t data_bytes, const std::function<void(std::uint64_t page)>& f) const;
  /// Gives them their checksums, from what they hold: of a new pool, before its header is written.
  /// The caller fences.
  void compute_all(std::uint64_t data_bytes);
  /// The lines at these offsets, of directory words, are about to have these words, 8 each: the
  /// pages of chunks that become free have no checksums from now on. Those of a chunk that is in
  /// use again, according to `view`, keep theirs.
  void forget_freed(const std::uint64_t* offsets, std::size_t n, const std::uint64_t* words,
                    const std::byte* view) noexcept;

  /// The change of a batch of lines, in three steps: prepare(), the lines' stores, publish(). It
  /// takes no memory in the steps after reserve().
  class Change {
   public:
    explicit Change(PageChecksums& sums) noexcept : sums_(sums) {}
    /// Makes space for a batch of that many pages. Throws std::bad_alloc.
    void reserve(std::size_t pages) { pages_.reserve(pages); }
    /// The lines at these offsets, ascending, are about to have these words, 8 each.
    void prepare(const std::uint64_t* offsets, std::size_t n, const std::uint64_t* words) noexcept;
    /// The lines were stored, or streamed.
    void publish() noexcept;

   private:
    struct Page {
      std::uint64_t page, sum;
    };
    PageChecksums& sums_;
    std::vector<Page> pages_;
  };

 private:
  medium::Medium& medium_;
  const Directory directory_;
  const std::uint64_t offset_, pages_;
};

/// Where the checksums of a new pool with this limit lie.
[[nodiscard]] DataRange checksums_of_new_pool(std::uint64_t max_data_bytes) noexcept;
/// Where those of an existing pool can lie, behind the end of its data region; `limit`: its limit,
/// also one that is about to be raised. No bytes: the limit leaves no space.
[[nodiscard]] DataRange checksums_of_old_pool(const Header& header, std::uint64_t limit) noexcept;
/// In a header that is not yet written, of a pool that is made anew from parts of another one: puts
/// the checksums where no state of that pool had anything else. They stay where they are if the
/// pool was made with them; otherwise they come behind the data region, which gets longer; if the
/// limit leaves no space, the pool has none. The words there are to be zeros.
void place_checksums_anew(Header& header) noexcept;
/// What can't be right about a header's fields for checksums; empty: nothing.
[[nodiscard]] std::string contradiction_of_checksums(const Header& header);

}  // namespace perdure::pool
