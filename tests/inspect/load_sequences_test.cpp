// SPDX-License-Identifier: BSD-3-Clause
//
// Loads dumps of sequences: the new pool gives the same dump, passes check(), and its program finds
// its data and can change it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <variant>

#include "perdure/api/pool.hpp"
#include "perdure/container/deque.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/vector.hpp"
#include "tests/inspect/compare_blocks.hpp"
#include "tests/inspect/load_folder.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure::test {
namespace {

struct Sequences {
  vector<std::string> strings;
  vector<std::uint8_t> bytes;
  vector<std::array<std::uint64_t, 20>> arrays;
  list<std::variant<std::uint8_t, std::string, Place>> variants;
  queue<std::uint32_t> numbers;
  deque<std::string> both_ends;
  priority_queue<std::uint64_t> largest;
  priority_queue<std::string, std::greater<>> smallest;
};

TEST(Load, Sequences) {
  LoadFolder folder;
  for (const int n : {0, 1, 7, 8, 64, 2000}) {
    SCOPED_TRACE(n);
    const std::string from = folder.path("sequences");
    std::remove(from.c_str());
    {
      auto pool = Pool<Sequences>::open(from);
      for (int i = 0; i < n; ++i)
        pool.update(async, [&](auto& tx, Sequences& root) {
          const auto k = static_cast<std::uint64_t>(i);
          root.strings.push_back(tx, word(k));
          root.bytes.push_back(tx, static_cast<std::uint8_t>(k));
          root.arrays.push_back(tx, of<std::array<std::uint64_t, 20>>(k));
          root.variants.push_back(tx, of<std::variant<std::uint8_t, std::string, Place>>(k));
          root.numbers.push(tx, static_cast<std::uint32_t>(k));
          if (k % 3 == 1) root.numbers.pop(tx);
          if (k % 2 == 0)
            root.both_ends.push_front(tx, word(k));
          else
            root.both_ends.push_back(tx, word(k));
          root.largest.push(tx, k * 7919 % 1000);
          root.smallest.push(tx, word(k * 7919 % 1000));
        });
    }
    const std::string to = folder.path("loaded");
    expect_round_trip(from, to);
    auto pool = Pool<Sequences>::open(to);
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
    pool.update([&](auto& tx, Sequences& root) {
      ASSERT_EQ(root.strings.size(tx), static_cast<std::uint64_t>(n));
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(root.strings.get(tx, static_cast<std::uint64_t>(i)),
                  word(static_cast<std::uint64_t>(i)));
      std::uint64_t last = ~std::uint64_t{0};
      for (int i = 0; i < n; ++i) {
        const std::uint64_t top = root.largest.pop(tx).value();
        ASSERT_LE(top, last);
        last = top;
      }
      for (int i = 0; i < 100; ++i) {
        root.strings.push_back(tx, "more");
        root.bytes.push_back(tx, 1);
        root.numbers.push(tx, 1);
        root.both_ends.push_front(tx, "more");
        root.variants.push_back(tx, std::string("more"));
        root.smallest.push(tx, "more");
      }
    });
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
    pool.update([&](auto& tx, Sequences& root) {
      while (root.numbers.pop(tx)) {}
      while (root.both_ends.pop_back(tx)) {}
      root.strings.clear(tx), root.variants.clear(tx), root.arrays.clear(tx);
    });
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
  }
}

}  // namespace
}  // namespace perdure::test
