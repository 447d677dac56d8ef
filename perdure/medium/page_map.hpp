// SPDX-License-Identifier: BSD-3-Clause
//
// PageMap: which 4 KiB pages of a pool's file are known to be allocated, one bit per page. It
// answers questions about ALLOC-1 (medium.hpp): before each store in builds with assertions, and
// from the logs and the heap before they promise space.
//
// A bit is set after the file system has given the page its block, and is cleared only when growth
// is undone. A clear bit means that nothing is known: asking for an existing allocation again costs
// a system call and changes nothing.
// Thread safety: any thread may call all() and the searches; one thread at a time may call set()
// and clear().
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::medium {

inline constexpr std::uint64_t page_bytes = 4096;

class PageMap {
 public:
  PageMap() noexcept = default;
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap();

  /// Reserves address space for a file of up to `bytes`, with all bits clear. Call it once. The
  /// error `out_of_memory` names `path`.
  Status reserve(const std::string& path, std::uint64_t bytes);

  /// Are all pages that bytes [offset, offset + n) touch allocated?
  [[nodiscard]] bool all(std::uint64_t offset, std::uint64_t n) const noexcept {
    if (n == 0) return true;
    const std::uint64_t first = offset / page_bytes, last = (offset + n - 1) / page_bytes;
    if (first == last) return bit(first);
    return next(first, last + 1, false) == last + 1;
  }
  [[nodiscard]] bool bit(std::uint64_t page) const noexcept {
    return (word(page / 64) >> page % 64 & 1) != 0;
  }
  /// The first page in [page, end) whose bit is `value`; `end` if there is none.
  [[nodiscard]] std::uint64_t next(std::uint64_t page, std::uint64_t end,
                                   bool value) const noexcept {
    while (page < end) {
      const std::uint64_t w = (value ? word(page / 64) : ~word(page / 64)) >> page % 64;
      if (w != 0) {
        page += static_cast<std::uint64_t>(std::countr_zero(w));
        return page < end ? page : end;
      }
      page = (page / 64 + 1) * 64;
    }
    return end;
  }
  /// The page after the last allocated one in [page, end); `page` if there is none.
  [[nodiscard]] std::uint64_t end_of_last(std::uint64_t page, std::uint64_t end) const noexcept {
    while (end > page && !bit(end - 1)) --end;
    return end;
  }
  /// Calls f(first, end) for each run of pages in [page, end) whose bits are `value`.
  template <class F>
  void each_run(std::uint64_t page, std::uint64_t end, bool value, F&& f) const {
    for (std::uint64_t at = next(page, end, value); at < end; at = next(at, end, value)) {
      const std::uint64_t to = next(at, end, !value);
      f(at, to);
      at = to;
    }
  }
  void set(std::uint64_t page, std::uint64_t end) noexcept { change(page, end, true); }
  void clear(std::uint64_t page, std::uint64_t end) noexcept { change(page, end, false); }

 private:
  // The acquire pairs with the release in change(): the page was allocated and mapped before its
  // bit was set.
  [[nodiscard]] std::uint64_t word(std::uint64_t i) const noexcept {
    return std::atomic_ref<std::uint64_t>(words_[i]).load(std::memory_order_acquire);
  }
  void change(std::uint64_t page, std::uint64_t end, bool value) noexcept;

  std::uint64_t* words_ = nullptr;
  std::uint64_t bytes_ = 0;  // the size of words_
};

}  // namespace perdure::medium
