// SPDX-License-Identifier: BSD-3-Clause
//
// The fuzzer of operations on random inputs and its corpus, without libFuzzer; and a test that it
// can find a bug.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/suite.hpp"
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/ops_target.hpp"

namespace perdure::fuzz {
namespace {

std::vector<std::uint8_t> random_input(std::mt19937_64& random) {
  std::vector<std::uint8_t> input(16 + random() % 600);
  for (auto& b : input) b = static_cast<std::uint8_t>(random());
  return input;
}

TEST(Operations, AreTheModelsOnEveryEngine) {
  std::mt19937_64 random(12);
  for (unsigned n = 0; n < 50 / test::scale; ++n) {
    const auto input = random_input(random);
    ASSERT_EQ(play(input.data(), input.size()), "") << "input " << n;
  }
}

TEST(Operations, OfTheCorpus) {
  const std::vector<Input> inputs = corpus("ops");
  // Only a part of them with sanitizers.
  for (std::size_t n = 0; n < inputs.size(); n += test::scale)
    ASSERT_EQ(play(inputs[n].bytes.data(), inputs[n].bytes.size()), "") << inputs[n].name;
}

TEST(Operations, DifferencesAreSeen) {
  std::mt19937_64 random(13);
  const auto input = random_input(random);
  const std::array two = {*engine::find_instance("shadow"), *engine::find_instance("undo/stm")};
  const auto seen = [&](auto tamper) { return play(input.data(), input.size(), tamper, two); };
  EXPECT_EQ(seen(NoTampering()), "");
  EXPECT_NE(seen([](auto& pool, const Command&) {
              pool.update([](auto& tx, Root& root) { tx(root.fields.word[3]) += 1; });
            }),
            "");
  EXPECT_NE(seen([](auto& pool, const Command&) {
              pool.update([](auto& tx, Root&) { (void)tx.alloc(64); });
            }),
            "")
      << "a leak";
  EXPECT_NE(seen([](auto& pool, const Command&) {
              pool.update([](auto& tx, Root& root) { root.chain.push_back(tx, "x"); });
            }),
            "");
}

}  // namespace
}  // namespace perdure::fuzz
