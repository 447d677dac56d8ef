// SPDX-License-Identifier: BSD-3-Clause
//
// The random numbers of every benchmark: xoroshiro128++ (Blackman and Vigna), seeded by splitmix64,
// so that every system under test draws the same sequence for the same seed and thread. It is cheap
// enough not to dominate a transaction's time.
// Thread safety: one generator per thread.
#pragma once

#include <bit>
#include <cstdint>

namespace bench {

/// Mixes the bits of a word well: splitmix64's finisher.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Rng {
 public:
  Rng(std::uint64_t seed, std::uint64_t stream) noexcept
      : a_(mix(seed * 2 + 1)), b_(mix(stream + 0x9e3779b97f4a7c15ULL)) {}

  std::uint64_t operator()() noexcept {
    const std::uint64_t a = a_, b = b_ ^ a_, result = std::rotl(a_ + b_, 17) + a_;
    a_ = std::rotl(a, 49) ^ b ^ (b << 21);
    b_ = std::rotl(b, 28);
    return result;
  }

  /// Uniform in [0, n), by multiplication (Lemire's method without the correction: n is at most
  /// 2^32, the bias below 2^-32).
  std::uint64_t below(std::uint64_t n) noexcept { return ((operator()() >> 32) * n) >> 32; }

 private:
  std::uint64_t a_, b_;
};

}  // namespace bench
