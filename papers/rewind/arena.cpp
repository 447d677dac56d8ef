// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/arena.hpp"

#include <bit>
#include <cassert>

namespace perdure::papers::rewind {

std::uint64_t LogArena::take_line() noexcept {
  assert(free_lines_ != 0);
  std::uint64_t word = next_line_ / 64, found = lines_ready_;
  for (std::uint64_t free = ~used_[word] & ~(bit(next_line_) - 1);; free = ~used_[word]) {
    if (free != 0) found = word * 64 + static_cast<std::uint64_t>(std::countr_zero(free));
    if (found < lines_ready_) break;
    word = (word + 1) * 64 < lines_ready_ ? word + 1 : 0;
    found = lines_ready_;
  }
  used_[word] |= bit(found);
  --free_lines_;
  next_line_ = found + 1 < lines_ready_ ? found + 1 : 0;
  return offset_ + found * line;
}

std::uint64_t LogArena::take_bucket() noexcept {
  assert(free_buckets_ != 0);
  while (bucket_used_[next_bucket_]) next_bucket_ = (next_bucket_ + 1) % buckets_ready_;
  bucket_used_[next_bucket_] = true;
  --free_buckets_;
  return bucket(next_bucket_);
}

bool LogArena::mark_line(std::uint64_t at) noexcept {
  if (at < offset_ || at % line != 0 || number(at) >= lines_ready_ ||
      (used_[number(at) / 64] & bit(number(at))) != 0)
    return false;
  used_[number(at) / 64] |= bit(number(at));
  --free_lines_;
  return true;
}

bool LogArena::mark_bucket(std::uint64_t at) noexcept {
  if (at < bucket(0) || at >= bucket(buckets_ready_) || (at - bucket(0)) % bucket_bytes_ != 0 ||
      bucket_used_[bucket_number(at)])
    return false;
  bucket_used_[bucket_number(at)] = true;
  --free_buckets_;
  return true;
}

}  // namespace perdure::papers::rewind
