// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/wrap_log.hpp"

#include <algorithm>
#include <string>

#include "perdure/log/control_word.hpp"

namespace perdure::log {

// --- writing --------------------------------------------------------------------------------------------------------------------------

void WrapLog::start_word(std::uint64_t word, std::uint64_t value) noexcept {
  const std::uint64_t whole = ControlWord::make(place_.identity, word, value);
  medium_.store(place_.offset + word, &whole, 8);
  medium_.flush(place_.offset + word, 8);
}

Status WrapLog::format(std::uint64_t base) {
  start_word(x_word, base);
  for (unsigned b = 0; b < place_.buckets; ++b) begin_bucket(b, base);
  if (Status s = medium_.fence(); !s.ok()) return s;  // what is to be gone by, before the epoch says that this is a log
  start_word(epoch_word, place_.epoch);
  return medium_.fence();  // before the first wrap is durable in it
}

void WrapLog::begin_bucket(unsigned bucket, std::uint64_t base) noexcept {
  start_word(base_word + bucket * 8, base);
  base_[bucket] = base;
  tail_[bucket].store(0, std::memory_order_relaxed);
}

Status WrapLog::note_x(std::uint64_t x) noexcept {
  start_word(x_word, x);
  return medium_.fence();  // W3: before a bucket begins again that had wraps up to x
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
    const std::uint64_t part = std::min(n, WrapRecord::most_in_run);
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
  const auto need = [&c] { return (c.is_long() ? WrapRecord::long_close_bytes : WrapRecord::close_bytes) / 4; };
  if (units_ + need() > 16) {
    std::fill(line_.begin() + static_cast<std::ptrdiff_t>(units_), line_.begin() + 16, 0);
    units_ = 16;
    full();
    c.lines = lines_ + 1;  // which may have made it a long one
  }
  std::fill(line_.begin() + static_cast<std::ptrdiff_t>(units_), line_.begin() + 16, 0);
  if (c.is_long()) {
    line_[11] = static_cast<std::uint32_t>(c.lines);
    std::memcpy(&line_[12], &c.id, 8);
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(line_.data());
  std::uint64_t word = c.bits();
  std::memcpy(&line_[14], &word, 8);
  word |= std::uint64_t{sum_.close(bytes)} << 32;
  std::memcpy(&line_[14], &word, 8);
  medium_.stream(at_ + lines_ * 64, bytes, 64);
  ++lines_;
  tail_[bucket_].store(first_ + lines_, std::memory_order_relaxed);
  last_id_ = id;
  return medium_.fence();  // W1: before home has anything of what the wrap has stored, and before its owner is told that it is durable
}

// --- recovery ---------------------------------------------------------------------------------------------------------------------------

namespace {

Status broken(const medium::Medium& medium, const WrapPlace& place, const std::string& what) {
  return failure(Code::corrupt, medium.path(), "the log at log offset " + std::to_string(place.offset) + " " + what,
                 "what a crash can have left of a log", "restore a copy");
}

}  // namespace

WrapControl WrapLog::control(const medium::Medium& medium, const WrapPlace& place) {
  WrapControl c;
  const auto word = [&](std::uint64_t at) { return *reinterpret_cast<const std::uint64_t*>(medium.at(place.offset + at)); };
  const auto whole = [&](std::uint64_t at) { return ControlWord::whole(place.identity, at, word(at)); };
  const std::uint64_t epoch = word(epoch_word);
  if (epoch == 0) return c;  // a new pool's
  if (!whole(epoch_word) || ControlWord::value(epoch) > place.epoch) {
    c.damage = broken(medium, place, "names no session that it can be of");
    return c;
  }
  c.ours = ControlWord::value(epoch) == place.epoch;
  if (!c.ours) return c;
  bool all = whole(x_word);
  c.x = ControlWord::value(word(x_word));
  for (unsigned b = 0; b < place.buckets; ++b) {
    all = all && whole(base_word + b * 8);
    c.base[b] = ControlWord::value(word(base_word + b * 8));
  }
  if (!all) c.damage = broken(medium, place, "has damaged control words");
  return c;
}

WrapScan WrapLog::scan(const medium::Medium& medium, const WrapPlace& place, unsigned bucket, std::uint64_t base, std::uint64_t covered) {
  WrapScan s;
  const std::uint64_t lines = place.lines(), seed = place.seed(bucket, base);
  const auto line = [&](std::uint64_t n) { return medium.at(place.bucket_at(bucket) + n * 64); };
  const auto whole = [&](const WrapSum& sum, std::uint64_t n) {
    std::uint64_t word = 0;
    std::memcpy(&word, line(n) + 56, 8);
    return word >> 32 == sum.close(line(n));
  };
  std::uint64_t last_id = base, first = 0;
  WrapSum sum(seed, 0);
  for (std::uint64_t n = 0; n < lines; ++n) {
    if (const WrapClose c = WrapClose::of(line(n)); c.lines == n + 1 - first && whole(sum, n)) {
      const std::uint64_t id = base + c.id;
      if (id <= last_id) {
        s.damage = broken(medium, place, "has wrap " + std::to_string(id) + " behind " + std::to_string(last_id));
        return s;
      }
      s.wraps.push_back({id, first, n + 1, bucket, c.is_long()});
      last_id = id;
      first = n + 1;
      sum = WrapSum(seed, first);
    } else {
      sum.add(line(n));
    }
  }
  s.end = first;
  // W1: nothing that was closed follows what is torn.
  for (std::uint64_t n = first + 1; n < lines; ++n) {
    const WrapClose c = WrapClose::of(line(n));
    if (c.lines == 0 || c.lines > n - first || base + c.id <= std::max(last_id, covered)) continue;
    WrapSum of(seed, n + 1 - c.lines);
    for (std::uint64_t i = n + 1 - c.lines; i < n; ++i) of.add(line(i));
    if (!whole(of, n)) continue;
    s.damage = broken(medium, place, "breaks off at line " + std::to_string(first) + ", and wraps follow");
    return s;
  }
  return s;
}

}  // namespace perdure::log
