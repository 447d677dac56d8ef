// SPDX-License-Identifier: BSD-3-Clause
//
// Walks over damaged data with random inputs, without libFuzzer: no content makes Pool::check or
// Pool::checked_view leave the pool.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/suite.hpp"
#include "tests/fuzz/check_target.hpp"
#include "tests/fuzz/corpus.hpp"

namespace perdure::fuzz {
namespace {

TEST(DamagedData, WalksEndAndStayInsideThePool) {
  Damaged& pool = Damaged::one();
  ASSERT_TRUE(pool.sound());
  std::mt19937_64 random(17);
  unsigned complaints = 0;
  const unsigned inputs = 30000 / test::scale;
  for (unsigned n = 0; n < inputs; ++n) {
    const auto input = random_input(random, 0, 13, 4);
    SCOPED_TRACE("input " + std::to_string(n));
    complaints += pool.walk(input.data(), input.size()) ? 1 : 0;
  }
  EXPECT_TRUE(pool.sound()) << "what was changed was put back";
  EXPECT_GT(complaints, inputs / 4) << "the damage is met";
}

TEST(DamagedData, OfTheCorpus) {
  for (const Input& input : corpus("check")) {
    SCOPED_TRACE(input.name);
    (void)Damaged::one().walk(input.bytes.data(), input.bytes.size());
  }
}

}  // namespace
}  // namespace perdure::fuzz
