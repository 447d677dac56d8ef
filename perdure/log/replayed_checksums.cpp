// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/replayed_checksums.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace perdure::log {
namespace {

// Whether a checkpoint, or a recovery, has begun to change the data region and did not end.
bool interrupted(const pool::PageChecksums& sums, std::uint64_t checkpoint_id) noexcept {
  // mutant: checksum-recovery-anew
  return sums.marked(checkpoint_id);
}

}  // namespace

ReplayedChecksums::ReplayedChecksums(medium::Medium& medium, const pool::Header& header)
    : medium_(medium),
      sums_(medium, header),
      checkpoint_id_(header.checkpoint_id),
      pages_(medium.data_bytes() / pool::PageChecksums::page_bytes),
      anew_(interrupted(sums_, checkpoint_id_)),
      deltas_(make_line_words(anew_ ? 1 : pages_ + 1)),
      touched_(make_line_words(pages_ / 64 + 1)) {}

void ReplayedChecksums::replace(std::uint64_t offset, const std::uint64_t* values,
                                std::uint64_t n) noexcept {
  constexpr std::uint64_t page_bytes = pool::PageChecksums::page_bytes;
  const std::byte* const data = medium_.data();
  for (const std::uint64_t stop = offset + n * 8; offset < stop;) {
    const std::uint64_t page = offset / page_bytes, end = std::min(stop, (page + 1) * page_bytes);
    // Relaxed: the threads have ended before finish() reads what they leave.
    std::atomic_ref<std::uint64_t> touched(touched_[page / 64]);
    if (const std::uint64_t bit = std::uint64_t{1} << page % 64;
        (touched.load(std::memory_order_relaxed) & bit) == 0)
      touched.fetch_or(bit, std::memory_order_relaxed);
    if (anew_) {
      values += (end - offset) / 8;
      offset = end;
      continue;
    }
    const pool::PageSum sum(page);
    std::uint64_t delta = 0;
    while (offset < end) {
      const std::uint64_t pair = offset / 16 * 16;
      std::uint64_t old[2], now[2];
      std::memcpy(old, data + pair, sizeof old);
      std::memcpy(now, old, sizeof now);
      for (std::uint64_t w = offset % 16 / 8; w < 2 && offset < end; ++w, offset += 8)
        now[w] = *values++;
      const std::uint64_t at = pair % page_bytes / 16;
      delta += sum.pair(at, now[0], now[1]) - sum.pair(at, old[0], old[1]);
    }
    std::atomic_ref<std::uint64_t>(deltas_[page]).fetch_add(delta, std::memory_order_relaxed);
  }
}

void ReplayedChecksums::finish() noexcept {
  for (std::uint64_t i = 0; i <= pages_ / 64; ++i)
    for (std::uint64_t bits = touched_[i]; bits != 0; bits &= bits - 1) {
      const std::uint64_t page = i * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      if (!sums_.covers(page)) continue;
      // A page without a checksum gets one from the next checkpoint that writes to it.
      const std::uint64_t before = sums_.load(page);
      // mutant: checksum-recovery-updates
      if (anew_ || before != 0) sums_.set(page, anew_ ? sums_.computed(page) : before + deltas_[page]);
    }
}

}  // namespace perdure::log
