// SPDX-License-Identifier: BSD-3-Clause
//
// The suite for set, hash_set, multimap, deque, priority_queue and hooked_list: random transactions
// compared with std:: models; and erase_if() of all containers.
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "perdure/api/pool.hpp"
#include "perdure/container/deque.hpp"
#include "perdure/container/erase_if.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/set.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {

template <class C>
struct MoreRoot {
  C x;
};
template <class Policy, class C, class Model>
using MoreRun = Runner<typename Policy::template Pool<MoreRoot<C>>, Model>;

/// What is left after clear(): nothing.
template <class Run>
void expect_cleared(Run& run) {
  run.pool.update([](auto& tx, auto& root) { root.x.clear(tx); });
  run.expect_sound();
  run.expect_no_blocks();
}

template <class Policy, class C>
void set_model_test() {
  using K = typename C::key_type;
  using Model = std::set<K>;
  MoreRun<Policy, C, Model> run(21);
  for (int i = 0; i < steps<Policy>(500) && !::testing::Test::HasFailure(); ++i) {
    run.transaction(1 + below(run.random, 8), [](auto& tx, C& c, Model& m, Random& r) {
      const K key = Sample<K>::of(below(r, 300));
      EXPECT_EQ(c.contains(tx, key), m.contains(key));
      if (below(r, 3) == 0) {
        EXPECT_EQ(c.erase(tx, key), m.erase(key) == 1);
      } else {
        EXPECT_EQ(c.insert(tx, key), m.insert(key).second);
      }
      if (below(r, 60) == 0) {
        const auto odd = [](const K& k) { return hash<K>::of(k) % 2 == 1; };
        EXPECT_EQ(erase_if(tx, c, odd), std::erase_if(m, odd));
      }
    });
    if (i % 40 != 0) continue;
    run.expect_sound();
    run.view([&](auto& tx, const C& c) {
      EXPECT_EQ(c.size(tx), run.model.size());
      Model found;
      c.for_each(tx, [&](const K& key) { EXPECT_TRUE(found.insert(key).second); });
      EXPECT_EQ(found, run.model);
      if constexpr (requires { c.range(tx); }) {
        EXPECT_TRUE(std::ranges::equal(c.range(tx), run.model));
        const K from = Sample<K>::of(20), to = Sample<K>::of(40);
        if (from < to) {
          EXPECT_TRUE(std::ranges::equal(
              c.range(tx, from, to),
              std::ranges::subrange(run.model.lower_bound(from), run.model.lower_bound(to))));
        }
        if (!run.model.empty()) {
          EXPECT_EQ(c.last(tx), *run.model.rbegin());
        }
      }
      return 0;
    });
  }
  expect_cleared(run);
}

template <class Policy, class K, class V>
void multimap_model_test() {
  using C = multimap<K, V, 4>;
  using Model = std::multimap<K, V>;  // equal keys in the order of insertion, too
  MoreRun<Policy, C, Model> run(22);
  for (int i = 0; i < steps<Policy>(500) && !::testing::Test::HasFailure(); ++i) {
    run.transaction(1 + below(run.random, 6), [](auto& tx, C& c, Model& m, Random& r) {
      const K key = Sample<K>::of(below(r, 20));
      const V value = Sample<V>::of(below(r, 3000));
      switch (below(r, 6)) {
        case 0:
          if (below(r, 4) == 0) {
            EXPECT_EQ(c.erase(tx, key), m.erase(key));
          }
          break;
        case 1: {
          auto at = c.lower_bound(tx, key);
          const auto mine = m.lower_bound(key);
          ASSERT_EQ(static_cast<bool>(at), mine != m.end());
          if (!at) break;
          EXPECT_EQ(at.value(tx), mine->second);
          c.update(tx, at, [](V& v) { v = changed(v); });
          mine->second = changed(mine->second);
          if (below(r, 2) == 0) {
            c.erase(tx, at);
            m.erase(mine);
          }
          break;
        }
        default: {
          const auto at = c.insert(tx, key, value);
          EXPECT_EQ(at.value(tx), value);
          m.emplace(key, value);
        }
      }
      EXPECT_EQ(c.count(tx, key), m.count(key));
      EXPECT_EQ(c.contains(tx, key), m.contains(key));
    });
    if (i % 40 != 0) continue;
    run.expect_sound();
    run.view([&](auto& tx, const C& c) {
      const auto equal = [](const auto& range, auto first, auto last) {
        for (const auto& [key, value] : range) {
          if (first == last || first->first != key || first->second != value) return false;
          ++first;
        }
        return first == last;
      };
      const Model& m = run.model;
      EXPECT_EQ(c.size(tx), m.size());
      EXPECT_TRUE(equal(c.range(tx), m.begin(), m.end()));
      for (std::uint64_t k = 0; k < 20; ++k) {
        const K key = Sample<K>::of(k);
        EXPECT_TRUE(equal(c.of(tx, key), m.lower_bound(key), m.upper_bound(key)));
      }
      return 0;
    });
  }
  expect_cleared(run);
}

template <class Policy, class T>
void deque_model_test() {
  using C = deque<T>;
  using Model = std::deque<T>;
  MoreRun<Policy, C, Model> run(23);
  for (int i = 0; i < steps<Policy>(900) && !::testing::Test::HasFailure(); ++i) {
    const unsigned grows = i % 300 < 200 ? 6 : 2;
    run.transaction(1 + below(run.random, 12), [&](auto& tx, C& c, Model& m, Random& r) {
      const T value = Sample<T>::of(below(r, 30000));
      const bool at_front = below(r, 2) == 0;
      if (below(r, 8) < grows) {
        at_front ? c.push_front(tx, value) : c.push_back(tx, value);
        at_front ? m.push_front(value) : m.push_back(value);
      } else {
        const auto popped = at_front ? c.pop_front(tx) : c.pop_back(tx);
        ASSERT_EQ(popped.has_value(), !m.empty());
        if (popped) {
          EXPECT_EQ(*popped, at_front ? m.front() : m.back());
          at_front ? m.pop_front() : m.pop_back();
        }
      }
      if (!m.empty()) {
        const std::uint64_t at = below(r, m.size());
        EXPECT_EQ(c.get(tx, at), m[at]);
        c.set(tx, at, value);
        c.update(tx, at, [](T& v) { v = changed(v); });
        m[at] = changed(value);
        EXPECT_EQ(c.front(tx), m.front());
        EXPECT_EQ(c.back(tx), m.back());
      }
      if (below(r, 200) == 0) {
        const auto odd = [](const T& v) { return hash<T>::of(v) % 3 == 1; };
        EXPECT_EQ(erase_if(tx, c, odd), std::erase_if(m, odd));
      }
      if (below(r, 400) == 0) c.clear(tx), m.clear();
    });
    if (i % 60 != 0) continue;
    run.expect_sound();
    run.view([&](auto& tx, const C& c) {
      EXPECT_EQ(c.size(tx), run.model.size());
      std::size_t at = 0;
      c.for_each(tx, [&](const T& value) { EXPECT_EQ(value, run.model[at++]); });
      EXPECT_EQ(at, run.model.size());
      return 0;
    });
  }
  expect_cleared(run);
}

template <class Policy, class T, class Compare>
void priority_queue_model_test() {
  using C = priority_queue<T, Compare>;
  using Model = std::multiset<T, Compare>;
  MoreRun<Policy, C, Model> run(24);
  for (int i = 0; i < steps<Policy>(600) && !::testing::Test::HasFailure(); ++i) {
    const unsigned grows = i % 300 < 200 ? 6 : 2;
    run.transaction(1 + below(run.random, 8), [&](auto& tx, C& c, Model& m, Random& r) {
      const T value = Sample<T>::of(below(r, 500));
      if (below(r, 8) < grows) {
        c.push(tx, value);
        m.insert(value);
      } else {
        const auto popped = c.pop(tx);
        ASSERT_EQ(popped.has_value(), !m.empty());
        if (popped) {
          EXPECT_EQ(*popped, *m.rbegin());
          m.erase(std::prev(m.end()));
        }
      }
      if (!m.empty()) {
        EXPECT_EQ(c.top(tx), *m.rbegin());
      }
      if (below(r, 200) == 0) {
        const auto odd = [](const T& v) { return hash<T>::of(v) % 3 == 1; };
        EXPECT_EQ(erase_if(tx, c, odd), std::erase_if(m, odd));
      }
    });
    if (i % 40 != 0) continue;
    run.expect_sound();
    run.view([&](auto& tx, const C& c) {
      Model found;
      c.for_each(tx, [&](const T& value) { found.insert(value); });
      EXPECT_EQ(found, run.model);
      EXPECT_EQ(c.size(tx), run.model.size());
      return 0;
    });
  }
  expect_cleared(run);
}

/// An order of an order book: the map owns it, a level's list leads through it.
struct Bid {
  p<std::uint64_t> number;
  list_hook hook;
  vector<std::string> notes;
};
struct Book {
  hash_map<std::uint64_t, Bid> orders;
  map<std::int64_t, hooked_list<Bid, &Bid::hook>> levels;

  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    orders.each_block(tx, f);
    orders.each_object(tx, [&](const Bid& bid) { bid.notes.each_block(tx, f); });
    levels.each_block(tx, f);
    levels.each_object(tx, [&](const auto& level) { level.each_block(tx, f); });
  }
  template <class Tx>
  std::vector<std::string> audit(Tx& tx) const {
    std::vector<std::string> problems = orders.audit(tx);
    levels.each_object(tx, [&](const auto& level) {
      for (const auto& problem : level.audit(tx)) problems.push_back(problem);
    });
    orders.each_object(tx, [&](const Bid& bid) {
      for (const auto& problem : bid.hook.audit(tx)) problems.push_back(problem);
    });
    return problems;
  }
  template <class Tx>
  void clear(Tx& tx) {
    orders.clear(tx);
    levels.clear(tx);
  }
  static std::string layout_text() { return "test-book/1"; }
};

template <class Policy>
void book_model_test() {
  using Model = std::map<std::int64_t, std::deque<std::uint64_t>>;
  MoreRun<Policy, Book, Model> run(25);
  for (int i = 0; i < steps<Policy>(600) && !::testing::Test::HasFailure(); ++i) {
    run.transaction(1 + below(run.random, 8), [](auto& tx, Book& c, Model& m, Random& r) {
      const std::uint64_t number = below(r, 60);
      const auto price = static_cast<std::int64_t>(below(r, 5));
      const bool there = c.orders.contains(tx, number);
      switch (below(r, 4)) {
        case 0:
        case 1:
          if (there) break;
          c.orders.upsert(tx, number, [&](Bid& bid) {
            tx.write(bid.number, number);
            bid.notes.push_back(tx, "a note that is in a block of its own");
            c.levels.upsert(tx, price, [&](auto& level) {
              below(r, 2) == 0 ? level.push_back(tx, bid) : level.push_front(tx, bid);
            });
          });
          // Where it went is read back: the two ends are compared below.
          c.levels.update(tx, price, [&](auto& level) {
            if (tx.read(level.back(tx)->number) == number)
              m[price].push_back(number);
            else
              m[price].push_front(number);
            EXPECT_EQ(level.size(tx), m[price].size());
          });
          break;
        case 2:  // cancelled by its number: it leaves its level without a search
          EXPECT_EQ(c.orders.erase(tx, number), there);
          for (auto& [_, level] : m) std::erase(level, number);
          break;
        default: {
          if (!c.levels.find(tx, price)) break;
          std::uint64_t first = 0;
          bool any = false;
          c.levels.update(tx, price, [&](auto& level) {
            if (const Bid* const bid = level.pop_front(tx)) {
              first = tx.read(bid->number);
              any = true;
            }
          });
          ASSERT_EQ(any, !m[price].empty());
          if (!any) break;
          EXPECT_EQ(first, m[price].front());
          EXPECT_TRUE(c.orders.erase(tx, first));
          m[price].pop_front();
        }
      }
    });
    if (i % 30 != 0) continue;
    run.expect_sound();
    run.view([&](auto& tx, const Book& c) {
      for (const auto& [price, level] : run.model) {
        const auto* const found = c.levels.find(tx, price);
        if (found == nullptr) {
          EXPECT_TRUE(level.empty());
          continue;
        }
        auto expected = level.begin();
        found->for_each(tx, [&](const Bid& bid) {
          ASSERT_NE(expected, level.end());
          EXPECT_EQ(tx.read(bid.number), *expected++);
        });
        EXPECT_EQ(expected, level.end());
      }
      return 0;
    });
  }
  expect_cleared(run);
}

template <class Policy>
class MoreSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(MoreSuite);

TYPED_TEST_P(MoreSuite, SetOfNumbers) { set_model_test<TypeParam, set<std::uint64_t>>(); }
TYPED_TEST_P(MoreSuite, SetOfText) { set_model_test<TypeParam, set<std::string, 4>>(); }
TYPED_TEST_P(MoreSuite, HashSetOfText) { set_model_test<TypeParam, hash_set<std::string, 4>>(); }
TYPED_TEST_P(MoreSuite, MultimapOfText) {
  multimap_model_test<TypeParam, std::string, std::string>();
}
TYPED_TEST_P(MoreSuite, MultimapOfNumbers) {
  multimap_model_test<TypeParam, std::int32_t, std::uint64_t>();
}
TYPED_TEST_P(MoreSuite, DequeOfWords) { deque_model_test<TypeParam, std::uint64_t>(); }
TYPED_TEST_P(MoreSuite, DequeOfText) { deque_model_test<TypeParam, std::string>(); }
TYPED_TEST_P(MoreSuite, PriorityQueueOfText) {
  priority_queue_model_test<TypeParam, std::string, std::less<std::string>>();
}
TYPED_TEST_P(MoreSuite, PriorityQueueSmallestFirst) {
  priority_queue_model_test<TypeParam, std::uint32_t, std::greater<std::uint32_t>>();
}
TYPED_TEST_P(MoreSuite, HookedListsOfAnOrderBook) { book_model_test<TypeParam>(); }

/// What containers of containers own is freed with them.
TYPED_TEST_P(MoreSuite, OwnedObjectsAreFreed) {
  struct Root {
    multimap<std::uint32_t, vector<std::string>> x;
    deque<map<std::uint32_t, std::string>> lines;
  };
  typename TypeParam::template Pool<Root> pool;
  const auto blocks = [&] {
    std::vector<const void*> found;
    pool.view([&](auto& tx, const Root& root) {
      found.clear();
      walk_blocks(tx, root, [&](const void* block, bool) {
        found.push_back(block);
        return true;
      });
      return 0;
    });
    return found;
  };
  pool.update([](auto& tx, Root& root) {
    for (std::uint32_t i = 0; i < 30; ++i) {
      const auto at = root.x.insert(tx, i % 3);
      root.x.update(tx, at, [&](auto& texts) { texts.push_back(tx, "some text of the vector"); });
      root.lines.push_front(tx);
      root.lines.update(tx, 0, [&](auto& line) { line.put(tx, i, "some text of the map"); });
    }
  });
  EXPECT_GT(blocks().size(), 100U);
  EXPECT_EQ(pool.compare_blocks(blocks()), "");
  pool.update([](auto& tx, Root& root) {
    EXPECT_EQ(root.x.erase(tx, 1), 10U);
    EXPECT_TRUE(root.lines.pop_front(tx));
    EXPECT_EQ(erase_if(tx, root.lines, [&](const auto* line) { return line->contains(tx, 7); }),
              1U);
    EXPECT_EQ(root.lines.size(tx), 28U);
  });
  EXPECT_EQ(pool.compare_blocks(blocks()), "");
  pool.update([](auto& tx, Root& root) {
    root.x.clear(tx);
    root.lines.clear(tx);
  });
  EXPECT_EQ(blocks().size(), 0U);
  EXPECT_EQ(pool.compare_blocks({}), "");
}

/// A row of a table, by its number.
struct Numbered {
  std::uint32_t number = 0;
  std::string text;
};

TYPED_TEST_P(MoreSuite, EraseIfOfEachContainer) {
  struct Root {
    map<std::uint32_t, std::string> ordered;
    rb_tree<std::uint32_t, std::string> tree;
    hash_map<std::uint32_t, std::string, 2> hashed;
    list<std::uint32_t> chain;
    vector<std::string> texts;
    queue<std::uint32_t> line;
    table<Numbered, key<&Numbered::number>, indexed<&Numbered::text>> rows;
  };
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    for (std::uint32_t i = 0; i < 200; ++i) {
      const std::string text = std::to_string(i);
      root.ordered.put(tx, i, text);
      root.tree.put(tx, i, text);
      root.hashed.put(tx, i, text);
      root.chain.push_back(tx, i);
      root.texts.push_back(tx, text);
      root.line.push(tx, i);
      root.rows.put(tx, {i, text});
    }
    const auto third = [](std::uint32_t key, const auto&) { return key % 3 == 0; };
    EXPECT_EQ(erase_if(tx, root.ordered, third), 67U);
    EXPECT_EQ(erase_if(tx, root.tree, third), 67U);
    EXPECT_EQ(erase_if(tx, root.hashed, third), 67U);
    EXPECT_EQ(erase_if(tx, root.chain, [](std::uint32_t i) { return i % 3 == 0; }), 67U);
    EXPECT_EQ(erase_if(tx, root.texts, [](const std::string& t) { return std::stoul(t) % 3 == 0; }),
              67U);
    EXPECT_EQ(erase_if(tx, root.line, [](std::uint32_t i) { return i % 3 == 0; }), 67U);
    EXPECT_EQ(erase_if(tx, root.rows, [](const Numbered& row) { return row.number % 3 == 0; }),
              67U);
    std::uint32_t expected = 1;
    root.texts.for_each(tx, [&](const std::string& text) {
      EXPECT_EQ(text, std::to_string(expected));
      expected += expected % 3;
    });
    EXPECT_EQ(root.line.pop(tx), 1U);
    EXPECT_EQ(root.line.pop(tx), 2U);
    EXPECT_EQ(root.line.pop(tx), 4U);
    EXPECT_TRUE(root.rows.audit(tx).empty() && root.hashed.audit(tx).empty());
    EXPECT_TRUE(root.rows.contains(tx, 1) && !root.rows.contains(tx, 3));
  });
}

/// The visited element of an unordered map may be erased, and others, too: each that remains is
/// visited once.
TYPED_TEST_P(MoreSuite, ErasingInAWalkOverAHashMap) {
  struct Root {
    hash_map<std::uint32_t, std::uint32_t, 4> x;
  };
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    for (std::uint32_t i = 0; i < 300; ++i) root.x.put(tx, i, i);
    std::multiset<std::uint32_t> visited;
    for (auto at = root.x.begin(tx); at; at.next(tx)) {
      const std::uint32_t key = at.key(tx);
      visited.insert(key);
      if (key % 2 == 0) root.x.erase(tx, key);
      if (key % 10 == 1) root.x.put(tx, 1000 + key, 0);  // it grows meanwhile
    }
    for (std::uint32_t i = 0; i < 300; ++i) EXPECT_EQ(visited.count(i), 1U) << i;
    for (std::uint32_t i = 0; i < 300; ++i) EXPECT_EQ(root.x.contains(tx, i), i % 2 == 1);
  });
}

/// The function of an update() must not remove elements of its container.
TYPED_TEST_P(MoreSuite, RemovingWithinAnUpdateIsRefused) {
  struct Root {
    vector<std::string> texts;
    list<std::string> chain;
    deque<std::string> ends;
    priority_queue<std::uint32_t> first;
  };
  typename TypeParam::template Pool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    for (int i = 0; i < 3; ++i) {
      root.texts.push_back(tx, "a");
      root.chain.push_back(tx, "a");
      root.ends.push_back(tx, "a");
      root.first.push(tx, 1);
    }
  });
  const auto expect_refused = [&](auto change) {
    try {
      pool.update([&](auto& tx, Root& root) { change(tx, root); });
      ADD_FAILURE() << "an element was removed";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid) << e.what();
    }
  };
  expect_refused(
      [](auto& tx, Root& r) { r.texts.update(tx, 2, [&](auto&) { r.texts.pop_back(tx); }); });
  expect_refused(
      [](auto& tx, Root& r) { r.texts.update(tx, 0, [&](auto&) { r.texts.clear(tx); }); });
  expect_refused(
      [](auto& tx, Root& r) { r.texts.update(tx, 0, [&](auto&) { r.texts.resize(tx, 1); }); });
  expect_refused([](auto& tx, Root& r) {
    r.texts.erase_if(tx, [&](const auto&) { return r.texts.clear(tx), true; });
  });
  expect_refused([](auto& tx, Root& r) {
    const auto at = r.chain.begin(tx);
    r.chain.update(tx, at, [&](auto&) { r.chain.erase(tx, at); });
  });
  expect_refused([](auto& tx, Root& r) {
    r.chain.update(tx, r.chain.begin(tx), [&](auto&) { r.chain.clear(tx); });
  });
  expect_refused(
      [](auto& tx, Root& r) { r.ends.update(tx, 0, [&](auto&) { r.ends.pop_front(tx); }); });
  expect_refused([](auto& tx, Root& r) { r.first.for_each(tx, [&](auto) { r.first.pop(tx); }); });
  pool.update([](auto& tx, Root& root) {  // others, and additions that move nothing, are not
    root.texts.update(tx, 0, [&](auto& text) { text += "b", root.texts.push_back(tx, "c"); });
    EXPECT_EQ(root.texts.get(tx, 0), "ab");
    root.chain.update(tx, root.chain.begin(tx), [&](auto& text) {
      text += "b";
      root.chain.pop_back(tx);
    });
    EXPECT_EQ(root.chain.front(tx), "ab");
  });
}

/// A hooked list refuses what is in a list, and a walk goes on where its element leaves.
TYPED_TEST_P(MoreSuite, HooksOfOneListAtATime) {
  struct Root {
    std::array<Bid, 5> bids;
    hooked_list<Bid, &Bid::hook> x, y;
  };
  typename TypeParam::template Pool<Root> pool;
  const auto expect_refused = [&](auto change) {
    try {
      pool.update([&](auto& tx, Root& root) { change(tx, root); });
      ADD_FAILURE() << "it was linked twice";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid) << e.what();
    }
  };
  pool.update([](auto& tx, Root& root) {
    std::uint64_t n = 0;
    for (Bid& bid : root.bids) {
      tx.write(bid.number, n++);
      root.x.push_back(tx, bid);
    }
  });
  expect_refused([](auto& tx, Root& r) { r.y.push_back(tx, r.bids[0]); });
  expect_refused([](auto& tx, Root& r) {
    r.bids[0].hook.clear(tx);
    r.y.insert(tx, r.bids[1], r.bids[0]);
  });
  pool.update([](auto& tx, Root& root) {
    std::vector<std::uint64_t> visited;
    for (auto at = root.x.begin(tx); at; at.next(tx)) {
      Bid& bid = *at.value(tx);
      visited.push_back(tx.read(bid.number));
      if (visited.back() % 2 == 0) {
        EXPECT_TRUE(root.x.erase(tx, bid));
        EXPECT_THROW((void)at.value(tx), error);
        root.y.push_front(tx, bid);
      }
    }
    EXPECT_EQ(visited, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
    EXPECT_FALSE(root.x.erase(tx, root.bids[0]));
    root.y.insert(tx, root.bids[2],
                  root.bids[1].hook.linked(tx) ? *root.x.pop_front(tx) : root.bids[1]);
    visited.clear();
    root.y.for_each(tx, [&](const Bid& bid) { visited.push_back(tx.read(bid.number)); });
    EXPECT_EQ(visited, (std::vector<std::uint64_t>{4, 1, 2, 0}));
    EXPECT_EQ(erase_if(tx, root.y, [&](const Bid& bid) { return tx.read(bid.number) > 1; }), 2U);
    EXPECT_EQ(root.y.size(tx), 2U);
    EXPECT_TRUE(root.x.audit(tx).empty() && root.y.audit(tx).empty());
  });
}

/// Layout texts are part of the format.
TYPED_TEST_P(MoreSuite, ContainersNameThemselves) {
  EXPECT_EQ((set<std::string>::layout_text()), "set<string,15>/1");
  EXPECT_EQ((hash_set<std::uint32_t>::layout_text()), "hash_set<u32,128>/1");
  EXPECT_EQ((multimap<std::string, std::int64_t>::layout_text()), "multimap<string,i64,15>/1");
  EXPECT_EQ((deque<std::string>::layout_text()), "deque<string>/1");
  EXPECT_EQ((priority_queue<std::uint16_t>::layout_text()), "priority_queue<u16,less>/1");
  EXPECT_EQ((priority_queue<std::uint16_t, std::greater<>>::layout_text()),
            "priority_queue<u16,greater>/1");
  EXPECT_EQ((hooked_list<Bid, &Bid::hook>::layout_text()), "hooked_list<8/64>/2");
  EXPECT_EQ(sizeof(set<int>), 64U);
  EXPECT_EQ(sizeof(multimap<int, int>), 128U);
  EXPECT_EQ(sizeof(deque<int>), 128U);
  EXPECT_EQ(sizeof(priority_queue<int>), 32U);
  EXPECT_EQ(sizeof(hooked_list<Bid, &Bid::hook>), 8U);
}

REGISTER_TYPED_TEST_SUITE_P(MoreSuite, SetOfNumbers, SetOfText, HashSetOfText, MultimapOfText,
                            MultimapOfNumbers, DequeOfWords, DequeOfText, PriorityQueueOfText,
                            PriorityQueueSmallestFirst, HookedListsOfAnOrderBook,
                            OwnedObjectsAreFreed, EraseIfOfEachContainer,
                            ErasingInAWalkOverAHashMap, RemovingWithinAnUpdateIsRefused,
                            HooksOfOneListAtATime, ContainersNameThemselves);

}  // namespace perdure::test
