// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' target on random inputs.
#include "tests/fuzz/mutated_pools.hpp"
#include "tests/fuzz/papers_target.hpp"

namespace perdure::fuzz {
namespace {

TEST(MutatedPapersPools, OpenOrAreRefused) {
  open_random(open_mutated_of_papers, 12, 80'000 / test::scale);
}

TEST(MutatedPapersPools, OfTheCorpus) { open_corpus(open_mutated_of_papers, "papers"); }

TEST(MutatedPapersPools, TheBasesAreWholeAsTheyAre) {
  // Ordered: each commit has said that the data region has it.
  open_bases(papers_bases(), open_mutated_of_papers,
             [](const Base& base) { return base.family != "redo-base-ordered"; });
}

}  // namespace
}  // namespace perdure::fuzz
