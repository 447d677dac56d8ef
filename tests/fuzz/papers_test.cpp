// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' target on random inputs, without libFuzzer: CI can run it with any compiler.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/suite.hpp"
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/papers_target.hpp"

namespace perdure::fuzz {
namespace {

TEST(MutatedPapersPools, OpenOrAreRefused) {
  std::mt19937_64 random(12);
  for (unsigned n = 0; n < 80'000 / test::scale; ++n) {
    std::vector<std::uint8_t> input(2 + 12 * (1 + random() % 8));
    for (auto& b : input) b = static_cast<std::uint8_t>(random());
    // Small numbers are the dangerous ones: sizes, counts, offsets.
    for (std::size_t i = 6; i + 8 <= input.size(); i += 12) {
      const std::uint64_t value = random() % 3 == 0   ? random()
                                  : random() % 3 == 0 ? random() % 4096
                                                      : std::uint64_t{1} << random() % 64;
      std::memcpy(&input[i], &value, 8);
    }
    SCOPED_TRACE("input " + std::to_string(n));
    open_mutated_of_papers(input.data(), input.size());
  }
}

TEST(MutatedPapersPools, OfTheCorpus) {
  for (const Input& input : corpus("papers")) {
    SCOPED_TRACE(input.name);
    open_mutated_of_papers(input.bytes.data(), input.bytes.size());
  }
}

TEST(MutatedPapersPools, TheBasesAreWholeAsTheyAre) {
  for (std::uint8_t b = 0; b < papers_bases().size(); ++b) {
    Base& base = papers_bases()[b];
    base.arena->load(*base.image, {});
    pool::OpenFile open;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open_on(base.arena->open(base.image->data_bytes(), nullptr), false,
                                        open, who);
    ASSERT_TRUE(file.ok()) << file.status().message();
    engine::Recovery report;
    ASSERT_TRUE(base.recover(**file, report).ok());
    // Ordered: each commit has said that the data region has it.
    EXPECT_EQ(base.family != "redo-base-ordered", report.records > 0) << base.family;
    EXPECT_TRUE(pool::audit_heap(base.arena->data(), (*file)->header()).problems.empty());
    std::uint8_t mended[] = {b, 3};
    open_mutated_of_papers(mended, sizeof mended);
  }
}

}  // namespace
}  // namespace perdure::fuzz
