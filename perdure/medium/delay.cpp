// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/delay.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <string>

namespace perdure::medium {
namespace {

std::uint64_t ticks() noexcept {
  _mm_lfence();  // the clock is read after everything that came before
  const std::uint64_t t = __rdtsc();
  _mm_lfence();
  return t;
}

void spin(std::uint64_t from, std::uint64_t length) noexcept {
  // This is many times the duration of a pause.
  constexpr std::uint64_t long_wait = 2000;
  // Meanwhile the other hyperthread has the core.
  while (length > long_wait && ticks() - from < length - long_wait) _mm_pause();
  while (ticks() - from < length) {}
}

double measure() {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const std::uint64_t t0 = ticks();
  auto now = start;
  while (now - start < std::chrono::milliseconds(5)) now = clock::now();
  const std::uint64_t t1 = ticks();
  return static_cast<double>(t1 - t0) /
         static_cast<double>(
             std::chrono::duration_cast<std::chrono::nanoseconds>(now - start).count());
}

}  // namespace

double ticks_per_ns() {
  // This is no static local, because a forked child could wait for ever for its initialisation. Two
  // threads may both measure.
  static constinit std::atomic<double> rate{0};
  double known = rate.load(std::memory_order_relaxed);  // no partner: only the value is shared
  if (known == 0) rate.store(known = measure(), std::memory_order_relaxed);
  return known;
}

namespace {

// Parses one of the "+..." suffixes of a name; returns false if it is not one.
bool add_knob(Delays& d, std::string_view knob) {
  if (knob == "wbinvd" || knob == "each") {
    (knob == "each" ? d.buffer_each : d.flush_all_is_one) = true;
    return true;
  }
  constexpr std::uint32_t most = 1'000'000;
  const auto equals = knob.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view what = knob.substr(0, equals), digits = knob.substr(equals + 1);
  std::uint32_t ns = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ns);
  if (error != std::errc() || end != digits.data() + digits.size() || ns > most) return false;
  if (what == "fence")
    d.fence_ns = ns;
  else if (what == "write")
    d.write_ns = ns;
  else if (what == "bandwidth" && ns != 0)  // GB/s, not ns
    d.bandwidth_gb_s = ns;
  else
    return false;
  return true;
}

}  // namespace

Result<Delays> Delays::named(std::string_view name) {
  if (const auto plus = name.rfind('+'); plus != std::string_view::npos) {
    const std::string_view knob = name.substr(plus + 1), before = name.substr(0, plus);
    auto base = named(before);
    const bool again =
        before.find("+" + std::string(knob.substr(0, knob.find('=')))) != std::string_view::npos;
    if (base.ok() && (again || !add_knob(*base, knob)))
      return failure(Code::invalid, "", "delays named \"" + std::string(name) + "\"",
                     "a name, or NAME+fence=NS, NAME+write=NS with at most 1000000 ns, "
                     "NAME+bandwidth=GB/s, NAME+wbinvd, NAME+each, each once",
                     "write it as in \"rewind+fence=500\"");
    return base;
  }
  Delays d;
  if (name == "none") return d;
  if (name == "rewind") {
    // REWIND 5: "510 processor cycles (150ns)". At its 2.5 GHz that would be 204 ns; we use the
    // nanoseconds.
    d.write_ns = 150;
    d.merge_over_fences = true;
    return d;
  }
  if (name == "blurred") {  // Blurred Persistence V-A: 150 ns by default
    d.write_ns = 150;
    return d;
  }
  if (name == "dudetm" || name == "dudetm-3500") {
    // DudeTM 5.1 and Table 2: 1 GB/s; 1000 cycles, or 3500 as in earlier work.
    d.latency_cycles = name == "dudetm" ? 1000 : 3500;
    d.bandwidth_gb_s = 1;
    return d;
  }
  if (name == "softwrap") {  // SoftWrAP V-B: Tw = 1 us
    d.drain_ns = 1000;
    return d;
  }
  return failure(
      Code::invalid, "", "delays named \"" + std::string(name) + "\"",
      "none, rewind, blurred, dudetm, dudetm-3500 or softwrap",
      "name one of them, with or without +fence=NS, +write=NS, +bandwidth=GB/s, +wbinvd, +each");
}

ModelDelay::ModelDelay(const Delays& d)
    : latency_ticks_(d.latency_cycles),
      merge_over_fences_(d.merge_over_fences),
      flush_all_is_one_(d.flush_all_is_one),
      buffer_each_(d.buffer_each),
      rows_(std::make_unique<Row[]>(static_cast<std::size_t>(base::slot_count))),
      queues_(std::make_unique<Queue[]>(d.buffer_each ? static_cast<std::size_t>(base::slot_count)
                                                      : 1)) {
  const double rate = ticks_per_ns();
  write_ticks_ = static_cast<std::uint64_t>(rate * d.write_ns);
  drain_ticks_ = static_cast<std::uint64_t>(rate * d.drain_ns);
  fence_ticks_ = static_cast<std::uint64_t>(rate * d.fence_ns);
  // 1 GB/s is one byte per nanosecond.
  if (d.bandwidth_gb_s > 0) ticks_per_byte_ = rate / d.bandwidth_gb_s;
}

void ModelDelay::written(std::uint64_t first, std::uint64_t lines) noexcept {
  if (lines == 0) return;
  Row& r = rows_[static_cast<std::size_t>(base::thread_slot())];
  r.bytes += lines * line_bytes;
  if (write_ticks_ != 0) {
    const std::uint64_t wait = (lines - (first == r.last_line ? 1 : 0)) * write_ticks_;
    spin(ticks(), wait);
    r.charged += wait;
  }
  r.last_line = first + lines - 1;
  if (drain_ticks_ != 0) {
    const Queue& q = queue();
    for (std::uint64_t i = 0; i < lines; ++i) {
      const std::uint64_t now = __rdtsc();  // without lfence, which would wait for the line before
      const bool full = q.full(r.waiting, now);
      // Relaxed: what other threads do at this moment may be seen or not.
      if (r.waiting == 0) r.entered = q.entered.load(std::memory_order_relaxed);
      r.line[r.waiting] = first + i;
      r.at[r.waiting++] = now;
      if (full || r.waiting == queue_lines) enqueue(r);
    }
  }
}

// Puts the thread's lines into the queue as if each had entered when it was written, or later,
// when there was room: then all that followed is as much later. No line enters before its time has
// come: other threads see the queue as it is now. Where another thread's lines have entered since,
// nobody knows when there was room: these enter as of now.
void ModelDelay::enqueue(Row& r) noexcept {
  Queue& q = queue();
  const std::uint64_t start = ticks();
  std::uint64_t late = 0;  // how much later than `start` the thread would be by now
  std::uint64_t now = start;
  bool alone = true;
  for (std::size_t n = 0; n < r.waiting;) {
    // This pairs with the clear() calls below and in fenced().
    while (q.lock.test_and_set(std::memory_order_acquire)) _mm_pause();
    std::uint64_t not_before = 0;
    while (n < r.waiting) {
      // Relaxed, here and below: they change under the lock.
      const std::size_t oldest = q.oldest.load(std::memory_order_relaxed);
      alone = alone && q.entered.load(std::memory_order_relaxed) == r.entered;
      const std::uint64_t then = alone ? r.at[n] + late : now,
                          room_at = q.until[oldest].load(std::memory_order_relaxed);
      bool combined = false;  // with a write that is still queued
      for (std::size_t i = 0; i < queue_lines; ++i)
        combined = combined ||
                   (q.line[i] == r.line[n] && q.until[i].load(std::memory_order_relaxed) > then);
      if (!combined) {
        const std::uint64_t enters = std::max(then, room_at);
        if (enters > now && enters > (now = ticks())) {
          not_before = enters;
          break;
        }
        if (alone) late += enters - then;
        q.drained_at = std::max(q.drained_at, enters) + drain_ticks_;
        q.line[oldest] = r.line[n];
        q.until[oldest].store(q.drained_at, std::memory_order_relaxed);
        q.oldest.store((oldest + 1) % queue_lines, std::memory_order_relaxed);
        const std::uint64_t entered = q.entered.load(std::memory_order_relaxed) + 1;
        q.entered.store(entered, std::memory_order_relaxed);
        if (alone) r.entered = entered;
      }
      ++n;
    }
    q.lock.clear(std::memory_order_release);
    if (n == r.waiting) break;
    now = ticks();
    if (not_before > now) spin(now, not_before - now);
    now = std::max(now, not_before);
  }
  r.waiting = 0;
  spin(start, late);
}

void ModelDelay::fenced() noexcept {
  Row& r = rows_[static_cast<std::size_t>(base::thread_slot())];
  if (!merge_over_fences_) r.last_line = no_line;
  if (latency_ticks_ != 0 || ticks_per_byte_ > 0) {
    const std::uint64_t start = ticks();
    const auto transfer =
        static_cast<std::uint64_t>(static_cast<double>(r.bytes) * ticks_per_byte_);
    const std::uint64_t wait = transfer > latency_ticks_ ? transfer : latency_ticks_;
    spin(start, wait);
    r.charged += wait;
  }
  r.bytes = 0;
  if (fence_ticks_ != 0) {
    spin(ticks(), fence_ticks_);
    r.charged += fence_ticks_;
  }
  if (drain_ticks_ != 0) {
    enqueue(r);
    Queue& q = queue();
    // pairs with the clear() calls
    while (q.lock.test_and_set(std::memory_order_acquire)) _mm_pause();
    const std::uint64_t until = q.drained_at;
    q.lock.clear(std::memory_order_release);
    const std::uint64_t now = ticks();
    if (until > now) spin(now, until - now);
  }
}

}  // namespace perdure::medium
