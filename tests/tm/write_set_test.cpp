// SPDX-License-Identifier: BSD-3-Clause
//
// Write sets: the newest value of each word, whatever their content and however often they are
// reused.
#include "perdure/tm/write_set.hpp"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <random>
#include <vector>

namespace perdure::test {
namespace {

/// A store that only grows, like a log, and is full from time to time.
struct Appended {
  std::vector<std::uint64_t>* values;
  bool* full;
  std::uint64_t add(std::uint64_t, std::uint64_t value) const {
    if (*full) throw std::bad_alloc();
    values->push_back(value);
    return values->size() - 1;
  }
  std::uint64_t replace(std::uint64_t, std::uint64_t address, std::uint64_t value) const {
    return add(address, value);
  }
  [[nodiscard]] std::uint64_t value(std::uint64_t place) const { return (*values)[place]; }
};

template <class Set>
void agrees(Set& set, const std::map<std::uint64_t, std::uint64_t>& model,
            std::uint64_t addresses) {
  for (std::uint64_t a = 0; a < addresses; ++a) {
    std::uint64_t value = 0;
    const auto it = model.find(a * 8);
    ASSERT_EQ(it != model.end(), set.find(a * 8, value)) << a;
    if (it != model.end()) {
      ASSERT_EQ(it->second, value) << a;
    }
  }
}

template <class Set, class Clear>
void use(Set& set, Clear&& clear) {
  std::mt19937_64 random(11);
  for (const std::uint64_t addresses : {3, 100, 1000, 5, 4000}) {
    std::map<std::uint64_t, std::uint64_t> model;
    EXPECT_TRUE(set.empty());
    for (std::uint64_t i = 0; i < addresses * 3; ++i) {
      const std::uint64_t address = random() % addresses * 8;
      set.put(address, i);
      model[address] = i;
    }
    EXPECT_FALSE(set.empty());
    agrees(set, model, addresses);
    set.clear();
    clear();
    agrees(set, {}, addresses);
  }
}

TEST(WriteSet, HasTheNewestValues) {
  tm::WriteSet<tm::PrivateWrites> set{tm::PrivateWrites{}};
  use(set, [&] { set.writes().entries.clear(); });
  set.put(8, 1);
  set.put(8, 2);
  EXPECT_EQ(1U, set.writes().entries.size());  // in place
}

TEST(WriteSet, HasThemWhereItsStoreOnlyGrows) {
  std::vector<std::uint64_t> values;
  bool full = false;
  tm::WriteSet<Appended> set{Appended{&values, &full}};
  use(set, [] {});
  values.clear();
  set.put(8, 1);
  set.put(8, 2);
  EXPECT_EQ(2U, values.size());
}

TEST(WriteSet, IsAsItWasWhenItsStoreIsFull) {
  std::vector<std::uint64_t> values;
  bool full = false;
  tm::WriteSet<Appended> set{Appended{&values, &full}};
  set.put(8, 1);
  full = true;
  EXPECT_THROW(set.put(8, 2), std::bad_alloc);
  EXPECT_THROW(set.put(16, 2), std::bad_alloc);
  agrees(set, {{8, 1}}, 4);
}

}  // namespace
}  // namespace perdure::test
