// SPDX-License-Identifier: BSD-3-Clause
//
// LogArena: the memory of one persistent log: a part of the log range, divided into lines, and into
// buckets of many lines.
//
// What is in use is what the log's structure reaches: nothing of the arena itself is persistent, a
// crash leaks nothing, and recovery marks what it finds. A line that is released is reused as late
// as possible (next fit), so that lines that are taken one after another are adjacent. Only lines
// and buckets that are ready, which means allocated (ALLOC-1), are given out: the first ones of
// each kind. free_lines() and free_buckets() count no others.
// Thread safety: none of its own; the log that uses it has a lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "papers/names.hpp"

namespace perdure::papers::rewind {

class LogArena {
 public:
  static constexpr std::uint64_t line = 64;

  /// The arena covers the log range's [offset, offset + bytes), both multiples of 64: `buckets` of
  /// `bucket_bytes` at the end, single lines before. All are ready.
  LogArena(std::uint64_t offset, std::uint64_t bytes, std::uint64_t bucket_bytes,
           std::uint64_t buckets)
      : offset_(offset),
        lines_((bytes - bucket_bytes * buckets) / line),
        bucket_bytes_(bucket_bytes),
        lines_ready_(lines_),
        buckets_ready_(buckets),
        free_lines_(lines_),
        used_((lines_ + 63) / 64),
        bucket_used_(buckets, false),
        free_buckets_(buckets) {
    for (std::uint64_t i = lines_; i < used_.size() * 64; ++i) used_[i / 64] |= bit(i);
  }

  [[nodiscard]] std::uint64_t free_lines() const noexcept { return free_lines_; }
  [[nodiscard]] std::uint64_t free_buckets() const noexcept { return free_buckets_; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  [[nodiscard]] std::uint64_t buckets() const noexcept { return bucket_used_.size(); }
  [[nodiscard]] std::uint64_t lines_ready() const noexcept { return lines_ready_; }
  [[nodiscard]] std::uint64_t buckets_ready() const noexcept { return buckets_ready_; }
  /// Starts with none in use: `lines` and `buckets` of them are ready.
  void start(std::uint64_t lines, std::uint64_t buckets) noexcept {
    free_lines_ = lines_ready_ = std::min(lines, lines_);
    free_buckets_ = buckets_ready_ = std::min(buckets, this->buckets());
  }
  /// Makes more of them ready.
  void more(std::uint64_t lines, std::uint64_t buckets) noexcept {
    free_lines_ += lines - lines_ready_;
    free_buckets_ += buckets - buckets_ready_;
    lines_ready_ = lines;
    buckets_ready_ = buckets;
  }
  [[nodiscard]] std::uint64_t begin() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return bucket(bucket_used_.size()); }

  /// Returns the offset of line i, and of bucket i.
  [[nodiscard]] std::uint64_t line_at(std::uint64_t i) const noexcept { return offset_ + i * line; }
  [[nodiscard]] std::uint64_t bucket(std::uint64_t i) const noexcept {
    return offset_ + lines_ * line + i * bucket_bytes_;
  }
  /// Returns the number of a bucket: less than buckets().
  [[nodiscard]] std::uint64_t bucket_number(std::uint64_t at) const noexcept {
    return (at - bucket(0)) / bucket_bytes_;
  }

  /// Takes a line and returns its offset. Precondition: free_lines() is not 0.
  [[nodiscard]] std::uint64_t take_line() noexcept;
  void give_line(std::uint64_t at) noexcept {
    used_[number(at) / 64] &= ~bit(number(at));
    ++free_lines_;
  }
  /// Takes a bucket and returns its offset. Precondition: free_buckets() is not 0.
  [[nodiscard]] std::uint64_t take_bucket() noexcept;
  void give_bucket(std::uint64_t at) noexcept {
    bucket_used_[bucket_number(at)] = false;
    ++free_buckets_;
  }

  /// Recovery marks what the log reaches as in use. Returns false if it is no line or bucket, or is
  /// in use already.
  [[nodiscard]] bool mark_line(std::uint64_t at) noexcept;
  [[nodiscard]] bool mark_bucket(std::uint64_t at) noexcept;

 private:
  static constexpr std::uint64_t bit(std::uint64_t i) noexcept {
    return std::uint64_t{1} << i % 64;
  }
  [[nodiscard]] std::uint64_t number(std::uint64_t at) const noexcept {
    return (at - offset_) / line;
  }

  const std::uint64_t offset_, lines_, bucket_bytes_;
  std::uint64_t lines_ready_, buckets_ready_;
  std::uint64_t free_lines_, next_line_ = 0;
  std::vector<std::uint64_t> used_;  // one bit per line
  std::vector<bool> bucket_used_;
  std::uint64_t free_buckets_, next_bucket_ = 0;
};

}  // namespace perdure::papers::rewind
