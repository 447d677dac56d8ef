// SPDX-License-Identifier: BSD-3-Clause
//
// Walks during changes (walk_visits.hpp) of hash_map, map and rb_tree.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>

#include "tests/container/map_suite.hpp"
#include "tests/container/walk_visits.hpp"

namespace perdure::test {

enum class Change { erase_this, erase_near, erase_any, add_too, put_too, clear };
inline constexpr Change all_changes[] = {Change::erase_this, Change::erase_near, Change::erase_any,
                                         Change::add_too,    Change::put_too,    Change::clear};

template <class Policy, class C>
void map_walk(Change change, bool by_cursor, std::uint64_t n) {
  using K = typename C::key_type;
  using V = typename C::mapped_type;
  SCOPED_TRACE("change " + std::to_string(static_cast<int>(change)) +
               (by_cursor ? " by cursor" : " by for_each"));
  MapModelTest<Policy, C> test(static_cast<std::uint64_t>(change));
  for (std::uint64_t i = 0; i < n; ++i) test.run.model[Sample<K>::of(i)] = Sample<V>::of(i);
  test.run.pool.update([&](auto& tx, auto& root) {
    for (const auto& [key, value] : test.run.model) root.x.insert(tx, key, value);
  });
  std::map<K, V> now;
  test.run.pool.update([&](auto& tx, auto& root) {
    C& c = root.x;
    now = test.run.model;
    Random r(seed_of_run());
    std::vector<K> keys;
    for (const auto& [key, value] : now) keys.push_back(key);
    Visits<K> visits(keys);
    std::uint64_t step = 0;
    const auto erase = [&](const K& key) {
      EXPECT_EQ(c.erase(tx, key), now.erase(key) == 1);
      visits.erase(key);
    };
    const auto any = [&] { return Sample<K>::of(below(r, 2 * n)); };
    const auto put = [&](const K& key) {
      const V value = Sample<V>::of(below(r, 30000));
      const bool added = c.put(tx, key, value);
      EXPECT_EQ(added, now.insert_or_assign(key, value).second);
      if (added) visits.add(key);
    };
    const auto at = [&](const K& key) {
      visits.visit(key);
      ++step;
      switch (change) {
        case Change::erase_this: erase(key); break;
        case Change::erase_near: {  // of an ordered map: the neighbours, and sometimes this element
          const auto next = now.upper_bound(key);
          if (next != now.end()) erase(K(next->first));
          const auto prior = now.lower_bound(key);
          if (prior != now.begin()) erase(K(std::prev(prior)->first));
          if (below(r, 3) == 0) erase(key);
          break;
        }
        case Change::erase_any:
          for (std::uint64_t i = below(r, 3); i > 0; --i) erase(any());
          if (below(r, 2) == 0) erase(key);
          break;
        case Change::add_too:
          if (step < n) put(any());
          if (below(r, 2) == 0) erase(any());
          if (below(r, 4) == 0) erase(key);
          break;
        case Change::put_too:
          put(key);
          if (below(r, 4) == 0) erase(key);
          if (below(r, 8) == 0 && !now.empty()) put(K(now.begin()->first));
          break;
        case Change::clear:
          if (step != n / 2) break;
          c.clear(tx), now.clear(), visits.clear();
          for (std::uint64_t i = 0; i < n / 2; ++i) put(any());
          break;
      }
    };
    if (by_cursor) {
      for (auto place = c.begin(tx); place; place.next(tx)) {
        const K key = place.key(tx);
        at(key);
        if (const auto it = now.find(key); it != now.end() && change != Change::clear) {
          EXPECT_TRUE(place.key(tx) == key && place.value(tx) == it->second)
              << "what a cursor reads after a change elsewhere";
        } else if (it == now.end()) {
          EXPECT_THROW((void)place.value(tx), error) << "reading an element that was erased";
        }
      }
    } else {
      c.for_each(tx, [&](const K& key, const V&) { at(key); });
    }
    visits.expect_all();
    if (change == Change::erase_this) {
      EXPECT_EQ(visits.seen(), n);
      EXPECT_TRUE(c.empty(tx));
    }
    if (change == Change::put_too) {
      EXPECT_EQ(visits.seen(), n);
    }
  });
  test.run.model = now;
  test.expect_equal();
}

template <class Policy, class C>
void map_walks(std::uint64_t n = static_cast<std::uint64_t>(steps<Policy>(1500))) {
  for (const Change change : all_changes) {
    for (const bool by_cursor : {false, true}) map_walk<Policy, C>(change, by_cursor, n);
  }
}

/// Typed by Policy.
template <class Policy>
class MapWalkSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(MapWalkSuite);

TYPED_TEST_P(MapWalkSuite, HashMap) {
  map_walks<TypeParam, hash_map<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, hash_map<std::string, std::string, 8>>();
  map_walks<TypeParam, hash_map<std::uint64_t, std::uint64_t, 1>>(200);
  map_walks<TypeParam, hash_map<Clash, std::uint64_t>>(200);
}
TYPED_TEST_P(MapWalkSuite, Map) {
  map_walks<TypeParam, map<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, map<std::string, std::string, 6>>();
  map_walks<TypeParam, map<std::uint64_t, std::uint64_t, 255>>();
}
TYPED_TEST_P(MapWalkSuite, RbTree) {
  map_walks<TypeParam, rb_tree<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, rb_tree<std::string, std::string>>();
}

REGISTER_TYPED_TEST_SUITE_P(MapWalkSuite, HashMap, Map, RbTree);

// The suite whose helpers this suite uses has programs of its own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MapSuite);

}  // namespace perdure::test
