// SPDX-License-Identifier: BSD-3-Clause
//
// The root that the tests of several threads share.
#pragma once

#include "tests/engine/suite.hpp"

namespace perdure::test {

struct Root {
  std::array<p<std::uint64_t>, 512> word;
  std::array<p<std::uint8_t>, 64> byte;
  std::array<ptr<std::uint64_t>, 64> slot;
  p<std::uint64_t> total;
};

}  // namespace perdure::test
