// SPDX-License-Identifier: BSD-3-Clause
//
// The suite for walks during changes: for every container, by for_each and by cursor, an element
// that is present from a walk's beginning to its end is visited once, and an erased element is not
// visited afterwards.
//
// A walk takes place in one transaction. Each of its steps makes changes of one kind (erasing the
// element itself, its neighbours, or any element; adding; clearing) to the container and to a
// model.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "tests/container/map_suite.hpp"
#include "tests/container/sequence_suite.hpp"

namespace perdure::test {

/// The elements that a walk visited.
template <class T>
class Visits {
 public:
  template <class Elements>
  explicit Visits(const Elements& there) : stays_(there.begin(), there.end()), there_(stays_) {}
  void visit(const T& x) {
    EXPECT_TRUE(there_.contains(x)) << "an element was visited after it was erased";
    if (!added_.contains(x)) {
      EXPECT_FALSE(seen_.contains(x)) << "an element was visited twice";
    }
    seen_.insert(x);
  }
  void erase(const T& x) { there_.erase(x), stays_.erase(x); }
  void add(const T& x) { there_.insert(x), added_.insert(x); }
  void clear() { there_.clear(), stays_.clear(); }
  void expect_all() const {
    std::size_t skipped = 0;
    for (const T& x : stays_) skipped += !seen_.contains(x);
    EXPECT_EQ(skipped, 0U) << "elements that were skipped, of " << stays_.size();
  }
  [[nodiscard]] std::size_t seen() const { return seen_.size(); }

 private:
  std::set<T> stays_, there_, added_, seen_;
};

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

/// How a sequence is walked: by for_each, by a cursor from the front or (for a list) from the back.
enum class Walk { each, cursor, backwards };

/// The changes of one step to a list. The elements of `c` are those of `now`.
template <class Tx, class T>
void change_sequence(Tx& tx, list<T>& c, std::deque<T>& now, Visits<T>& visits, const T& fresh,
                     Random& r) {
  switch (below(r, 6)) {
    case 0:
    case 1: {  // the visited element may be among these
      if (now.empty()) break;
      const std::uint64_t i = below(r, std::min<std::uint64_t>(now.size(), 40));
      auto place = c.begin(tx);
      for (std::uint64_t k = 0; k < i; ++k) place.next(tx);
      const auto after = c.erase(tx, place);
      EXPECT_EQ(static_cast<bool>(after), i + 1 < now.size());
      visits.erase(now[i]);
      now.erase(now.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    case 2:
      if (now.empty()) break;
      visits.erase(now.front());
      EXPECT_EQ(c.pop_front(tx), now.front());
      now.pop_front();
      break;
    case 3:
      if (now.empty()) break;
      visits.erase(now.back());
      EXPECT_EQ(c.pop_back(tx), now.back());
      now.pop_back();
      break;
    case 4:
      visits.add(fresh);
      c.push_front(tx, fresh);
      now.push_front(fresh);
      break;
    default: break;
  }
}
template <class Tx, class T>
void change_sequence(Tx& tx, vector<T>& c, std::deque<T>& now, Visits<T>& visits, const T& fresh,
                     Random& r) {
  for (std::uint64_t i = below(r, 3); i > 0 && !now.empty(); --i) {
    visits.erase(now.back());
    EXPECT_EQ(c.pop_back(tx), now.back());
    now.pop_back();
  }
  if (below(r, 3) == 0) {
    visits.add(fresh);
    c.push_back(tx, fresh);
    now.push_back(fresh);
  }
}
template <class Tx, class T>
void change_sequence(Tx& tx, queue<T>& c, std::deque<T>& now, Visits<T>& visits, const T& fresh,
                     Random& r) {
  for (std::uint64_t i = below(r, 4); i > 0 && !now.empty(); --i) {
    visits.erase(now.front());
    EXPECT_EQ(c.pop(tx), now.front());
    now.pop_front();
  }
  visits.add(fresh);
  c.push(tx, fresh);
  now.push_back(fresh);
}

template <class T, class Tx, class C>
void refill(Tx& tx, C& c, const std::deque<T>& now) {
  for (const T& x : now) {
    if constexpr (requires { c.push(tx, x); })
      c.push(tx, x);
    else
      c.push_back(tx, x);
  }
}

/// `empties`: after a quarter of the walk the container is cleared and filled with new elements.
template <class Policy, class C>
void sequence_walk(Walk walk, bool empties, std::uint64_t n) {
  using T = typename C::value_type;
  SCOPED_TRACE("walk " + std::to_string(static_cast<int>(walk)) + (empties ? ", cleared" : ""));
  SequenceRun<Policy, C, std::deque<T>> run(static_cast<std::uint64_t>(walk));
  for (std::uint64_t i = 0; i < n; ++i) run.model.push_back(Sample<T>::of(i));
  run.pool.update([&](auto& tx, auto& root) { refill(tx, root.x, run.model); });
  std::deque<T> now;
  run.pool.update([&](auto& tx, auto& root) {
    C& c = root.x;
    now = run.model;
    Random r(seed_of_run() + 7);
    Visits<T> visits(now);
    std::uint64_t step = 0;
    const auto at = [&](const T& x) {
      visits.visit(x);
      if (++step == n / 4 && empties) {
        c.clear(tx), now.clear(), visits.clear();
        for (std::uint64_t i = 0; i < n; ++i)
          now.push_back(Sample<T>::of(2 * n + i)), visits.add(now.back());
        refill(tx, c, now);
      } else {
        change_sequence(tx, c, now, visits, Sample<T>::of(5 * n + step), r);
      }
    };
    const auto step_at = [&](const auto& place) {
      const T x = place.value(tx);
      at(x);
      if constexpr (std::is_same_v<C, list<T>>) {
        if (std::find(now.begin(), now.end(), x) != now.end())
          EXPECT_EQ(place.value(tx), x);
        else
          EXPECT_THROW((void)place.value(tx), error) << "reading an element that was erased";
      }
    };
    switch (walk) {
      case Walk::each: c.for_each(tx, at); break;
      case Walk::cursor:
        for (auto place = c.begin(tx); place; place.next(tx)) step_at(place);
        break;
      case Walk::backwards:
        if constexpr (std::is_same_v<C, list<T>>) {
          for (auto place = c.last(tx); place; place.prev(tx)) step_at(place);
        }
        break;
    }
    visits.expect_all();
    EXPECT_GE(visits.seen(), n / 4);
  });
  run.model = now;
  expect_sequence(run);
}

template <class Policy, class C>
void sequence_walks() {
  const auto n = static_cast<std::uint64_t>(steps<Policy>(1500));
  for (const Walk walk : {Walk::each, Walk::cursor, Walk::backwards}) {
    if (walk == Walk::backwards && !std::is_same_v<C, list<typename C::value_type>>) continue;
    for (const bool empties : {false, true}) sequence_walk<Policy, C>(walk, empties, n);
  }
}

/// Specific to a list: the position that erase returns, and next() of an erased element.
template <class Policy>
void list_erase_test() {
  SequenceRun<Policy, list<std::uint64_t>, std::deque<std::uint64_t>> run(4);
  run.pool.update([](auto& tx, auto& root) {
    for (std::uint64_t i = 0; i < 100; ++i) root.x.push_back(tx, i);
    std::uint64_t n = 0;
    for (auto place = root.x.begin(tx); place; ++n) {  // erases the even elements
      if (place.value(tx) % 2 == 0)
        place = root.x.erase(tx, place);
      else
        place.next(tx);
    }
    EXPECT_EQ(n, 100U);
    for (auto place = root.x.begin(tx); place; place.next(tx)) {
      // Of the odd elements, erases those that end in 5.
      if (place.value(tx) % 10 == 5) root.x.erase(tx, place);
    }
    auto gone = root.x.begin(tx);
    auto copy = gone;
    root.x.erase(tx, gone);
    EXPECT_THROW(root.x.erase(tx, gone), error);
    EXPECT_THROW(root.x.set(tx, copy, 1), error);
    copy.prev(tx);
    EXPECT_FALSE(copy);
    gone.next(tx);
    EXPECT_EQ(gone.value(tx), 3U);
  });
  for (std::uint64_t i = 3; i < 100; i += 2) {
    if (i % 10 != 5) run.model.push_back(i);
  }
  expect_sequence(run);
}

/// Typed by Policy.
template <class Policy>
class WalkSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(WalkSuite);

TYPED_TEST_P(WalkSuite, HashMap) {
  map_walks<TypeParam, hash_map<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, hash_map<std::string, std::string, 8>>();
  map_walks<TypeParam, hash_map<std::uint64_t, std::uint64_t, 1>>(200);
  map_walks<TypeParam, hash_map<Clash, std::uint64_t>>(200);
}
TYPED_TEST_P(WalkSuite, Map) {
  map_walks<TypeParam, map<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, map<std::string, std::string, 6>>();
  map_walks<TypeParam, map<std::uint64_t, std::uint64_t, 255>>();
}
TYPED_TEST_P(WalkSuite, RbTree) {
  map_walks<TypeParam, rb_tree<std::uint64_t, std::uint64_t>>();
  map_walks<TypeParam, rb_tree<std::string, std::string>>();
}
TYPED_TEST_P(WalkSuite, List) {
  sequence_walks<TypeParam, list<std::uint64_t>>();
  sequence_walks<TypeParam, list<std::string>>();
  list_erase_test<TypeParam>();
}
TYPED_TEST_P(WalkSuite, Vector) {
  sequence_walks<TypeParam, vector<std::uint64_t>>();
  sequence_walks<TypeParam, vector<std::string>>();
}
TYPED_TEST_P(WalkSuite, Queue) {
  sequence_walks<TypeParam, queue<std::uint64_t>>();
  sequence_walks<TypeParam, queue<std::string>>();
}

REGISTER_TYPED_TEST_SUITE_P(WalkSuite, HashMap, Map, RbTree, List, Vector, Queue);

// The two suites whose helpers this suite uses have programs of their own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MapSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SequenceSuite);

}  // namespace perdure::test
