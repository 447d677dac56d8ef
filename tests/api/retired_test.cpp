// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks of a retired container are freed in several transactions (FREE-1). Between any two of
// them the heap has exactly the blocks to which the container still leads, and no transaction is
// larger than a small log allows, whatever owns the blocks.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/container/box.hpp"
#include "perdure/container/deque.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/set.hpp"
#include "perdure/perdure.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

struct Person {
  std::string name;
  std::vector<std::vector<std::string>> words;
  std::optional<std::string> note;
  std::variant<int, std::string> either;
  std::array<std::string, 2> two;
};
struct Row {
  std::uint64_t id = 0;
  std::string name;
  std::vector<std::string> words;
};
struct Held {
  p<std::uint64_t> number;
  vector<std::string> texts;
  box<Held> next;
  string title;
};

Person person(std::uint64_t i) {
  return {"the name of person " + std::to_string(i),
          {{"a", "b"}, {}, {"c", std::to_string(i)}},
          i % 2 == 0 ? std::optional<std::string>("a note") : std::nullopt,
          i % 3 == 0 ? std::variant<int, std::string>(7) : std::variant<int, std::string>("text"),
          {"left", "right"}};
}
std::string text(std::uint64_t i) { return "a text of some length, " + std::to_string(i); }

/// One container of each kind, of elements that own blocks and of such that do not.
struct All {
  std::array<vector<std::string>, 2> vectors;
  vector<std::uint64_t> numbers;
  vector<Person> people;
  vector<vector<std::string>> nested;
  deque<std::string> deq;
  deque<std::uint64_t> deq_numbers;
  list<Person> people_list;
  queue<std::string> jobs;
  queue<std::uint64_t> queue_numbers;
  priority_queue<std::string> first;
  map<std::string, Person> people_map;
  map<std::uint64_t, Held> held;
  rb_tree<std::uint64_t, vector<std::string>> tree;
  hash_map<std::string, Held> held_hash;
  hash_map<std::pair<std::string, int>, std::vector<std::string>> pairs;
  set<std::string> names;
  hash_set<std::uint64_t> hashed;
  multimap<std::string, Person> multi;
  box<Held> boxed;
  box<Person> boxed_person;
  string title;
  table<Row, key<&Row::id>> rows;
};

template <class Tx>
void fill_held(Tx& tx, Held& held, std::uint64_t i) {
  held.title.assign(tx, text(i));
  for (std::uint64_t j = 0; j < i % 7; ++j) held.texts.push_back(tx, text(j));
  if (i % 2 == 0) held.next.make(tx)->title.assign(tx, "behind");
}
template <class Tx>
void fill(Tx& tx, All& r, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = from; i < to; ++i) {
    for (auto& v : r.vectors) v.push_back(tx, text(i));
    r.numbers.push_back(tx, i);
    r.people.push_back(tx, person(i));
    r.nested.push_back(tx);
    r.nested.update(tx, i, [&](auto& inner) {
      for (std::uint64_t j = 0; j < i % 5; ++j) inner.push_back(tx, text(j));
    });
    r.deq.push_back(tx, text(i));
    r.deq.push_front(tx, text(i));
    r.deq_numbers.push_back(tx, i);
    r.people_list.push_back(tx, person(i));
    r.jobs.push(tx, text(i));
    r.queue_numbers.push(tx, i);
    r.first.push(tx, text(i));
    r.people_map.put(tx, text(i), person(i));
    r.held.upsert(tx, i, [&](Held& held) { fill_held(tx, held, i); });
    r.tree.upsert(tx, i, [&](auto& inner) { inner.push_back(tx, text(i)); });
    r.held_hash.upsert(tx, text(i), [&](Held& held) { fill_held(tx, held, i); });
    r.pairs.put(tx, {text(i), 3}, {text(i), "short"});
    r.names.insert(tx, text(i));
    r.hashed.insert(tx, i);
    r.multi.insert(tx, text(i % 3), person(i));
    r.rows.insert(tx, {i, text(i), {"one", "two"}});
  }
}

Options small(std::uint64_t log_size) {
  Options options;
  options.creation.max_size = 256 << 20;
  options.creation.log_size = log_size;
  return options;
}

class Retired : public ::testing::Test {
 protected:
  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

// A kill leaves the state after one of the transactions.
TEST_F(Retired, EachPieceLeavesWhatIsThereForTheNext) {
  auto pool = Pool<All>::open(path, small(4 << 20));
  const std::uint64_t empty = pool.check().blocks;
  for (const std::uint64_t piece : {1, 7, 50, 100'000}) {
    SCOPED_TRACE(piece);
    pool.update([&](auto& tx, All& r) {
      fill(tx, r, 0, piece < 50 ? 12 : 150);
      fill_held(tx, *r.boxed.make(tx), 6);
      r.boxed_person.put(tx, person(2));
      r.title.assign(tx, text(1));
    });
    ASSERT_EQ(pool.check().problems, std::vector<std::string>{});
    std::uint64_t before = pool.check().blocks;
    for (bool done = false; !done;) {
      std::uint64_t left = 0;
      pool.update([&](auto& tx, All& r) {
        left = piece;
        done = detail::free_some_owned(tx, r, left);
      });
      const CheckReport report = pool.check();
      ASSERT_EQ(report.problems, std::vector<std::string>{});
      ASSERT_LE(before - report.blocks, piece * 3 + 42) << "more than a piece";
      ASSERT_TRUE(done || left == 0) << "it stopped without need";
      before = report.blocks;
    }
    EXPECT_EQ(pool.check().blocks, empty);
  }
  pool.update([](auto& tx, All& r) { fill(tx, r, 0, 10); });
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{}) << "they are empty as new ones";
}

struct Indexed {
  table<Row, ordered_key<&Row::id>, indexed<&Row::name>, unique<&Row::name, &Row::id>> rows;
};
// While a table is freed it has rows without entries, so it is not audited.
TEST_F(Retired, EachPieceOfATable) {
  auto pool = Pool<Indexed>::open(path, small(4 << 20));
  const std::uint64_t empty = pool.check().blocks;
  pool.update([](auto& tx, Indexed& r) {
    for (std::uint64_t i = 0; i < 60; ++i) r.rows.insert(tx, {i, text(i), {"one", text(i)}});
  });
  const std::uint64_t all = pool.check().blocks;
  for (bool done = false; !done;) {
    std::uint64_t left = 3, owned = 0;
    pool.update([&](auto& tx, Indexed& r) {
      left = 3;
      done = detail::free_some_owned(tx, r, left);
    });
    pool.view([&](auto& tx, const Indexed& r) {
      owned = 0;
      r.rows.each_block(tx, [&](const void*) { ++owned; });
    });
    const std::uint64_t now = pool.check().blocks;
    ASSERT_EQ(now - empty, owned);
    ASSERT_LE(now, all);
  }
  EXPECT_EQ(pool.check().blocks, empty);
}

namespace big {
constexpr std::uint64_t many = 60'000;
template <class C>
struct V1 {
  C old;
  p<std::uint64_t> x{5};
};
template <class C>
struct V2 {
  retired<C> old;
  p<std::uint64_t> x;
};
struct V3 {
  p<std::uint64_t> x;
};
}  // namespace big

/// Retires a C that has `many` blocks, in a pool whose log can't hold all of them in one
/// transaction.
template <class C>
void expect_retired(const std::string& path, const std::function<void(Pool<big::V1<C>>&)>& fill) {
  const Options options = small(1 << 20);
  std::uint64_t full = 0;
  {
    auto pool = Pool<big::V1<C>>::open(path, options);
    fill(pool);
    full = pool.check().blocks;
    ASSERT_GE(full, big::many);
    EXPECT_THROW(pool.update([](auto& tx, auto& r) { detail::drop_owned(tx, r.old); }), error)
        << "it fits into one transaction";
  }
  {
    auto pool = Pool<big::V2<C>>::open(path, options);
    EXPECT_LT(pool.check().blocks, 10U);
    EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
  }
  auto pool = Pool<big::V3>::open(path, options);
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
  pool.view([](auto& tx, const big::V3& r) { EXPECT_EQ(tx.read(r.x), 5U); });
}

TEST_F(Retired, AVectorOfManyTexts) {
  expect_retired<vector<std::string>>(path, [](auto& pool) {
    for (std::uint64_t from = 0; from < big::many; from += 2'000)
      pool.update([](auto& tx, auto& r) {
        for (int i = 0; i < 2'000; ++i) r.old.push_back(tx, "t");
      });
  });
}
TEST_F(Retired, AnElementThatOwnsMany) {
  expect_retired<map<std::uint64_t, Held>>(path, [](auto& pool) {
    for (std::uint64_t from = 0; from < big::many; from += 2'000)
      pool.update([](auto& tx, auto& r) {
        r.old.upsert(tx, 1, [&](Held& held) {
          for (int i = 0; i < 2'000; ++i) held.texts.push_back(tx, "t");
        });
      });
  });
}
TEST_F(Retired, ABoxThatOwnsMany) {
  expect_retired<box<list<std::string>>>(path, [](auto& pool) {
    pool.update([](auto& tx, auto& r) { r.old.make(tx); });
    for (std::uint64_t from = 0; from < big::many; from += 2'000)
      pool.update([](auto& tx, auto& r) {
        r.old.update(tx, [&](auto& inner) {
          for (int i = 0; i < 2'000; ++i) inner.push_back(tx, "t");
        });
      });
  });
}
struct Wide {
  std::uint64_t id = 0;
  std::array<std::vector<std::string>, 8> words;
};
// It grows in place, so that no transaction has logged all of it.
TEST_F(Retired, ARecordThatOwnsMany) {
  expect_retired<table<Wide, key<&Wide::id>>>(path, [](auto& pool) {
    pool.update([](auto& tx, auto& r) { r.old.insert(tx, {1, {}}); });
    for (std::uint64_t from = 0; from < big::many; from += 2'000)
      pool.update([&](auto& tx, auto& r) {
        r.old.update(tx, 1, [&](Wide& row) {
          auto& words = row.words[from / 2'000 % 8];
          words.resize(words.size() + 2'000, "t");
        });
      });
  });
}

// A batch is a number of rows, and each row may have any size.
namespace wide1 {
struct Row {
  std::uint64_t id = 0;
  std::array<std::string, 8> texts;
};
struct Root {
  table<Row, key<&Row::id>> rows, others;
  vector<std::string> old;
};
}  // namespace wide1
namespace wide2 {
struct Row {
  std::uint64_t id = 0;
  std::array<std::string, 8> texts;
  std::uint32_t added = 3;
};
struct Root {
  table<Row, key<&Row::id>, indexed<&Row::added>> rows;
  table<wide1::Row, key<&wide1::Row::id>> others;
  retired<vector<std::string>> old;
};
}  // namespace wide2

TEST_F(Retired, LargeRowsMakeSmallerBatches) {
  Options options = small(1 << 20);
  {
    auto pool = Pool<wide1::Root>::open(path, options);
    for (std::uint64_t i = 0; i < 100; ++i)
      pool.update([&](auto& tx, auto& r) {
        r.rows.insert(tx, {i, {std::string(20'000, 'x')}});
        r.others.insert(tx, {i, {}});
        r.old.push_back(tx, "t");
      });
  }
  std::vector<std::string> looked_at;
  options.migrate.progress = [&](const std::string& table, std::uint64_t rows) {
    if (rows == 100) looked_at.push_back(table);
  };
  auto pool = Pool<wide2::Root>::open(path, options);
  EXPECT_EQ(looked_at, std::vector<std::string>{"rows"}) << "a table that lacks nothing";
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
  pool.view([](auto& tx, const wide2::Root& r) {
    std::uint64_t n = 0;
    for (const wide2::Row row : r.rows.template by<&wide2::Row::added>(tx, 3)) {
      EXPECT_EQ(row.texts[0].size(), 20'000U);
      ++n;
    }
    EXPECT_EQ(n, 100U);
  });
}

TEST_F(Retired, ARowThatNoTransactionHoldsIsNamed) {
  Options options = small(1 << 20);
  {
    auto pool = Pool<wide1::Root>::open(path, options);
    pool.update([](auto& tx, auto& r) { r.rows.insert(tx, {1, {}}); });
    for (std::size_t i = 0; i < 8; ++i)
      pool.update([&](auto& tx, auto& r) {
        r.rows.update(tx, 1, [&](auto& row) { row.texts[i].assign(100'000, 'x'); });
      });
  }
  const Status s = Pool<wide2::Root>::try_open(path, options).status();
  EXPECT_EQ(s.code(), Code::too_big);
  for (const char* words :
       {"make the pool with a larger log_size", "so the transaction had a single row or element"})
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
}

}  // namespace
}  // namespace perdure
