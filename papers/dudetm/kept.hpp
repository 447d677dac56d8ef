// SPDX-License-Identifier: BSD-3-Clause
//
// Kept: a cache in DRAM of the payloads of packed records, from when they were written until they
// are applied to the data region. So without a crash no record is unpacked (DudeTM section 3.3: a
// log stays in the volatile region after it was flushed, if there is memory, and Reproduce, the
// paper's replay, reads it there).
//
// The cache is bounded. A payload that would exceed the bound is not cached, and its record is
// unpacked from the ring.
// Thread safety: one thread at a time may call put(), and one thread at a time take(); both may run
// concurrently.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "papers/names.hpp"

namespace perdure::papers::dudetm {

class Kept {
 public:
  static constexpr std::uint64_t max_words = 8 << 20;  ///< 64 MiB

  /// Stores the payload of the record at ring position `position`. Positions rise.
  void put(std::uint64_t position, const std::uint64_t* payload, std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    if (words_ + n > max_words) return;
    try {
      payloads_.emplace_back(position, std::vector<std::uint64_t>(payload, payload + n));
      words_ += n;
    } catch (const std::bad_alloc&) {  // then the record is unpacked
    }
  }
  /// Returns the payload of the record at `position`, or an empty one if it was not cached. Removes
  /// it and those before it.
  [[nodiscard]] std::vector<std::uint64_t> take(std::uint64_t position) noexcept {
    const std::lock_guard lock(mutex_);
    while (!payloads_.empty() && payloads_.front().first <= position) {
      auto [at, payload] = std::move(payloads_.front());
      payloads_.pop_front();
      words_ -= payload.size();
      if (at == position) return std::move(payload);
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::uint64_t words_ = 0;
  std::deque<std::pair<std::uint64_t, std::vector<std::uint64_t>>> payloads_;
};

}  // namespace perdure::papers::dudetm
