// SPDX-License-Identifier: BSD-3-Clause
#include "papers/softwrap/wrap_log.hpp"

#include <algorithm>

namespace perdure::papers::softwrap {

// --- writing -------------------------------------------------------------------------------------

void WrapLog::start_word(std::uint64_t word, std::uint64_t value) noexcept {
  const std::uint64_t whole = ControlWord::make(place_.identity, word, value);
  medium_.store(place_.offset + word, &whole, 8);
  medium_.flush(place_.offset + word, 8);
}

Status WrapLog::format(std::uint64_t base) {
  if (Status s =
          ControlWord::forget_other_form(medium_, place_.offset, place_.identity, epoch_word);
      !s.ok())
    return s;
  start_word(x_word, base);
  for (unsigned b = 0; b < place_.buckets; ++b) begin_bucket(b, base);
  // What recovery relies on, before the epoch says that this is a log of the session.
  if (Status s = medium_.fence(); !s.ok()) return s;
  start_word(epoch_word, place_.epoch);
  // mutant: wrap-format-fence, call wrap-format-fence
  return medium_.fence();  // before the first wrap is durable in it
}

void WrapLog::begin_bucket(unsigned bucket, std::uint64_t base) noexcept {
  start_word(base_word + bucket * 8, base);
  base_[bucket] = base;
  tail_[bucket].store(0, std::memory_order_relaxed);
}

Status WrapLog::note_checkpoint_id(std::uint64_t x) noexcept {
  start_word(x_word, x);
  // mutant: wrap-id-fence, call wrap-id-fence
  return medium_.fence();  // WRAPLOG-3: before a bucket begins again that had wraps up to x
}

void WrapLog::full() noexcept {
  const auto* const bytes = reinterpret_cast<const std::byte*>(line_.data());
  medium_.stream(at_ + lines_ * 64, bytes, 64);
  sum_.add(bytes);
  ++lines_;
  units_ -= 16;
  std::copy_n(line_.begin() + 16, units_, line_.begin());
}

void WrapLog::run(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n) noexcept {
  while (n != 0) {
    const std::uint64_t part = std::min(n, WrapRecord::max_in_run);
    entry(WrapRecord::run, offset / 8 | part << 40);
    for (std::uint64_t i = 0; i < part; ++i) {
      std::memcpy(&line_[units_], &values[i], 8);
      units_ += 2;
      if (units_ >= 16) full();
    }
    offset += part * 8;
    values += part;
    n -= part;
  }
}

Status WrapLog::close(std::uint64_t id) noexcept {
  WrapClose c{lines_ + 1, id - base_[bucket_]};
  constexpr std::uint64_t units = 16;  // of a line
  const auto need = [&c] {
    return (c.is_long() ? WrapRecord::long_close_bytes : WrapRecord::close_bytes) / 4;
  };
  if (units_ + need() > units) {
    std::fill(line_.begin() + static_cast<std::ptrdiff_t>(units_), line_.begin() + units, 0);
    units_ = units;
    full();
    c.lines = lines_ + 1;  // this may have made it a long one
  }
  std::fill(line_.begin() + static_cast<std::ptrdiff_t>(units_), line_.begin() + units, 0);
  if (c.is_long()) {
    line_[11] = static_cast<std::uint32_t>(c.lines);
    std::memcpy(&line_[12], &c.id, 8);
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(line_.data());
  std::uint64_t word = c.bits();
  std::memcpy(&line_[14], &word, 8);
  if (const std::size_t free = (units - need() - units_) * 4; free != 0) {
    const std::size_t n = std::min<std::size_t>(free, WrapRecord::check_bytes),
                      at = (units - need()) * 4 - n;
    const std::uint64_t check = sum_.check(bytes, at, n);
    std::memcpy(reinterpret_cast<std::byte*>(line_.data()) + at, &check, n);
  }
  word |= std::uint64_t{sum_.close(bytes)} << 32;
  std::memcpy(&line_[14], &word, 8);
  medium_.stream(at_ + lines_ * 64, bytes, 64);
  ++lines_;
  tail_[bucket_].store(first_ + lines_, std::memory_order_relaxed);
  last_id_ = id;
  // WRAPLOG-1: before the data region has anything of what the wrap has stored, and before it is
  // acknowledged.
  return medium_.fence();
}

}  // namespace perdure::papers::softwrap
