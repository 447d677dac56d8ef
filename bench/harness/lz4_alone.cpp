// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/lz4_alone.hpp"

#include <lz4.h>

#include <atomic>
#include <vector>

namespace bench {
namespace {

std::atomic<std::uint64_t> counted{0};  // a counter: no order is needed

}  // namespace

void count_lz4_alone(const std::uint64_t* payload, std::uint64_t words) {
  thread_local std::vector<char> packed;
  std::uint64_t length = words;
  if (words >= 4 && words * 8 <= LZ4_MAX_INPUT_SIZE) {
    packed.resize((words - 3) * 8);
    const int bytes =
        LZ4_compress_default(reinterpret_cast<const char*>(payload), packed.data(),
                             static_cast<int>(words * 8), static_cast<int>(packed.size()));
    if (bytes > 0) length = (1 + (static_cast<std::uint64_t>(bytes) + 7) / 8 + 1) / 2 * 2;
  }
  counted.fetch_add(length * 8, std::memory_order_relaxed);
}

std::uint64_t lz4_alone_bytes() noexcept { return counted.load(std::memory_order_relaxed); }

}  // namespace bench
