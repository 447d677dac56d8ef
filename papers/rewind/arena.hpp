// SPDX-License-Identifier: BSD-3-Clause
//
// LogArena: the memory of one persistent log: a part of the log range, cut into lines, and into
// buckets of many lines.
//
// What is in use is what the log's structure reaches: nothing of the arena itself is persistent, a
// crash leaks nothing, and recovery marks what it meets. A line that is released is given again as
// late as possible (next fit), so that what is appended one after another lies so, too. Only lines
// and buckets that are ready, which means allocated (ALLOC-1), are given: the first ones of each
// kind. free_lines() and free_buckets() count no others.
// Thread safety: none of its own; the log that it serves has a lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perdure::log {

class LogArena {
 public:
  static constexpr std::uint64_t line = 64;

  /// Of the log range's [offset, offset + bytes), multiples of 64: `buckets` of `bucket_bytes` at
  /// the end, single lines before. All are ready.
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
  /// None is in use: so many of each kind are ready.
  void start(std::uint64_t lines, std::uint64_t buckets) noexcept {
    free_lines_ = lines_ready_ = std::min(lines, lines_);
    free_buckets_ = buckets_ready_ = std::min(buckets, this->buckets());
  }
  /// More of them are.
  void more(std::uint64_t lines, std::uint64_t buckets) noexcept {
    free_lines_ += lines - lines_ready_;
    free_buckets_ += buckets - buckets_ready_;
    lines_ready_ = lines;
    buckets_ready_ = buckets;
  }
  [[nodiscard]] std::uint64_t begin() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return bucket(bucket_used_.size()); }

  /// The offset of line i, and of bucket i.
  [[nodiscard]] std::uint64_t line_at(std::uint64_t i) const noexcept { return offset_ + i * line; }
  [[nodiscard]] std::uint64_t bucket(std::uint64_t i) const noexcept {
    return offset_ + lines_ * line + i * bucket_bytes_;
  }
  /// Of a bucket: less than buckets().
  [[nodiscard]] std::uint64_t bucket_number(std::uint64_t at) const noexcept {
    return (at - bucket(0)) / bucket_bytes_;
  }

  /// A line's offset. free_lines() is not 0.
  [[nodiscard]] std::uint64_t take_line() noexcept;
  void give_line(std::uint64_t at) noexcept {
    used_[number(at) / 64] &= ~bit(number(at));
    ++free_lines_;
  }
  /// A bucket's offset. free_buckets() is not 0.
  [[nodiscard]] std::uint64_t take_bucket() noexcept;
  void give_bucket(std::uint64_t at) noexcept {
    bucket_used_[bucket_number(at)] = false;
    ++free_buckets_;
  }

  /// Recovery: what the log reaches is in use. False: it is no line or bucket, or is in use
  /// already.
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
  std::vector<std::uint64_t> used_;  // a bit a line
  std::vector<bool> bucket_used_;
  std::uint64_t free_buckets_, next_bucket_ = 0;
};

}  // namespace perdure::log
