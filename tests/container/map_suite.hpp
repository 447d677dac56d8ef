// SPDX-License-Identifier: BSD-3-Clause
//
// The suite for hash_map, map and rb_tree: random transactions compared with std::map, scans,
// order, fill and drain.
//
// Thread safety: one thread.
#pragma once

#include <map>
#include <ranges>

#include "tests/container/suite.hpp"

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/rb_tree.hpp"

namespace perdure::test {

template <class C>
concept Ordered = requires {
  typename C::cursor;
  &C::template lower_bound<DramTx>;
};

template <class C>
struct MapRoot {
  C x;
};

template <class Policy, class C>
class MapModelTest {
  using K = typename C::key_type;
  using V = typename C::mapped_type;
  using Model = std::map<K, V>;
  using Run = Runner<typename Policy::template Pool<MapRoot<C>>, Model>;

 public:
  explicit MapModelTest(std::uint64_t seed) : run(seed) {}

  /// Runs `n` transactions on keys below `universe`; of ten changes, `adds` add.
  void churn(int n, std::uint64_t universe, unsigned adds, int check_every = 50) {
    for (int i = 0; i < n && !::testing::Test::HasFailure(); ++i) {
      const std::uint64_t operations = 1 + below(run.random, 8);
      run.transaction(operations, [&](auto& tx, C& c, Model& m, Random& r) {
        step(tx, c, m, r, universe, adds);
      });
      if (i % check_every == 0) run.expect_sound();
    }
    expect_equal();
  }

  template <class Tx>
  static void step(Tx& tx, C& c, Model& m, Random& r, std::uint64_t universe, unsigned adds) {
    const K key = Sample<K>::of(below(r, universe));
    const V value = Sample<V>::of(below(r, 30000));
    if (below(r, 10) < adds) {
      switch (below(r, 4)) {
        case 0: EXPECT_EQ(c.insert(tx, key, value), m.emplace(key, value).second); break;
        case 1: EXPECT_EQ(c.put(tx, key, value), m.insert_or_assign(key, value).second); break;
        case 2: {
          const bool there = m.contains(key);
          EXPECT_EQ(c.upsert(tx, key, [](V& v) { v = changed(v); }), !there);
          m[key] = changed(m[key]);
          break;
        }
        default: {
          const auto it = m.find(key);
          EXPECT_EQ(c.update(tx, key, [&](V& v) { v = changed(v); }), it != m.end());
          if (it != m.end()) {
            it->second = changed(it->second);
          } else {
            EXPECT_TRUE(c.insert(tx, key, value));
            m.emplace(key, value);
          }
        }
      }
    } else {
      EXPECT_EQ(c.erase(tx, key), m.erase(key) == 1);
    }
    const K other = Sample<K>::of(below(r, universe));
    expect_same(c.find(tx, other), m, other);
    EXPECT_EQ(c.contains(tx, other), m.contains(other));
    if (below(r, 2000) == 0) c.clear(tx), m.clear();
  }

  static void expect_same(const std::optional<V>& found, const Model& m, const K& key) {
    const auto it = m.find(key);
    ASSERT_EQ(found.has_value(), it != m.end());
    if (found) {
      EXPECT_EQ(*found, it->second);
    }
  }

  /// The whole container, by for_each, cursor and find, equals the model.
  void expect_equal() {
    run.expect_sound();
    run.view([&](auto& tx, const C& c) {
      EXPECT_EQ(c.size(tx), run.model.size());
      EXPECT_EQ(c.empty(tx), run.model.empty());
      Model seen;
      std::vector<K> order;
      c.for_each(tx, [&](const K& key, const V& value) {
        EXPECT_TRUE(seen.emplace(key, value).second) << "a key twice";
        order.push_back(key);
      });
      EXPECT_TRUE(seen == run.model);
      std::size_t n = 0;
      for (auto at = c.begin(tx); at; at.next(tx), ++n) {
        if (n >= order.size()) return 1;
        EXPECT_TRUE(at.key(tx) == order[n]);
        EXPECT_TRUE(at.value(tx) == run.model.at(order[n]));
      }
      EXPECT_EQ(n, order.size());
      for (const auto& [key, value] : run.model) expect_same(c.find(tx, key), run.model, key);
      std::size_t stopped = 0;
      c.for_each(tx, [&](const K&, const V&) { return ++stopped < 3; });
      EXPECT_EQ(stopped, std::min<std::size_t>(3, order.size()));
      if constexpr (Ordered<C>) {
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
        EXPECT_EQ(c.first(tx).has_value(), !order.empty());
        EXPECT_EQ(c.last(tx).has_value(), !order.empty());
        if (!order.empty()) {
          EXPECT_TRUE(c.first(tx)->first == order.front() && c.last(tx)->first == order.back());
        }
      }
      return 0;
    });
  }

  /// Range scans and bounds are those of the model.
  void expect_scans(int n, std::uint64_t universe)
    requires Ordered<C>
  {
    run.view([&](auto& tx, const C& c) {
      for (int i = 0; i < n; ++i) {
        const K a = Sample<K>::of(below(run.random, universe)),
                b = Sample<K>::of(below(run.random, universe));
        std::vector<K> found, expected;
        c.scan(tx, a, b, [&](const K& key, const V&) { found.push_back(key); });
        if (a < b) {
          for (auto it = run.model.lower_bound(a); it != run.model.end() && it->first < b; ++it)
            expected.push_back(it->first);
        }
        EXPECT_TRUE(found == expected);
        auto low = run.model.lower_bound(a), high = run.model.upper_bound(a);
        const auto l = c.lower_bound(tx, a), h = c.upper_bound(tx, a);
        EXPECT_EQ(static_cast<bool>(l), low != run.model.end());
        EXPECT_EQ(static_cast<bool>(h), high != run.model.end());
        EXPECT_TRUE(!l || l.key(tx) == low->first);
        EXPECT_TRUE(!h || h.key(tx) == high->first);
        std::vector<std::pair<K, V>> forwards, backwards, wanted;
        for (const auto& pair : c.range(tx, a, b)) forwards.push_back(pair);
        for (auto pair : c.range(tx, a, b) | std::views::reverse) backwards.push_back(pair);
        if (a < b) wanted.assign(run.model.lower_bound(a), run.model.lower_bound(b));
        EXPECT_TRUE(forwards == wanted);
        EXPECT_TRUE(std::equal(backwards.begin(), backwards.end(), wanted.rbegin(), wanted.rend()));
        // A few steps there and back.
        auto at = c.lower_bound(tx, a);
        auto expected_at = low;
        for (int step = 0; step < 12; ++step) {
          if (below(run.random, 2) == 0 ? expected_at != run.model.end()
                                        : expected_at == run.model.begin()) {
            if (expected_at == run.model.end()) break;
            at.next(tx), ++expected_at;
          } else {
            at.prev(tx), --expected_at;
          }
          EXPECT_EQ(static_cast<bool>(at), expected_at != run.model.end());
          if (!at || expected_at == run.model.end()) break;
          EXPECT_TRUE(at.key(tx) == expected_at->first);
        }
        std::size_t tail = 0;
        c.scan(tx, a, [&](const K&, const V&) { ++tail; });
        EXPECT_EQ(tail, static_cast<std::size_t>(std::distance(low, run.model.end())));
      }
      return 0;
    });
  }

  /// Inserts keys 0 ... n - 1 in the given order, then removes them in that or the other order, in
  /// transactions of 32.
  void fill_and_drain(std::uint64_t n, bool ascending, bool drain_ascending) {
    const auto pass = [&](bool up, auto op) {
      for (std::uint64_t from = 0; from < n; from += 32) {
        run.pool.update([&](auto& tx, auto& root) {
          for (std::uint64_t i = from; i < std::min(from + 32, n); ++i)
            op(tx, root.x, up ? i : n - 1 - i);
        });
        if (from % 1024 == 0) run.expect_sound();
      }
    };
    pass(ascending, [&](auto& tx, C& c, std::uint64_t i) {
      EXPECT_TRUE(c.insert(tx, key_of(i), Sample<V>::of(i)));
    });
    for (std::uint64_t i = 0; i < n; ++i) run.model[key_of(i)] = Sample<V>::of(i);
    expect_equal();
    pass(drain_ascending,
         [&](auto& tx, C& c, std::uint64_t i) { EXPECT_TRUE(c.erase(tx, key_of(i))); });
    run.model.clear();
    expect_equal();
  }

  Run run;

 private:
  static K key_of(std::uint64_t i) {
    if constexpr (std::is_same_v<K, std::string>) {
      std::string digits = std::to_string(i);
      return "key" + std::string(6 - digits.size(), '0') + digits;
    } else {
      return static_cast<K>(i);
    }
  }
};

template <class Policy, class C>
void map_model_test() {
  constexpr std::uint64_t universe = 700;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    MapModelTest<Policy, C> test(seed);
    test.churn(steps<Policy>(300), universe, 8);
    if constexpr (Ordered<C>) test.expect_scans(30, universe);
    test.churn(steps<Policy>(300), universe, 3);
    test.churn(steps<Policy>(200), 4 * universe, 9);
    if constexpr (Ordered<C>) test.expect_scans(30, universe);
    test.churn(steps<Policy>(700), 4 * universe, 1);
    if (Policy::scale >= 100) {
      EXPECT_GT(test.run.thrown, 50);
    }
    test.run.pool.update([](auto& tx, auto& root) {
      while (!root.x.clear_some(tx, 7)) {}
    });
    test.run.model.clear();
    test.expect_equal();
    test.run.expect_no_blocks();
  }
}

/// A loop over a part of a map ends at its bound, whatever is added behind it; what update() is
/// given adds and erases nothing.
template <class Policy, class C>
void map_changed_in_a_loop_test() {
  typename Policy::template Pool<MapRoot<C>> pool;
  pool.update([](auto& tx, auto& root) {
    for (int i = 0; i < 10; ++i) root.x.put(tx, i, i);
    int visited = 0;
    for (auto [key, value] : root.x.range(tx, 0, 10)) {
      ASSERT_LT(++visited, 30);
      root.x.put(tx, key + 100, value);
    }
    EXPECT_EQ(visited, 10);
    visited = 0;
    for (auto [key, value] : root.x.range(tx, 5, 105) | std::views::reverse) {
      ASSERT_LT(++visited, 30);
      if (key == 7) root.x.erase(tx, 5);  // the first one
      root.x.put(tx, key % 5, value);     // before the beginning
      root.x.put(tx, 105 + key, value);   // behind the end
    }
    EXPECT_EQ(visited, 9);
    auto range = root.x.range(tx);
    auto at = range.begin();
    root.x.erase(tx, (*at).first);
    EXPECT_FALSE(at == range.end());  // a comparison moves nothing
    EXPECT_THROW((void)*at, error);
    EXPECT_EQ((*++at).first, 1);
  });
  for (const bool erases : {false, true}) {
    EXPECT_THROW(pool.update([&](auto& tx, auto& root) {
      root.x.update(tx, 1, [&](auto&) { erases ? root.x.erase(tx, 1) : root.x.put(tx, 50, 1); });
    }),
                 error);
  }
}

/// Typed by Policy: a set of types, for every engine.
template <class Policy>
class MapSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(MapSuite);

TYPED_TEST_P(MapSuite, HashMapOfWords) {
  map_model_test<TypeParam, hash_map<std::uint64_t, std::uint64_t>>();
}
TYPED_TEST_P(MapSuite, ChangedInALoop) {
  map_changed_in_a_loop_test<TypeParam, map<int, int, 4>>();
  map_changed_in_a_loop_test<TypeParam, rb_tree<int, int>>();
}
TYPED_TEST_P(MapSuite, HashMapOfText) {
  map_model_test<TypeParam, hash_map<std::string, std::string, 8>>();
}
TYPED_TEST_P(MapSuite, MapOfWords) {
  map_model_test<TypeParam, map<std::uint64_t, std::uint64_t>>();
}
TYPED_TEST_P(MapSuite, MapOfPages) {
  map_model_test<TypeParam, map<std::uint64_t, std::uint64_t, 255>>();
}
TYPED_TEST_P(MapSuite, MapOfText) { map_model_test<TypeParam, map<std::string, std::string>>(); }
TYPED_TEST_P(MapSuite, RbTreeOfWords) {
  map_model_test<TypeParam, rb_tree<std::uint64_t, std::uint64_t>>();
}

TYPED_TEST_P(MapSuite, FillAndDrain) {
  const std::uint64_t n = static_cast<std::uint64_t>(steps<TypeParam>(3000));
  for (const int way : {0, 1, 2, 3}) {
    MapModelTest<TypeParam, map<std::uint64_t, std::uint64_t>>(1).fill_and_drain(n, (way & 1) != 0,
                                                                                 (way & 2) != 0);
    MapModelTest<TypeParam, map<std::string, std::string, 6>>(2).fill_and_drain(
        n / 3, (way & 1) != 0, (way & 2) != 0);
    MapModelTest<TypeParam, rb_tree<std::uint64_t, std::uint64_t>>(3).fill_and_drain(
        n, (way & 1) != 0, (way & 2) != 0);
  }
  MapModelTest<TypeParam, hash_map<std::uint64_t, std::uint64_t>>(4).fill_and_drain(n, true, false);
  MapModelTest<TypeParam, hash_map<std::uint64_t, std::uint64_t, 2>>(5).fill_and_drain(n, true,
                                                                                       true);
}

TYPED_TEST_P(MapSuite, BigValues) {
  using C = map<std::string, std::string>;
  MapModelTest<TypeParam, C> test(9);
  Random random(seed_of_run());
  for (const std::size_t size : {511U, 512U, 513U, 4096U, 65536U, 300000U, 1500000U, 700U}) {
    std::string value(size, '\0');
    for (char& c : value) c = static_cast<char>(random());
    for (const std::string key : {"one", "two"}) {
      test.run.pool.update([&](auto& tx, auto& root) { root.x.put(tx, key, value); });
      test.run.model[key] = value;
      value[size / 2] = static_cast<char>(~value[size / 2]);
      test.run.pool.update([&](auto& tx, auto& root) {
        root.x.update(tx, key, [&](std::string& v) { v[size / 2] = value[size / 2]; });
      });
      test.run.model[key] = value;
    }
    test.expect_equal();
  }
}

TYPED_TEST_P(MapSuite, ReserveThenInsert) {
  using C = hash_map<std::uint64_t, std::uint64_t>;
  MapModelTest<TypeParam, C> test(10);
  test.run.pool.update([](auto& tx, auto& root) { root.x.reserve(tx, 100000); });
  test.run.expect_sound();
  EXPECT_GE(test.run.view([](auto& tx, const C& c) { return c.bucket_count(tx); }), 100000U);
  test.churn(steps<TypeParam>(400), 100000, 9, 200);
  test.run.pool.update([](auto& tx, auto& root) { root.x.reserve(tx, 300000); });
  test.churn(steps<TypeParam>(400), 100000, 5, 200);
  test.run.pool.update([](auto& tx, auto& root) { root.x.clear(tx); });
  test.run.model.clear();
  test.expect_equal();
  test.run.expect_no_blocks();
}

REGISTER_TYPED_TEST_SUITE_P(MapSuite, ChangedInALoop, HashMapOfWords, HashMapOfText, MapOfWords,
                            MapOfText, MapOfPages, RbTreeOfWords, FillAndDrain, BigValues,
                            ReserveThenInsert);

}  // namespace perdure::test
