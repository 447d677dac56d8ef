// SPDX-License-Identifier: BSD-3-Clause
//
// Runs: the block ranges that one thread has marked since its last fence, merged as they are added.
//
// The array is fixed, so marking never allocates: more runs than it holds become `all`. Thread
// safety: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace perdure::medium {

struct Run {
  std::uint64_t first = 0, end = 0;  // blocks
  [[nodiscard]] std::uint64_t blocks() const noexcept { return end - first; }
};

class Runs {
 public:
  void add(std::uint64_t first, std::uint64_t end) noexcept {
    if (count_ != 0) {
      Run& last = runs_[count_ - 1];  // most marks continue or repeat the last one
      if (first <= last.end && end >= last.first) {
        last.first = std::min(last.first, first);
        last.end = std::max(last.end, end);
        return;
      }
    }
    if (count_ == runs_.size()) merge();
    if (count_ == runs_.size()) {
      all_ = true;
      beyond_ += end - first;
      return;
    }
    runs_[count_++] = {first, end};
  }

  void add_all() noexcept { all_ = true; }

  /// Sorts the runs, and joins those that touch.
  void merge() noexcept {
    if (count_ < 2) return;
    std::sort(begin(), end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < count_; ++i) {
      if (runs_[i].first <= runs_[kept].end) {
        runs_[kept].end = std::max(runs_[kept].end, runs_[i].end);
      } else {
        runs_[++kept] = runs_[i];
      }
    }
    count_ = kept + 1;
  }

  void clear() noexcept {
    count_ = 0;
    all_ = false;
    beyond_ = 0;
  }
  /// More was marked than the array holds: everything has to be treated as marked.
  [[nodiscard]] bool all() const noexcept { return all_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0 && !all_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// There is no space for a run that starts at `first` and does not continue the last one.
  [[nodiscard]] bool full_for(std::uint64_t first) const noexcept {
    return count_ == runs_.size() && runs_[count_ - 1].end != first;
  }
  /// The number of marked blocks; after merge(), and unless all(), each block counts once.
  [[nodiscard]] std::uint64_t blocks() const noexcept {
    std::uint64_t n = beyond_;
    for (std::size_t i = 0; i < count_; ++i) n += runs_[i].blocks();
    return n;
  }
  Run* begin() noexcept { return runs_.data(); }
  Run* end() noexcept { return runs_.data() + count_; }
  [[nodiscard]] const Run* begin() const noexcept { return runs_.data(); }
  [[nodiscard]] const Run* end() const noexcept { return runs_.data() + count_; }

 private:
  std::array<Run, 128> runs_;
  std::size_t count_ = 0;
  std::uint64_t beyond_ = 0;
  bool all_ = false;
};

}  // namespace perdure::medium
