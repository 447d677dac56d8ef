// SPDX-License-Identifier: BSD-3-Clause
//
// The random numbers of the programs whose instructions are counted: the same at every run, by few
// instructions.
// Thread safety: none.
#pragma once

#include <cstdint>

namespace perdure::test {

struct Random {
  std::uint64_t state = 88172645463325252ULL;
  std::uint64_t below(std::uint64_t n) noexcept {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
  }
};

}  // namespace perdure::test
