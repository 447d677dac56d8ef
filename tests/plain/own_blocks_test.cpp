// SPDX-License-Identifier: BSD-3-Clause
//
// __transaction_atomic blocks, which begin and commit by themselves, on every engine.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/plain/blocks.hpp"

namespace perdure::plain::test {
namespace {

using OwnBlocks = Blocks;

TEST_P(OwnBlocks, BeginAndCommitByThemselves) {
  PlainPool<Root> pool(scratch.path(), options());
  Root& root = pool.root();
  std::uint64_t expected = 0;
  for (std::uint64_t i = 1; i <= 50; ++i) {
    __transaction_atomic {
      push(root, i);
      __transaction_atomic { push(root, 2 * i); }
    }
    expected += 3 * i;
  }
  std::uint64_t sum = 0;
  __transaction_atomic { sum = root.sum; }
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(sum_of(pool), expected);
}

TEST_P(OwnBlocks, CanBeCancelled) {
  PlainPool<Root> pool(scratch.path(), options());
  Root& root = pool.root();
  bool ran = false;
  __transaction_atomic {
    push(root, 9);
    ran = true;
    if (root.sum == 9) __transaction_cancel;
  }
  EXPECT_FALSE(ran) << "the local is as it was";
  EXPECT_TRUE(last_failure().ok());
  EXPECT_EQ(sum_of(pool), 0U);
}

TEST_P(OwnBlocks, ThatThrowLeaveNothing) {
  PlainPool<Root> pool(scratch.path(), options());
  Root& root = pool.root();
  __transaction_atomic { push(root, 5); }
  std::uint64_t local = 1;
  auto* const outside = static_cast<std::uint64_t*>(std::malloc(8));
  *outside = 7;
  int caught = 0;
  try {
    __transaction_atomic {
      push(root, 9);
      local = 2;
      *outside = 8;
      throw 43;
    }
  } catch (int e) {
    caught = e;
  }
  EXPECT_EQ(caught, 43);
  EXPECT_EQ(local, 1U);
  EXPECT_EQ(*outside, 7U);
  EXPECT_EQ(sum_of(pool), 5U);
  EXPECT_TRUE(pool.pool().check().problems.empty());
  std::free(outside);
}

TEST_P(OwnBlocks, WithACancelAreSkippedWhereTheyAreTooLarge) {
  PlainPool<Root> pool(scratch.path(), options());
  Root& root = pool.root();
  __transaction_atomic {
    for (std::uint64_t i = 0; i < 1'000'000; ++i) push(root, 1);
    if (root.half == 1) __transaction_cancel;
  }
  EXPECT_TRUE(last_failure().code() == Code::full || last_failure().code() == Code::too_big)
      << last_failure().message();
  EXPECT_EQ(sum_of(pool), 0U);
  __transaction_atomic { push(root, 1); }
  EXPECT_EQ(sum_of(pool), 1U);
}

TEST_P(OwnBlocks, AreOnThePoolThatWasChosen) {
  PlainPool<Root> pool(scratch.path(), options()), other(scratch.path("other"), options());
  Root& others = other.root();
  other.use();
  __transaction_atomic { push(others, 5); }
  pool.use();
  Root& mine = pool.root();
  __transaction_atomic { push(mine, 6); }
  EXPECT_EQ(sum_of(other), 5U);
  EXPECT_EQ(sum_of(pool), 6U);
}

// Some in atomically(), which has other ways to begin and to run again.
TEST_P(OwnBlocks, OfSeveralThreadsAreIsolated) {
  if (GetParam().ends_with("none")) return;  // whose caller isolates
  PlainPool<Root> pool(scratch.path(), options());
  Root& root = pool.root();
  expect_isolated(pool, [&](int i, std::size_t from, std::size_t to, std::uint64_t& done) {
    if (i % 2 == 0)
      pool.atomically([&](Root& r) {
        r.accounts[from] -= 1;
        r.accounts[to] += 1;
        ++done;
      });
    else
      __transaction_atomic {
        root.accounts[from] -= 1;
        root.accounts[to] += 1;
        ++done;
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, OwnBlocks, ::testing::ValuesIn(engines()), name_of_instance);

}  // namespace
}  // namespace perdure::plain::test
