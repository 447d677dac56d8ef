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

// Relaxed: the threads have ended before finish() reads what they leave.
void set_bit(const LineWords& words, std::uint64_t n) noexcept {
  std::atomic_ref<std::uint64_t> word(words[n / 64]);
  const std::uint64_t bit = std::uint64_t{1} << n % 64;
  if ((word.load(std::memory_order_relaxed) & bit) == 0)
    word.fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace

ReplayedChecksums::ReplayedChecksums(medium::Medium& medium, const pool::Header& header)
    : medium_(medium),
      directory_(header),
      sums_(medium, header),
      checkpoint_id_(header.checkpoint_id),
      pages_(medium.data_bytes() / pool::PageChecksums::page_bytes),
      anew_(interrupted(sums_, checkpoint_id_)),
      deltas_(make_line_words(anew_ ? 1 : pages_ + 1)),
      touched_(make_line_words(pages_ / 64 + 1)),
      freed_(make_line_words(pages_ / pool::PageChecksums::chunk_pages / 64 + 1)) {}

void ReplayedChecksums::touch(std::uint64_t offset) noexcept {
  if (const std::uint64_t page = offset / pool::PageChecksums::page_bytes; page < pages_)
    set_bit(touched_, page);
}

// Of directory words: the pages of chunks that become free have no checksums.
void ReplayedChecksums::note_freed(std::uint64_t offset, const std::uint64_t* values,
                                   std::uint64_t n) noexcept {
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t old;
    std::memcpy(&old, medium_.data() + offset + i * 8, sizeof old);
    if (old != 0 && values[i] == 0 && offset >= pool::directory_offset)
      set_bit(freed_, directory_.chunk_of_word(offset + i * 8));
  }
}

void ReplayedChecksums::replace(std::uint64_t offset, const std::uint64_t* values,
                                std::uint64_t n) noexcept {
  constexpr std::uint64_t page_bytes = pool::PageChecksums::page_bytes;
  const std::byte* const data = medium_.data();
  if (directory_.holds_words(offset / pool::chunk_bytes)) note_freed(offset, values, n);
  for (const std::uint64_t stop = offset + n * 8; offset < stop;) {
    const std::uint64_t page = offset / page_bytes, end = std::min(stop, (page + 1) * page_bytes);
    set_bit(touched_, page);
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
      // A page without a checksum gets one from the next checkpoint that writes to it. Its 0 is
      // stored again, because a killed process may have left it visible and not durable.
      const std::uint64_t before = sums_.load(page);
      const std::uint64_t now = anew_         ? sums_.computed(page)
                                : before != 0 ? before + deltas_[page]
                                              : 0;
      // mutant: checksum-recovery-updates
      sums_.set(page, now);
    }
  for (std::uint64_t i = 0; i <= pages_ / pool::PageChecksums::chunk_pages / 64; ++i)
    for (std::uint64_t bits = freed_[i]; bits != 0; bits &= bits - 1) {
      const std::uint64_t chunk = i * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      std::uint64_t word;
      std::memcpy(&word, medium_.data() + directory_.word(chunk), sizeof word);
      if (word == 0) sums_.forget(chunk, 1);
    }
}

}  // namespace perdure::log
