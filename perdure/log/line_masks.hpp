// SPDX-License-Identifier: BSD-3-Clause
//
// LineMasks: which lines of the data region have been stored to and not yet written back. It has
// one bit per line, one word per page, and a list of the pages with bits set, in the order in which
// they were first noted. Kept over many writers, it writes a line that is stored to repeatedly back
// only once. A write-back can be cut into slices while stores continue: the cost of a slice depends
// on its own lines alone, however many pages remain.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "perdure/medium/medium.hpp"

namespace perdure::log {

struct FreeLineWords {
  std::uint64_t bytes = 0;
  void operator()(std::uint64_t* words) const noexcept;
};
using LineWords = std::unique_ptr<std::uint64_t[], FreeLineWords>;
/// Makes `count` words of zeros. Words that are not touched take no memory. Throws std::bad_alloc.
LineWords make_line_words(std::uint64_t count);

/// `Page` holds a page's number; a test passes a type that counts the operations on it.
template <class Page>
class LineMasksOf {
 public:
  static constexpr std::uint64_t page_bits = 12, line_bits = 6, lines_a_page = 64;

  /// Sizes the masks for a data region of `data_bytes`. The region may grow: what is noted stays.
  /// Throws std::bad_alloc.
  void fit(std::uint64_t data_bytes) {
    const std::uint64_t pages = (data_bytes >> page_bits) + 1;
    if (pages <= fits_) return;
    LineWords words = make_line_words(pages);
    for (const Page& page : pages_) words[page] = words_[page];
    for (std::size_t i = next_; i < taken_.size(); ++i) words[taken_[i]] = words_[taken_[i]];
    words_ = std::move(words);
    fits_ = pages;
  }
  /// Notes that `line` has been stored to. Throws std::bad_alloc.
  void note(std::uint64_t line) { note(line, words_.get()); }
  /// The same for the lines of words that have been stored to.
  void note(std::span<const medium::WordStore> list) {
    std::uint64_t* const words = words_.get();
    for (const medium::WordStore& w : list) note(w.offset >> line_bits, words);
  }
  /// Freezes what has been noted as the set to write back. What is noted from here on is left for
  /// the next begin(), so that write_back() terminates while stores continue. (A line that
  /// write_back() has not reached is written back with what it holds by then.) Precondition: the
  /// previous set has been written back completely.
  void begin() noexcept {
    std::swap(pages_, taken_);
    next_ = 0;
  }
  /// Starts the write-back of about `most` lines of the frozen set. Returns whether none remain.
  /// The caller fences. Throws std::bad_alloc, with nothing taken.
  bool write_back(medium::Medium& medium, std::uint64_t most = ~std::uint64_t{0}) {
    return take(most, [&](const auto& lines) { medium.flush_lines(medium.log_bytes(), lines); });
  }
  /// Takes all noted lines and calls f(lines) for up to 4,096 at a time; `in_order`: by address.
  /// Throws std::bad_alloc, with nothing taken.
  template <class F>
  void take_all(bool in_order, F&& f) {
    begin();
    if (in_order) std::sort(taken_.begin(), taken_.end());
    take(~std::uint64_t{0}, f);
  }
  [[nodiscard]] bool empty() const noexcept { return pages_.empty() && taken_.empty(); }

 private:
  static constexpr std::size_t batch = 4096;

  void note(std::uint64_t line, std::uint64_t* words) {
    std::uint64_t& mask = words[line / lines_a_page];
    if (mask == 0) pages_.push_back(Page(line / lines_a_page));
    mask |= std::uint64_t{1} << line % lines_a_page;
  }

  template <class F>
  bool take(std::uint64_t most, F&& f) {
    lines_.reserve(batch);
    for (std::uint64_t lines = 0; next_ < taken_.size() && lines < most; ++next_) {
      const std::uint64_t page = taken_[next_];
      if (lines_.size() + lines_a_page > batch) {
        f(std::as_const(lines_));
        lines_.clear();
      }
      for (std::uint64_t mask = std::exchange(words_.get()[page], 0); mask != 0;
           mask &= mask - 1, ++lines)
        lines_.push_back(page * lines_a_page + static_cast<std::uint64_t>(std::countr_zero(mask)));
    }
    if (!lines_.empty()) f(std::as_const(lines_));
    lines_.clear();
    if (next_ == taken_.size()) {
      taken_.clear();
      next_ = 0;
    }
    return taken_.empty();
  }

  LineWords words_;
  std::uint64_t fits_ = 0;  // pages
  std::vector<Page> pages_, taken_;
  std::size_t next_ = 0;  // index of the first page of taken_ that remains
  std::vector<std::uint64_t> lines_;
};
using LineMasks = LineMasksOf<std::uint64_t>;

}  // namespace perdure::log
