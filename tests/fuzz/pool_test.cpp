// SPDX-License-Identifier: BSD-3-Clause
//
// The fuzzer's target on random inputs.
#include "tests/fuzz/mutated_pools.hpp"
#include "tests/fuzz/pool_target.hpp"

namespace perdure::fuzz {
namespace {

TEST(MutatedPools, OpenOrAreRefused) { open_random(open_mutated, 11, 60'000 / test::scale); }

TEST(MutatedPools, OfTheCorpus) { open_corpus(open_mutated, "pool"); }

TEST(MutatedPools, TheBasesAreWholeAsTheyAre) {
  open_bases(bases(), open_mutated, [](const Base&) { return true; });
}

}  // namespace
}  // namespace perdure::fuzz
