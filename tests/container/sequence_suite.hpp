// SPDX-License-Identifier: BSD-3-Clause
//
// The suite for vector, string, list and queue: random transactions compared with std:: models.
//
// Thread safety: one thread.
#pragma once

#include <deque>
#include <list>
#include <numeric>

#include "tests/container/suite.hpp"

#include "perdure/container/list.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/vector.hpp"

namespace perdure::test {

template <class C>
struct SequenceRoot {
  C x;
};
template <class Policy, class C, class Model>
using SequenceRun = Runner<typename Policy::template Pool<SequenceRoot<C>>, Model>;

/// for_each, cursor and size of a container agree with the model.
template <class Run>
void expect_sequence(Run& run) {
  run.expect_sound();
  run.view([&](auto& tx, const auto& c) {
    EXPECT_EQ(c.size(tx), run.model.size());
    EXPECT_EQ(c.empty(tx), run.model.empty());
    auto expected = run.model.begin();
    std::size_t n = 0;
    c.for_each(tx, [&](const auto& value) {
      if (n++ < run.model.size()) {
        EXPECT_EQ(value, *expected++) << "element " << n - 1;
      }
    });
    EXPECT_EQ(n, run.model.size());
    expected = run.model.begin();
    for (auto at = c.begin(tx); at && expected != run.model.end(); at.next(tx))
      EXPECT_EQ(at.value(tx), *expected++);
    EXPECT_TRUE(expected == run.model.end());
    std::size_t stopped = 0;
    c.for_each(tx, [&](const auto&) { return ++stopped < 2; });
    EXPECT_EQ(stopped, std::min<std::size_t>(2, run.model.size()));
    return 0;
  });
}

template <class Policy, class T>
void vector_model_test() {
  using C = vector<T>;
  SequenceRun<Policy, C, std::vector<T>> run(1);
  for (int i = 0; i < steps<Policy>(1500) && !::testing::Test::HasFailure(); ++i) {
    const unsigned grows = i % 500 < 300 ? 7 : 2;
    run.transaction(1 + below(run.random, 8), [&](auto& tx, C& c, std::vector<T>& m, Random& r) {
      const T value = Sample<T>::of(below(r, 30000));
      if (below(r, 10) < grows) {
        c.push_back(tx, value);
        m.push_back(value);
      } else if (!m.empty()) {
        EXPECT_EQ(c.pop_back(tx), m.back());
        m.pop_back();
      }
      if (!m.empty()) {
        const std::uint64_t at = below(r, m.size());
        if (below(r, 2) == 0) {
          c.set(tx, at, value);
          m[at] = value;
        } else {
          c.update(tx, at, [](T& v) { v = changed(v); });
          m[at] = changed(m[at]);
        }
        EXPECT_EQ(c.get(tx, m.size() - 1), m.back());
        EXPECT_EQ(c.front(tx), m.front());
      }
      if (below(r, 60) == 0) {
        const std::uint64_t n = below(r, 200);
        c.resize(tx, n, value);
        m.resize(n, value);
      }
      if (below(r, 300) == 0) c.reserve(tx, below(r, 3000));
      if (below(r, 500) == 0) c.clear(tx), m.clear();
    });
    if (i % 50 == 0) expect_sequence(run);
  }
  expect_sequence(run);
  run.pool.update([](auto& tx, auto& root) { root.x.clear(tx); });
  run.model.clear();
  expect_sequence(run);
  run.expect_no_blocks();
}

template <class Policy>
void string_model_test() {
  SequenceRun<Policy, string, std::string> run(2);
  for (int i = 0; i < steps<Policy>(2000) && !::testing::Test::HasFailure(); ++i) {
    run.transaction(1 + below(run.random, 4), [&](auto& tx, string& c, std::string& m, Random& r) {
      switch (below(r, 8)) {
        case 0: {  // a completely different text
          const std::string text(below(r, 3) == 0 ? below(r, 5000) : below(r, 40),
                                 static_cast<char>('a' + below(r, 26)));
          c.assign(tx, text);
          m = text;
          break;
        }
        case 1:
          c.clear(tx);
          m.clear();
          break;
        case 2: c.reserve(tx, below(r, 3000)); break;
        case 3:
        case 4:
        case 5: {
          const std::string text = Sample<std::string>::of(below(r, 30000));
          c.append(tx, text);
          m += text;
          break;
        }
        default:  // a few bytes changed, a few cut off or added
          if (!m.empty()) m[below(r, m.size())] = static_cast<char>(r());
          if (!m.empty()) m[below(r, m.size())] = static_cast<char>(r());
          m.resize(m.size() - std::min<std::size_t>(m.size(), below(r, 30)) + below(r, 30), 'x');
          c.assign(tx, m);
      }
      EXPECT_EQ(c.str(tx), m);
      EXPECT_EQ(c.size(tx), m.size());
      EXPECT_TRUE(c.equals(tx, m));
      const std::size_t at = below(r, m.size() + 1), n = below(r, 700);
      EXPECT_EQ(c.substr(tx, at, n), m.substr(at, n));
      std::string other = m;
      if (!other.empty()) other[below(r, other.size())] = static_cast<char>(r());
      const int order = c.compare(tx, other), expected = m.compare(other);
      EXPECT_EQ(order < 0, expected < 0);
      EXPECT_EQ(order > 0, expected > 0);
    });
    if (i % 50 == 0) run.expect_sound();
  }
  EXPECT_THROW(run.view([](auto& tx, const string& c) { return c.substr(tx, c.size(tx) + 1); }),
               error);
}

template <class Policy, class T>
void list_model_test() {
  using C = list<T>;
  using Model = std::list<T>;
  SequenceRun<Policy, C, Model> run(3);
  for (int i = 0; i < steps<Policy>(1200) && !::testing::Test::HasFailure(); ++i) {
    const unsigned grows = i % 400 < 250 ? 6 : 3;
    run.transaction(1 + below(run.random, 8), [&](auto& tx, C& c, Model& m, Random& r) {
      const T value = Sample<T>::of(below(r, 30000));
      // The same position in both.
      const std::uint64_t steps_in = below(r, std::min<std::uint64_t>(m.size() + 1, 20));
      auto at = c.begin(tx);
      auto it = m.begin();
      for (std::uint64_t k = 0; k < steps_in; ++k, ++it) at.next(tx);
      EXPECT_EQ(static_cast<bool>(at), it != m.end());
      if (below(r, 10) < grows) {
        switch (below(r, 3)) {
          case 0:
            c.push_front(tx, value);
            m.push_front(value);
            break;
          case 1:
            c.push_back(tx, value);
            m.push_back(value);
            break;
          default: EXPECT_EQ(c.insert(tx, at, value).value(tx), value); m.insert(it, value);
        }
      } else if (!m.empty()) {
        switch (below(r, 4)) {
          case 0:
            EXPECT_EQ(c.pop_front(tx), m.front());
            m.pop_front();
            break;
          case 1:
            EXPECT_EQ(c.pop_back(tx), m.back());
            m.pop_back();
            break;
          case 2:
            if (it == m.end()) break;
            c.set(tx, at, value);
            *it = value;
            break;
          default:
            if (it == m.end()) break;
            EXPECT_EQ(static_cast<bool>(c.erase(tx, at)), m.erase(it) != m.end());
        }
      } else {
        EXPECT_FALSE(c.pop_front(tx).has_value() || c.pop_back(tx).has_value() ||
                     c.front(tx).has_value());
      }
      EXPECT_TRUE(m.empty() || (c.front(tx) == m.front() && c.back(tx) == m.back()));
      if (below(r, 400) == 0) c.clear(tx), m.clear();
    });
    if (i % 50 == 0) expect_sequence(run);
  }
  expect_sequence(run);
  run.view([&](auto& tx, const C& c) {  // backwards
    auto it = run.model.rbegin();
    auto at = c.last(tx);
    for (; at && it != run.model.rend(); at.prev(tx), ++it) EXPECT_EQ(at.value(tx), *it);
    EXPECT_TRUE(!at && it == run.model.rend());
    return 0;
  });
}

template <class Policy, class T>
void queue_model_test() {
  using C = queue<T>;
  using Model = std::deque<T>;
  SequenceRun<Policy, C, Model> run(4);
  for (int i = 0; i < steps<Policy>(2500) && !::testing::Test::HasFailure(); ++i) {
    const unsigned grows = i % 700 < 400 ? 7 : 2;
    run.transaction(1 + below(run.random, 16), [&](auto& tx, C& c, Model& m, Random& r) {
      const T value = Sample<T>::of(below(r, 30000));
      if (below(r, 10) < grows) {
        c.push(tx, value);
        m.push_back(value);
      } else if (m.empty()) {
        EXPECT_FALSE(c.pop(tx).has_value());
      } else {
        EXPECT_EQ(c.pop(tx), m.front());
        m.pop_front();
      }
      EXPECT_EQ(c.front(tx).has_value(), !m.empty());
      EXPECT_TRUE(m.empty() || c.front(tx) == m.front());
      if (below(r, 3000) == 0) c.clear(tx), m.clear();
    });
    if (i % 50 == 0) expect_sequence(run);
  }
  while (!run.model.empty()) {
    run.pool.update([&](auto& tx, auto& root) { EXPECT_EQ(root.x.pop(tx), run.model.front()); });
    run.model.pop_front();
  }
  expect_sequence(run);
}

template <class Policy>
class SequenceSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(SequenceSuite);

TYPED_TEST_P(SequenceSuite, VectorOfWords) { vector_model_test<TypeParam, std::uint64_t>(); }
TYPED_TEST_P(SequenceSuite, VectorOfBytes) { vector_model_test<TypeParam, std::uint8_t>(); }
TYPED_TEST_P(SequenceSuite, VectorOfRecords) { vector_model_test<TypeParam, Record>(); }
TYPED_TEST_P(SequenceSuite, VectorOfText) { vector_model_test<TypeParam, std::string>(); }
TYPED_TEST_P(SequenceSuite, String) { string_model_test<TypeParam>(); }
TYPED_TEST_P(SequenceSuite, ListOfWords) { list_model_test<TypeParam, std::uint64_t>(); }
TYPED_TEST_P(SequenceSuite, ListOfText) { list_model_test<TypeParam, std::string>(); }
TYPED_TEST_P(SequenceSuite, QueueOfWords) { queue_model_test<TypeParam, std::uint64_t>(); }
TYPED_TEST_P(SequenceSuite, QueueOfRecords) { queue_model_test<TypeParam, Record>(); }
TYPED_TEST_P(SequenceSuite, QueueOfText) { queue_model_test<TypeParam, std::string>(); }

TYPED_TEST_P(SequenceSuite, VectorInBulk) {
  using C = vector<std::uint32_t>;
  SequenceRun<TypeParam, C, std::vector<std::uint32_t>> run(5);
  std::vector<std::uint32_t> values(3000);
  std::iota(values.begin(), values.end(), 7);
  for (const std::size_t n : {1U, 15U, 16U, 1000U, 0U, 3000U, 33U}) {
    run.pool.update([&](auto& tx, auto& root) { root.x.append(tx, std::span(values).first(n)); });
    run.model.insert(run.model.end(), values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(n));
  }
  expect_sequence(run);
  run.view([&](auto& tx, const C& c) {
    for (const std::size_t first : {0U, 1U, 16U, 17U, 1031U}) {
      std::vector<std::uint32_t> out(2000);
      c.read(tx, first, out);
      EXPECT_TRUE(std::equal(out.begin(), out.end(),
                             run.model.begin() + static_cast<std::ptrdiff_t>(first)));
    }
    std::vector<std::uint32_t> out(2);
    EXPECT_THROW(c.read(tx, c.size(tx) - 1, out), error);
    EXPECT_THROW((void)c.get(tx, c.size(tx)), error);
    EXPECT_THROW((void)c.get(tx, ~0ULL), error);
    return 0;
  });
  run.pool.update([&](auto& tx, auto& root) {
    root.x.clear(tx);
    EXPECT_THROW(root.x.pop_back(tx), error);
    EXPECT_THROW(root.x.set(tx, 0, 1), error);
    EXPECT_THROW(root.x.reserve(tx, std::uint64_t{1} << 60), error);
    root.x.reserve(tx, 100000);
    root.x.push_back(tx, 5);
    EXPECT_THROW(root.x.reserve(tx, std::uint64_t{1} << 60), error);
  });
  run.model = {5};
  expect_sequence(run);
}

REGISTER_TYPED_TEST_SUITE_P(SequenceSuite, VectorOfWords, VectorOfBytes, VectorOfRecords,
                            VectorOfText, String, ListOfWords, ListOfText, QueueOfWords,
                            QueueOfRecords, QueueOfText, VectorInBulk);

}  // namespace perdure::test
