// SPDX-License-Identifier: BSD-3-Clause
//
// LineMarks: which cache lines hold stores that nobody flushed yet, so that flush_all() costs what was stored and not what the pool holds.
//
// A byte a line, and a byte a 4 KiB page above them. Invariants (x86 keeps stores in order, so the data is visible before its mark):
//   K1 a store made before take() began is either marked or was taken by a flush that began after it;
//   K2 a mark is taken by an atomic exchange, a full barrier: the write-back that follows sees every store whose mark was taken.
// Thread safety: mark and take by any thread; cover() by one at a time, before the range is used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "perdure/medium/words.hpp"

namespace perdure::medium {

class LineMarks {
 public:
  LineMarks() = default;
  LineMarks(const LineMarks&) = delete;
  LineMarks& operator=(const LineMarks&) = delete;
  ~LineMarks();

  /// Reserves address space for marks of a file of `most` bytes.
  Status reserve(const std::string& path, std::uint64_t most);
  /// Makes the marks of [0, bytes) usable.
  Status cover(const std::string& path, std::uint64_t bytes);

  /// After a store to [offset, offset + n).
  void mark(std::uint64_t offset, std::size_t n) noexcept {
    if (n == 0) return;
    for (std::uint64_t l = offset / line_bytes; l <= (offset + n - 1) / line_bytes; ++l) {
      lines_[l].store(1, std::memory_order_release);  // after the data; pairs with the exchange in take_line()
      // stored even if it is set: looking first could see a mark that take_all() is about to take, before our line's mark is visible
      pages_[l / lines_per_page].store(1, std::memory_order_release);  // after the line's; pairs with the exchange in take_all()
    }
  }

  /// Before the write-back of a line: true if it was marked.
  bool take_line(std::uint64_t line) noexcept {
    if (lines_[line].load(std::memory_order_relaxed) == 0) return false;
    return lines_[line].exchange(0, std::memory_order_acq_rel) != 0;  // pairs with the release in mark()
  }

  /// Calls flush(first line, count) for every run of marked lines, and takes the marks. Many marks are taken before the first of their lines is
  /// flushed: an exchange waits for the write-backs that its thread has started.
  template <class Flush>
  void take_all(Flush&& flush) {
    std::array<Run, 512> runs;
    std::size_t n = 0;
    const auto flush_taken = [&] {
      for (std::size_t i = 0; i < n; ++i) flush(runs[i].first, runs[i].count);
      n = 0;
    };
    const std::uint64_t pages = covered_ / page_bytes;
    for (std::uint64_t p = 0; p < pages; ++p) {
      if (pages_[p].load(std::memory_order_relaxed) == 0) continue;
      pages_[p].exchange(0, std::memory_order_acq_rel);  // before its lines: a store that comes later marks the page again
      for (std::uint64_t l = p * lines_per_page; l < (p + 1) * lines_per_page; ++l) {
        if (!take_line(l)) continue;
        if (n != 0 && runs[n - 1].first + runs[n - 1].count == l) {
          ++runs[n - 1].count;
          continue;
        }
        if (n == runs.size()) flush_taken();
        runs[n++] = {l, 1};
      }
    }
    flush_taken();
  }

 private:
  struct Run {
    std::uint64_t first, count;
  };
  static constexpr std::uint64_t lines_per_page = page_bytes / line_bytes;
  std::atomic<std::uint8_t>* lines_ = nullptr;
  std::atomic<std::uint8_t>* pages_ = nullptr;
  std::uint64_t most_ = 0, covered_ = 0;
};

}  // namespace perdure::medium
