// SPDX-License-Identifier: BSD-3-Clause
//
// Loads dumps of maps and sets: the new pool gives the same dump, passes check(), and its program
// finds its data and can change it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perdure/api/pool.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/set.hpp"
#include "tests/inspect/compare_blocks.hpp"
#include "tests/inspect/load_folder.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure::test {
namespace {

struct Maps {
  map<std::uint64_t, std::string> wide;
  map<std::string, std::optional<std::string>, 4> narrow;
  map<std::pair<std::int16_t, std::string>, Place, 40> places;
  map<std::vector<std::optional<std::string>>, Flat> sequences;
  hash_map<std::string, Place> words;
  hash_map<std::int32_t, std::string, 4> small_segments;
  hash_map<std::tuple<std::string, std::uint8_t>, double> tuples;
  hash_map<Small, std::uint8_t> structs;
  hash_map<std::chrono::sys_seconds, std::int8_t> times;
  hash_map<double, std::int8_t> numbers;
  hash_set<std::optional<std::string>> hashed;
  rb_tree<std::string, std::uint16_t> red;
  set<std::string> texts;
  multimap<std::string, std::uint32_t> many;
};
TEST(Load, Maps) {
  LoadFolder folder;
  for (const int n : {0, 1, 14, 15, 16, 400, 1500}) {
    SCOPED_TRACE(n);
    const std::string from = folder.path("maps");
    std::remove(from.c_str());
    {
      auto pool = Pool<Maps>::open(from);
      for (int i = 0; i < n; ++i)
        pool.update(async, [&](auto& tx, Maps& root) {
          const auto k = static_cast<std::uint64_t>(i);
          root.wide.put(tx, k * 0x9e3779b97f4a7c15, word(k));
          root.narrow.put(tx, word(k) + std::to_string(k), of<std::optional<std::string>>(k));
          root.places.put(tx, {static_cast<std::int16_t>(k), word(k)}, of<Place>(k));
          root.sequences.put(tx, of<std::vector<std::optional<std::string>>>(k), of<Flat>(k));
          root.words.put(tx, "$" + std::to_string(k), of<Place>(k));
          root.small_segments.put(tx, static_cast<std::int32_t>(k) - 50, word(k));
          root.tuples.put(tx, of<std::tuple<std::string, std::uint8_t>>(k), 0.1);
          root.structs.put(tx, of<Small>(k), 1);
          root.times.put(tx, of<std::chrono::sys_seconds>(k), -1);
          root.numbers.put(tx, static_cast<double>(k) / -3, 1);
          root.hashed.insert(tx, of<std::optional<std::string>>(k));
          root.red.put(tx, std::to_string(k), 7);
          root.texts.insert(tx, word(k));
          root.many.insert(tx, word(k % 20), static_cast<std::uint32_t>(k));
        });
      // Some elements are erased, so that nodes differ from those of a new pool.
      for (int i = 0; i < n; i += 3)
        pool.update(async, [&](auto& tx, Maps& root) {
          const auto k = static_cast<std::uint64_t>(i);
          root.wide.erase(tx, k * 0x9e3779b97f4a7c15);
          root.words.erase(tx, "$" + std::to_string(k));
          root.small_segments.erase(tx, i - 50);
          root.red.erase(tx, std::to_string(k));
        });
    }
    const std::string to = folder.path("loaded");
    expect_round_trip(from, to);
    auto pool = Pool<Maps>::open(to);
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
    pool.update([&](auto& tx, Maps& root) {
      for (int i = 1; i < n; ++i) {
        const auto k = static_cast<std::uint64_t>(i);
        const bool there = i % 3 != 0;
        ASSERT_EQ(root.wide.contains(tx, k * 0x9e3779b97f4a7c15), there);
        ASSERT_EQ(root.words.contains(tx, "$" + std::to_string(k)), there);
        ASSERT_EQ(root.small_segments.contains(tx, i - 50), there);
        ASSERT_EQ(root.red.contains(tx, std::to_string(k)), there);
        ASSERT_TRUE(root.tuples.contains(tx, of<std::tuple<std::string, std::uint8_t>>(k)));
        ASSERT_TRUE(root.structs.contains(tx, of<Small>(k)));
        ASSERT_TRUE(root.times.contains(tx, of<std::chrono::sys_seconds>(k)));
        ASSERT_TRUE(root.numbers.contains(tx, static_cast<double>(k) / -3));
        ASSERT_TRUE(root.hashed.contains(tx, of<std::optional<std::string>>(k)));
      }
      for (std::uint64_t k = 0; k < 500; ++k) {  // the program goes on
        root.wide.put(tx, k * 77, "more");
        root.words.put(tx, "more" + std::to_string(k), {});
        root.red.put(tx, "more" + std::to_string(k), 1);
        root.many.insert(tx, "more", 1);
        root.texts.insert(tx, "more" + std::to_string(k));
      }
    });
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
    pool.update([](auto& tx, Maps& root) {
      root.wide.clear(tx), root.narrow.clear(tx), root.places.clear(tx), root.sequences.clear(tx);
      root.words.clear(tx), root.tuples.clear(tx), root.red.clear(tx), root.many.clear(tx);
    });
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
  }
}

}  // namespace
}  // namespace perdure::test
