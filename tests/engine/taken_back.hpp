// SPDX-License-Identifier: BSD-3-Clause
//
// What tests that take one engine apart by the crash explorer share: the exploration, and a workload of transactions that are rolled back, and few
// others. What one has taken back is gone when others go on.
#pragma once

#include <array>

#include "perdure/crash/crashtest.hpp"
#include "tests/conformance/ways.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {

struct Words {
  std::array<p<std::uint64_t>, 1000> word;
};
struct Oops {};

/// Both models; one log for the pool on memory, and a log a thread on what behaves as a file; kills, too: what is only visible then, recovery must make
/// durable (D4).
template <class Workload>
void explore_engine(const Entry& e, std::uint64_t steps, std::uint64_t at_least) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      crashtest::Plan plan;
      plan.engine = e.name;
      plan.steps = steps;
      plan.seed = seed;
      plan.rings = static_cast<std::uint32_t>(seed);
      plan.like_a_file = seed == 2;
      plan.ring_bytes = conformance::small_ring(e, plan.like_a_file);
      plan.reopen = 6;
      plan.explore.model = model;
      plan.explore.most_recoveries = 4000 / scale;
      const auto report = crashtest::explore<Workload, any_engine>(plan);
      EXPECT_EQ("", report.failure);
      EXPECT_GT(report.counts.distinct, at_least / scale);
    }
}

struct TakenBack {
  using Root = Words;
  template <class Pool>
  void step(Pool& pool, crashtest::Step& step) const {
    const std::uint64_t from = step.number / 4 % 3;
    const bool gives_up = step.number % 4 != 3;
    try {
      pool.update([&](auto& tx, Words& r) {
        for (std::uint64_t w = from; w < from + 2; ++w) tx(r.word[w * 8]) = 100 + step.number;
        if (gives_up) throw Oops();
      });
    } catch (const Oops&) {}
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Words& r) const {
    std::uint64_t sum = 0;
    for (std::uint64_t w = 0; w < 4; ++w) sum = sum * 1009 + tx(r.word[w * 8]);
    return sum;
  }
};

}  // namespace perdure::test
