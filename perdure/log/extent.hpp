// SPDX-License-Identifier: BSD-3-Clause
//
// LogExtent: how much of a part of the log range is allocated, counted from its beginning. A log
// that is written from there on asks it before it promises space (ALLOC-1, medium.hpp), so a pool's
// log takes blocks as it is used: 16 KiB at first, then as much again as it has, but at most 1 MiB
// where the step is taken ahead of need. A transaction that lacks blocks is rolled back and runs
// again; since its log doubles each time, all its runs together cost at most twice the last one.
// What an earlier session has allocated is there from the start. Once everything is allocated,
// nothing is asked any more.
//
// The caller passes a refusal on as `full`, at a point where nothing has been promised. It loses
// nothing, and a later call may succeed.
// Thread safety: any thread may call anything except configure().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

class LogExtent {
 public:
  /// The extent covers the log range's [offset, offset + bytes). Call this before threads start.
  void configure(medium::Medium& medium, std::uint64_t offset, std::uint64_t bytes) noexcept {
    medium_ = &medium;
    offset_ = offset;
    bytes_ = bytes;
    raise(medium.allocated_from(offset, bytes));
  }

  /// Returns whether the first `end` bytes may be stored to. An `end` beyond the extent is ready
  /// only when all of it is allocated.
  [[nodiscard]] bool ready(std::uint64_t end) const noexcept {
    // Pairs with the release in raise(): the bytes were allocated, and mapped, before.
    return end <= ready_.load(std::memory_order_acquire);
  }
  /// Returns the number of bytes that may be stored to.
  [[nodiscard]] std::uint64_t bytes_ready() const noexcept {
    return std::min(bytes_, ready_.load(std::memory_order_acquire));
  }
  /// Returns whether the next step is due for a writer that has reached `end`: less than half of a
  /// step is left then.
  [[nodiscard]] bool due(std::uint64_t end) const noexcept {
    const std::uint64_t now = ready_.load(std::memory_order_relaxed);  // a hint
    return now != whole && end + step(now) / 2 > now;
  }
  /// Makes the first `end` bytes ready, and the rest of a step if the disk has space for it.
  /// Returns `full` when the disk is full, or the medium's failure.
  Status extend(std::uint64_t end) {
    const std::uint64_t now = bytes_ready(), wanted = std::min(end, bytes_);
    if (wanted <= now) return {};
    return extend(wanted, std::min(std::max(wanted, now + std::max(now, min_step)), bytes_));
  }
  /// Takes the next step if one is due at `end`. A failure is dropped: the bytes are asked for
  /// again when they are needed.
  void extend_ahead(std::uint64_t end) noexcept {
    // The flag is set while another thread extends. The acquire pairs with the release in clear().
    if (!due(end) || ahead_.test_and_set(std::memory_order_acquire)) return;
    try {
      const std::uint64_t now = bytes_ready();
      if (now < bytes_) (void)extend(std::min(now + 1, bytes_), std::min(now + step(now), bytes_));
    } catch (const std::bad_alloc&) {  // the message could not be allocated
    }
    ahead_.clear(std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t whole = ~std::uint64_t{0};
  static constexpr std::uint64_t min_step = 16 << 10, max_step = 1 << 20;
  [[nodiscard]] static std::uint64_t step(std::uint64_t now) noexcept {
    return std::clamp(now, min_step, max_step);
  }
  // Allocates the first `more` bytes if the disk has space for them, otherwise the first `wanted`.
  Status extend(std::uint64_t wanted, std::uint64_t more) {
    const std::uint64_t now = bytes_ready();
    if (wanted <= now) return {};
    Status s = medium_->allocate(offset_ + now, more - now);
    if (s.ok()) {
      raise(more);
    } else if (s.code() == Code::full && more != wanted) {  // less may fit
      s = medium_->allocate(offset_ + now, wanted - now);
      if (s.ok()) raise(wanted);
    }
    return s;
  }
  void raise(std::uint64_t to) noexcept {
    if (to >= bytes_) to = whole;
    std::uint64_t now = ready_.load(std::memory_order_relaxed);
    // Release: pairs with the acquire in ready().
    while (now < to && !ready_.compare_exchange_weak(now, to, std::memory_order_release)) {}
  }

  medium::Medium* medium_ = nullptr;
  std::uint64_t offset_ = 0, bytes_ = 0;
  std::atomic<std::uint64_t> ready_{0};
  std::atomic_flag ahead_;
};

}  // namespace perdure::log
