// SPDX-License-Identifier: BSD-3-Clause
//
// Checksum: the checksum that a log record accumulates store by store, and hash_bytes() over it for
// small structs.
//
// Construction: NH, the inner hash of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: Fast
// and Secure Message Authentication", CRYPTO '99): the sum over pairs of words of (m1 + k1) * (m2 +
// k2), here with 64 x 64 -> 128-bit products summed modulo 2^128. The keys are Weyl sequences
// (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) started from
// the seed, and MurmurHash3's 64-bit mixer (Appleby) finishes the sum. It costs one multiplication
// per pair, and pairs are chained only by an addition, so a store inside a transaction does not
// wait for it. It detects accidents, not adversaries.
// Thread safety: a value; distinct objects may be used from distinct threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace perdure::base {

/// MurmurHash3's finaliser: a bijection of 64-bit words in which every input bit affects every
/// output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

class Checksum {
 public:
  explicit constexpr Checksum(std::uint64_t seed = 0) noexcept
      : k1_(mix(seed + weyl1)), k2_(mix(seed + weyl2)) {}

  /// Adds one pair of words.
  constexpr void add(std::uint64_t a, std::uint64_t b) noexcept {
    const unsigned __int128 product = static_cast<unsigned __int128>(a + k1_) * (b + k2_);
    low_ += static_cast<std::uint64_t>(product);
    // Two separate 64-bit sums avoid a carry chain on the hot path.
    high_ += static_cast<std::uint64_t>(product >> 64) ^ k1_;
    k1_ += weyl1;
    k2_ += weyl2;
  }
  /// Moves to the position `n` pairs further without adding any pair. This is possible because a
  /// pair's term depends only on the pair, the seed and the pair's number.
  constexpr void skip(std::uint64_t n) noexcept {
    k1_ += weyl1 * n;
    k2_ += weyl2 * n;
  }
  /// The sum before mixing. It is linear: the sum over two consecutive runs of pairs is the sum of
  /// both, modulo 2^64. Hence the sum over any run is the difference of two prefixes.
  [[nodiscard]] constexpr std::uint64_t linear() const noexcept { return low_ + high_ * weyl1; }
  /// The checksum so far. It is never 0, which stands for "no checksum".
  [[nodiscard]] constexpr std::uint64_t value() const noexcept {
    const std::uint64_t v = mix(linear());
    return v != 0 ? v : 1;
  }

 private:
  static constexpr std::uint64_t weyl1 = 0x9e3779b97f4a7c15ULL, weyl2 = 0xd1b54a32d192ed03ULL;
  std::uint64_t k1_, k2_, low_ = 0, high_ = 0;
};

/// The checksum of `n` bytes. A tail is padded with zeros, and the length is part of the checksum.
[[nodiscard]] inline std::uint64_t hash_bytes(const void* data, std::size_t n,
                                              std::uint64_t seed) noexcept {
  Checksum fold(seed);
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::size_t at = 0;
  for (; at + 16 <= n; at += 16) {
    std::uint64_t w[2];
    std::memcpy(w, bytes + at, 16);
    fold.add(w[0], w[1]);
  }
  if (at < n) {
    std::uint64_t w[2] = {0, 0};
    std::memcpy(w, bytes + at, n - at);
    fold.add(w[0], w[1]);
  }
  fold.add(n, seed);
  return fold.value();
}

}  // namespace perdure::base
