// SPDX-License-Identifier: BSD-3-Clause
//
// Small arithmetic and copying that every medium needs.
//
// copy_words() makes assumption MEDIUM-1 hold for our own stores: each aligned 8-byte word (and
// each aligned 4, 2 or 1 bytes at the ends) is one machine store, which memcpy does not promise.
// Thread safety: two threads must not write one word at the same time; a reader sees each word old
// or new.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "perdure/medium/medium.hpp"

namespace perdure::medium {

/// The number of lines that [offset, offset + n) touches.
[[nodiscard]] constexpr std::uint64_t lines_touched(std::uint64_t offset,
                                                    std::uint64_t n) noexcept {
  return n == 0 ? 0 : (offset + n - 1) / line_bytes - offset / line_bytes + 1;
}

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) noexcept {
  return (n + unit - 1) / unit * unit;
}

/// The index in the ring of position `pos` of any generation.
[[nodiscard]] inline std::uint64_t ring_index(const RingMap& ring, std::uint64_t pos) noexcept {
  const std::uint64_t mask = ring.bytes - 1;
  // Most rings are powers of two: this avoids a division on a commit's path.
  return (ring.bytes & mask) == 0 ? pos & mask : pos % ring.bytes;
}

namespace detail {
template <class T>
inline void put(std::byte* to, const std::byte* from) noexcept {
  T v;
  std::memcpy(&v, from, sizeof v);
  // Relaxed: it only has to be one machine store.
  std::atomic_ref<T>(*reinterpret_cast<T*>(to)).store(v, std::memory_order_relaxed);
}
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  const auto at = [&] { return reinterpret_cast<std::uintptr_t>(to); };
  const auto step = [&](std::size_t k) {
    to += k;
    from += k;
    n -= k;
  };
  const auto piece = [&] {  // at an end: use the widest aligned store that fits
    if (n >= 4 && at() % 4 == 0) {
      detail::put<std::uint32_t>(to, from);
      step(4);
    } else if (n >= 2 && at() % 2 == 0) {
      detail::put<std::uint16_t>(to, from);
      step(2);
    } else {
      detail::put<std::uint8_t>(to, from);
      step(1);
    }
  };
  while (n != 0 && at() % 8 != 0) piece();
  while (n >= 8) {
    detail::put<std::uint64_t>(to, from);
    step(8);
  }
  while (n != 0) piece();
}
}  // namespace detail

[[gnu::always_inline]] inline void copy_words(std::byte* to, const void* source,
                                              std::size_t n) noexcept {
  const auto* from = static_cast<const std::byte*>(source);
  // This is the common case.
  if (n == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0)
    detail::put<std::uint64_t>(to, from);
  else
    detail::copy_bytes(to, from, n);
}

}  // namespace perdure::medium
