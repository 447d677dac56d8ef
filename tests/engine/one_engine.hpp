// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of one engine each: the exploration by the crash explorer, a workload of
// transactions that are mostly rolled back, and a log that is filled repeatedly.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "testing/crashtest.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {

struct Words {
  std::array<p<std::uint64_t>, 1000> word;
};
struct Oops {};

/// Both models; one log for the pool on memory, and one log per thread on a medium that behaves
/// like a file; kills, too: what is only visible after a kill, recovery must make durable (REDO-4).
template <class Workload>
void explore_engine(const EngineInfo& e, std::uint64_t steps, std::uint64_t at_least) {
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
      plan.explore.max_recoveries = 4000 / scale;
      const auto report = crashtest::explore<Workload, any_engine>(plan);
      EXPECT_EQ("", report.failure);
      EXPECT_GT(report.counts.distinct, at_least / scale);
    }
}

/// What one transaction has rolled back is not visible when others continue.
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

/// A transaction of one thread overwrites another's, then `fills` more transactions follow, so that
/// the younger one's log begins again; either one's log may be the first.
inline void an_older_value_does_not_come_back(const EngineInfo& e, const Shape& shape,
                                              std::uint64_t fills) {
  for (const bool swapped : {false, true}) {
    auto rig = open_rig<Words>(e, shape);
    const auto overwrite = [&](std::uint64_t value) {
      rig.pool.update([&](auto& tx, Words& r) { tx(r.word[3]) = value; });
    };
    const auto fill = [&] {
      for (std::uint64_t i = 0; i < fills; ++i)
        rig.pool.update([&](auto& tx, Words& r) {
          for (std::size_t w = 500; w < 504; ++w) tx(r.word[w]) = i;
        });
    };
    std::atomic<int> turn{0};
    const auto at = [&](int t) {
      while (turn != t) std::this_thread::yield();
    };
    std::thread one([&] {
      if (swapped) overwrite(9);  // its log comes first
      turn = 1;
      at(2);
      if (!swapped) overwrite(2), fill();
      turn = 3;
    });
    at(1);
    std::thread other([&] {
      overwrite(1);
      turn = 2;
      at(3);
    });
    other.join();
    one.join();
    if (swapped) {
      overwrite(2);
      fill();
    }
    for (const auto& image : {rig.medium->durable_image(), rig.medium->current_image()}) {
      const Recovered r = recover(e, image, shape);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      std::uint64_t value = 0;
      std::memcpy(&value, r.state.root.data() + 3 * 8, 8);
      EXPECT_EQ(2U, value) << swapped;
    }
  }
}

/// Many generations of a small log, with transactions that abort; then a kill. Ids continue after
/// it.
inline void go_on_in_a_small_log(const EngineInfo& e, const Shape& shape,
                                 std::uint64_t transactions) {
  std::uint64_t id = 0;
  std::vector<std::byte> image;
  {
    auto rig = open_rig<Words>(e, shape);
    for (std::uint64_t i = 0; i < transactions; ++i) {
      const auto each = [&](auto& tx, Words& r, std::uint64_t value) {
        for (std::size_t w = 0; w < 5; ++w) tx(r.word[(i + w * 17) % 1000]) = value;
        EXPECT_EQ(value, tx.read(r.word[i % 1000]));
      };
      id = rig.pool.update([&](auto& tx, Words& r) { each(tx, r, i); }).id();
      EXPECT_THROW(
          rig.pool.update([&](auto& tx, Words& r) { each(tx, r, 1'000'000), throw Oops(); }), Oops);
      rig.pool.view([&](auto& tx, const Words& r) { ASSERT_EQ(i, tx(r.word[i % 1000])); });
    }
    image = rig.medium->current_image();  // as after a kill
  }
  auto again = open_rig<Words>(e, shape, image);
  EXPECT_EQ(id, again.pool.stats().recovery.last_id);
  EXPECT_LT(id, again.pool.update([](auto& tx, Words& r) { ++tx(r.word[0]); }).id());
}

}  // namespace perdure::test
