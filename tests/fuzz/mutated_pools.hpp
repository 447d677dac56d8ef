// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of damaged pools do with a target (pool_target.hpp, papers_target.hpp) without
// libFuzzer: CI can run it with any compiler.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/engine/suite.hpp"
#include "tests/fuzz/corpus.hpp"
#include "tests/fuzz/pool_target.hpp"

namespace perdure::fuzz {

using OpenMutated = void (*)(const std::uint8_t* data, std::size_t size);

inline void open_random(OpenMutated open, std::uint64_t seed, unsigned inputs) {
  std::mt19937_64 random(seed);
  for (unsigned n = 0; n < inputs; ++n) {
    const auto input = random_input(random, 2, 12, 8);
    SCOPED_TRACE("input " + std::to_string(n));
    open(input.data(), input.size());
  }
}

inline void open_corpus(OpenMutated open, const std::string& target) {
  for (const Input& input : corpus(target)) {
    SCOPED_TRACE(input.name);
    open(input.bytes.data(), input.bytes.size());
  }
}

/// Each base recovers as it is, and with its checks corrected. `has_records(base)`: whether its
/// recovery has something to do.
template <class HasRecords>
void open_bases(std::vector<Base>& all, OpenMutated open, HasRecords&& has_records) {
  for (std::uint8_t b = 0; b < all.size(); ++b) {
    Base& base = all[b];
    SCOPED_TRACE("base " + std::to_string(b) + ", " + std::string(base.family));
    base.arena->load(*base.image, {});
    pool::OpenFile how;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open_on(base.arena->open(base.image->data_bytes(), nullptr), false,
                                        how, who);
    ASSERT_TRUE(file.ok()) << file.status().message();
    engine::Recovery report;
    ASSERT_TRUE(base.recover(**file, report).ok());
    EXPECT_EQ(has_records(base), report.records > 0);
    EXPECT_TRUE(pool::audit_heap(base.arena->data(), (*file)->header()).problems.empty());
    std::uint8_t mended[] = {b, 3};
    open(mended, sizeof mended);
  }
}

}  // namespace perdure::fuzz
