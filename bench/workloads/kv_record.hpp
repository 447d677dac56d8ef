// SPDX-License-Identifier: BSD-3-Clause
//
// The content of key-value workloads: 16-byte keys in no order and 100-byte values that identify
// their key.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "bench/harness/rng.hpp"

namespace bench {

inline constexpr std::size_t key_bytes = 16;
inline constexpr std::size_t value_bytes = 100;

using Key = std::array<char, key_bytes>;
using Value = std::array<char, value_bytes>;

/// The n-th key: 16 hexadecimal digits in no order.
[[nodiscard]] inline Key key_of(std::uint64_t n) noexcept {
  const std::uint64_t scattered = mix(n + 1);
  Key key;
  for (unsigned i = 0; i < key_bytes; ++i)
    key[i] = "0123456789abcdef"[(scattered >> (60 - 4 * i)) & 15];
  return key;
}

/// A value that identifies its key and version, from which every other byte follows.
[[nodiscard]] inline Value value_of(const Key& key, std::uint64_t version) noexcept {
  Value value;
  std::uint64_t half[2];
  std::memcpy(half, key.data(), key_bytes);
  const std::uint64_t fill = mix(half[0] ^ mix(half[1]) ^ version);
  for (std::size_t i = 24; i < value_bytes; i += 8) {
    const std::uint64_t word = fill + i;
    std::memcpy(value.data() + i, &word, std::min<std::size_t>(8, value_bytes - i));
  }
  std::memcpy(value.data(), key.data(), key_bytes);
  std::memcpy(value.data() + key_bytes, &version, 8);
  return value;
}

[[nodiscard]] inline bool is_value_of(const Key& key, const char* data, std::size_t n) noexcept {
  if (n != value_bytes) return false;
  std::uint64_t version;
  std::memcpy(&version, data + key_bytes, 8);
  return std::memcmp(value_of(key, version).data(), data, n) == 0;
}

}  // namespace bench
