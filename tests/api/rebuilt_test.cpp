// SPDX-License-Identifier: BSD-3-Clause
//
// rebuilt: containers that get another key, other elements or another kind: how opening rebuilds
// them, what it refuses, and that the next opening continues after one that was cut short.
#include "perdure/container/rebuilt.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perdure/container/deque.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/set.hpp"
#include "perdure/inspect/layout.hpp"
#include "perdure/perdure.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {

namespace {
struct Point {
  std::int32_t x = 0, y = 0;
  std::string name;
};
struct WidePoint {
  std::int64_t x = 0, y = 0;
  std::string name;
  std::uint32_t color = 9;
};
}  // namespace
template <>
inline constexpr bool fixed<Point> = true;
template <>
inline constexpr bool fixed<WidePoint> = true;

namespace {

using Lines = std::vector<std::string>;

namespace v1 {
struct User {
  std::uint64_t id = 0;
  std::string name, mail;
  std::int32_t age = 0;
};
using Users = table<User, key<&User::id>, unique<&User::mail>, indexed<&User::age>>;
struct Root {
  p<std::uint64_t> before{1};
  Users users;
  p<std::uint64_t> behind{2};
};
}  // namespace v1

namespace v2 {  // found by name; the number is text; age is wider
struct User {
  std::string id, name, mail;
  std::int64_t age = 0;
};
using Users = table<User, ordered_key<&User::name>, unique<&User::mail>, indexed<&User::age>>;
struct Root {
  p<std::uint64_t> behind{0};
  rebuilt<Users, v1::Users> users;
  p<std::uint64_t> before{0};
};
}  // namespace v2

namespace v3 {
struct Root {
  v2::Users users;
  p<std::uint64_t> before{0}, behind{0};
};
}  // namespace v3

MigrationStep to_v2() {
  return step<v1::User, v2::User>("users", [](const v1::User& before, v2::User& now) {
    now.id = "#" + std::to_string(before.id);
  });
}

constexpr std::uint64_t many = 500;

v1::User user(std::uint64_t i) {
  return {i, "name " + std::to_string(i), "mail " + std::to_string(i),
          static_cast<std::int32_t>(i % 10)};
}

class Rebuilt : public ::testing::Test {
 protected:
  void fill() const {
    auto pool = Pool<v1::Root>::open(path, test::small_pool());
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = 0; i < many; ++i) r.users.insert(tx, user(i * 7 % many));
    });
  }
  template <class Root>
  static void expect_v2(Pool<Root>& pool) {
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const Root& r) {
      EXPECT_EQ(tx.read(r.before), 1U);
      EXPECT_EQ(tx.read(r.behind), 2U);
      EXPECT_EQ(r.users.size(tx), many);
      for (std::uint64_t i = 0; i < many; ++i) {
        const auto found = r.users.find(tx, "name " + std::to_string(i));
        ASSERT_TRUE(found.has_value()) << i;
        EXPECT_EQ(found->id, "#" + std::to_string(i));
        EXPECT_EQ(found->age, static_cast<std::int64_t>(i % 10));
        EXPECT_EQ(r.users.template one<&v2::User::mail>(tx, found->mail)->id, found->id);
      }
      // Those of one age are in the order in which version 1 added them.
      std::vector<std::string> found, expected;
      for (const v2::User u : r.users.template by<&v2::User::age>(tx, 3)) found.push_back(u.id);
      for (std::uint64_t i = 0; i < many; ++i)
        if (i * 7 % many % 10 == 3) expected.push_back("#" + std::to_string(i * 7 % many));
      EXPECT_EQ(found, expected);
    });
  }
  static void expect_refused(const Status& s, Code code, const std::string& text) {
    EXPECT_EQ(s.code(), code);
    EXPECT_NE(s.message().find(text), std::string::npos) << s.message();
  }

  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

TEST_F(Rebuilt, ATableGetsAnotherKeyAndItsMembersOtherTypes) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {to_v2()};
  options.migrate.batch = 150;
  std::vector<std::uint64_t> progress;
  options.migrate.progress = [&](const std::string& table, std::uint64_t rows) {
    EXPECT_EQ(table, "users");
    progress.push_back(rows);
  };
  const Lines changes = migration_plan<v2::Root>(path, options.migrate).value().changes;
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].substr(0, 33), "users: rebuilt, of table<{id:u64@");
  {
    auto pool = Pool<v2::Root>::open(path, options);
    expect_v2(pool);
  }
  EXPECT_EQ(progress, (std::vector<std::uint64_t>{150, 300, 450, 500}));
  {
    auto pool = Pool<v2::Root>::open(path, test::small_pool());  // the step is not needed any more
    expect_v2(pool);
    pool.update([&](auto& tx, v2::Root& r) { r.users.insert(tx, {"#x", "x", "x", 3}); });
    pool.update([&](auto& tx, v2::Root& r) { r.users.erase(tx, "x"); });
  }
  expect_refused(Pool<v1::Root>::try_open(path, test::small_pool()).status(), Code::incompatible,
                 "a pool that a newer version of this program has taken over");
  EXPECT_EQ(migration_plan<v3::Root>(path).value().changes,
            Lines{"users: rebuilding is finished, the old container is gone"});
  auto pool = Pool<v3::Root>::open(path, test::small_pool());
  expect_v2(pool);
}

TEST_F(Rebuilt, WithoutItsStepItIsRefused) {
  fill();
  EXPECT_EQ(
      migration_plan<v2::Root>(path).value().refusals,
      Lines{"users.id: found 'u64' in the pool, expected 'string' (give Options::migrate.steps a "
            "step for 'users')"});
  EXPECT_TRUE(Pool<v1::Root>::try_open(path, test::small_pool()).ok());
  // Without `rebuilt`, the refusal names it.
  const Lines found = migration_plan<v3::Root>(path).value().refusals;
  ASSERT_FALSE(found.empty());
  bool told = false;
  for (const std::string& line : found) told = told || line.find("rebuilt") != std::string::npos;
  EXPECT_TRUE(told) << found[0];
}

TEST_F(Rebuilt, KeysThatBecomeEqualAreListedAndNothingIsChanged) {
  fill();
  const auto refused = [&](auto change, const std::string& expected) {
    Options options = test::small_pool();
    options.migrate.steps = {step<v1::User, v2::User>(
        "users", [&](const v1::User& before, v2::User& now) { change(before, now); })};
    expect_refused(Pool<v2::Root>::try_open(path, options).status(), Code::exists, expected);
    auto pool = Pool<v1::Root>::open(path, test::small_pool());
    EXPECT_EQ(pool.check().problems, Lines{});
    EXPECT_EQ(pool.view([](auto& tx, const v1::Root& r) { return r.users.size(tx); }), many);
  };
  refused(
      [](const v1::User& b, v2::User& now) {
        if (b.id == 4 || b.id == 9) now.name = "same";
      },
      "1 row shares its 'users.name' with an earlier row: 'same'");
  refused([](const v1::User&, v2::User& now) { now.mail = now.mail.substr(0, 6); },
          "490 rows share their 'users.mail' with an earlier row: 'mail ");
}

TEST_F(Rebuilt, WhatWasCutShortGoesOn) {
  fill();
  Options options = test::small_pool();
  options.migrate.batch = 50;
  options.migrate.steps = {to_v2()};
  std::uint64_t calls = 0;
  const auto apply = options.migrate.steps[0].apply;
  options.migrate.steps[0].apply = [&](const void* before, void* now) {
    if (++calls == many + 230) throw std::runtime_error("cut short");  // `many` before the switch
    apply(before, now);
  };
  EXPECT_THROW((void)Pool<v2::Root>::try_open(path, options), std::runtime_error);
  expect_refused(Pool<v2::Root>::try_open(path, test::small_pool()).status(), Code::incompatible,
                 "with the steps that it began with");
  expect_refused(Pool<v3::Root>::try_open(path, test::small_pool()).status(), Code::incompatible,
                 "is not finished");
  options.migrate.steps = {to_v2()};
  std::uint64_t again = 0;
  options.migrate.steps[0].apply = [&](const void* before, void* now) {
    ++again;
    apply(before, now);
    calls = 0;
  };
  auto pool = Pool<v2::Root>::open(path, options);
  expect_v2(pool);
  EXPECT_EQ(again, many - 200) << "the batches that were durable were done again";
}

namespace old {
struct Root {
  map<std::uint64_t, v1::User> by_number;
  hash_map<std::pair<std::int32_t, std::int32_t>, Point> points;
  hash_set<int> numbers;
  multimap<int, std::string> many;
  vector<int> v;
  deque<v1::User> d;
  list<Point> l;
  queue<int> q;
  priority_queue<int> first;
  vector<v1::User> rows;
};
}  // namespace old
namespace now {
struct Root {
  rebuilt<hash_map<std::string, v2::User>, map<std::uint64_t, v1::User>> by_number;
  rebuilt<map<std::pair<std::int64_t, std::int64_t>, WidePoint>,
          hash_map<std::pair<std::int32_t, std::int32_t>, Point>>
      points;
  rebuilt<set<std::string>, hash_set<int>> numbers;
  rebuilt<multimap<std::string, std::string>, multimap<int, std::string>> many;
  rebuilt<vector<std::string>, vector<int>> v;
  rebuilt<deque<v2::User>, deque<v1::User>> d;
  rebuilt<vector<WidePoint>, list<Point>> l;
  rebuilt<list<std::int64_t>, queue<int>> q;
  rebuilt<priority_queue<std::int64_t, std::greater<std::int64_t>>, priority_queue<int>> first;
  rebuilt<table<v2::User, key<&v2::User::mail>>, vector<v1::User>> rows;
};
}  // namespace now

TEST_F(Rebuilt, EveryContainerOfValues) {
  const int n = 120;
  {
    auto pool = Pool<old::Root>::open(path, test::small_pool());
    pool.update([&](auto& tx, old::Root& r) {
      for (int i = 0; i < n; ++i) {
        const auto u = static_cast<std::uint64_t>(i);
        r.by_number.put(tx, u, user(u));
        r.points.put(tx, {i, -i}, {i, i * 2, std::to_string(i)});
        r.numbers.insert(tx, i);
        r.many.insert(tx, i % 3, std::to_string(i));
        r.v.push_back(tx, i);
        r.d.push_front(tx, user(u));
        r.l.push_back(tx, {i, 1, "p"});
        r.q.push(tx, i);
        r.first.push(tx, i * 7 % n);
        r.rows.push_back(tx, user(u));
      }
    });
  }
  Options options = test::small_pool();
  options.migrate.batch = 25;
  EXPECT_EQ(migration_plan<now::Root>(path).value().refusals.size(), 7U);
  const auto as_row = [](const v1::User& a, v2::User& b) { b.id = std::to_string(a.id); };
  options.migrate.steps = {
      step<std::pair<std::uint64_t, v1::User>, std::pair<std::string, v2::User>>(
          "by_number",
          [&](const auto& a, auto& b) {
            b.first = "k" + std::to_string(a.first);
            as_row(a.second, b.second);
          }),
      step<int, std::string>("numbers", [](int a, std::string& b) { b = std::to_string(a); }),
      step<std::pair<int, std::string>, std::pair<std::string, std::string>>(
          "many", [](const auto& a, auto& b) { b.first = std::string(1, char('a' + a.first)); }),
      step<int, std::string>("v", [](int a, std::string& b) { b = std::to_string(a); }),
      step<v1::User, v2::User>("d", as_row),
      step<v1::User, v2::User>("rows", as_row)};
  {
    auto pool = Pool<now::Root>::open(path, options);
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const now::Root& r) {
      for (int i = 0; i < n; ++i) {
        const auto u = static_cast<std::uint64_t>(i);
        EXPECT_EQ(r.by_number.find(tx, "k" + std::to_string(i))->mail, user(u).mail);
        const auto point = r.points.find(tx, {i, -i});
        ASSERT_TRUE(point.has_value());
        EXPECT_EQ(std::tuple(point->x, point->y, point->name, point->color),
                  std::tuple(i, i * 2, std::to_string(i), 9U));
        EXPECT_TRUE(r.numbers.contains(tx, std::to_string(i)));
        EXPECT_EQ(r.v.get(tx, u), std::to_string(i));
        EXPECT_EQ(r.d.get(tx, u).id, std::to_string(n - 1 - i));
        EXPECT_EQ(r.l.get(tx, u).x, i);
        EXPECT_EQ(r.rows.find(tx, user(u).mail)->id, std::to_string(i));
      }
      std::vector<std::string> b;
      for (const auto& [key, value] : r.many.of(tx, "b")) b.push_back(key + value);
      ASSERT_EQ(b.size(), 40U);
      EXPECT_EQ(b[0], "b1");
      EXPECT_EQ(b[39], "b118");
      std::int64_t expected = 0;
      r.q.for_each(tx, [&](std::int64_t x) { EXPECT_EQ(x, expected++); });
      EXPECT_EQ(expected, n);
      EXPECT_EQ(r.first.top(tx), 0);
      EXPECT_EQ(r.first.size(tx), 120U);
      EXPECT_EQ(r.numbers.size(tx), 120U);
      EXPECT_EQ(r.v.size(tx), 120U);
    });
  }
  EXPECT_TRUE(Pool<now::Root>::try_open(path, test::small_pool()).ok());
}

// A step whose two elements are of one layout is called, too.
namespace lower {
struct Root {
  rebuilt<map<std::string, int>, map<std::string, int>> words;
};
struct Before {
  map<std::string, int> words;
};
}  // namespace lower

TEST_F(Rebuilt, AStepMayKeepTheLayout) {
  {
    auto pool = Pool<lower::Before>::open(path, test::small_pool());
    pool.update([](auto& tx, lower::Before& r) {
      for (const char* word : {"One", "Two", "one"}) r.words.put(tx, word, 1);
    });
  }
  Options options = test::small_pool();
  using Word = std::pair<std::string, int>;
  options.migrate.steps = {step<Word, Word>("words", [](const Word& a, Word& b) {
    for (char& c : b.first) c = static_cast<char>(c | 0x20);
    b.second = a.second + 1;
  })};
  expect_refused(Pool<lower::Root>::try_open(path, options).status(), Code::exists,
                 "1 key shares its 'words' with an earlier key: 'one'");
  {
    auto pool = Pool<lower::Before>::open(path, test::small_pool());
    pool.update([](auto& tx, lower::Before& r) { r.words.erase(tx, "one"); });
  }
  auto pool = Pool<lower::Root>::open(path, options);
  EXPECT_EQ(pool.check().problems, Lines{});
  pool.view([](auto& tx, const lower::Root& r) {
    EXPECT_EQ(r.words.size(tx), 2U);
    EXPECT_EQ(r.words.find(tx, "one"), 2);
    EXPECT_EQ(r.words.find(tx, "two"), 2);
  });
}

// A new pool has nothing to rebuild, and tools know where both containers lie.
TEST_F(Rebuilt, ANewPoolAndItsLayout) {
  {
    auto pool = Pool<now::Root>::open(path, test::small_pool());
    pool.update([](auto& tx, now::Root& r) { r.v.push_back(tx, "x"); });
    EXPECT_EQ(pool.check().problems, Lines{});
  }
  const now::Root* const at = nullptr;
  const inspect::Tree tree = inspect::read_layout(named_layout_of<now::Root>(), "");
  const auto same = [&](const char* name, std::uint64_t size) {
    const inspect::Member found = tree.field(name);
    EXPECT_EQ(found.type->size, size) << name;
    EXPECT_EQ(found.type->parts.size(), 2U) << name;
  };
  same("by_number", sizeof at->by_number);
  same("v", sizeof at->v);
  same("l", sizeof at->l);
  same("first", sizeof at->first);
  same("rows", sizeof at->rows);
  same("many", sizeof at->many);
}

}  // namespace
}  // namespace perdure
