// SPDX-License-Identifier: BSD-3-Clause
//
// Walks during changes (walk_visits.hpp) of list, vector and queue.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <deque>
#include <type_traits>

#include "tests/container/sequence_suite.hpp"
#include "tests/container/walk_visits.hpp"

namespace perdure::test {

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
class SequenceWalkSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(SequenceWalkSuite);

TYPED_TEST_P(SequenceWalkSuite, List) {
  sequence_walks<TypeParam, list<std::uint64_t>>();
  sequence_walks<TypeParam, list<std::string>>();
  list_erase_test<TypeParam>();
}
TYPED_TEST_P(SequenceWalkSuite, Vector) {
  sequence_walks<TypeParam, vector<std::uint64_t>>();
  sequence_walks<TypeParam, vector<std::string>>();
}
TYPED_TEST_P(SequenceWalkSuite, Queue) {
  sequence_walks<TypeParam, queue<std::uint64_t>>();
  sequence_walks<TypeParam, queue<std::string>>();
}

REGISTER_TYPED_TEST_SUITE_P(SequenceWalkSuite, List, Vector, Queue);

// The suite whose helpers this suite uses has programs of its own.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SequenceSuite);

}  // namespace perdure::test
