// SPDX-License-Identifier: BSD-3-Clause
//
// Kept: payloads of packed records, in DRAM, from when they were written until they are applied to
// home: without a crash nobody unpacks one (DudeTM section 3.3: a log stays in the volatile region
// after it was flushed, if memory is there, and Reproduce reads it there).
//
// Bounded: a payload that would go beyond the bound is not kept, and its record is unpacked from
// the ring.
// Thread safety: put by one thread at a time, take by one thread at a time, both at once.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace perdure::log {

class Kept {
 public:
  static constexpr std::uint64_t most_words = 8 << 20;  ///< 64 MiB

  /// Of the record at ring position `position`; positions rise.
  void put(std::uint64_t position, const std::uint64_t* payload, std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    if (words_ + n > most_words) return;
    try {
      payloads_.emplace_back(position, std::vector<std::uint64_t>(payload, payload + n));
      words_ += n;
    } catch (const std::bad_alloc&) {  // then it is unpacked
    }
  }
  /// The payload of the record at `position`, and forgets those before; empty: it was not kept.
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

}  // namespace perdure::log
