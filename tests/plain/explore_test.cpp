// SPDX-License-Identifier: BSD-3-Clause
//
// Every power cut of a program in plain C (store.h), which is compiled unchanged: the tree, the
// queue and the hash table are those after a whole number of blocks, and the heap has their blocks.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "plain/plain.hpp"
#include "testing/crashtest.hpp"
#include "tests/plain/store.hpp"

namespace perdure::plain::test {
namespace {

struct PlainC {
  using Root = Store;
  template <class Pool>
  void setup(Pool& pool) {
    atomically(pool, [](Store& r) { store_begin(&r.s); });
  }
  template <class Pool>
  void step(Pool& pool, crashtest::Step& s) {
    const std::uint64_t key = s.random() % 24, what = s.random() % 8, value = s.number + 1;
    atomically(pool, [=](Store& r) {
      if (what < 4) {
        store_put(&r.s, key, value);
      } else if (what < 6) {
        (void)store_remove(&r.s, key);
      } else if (what == 6) {
        (void)store_pop(&r.s);
      } else {  // several in one block
        store_put(&r.s, key, value);
        store_put(&r.s, key + 1, value);
        (void)store_remove(&r.s, key + 2);
      }
    });
  }
  template <class Tx>
  std::string check(Tx& tx, const Root& r, const crash::Crash&) {
    return r.problem(tx);
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& r) {
    return r.digest(tx);
  }
};

class PlainExplore : public ::testing::TestWithParam<const char*> {};

TEST_P(PlainExplore, LosesNothing) {
  crash::Seen seen;
  std::uint64_t recoveries = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    crashtest::Plan plan;
    plan.engine = GetParam();
    plan.seed = seed;
    plan.steps = 40;
    if (plan.engine.starts_with("rewind")) {  // a record for each word
      plan.ring_bytes = 32 << 10;
      plan.steps = 20;
    }
    const auto report = crashtest::explore<PlainC, any_engine>(plan, seen);
    ASSERT_EQ(report.failure, "") << "seed " << seed;
    recoveries += report.counts.recoveries;
  }
  std::printf("%s: %llu recoveries\n", GetParam(), static_cast<unsigned long long>(recoveries));
  EXPECT_GT(recoveries, 1000U);
}

INSTANTIATE_TEST_SUITE_P(Engines, PlainExplore,
                         ::testing::Values("shadow", "shadow/stm", "undo", "rewind-1l-nfp-batch",
                                           "bppm", "softwrap", "dudetm", "redo-base"),
                         [](const auto& of) {
                           std::string name = of.param;
                           for (char& c : name)
                             if (c == '-' || c == '/') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace perdure::plain::test
