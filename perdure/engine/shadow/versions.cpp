// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/versions.hpp"

#include <algorithm>

namespace perdure::engine::shadow {
namespace {

// Chunks that are looked at before memory is touched that was not used yet.
constexpr std::uint32_t first_looks = 16;

std::uint32_t chunks_of(std::uint64_t memory) {
  constexpr std::uint64_t most = (~std::uint32_t{0} - 1) / Versions::chunk_entries;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(memory / Versions::chunk_bytes, 1, most));
}

}  // namespace

Versions::Versions(const std::byte* view, std::uint64_t max_data_bytes, std::uint64_t memory)
    : view_(view),
      data_bytes_(max_data_bytes),
      chunks_(chunks_of(memory)),
      heads_(max_data_bytes / line_bytes + 1, false),
      entries_(std::size_t{chunks_} * chunk_entries),
      chunk_(std::make_unique<Chunk[]>(chunks_)) {}

std::uint32_t Versions::claim(std::uint64_t bound) noexcept {
  const std::uint32_t used = used_.load(std::memory_order_relaxed);  // changed under the lock
  const auto look = [&](std::uint32_t chunks) {
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const std::uint32_t chunk = hand_;
      hand_ = (hand_ + 1) % used;
      // SNAP-1. The acquire pairs with left(): the chunk's thread has set all stamps.
      // mutant: snapshot-chunk-needed
      if (chunk_[chunk].newest.load(std::memory_order_acquire) <= bound) return chunk;
    }
    return no_chunk;
  };
  std::uint32_t chunk = look(std::min(used, first_looks));
  if (chunk == no_chunk && used < chunks_) {
    chunk = used;
    used_.store(used + 1, std::memory_order_release);  // pairs with each_op()
  }
  if (chunk == no_chunk) chunk = look(used);
  if (chunk != no_chunk) chunk_[chunk].newest.store(in_flight, std::memory_order_relaxed);
  return chunk;
}

}  // namespace perdure::engine::shadow
