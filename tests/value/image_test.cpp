// SPDX-License-Identifier: BSD-3-Clause
//
// Values in a pool, word by word: what is written when a part changes, what is allocated and freed,
// and what is said of a value that can't be stored or read. The suites of tests/container compare
// whole containers of values with models.
#include <gtest/gtest.h>

#include <filesystem>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/perdure.hpp"
#include "tests/container/values.hpp"

namespace perdure::test {
namespace {

template <class T>
struct One {
  typename stored<T>::field value;
};

/// A T in a pool, and what the last change of it cost.
template <class T>
class Stored {
 public:
  explicit Stored(const T& first) : value_(first) {
    pool_.update([&](auto& tx, auto& root) { tx.write(root.value, stored<T>::make(tx, first)); });
  }
  /// Changes the value by f(T&), and compares what the pool has afterwards.
  template <class F>
  void change(F f) {
    pool_.heap().reset_counts();
    pool_.update([&](auto& tx, auto& root) { stored<T>::change(tx, root.value, f); });
    f(value_);
    const DramHeap& heap = pool_.heap();
    bytes = heap.bytes, writes = heap.writes, allocs = heap.allocs, frees = heap.frees;
    pool_.view([&](auto& tx, const auto& root) {
      EXPECT_TRUE(stored<T>::read(tx, root.value) == value_);
      std::vector<const void*> blocks;
      stored<T>::each_block(tx, tx.read(root.value), [&](const void* b) { blocks.push_back(b); });
      EXPECT_EQ(pool_.compare_blocks(blocks), "");
      return 0;
    });
  }
  DramPool<One<T>>& pool() { return pool_; }
  std::uint64_t bytes = 0, writes = 0, allocs = 0, frees = 0;

 private:
  DramPool<One<T>> pool_;
  T value_;
};

TEST(ValueImage, OneChangedFieldIsOneWord) {
  Stored<Person> person(Sample<Person>::of(29));
  person.change([](Person&) {});
  EXPECT_EQ(person.writes, 0U);
  person.change([](Person& p) { ++p.age; });
  EXPECT_EQ(person.bytes, 8U);
  person.change([](Person& p) { p.born += std::chrono::seconds(1); });
  EXPECT_EQ(person.bytes, 8U);
  person.change([](Person& p) { p.seat = {5, 'd'}; });
  EXPECT_EQ(person.bytes, 16U);
  person.change([](Person& p) { ++p.weight, ++p.pause; });  // two words that are not neighbours
  EXPECT_EQ(person.bytes, 16U);
  EXPECT_EQ(person.writes, 2U);
  EXPECT_EQ(person.allocs + person.frees, 0U);
}

TEST(ValueImage, TextIsChangedWhereItLies) {
  Stored<Person> person(Sample<Person>::of(29));
  person.change([](Person& p) { p.name[2] = '!'; });
  EXPECT_EQ(person.bytes, 1U);
  person.change([](Person& p) { p.name.pop_back(); });
  EXPECT_EQ(person.bytes, 4U);  // its length
  person.change([](Person& p) { p.name.assign(500, 'x'); });
  EXPECT_EQ(person.bytes, 8U + 500U + 8U);  // a new block's header and text, the pointer
  EXPECT_EQ(person.allocs, 1U);
  EXPECT_EQ(person.frees, 1U);
  person.change([](Person& p) { p.name.clear(); });
  EXPECT_EQ(person.bytes, 8U);
  EXPECT_EQ(person.frees, 1U);
}

TEST(ValueImage, ElementsOfASequenceAreChangedWhereTheyLie) {
  using T = std::vector<std::int64_t>;
  Stored<T> numbers(T(10));
  numbers.change([](T& v) { v[7] = 1; });
  EXPECT_EQ(numbers.bytes, 8U);
  numbers.change([](T& v) { v.resize(8); });
  EXPECT_EQ(numbers.bytes, 4U);  // its length
  numbers.change([](T& v) { v.push_back(5); });
  EXPECT_EQ(numbers.bytes, 8U + 4U);
  EXPECT_EQ(numbers.allocs, 0U);
  // It grows by half: what is appended is copied twice on average, as by std::vector.
  std::uint64_t allocs = 0;
  for (int i = 0; i < 2000; ++i) {
    numbers.change([](T& v) { v.push_back(static_cast<std::int64_t>(v.size())); });
    allocs += numbers.allocs;
  }
  EXPECT_LE(allocs, 15U);
  // And it shrinks: a block is not kept for much more than there is.
  numbers.change([](T& v) { v.resize(3); });
  EXPECT_EQ(numbers.allocs, 1U);
  EXPECT_EQ(numbers.frees, 1U);
  numbers.change([](T& v) { v.clear(); });
  EXPECT_EQ(numbers.frees, 1U);
  numbers.change([](T& v) { v = {1}; });
  EXPECT_EQ(numbers.allocs, 1U);
}

TEST(ValueImage, PartsThatGoFreeWhatTheyOwn) {
  Stored<Person> person(Sample<Person>::of(0));
  person.change([](Person& p) { p.nick = "a nickname that needs a block"; });
  EXPECT_EQ(person.allocs, 1U);
  person.change([](Person& p) { p.nick.reset(); });
  EXPECT_EQ(person.frees, 1U);
  person.change([](Person& p) { p.contact = Place{"a town with a block of its own", 7}; });
  EXPECT_EQ(person.allocs, 1U);
  person.change([](Person& p) { std::get<Place>(p.contact).floor = 8; });
  EXPECT_EQ(person.allocs + person.frees, 0U);
  person.change([](Person& p) { p.contact = "text in its place"; });
  EXPECT_EQ(person.allocs, 1U);
  EXPECT_EQ(person.frees, 1U);
  person.change([](Person& p) { p.children.assign(3, Sample<Person>::of(11)); });
  person.change([](Person& p) { p.children.erase(p.children.begin()); });
  person.change([](Person& p) { p.children.clear(); });
  person.pool().update([](auto& tx, auto& root) { stored<Person>::drop(tx, tx.read(root.value)); });
  EXPECT_EQ(person.pool().compare_blocks({}), "");
}

/// 40 rows of which one field each changes: a word of 16 bytes in the log for each, and nothing
/// else.
TEST(ValueImage, LogBytesOfAChangedField) {
  struct Root {
    hash_map<std::uint64_t, Person> people;
  };
  const std::string folder = ::testing::TempDir() + "perdure-values";
  Options options;
  options.medium = "emulated";
  std::filesystem::remove(folder);
  {
    auto pool = Pool<Root, engines<shadow>>::open(folder, options);
    pool.update([](auto& tx, Root& root) {
      for (std::uint64_t i = 0; i < 40; ++i) root.people.insert(tx, i, Sample<Person>::of(i));
    });
    const std::uint64_t before = pool.stats().log_used;
    pool.update([](auto& tx, Root& root) {
      for (std::uint64_t i = 0; i < 40; ++i)
        root.people.update(tx, i, [](Person& p) { p.weight += 1; });
    });
    EXPECT_EQ(pool.stats().log_used - before, (24 + 40 * 16 + 63) / 64 * 64U);
  }
  std::filesystem::remove(folder);
}

TEST(ValueImage, AVariantWithoutAValueIsRefused) {
  struct Throws {
    operator std::string() { throw UserError(); }
  };
  using T = std::variant<int, Place>;
  T lost = 1;
  EXPECT_THROW(lost.emplace<Place>(Throws()), UserError);
  ASSERT_TRUE(lost.valueless_by_exception());
  DramPool<One<T>> pool;
  try {
    pool.update([&](auto& tx, auto& root) { tx.write(root.value, stored<T>::make(tx, lost)); });
    FAIL() << "it was stored";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_NE(std::string(e.what()).find("found a std::variant without a value"),
              std::string::npos);
  }
}

struct Nest {
  std::vector<Nest> inner;
  friend bool operator==(const Nest&, const Nest&) = default;
};
TEST(ValueImage, NestedTooDeepIsRefused) {
  const auto nest = [](unsigned depth) {
    Nest all;
    for (unsigned i = 0; i < depth; ++i) {
      Nest outer;
      outer.inner.push_back(std::move(all));
      all = std::move(outer);
    }
    return all;
  };
  Stored<Nest> deep(nest(99));
  deep.change([&](Nest& all) { all = nest(100); });
  deep.change([&](Nest& all) { all = Nest(); });
  try {
    deep.pool().update([&](auto& tx, auto& root) {
      const auto too_deep = [&](Nest& all) { all = nest(101); };
      stored<Nest>::change(tx, root.value, too_deep);
    });
    FAIL() << "it was stored";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::too_big) << e.what();
  }
  deep.change([&](Nest& all) { all = nest(100); });  // the count is as before
}

TEST(ValueImage, DamageIsFound) {
  DramPool<One<Either>> variant;
  variant.update([](auto& tx, auto& root) {
    tx.write(root.value, stored<Either>::make(tx, "text"));
    const std::byte nonsense{9};
    tx.write_bytes(access::address(root.value), &nonsense, 1);
  });
  DramPool<One<Place>> record;
  record.update([](auto& tx, auto& root) {
    tx.write(root.value, stored<Place>::make(tx, {"town", 1}));
    const std::uint64_t other = 5;
    tx.write_bytes(tx.read(root.value), &other, 8);
  });
  const auto expect_corrupt = [](auto& pool, auto read) {
    try {
      pool.view([&](auto& tx, const auto& root) { return read(tx, root.value), 0; });
      ADD_FAILURE() << "it was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::corrupt) << e.what();
    }
  };
  expect_corrupt(variant, [](auto& tx, auto& f) { (void)stored<Either>::read(tx, f); });
  expect_corrupt(record, [](auto& tx, auto& f) { (void)stored<Place>::read(tx, f); });
}

}  // namespace
}  // namespace perdure::test
