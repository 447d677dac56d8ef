// SPDX-License-Identifier: BSD-3-Clause
//
// Steps: functions of the program that make rows of version 2 from rows of version 1, in batches,
// which the next opening continues after one that was cut short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/container/deque.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/perdure.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

namespace v1 {
struct User {
  std::uint64_t id = 0;
  std::string name, mail;
  std::int32_t age = 0;
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>> users;
};
}  // namespace v1

namespace v2 {  // name becomes two; mail is written in small letters; an index over what is new
struct User {
  std::uint64_t id = 0;
  std::string first, last, mail;
  std::int64_t age = 0;
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::last>> users;
};
}  // namespace v2

namespace v3 {
struct User {
  std::uint64_t id = 0;
  std::string mail, whole;
  std::int64_t age = 0;
  bool adult = false;
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::whole>> users;
};
}  // namespace v3

MigrationStep to_v2() {
  return step<v1::User, v2::User>("users", [](const v1::User& before, v2::User& now) {
    const auto space = before.name.find(' ');
    now.first = before.name.substr(0, space);
    now.last = before.name.substr(space + 1);
    now.mail[0] = 'm';
  });
}
MigrationStep to_v3() {
  return step<v2::User, v3::User>("users", [](const v2::User& before, v3::User& now) {
    now.whole = before.last + ", " + before.first;
    now.adult = before.age >= 18;
  });
}

v1::User user(std::uint64_t i) {
  return {i, "F" + std::to_string(i) + " L" + std::to_string(i % 5), "M" + std::to_string(i),
          static_cast<std::int32_t>(i % 40)};
}

constexpr std::uint64_t many = 500;

class Steps : public ::testing::Test {
 protected:
  void fill() const {
    auto pool = Pool<v1::Root>::open(path, test::small_pool());
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = 0; i < many; ++i) r.users.insert(tx, user(i));
    });
  }
  static void expect_v2(Pool<v2::Root>& pool) {
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const v2::Root& r) {
      EXPECT_EQ(r.users.size(tx), many);
      for (std::uint64_t i = 0; i < many; ++i) {
        const auto found = r.users.one<&v2::User::mail>(tx, "m" + std::to_string(i));
        ASSERT_TRUE(found.has_value()) << i;
        EXPECT_EQ(found->id, i);
        EXPECT_EQ(found->first, "F" + std::to_string(i));
        EXPECT_EQ(found->last, "L" + std::to_string(i % 5));
        EXPECT_EQ(found->age, static_cast<std::int64_t>(i % 40));
        EXPECT_FALSE(r.users.one<&v2::User::mail>(tx, "M" + std::to_string(i)).has_value());
      }
      std::uint64_t n = 0;
      for (const v2::User u : r.users.by<&v2::User::last>(tx, "L3")) n += u.last == "L3" ? 1U : 0U;
      EXPECT_EQ(n, many / 5);
    });
  }

  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

TEST_F(Steps, RowsAreMadeOfTheirEarlierOnes) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {to_v2()};
  options.migrate.batch = 70;
  std::vector<std::uint64_t> progress;
  options.migrate.progress = [&](const std::string& table, std::uint64_t rows) {
    EXPECT_EQ(table, "users");
    progress.push_back(rows);
  };
  EXPECT_EQ(migration_plan<v2::Root>(path, options.migrate).value().changes,
            (Lines{"users: the program's steps make its rows from those in the pool",
                   "users.first: new; its initialiser's value is in old ones",
                   "users.last: new; its initialiser's value is in old ones",
                   "users.age: widened from i32 to i64",
                   "users.name: found in the pool, not in the program; the steps decide what "
                   "becomes of it",
                   "users: index last is new, its entries are made"}));
  {
    auto pool = Pool<v2::Root>::open(path, options);
    expect_v2(pool);
  }
  EXPECT_EQ(progress, (std::vector<std::uint64_t>{70, 140, 210, 280, 350, 420, 490, 500}));
  auto pool = Pool<v2::Root>::open(path, test::small_pool());  // the step is not needed any more
  expect_v2(pool);
}

TEST_F(Steps, WithoutAStepItIsRefused) {
  fill();
  EXPECT_EQ(migration_plan<v2::Root>(path).value().refusals.size(), 1U);
  const Status s = Pool<v2::Root>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("users.name: found in the pool, not in the program"),
            std::string::npos)
      << s.message();
  EXPECT_TRUE(Pool<v1::Root>::try_open(path, test::small_pool()).ok());
}

TEST_F(Steps, TwoStepsAreChained) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {to_v3(), to_v2()};
  auto pool = Pool<v3::Root>::open(path, options);
  EXPECT_EQ(pool.check().problems, Lines{});
  pool.view([&](auto& tx, const v3::Root& r) {
    for (std::uint64_t i = 0; i < many; ++i) {
      const auto found = r.users.find(tx, i);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->whole, "L" + std::to_string(i % 5) + ", F" + std::to_string(i));
      EXPECT_EQ(found->mail, "m" + std::to_string(i));
      EXPECT_EQ(found->adult, i % 40 >= 18);
    }
  });
}

TEST_F(Steps, AStepForNoTableIsRefused) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {to_v2()};
  options.migrate.steps[0].table = "user";
  const Lines found = migration_plan<v2::Root>(path, options.migrate).value().refusals;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1],
            "user: there is a step for it, and the program has no such field (a step "
            "names a field of the root that is a table, is rebuilt, or has structs with text in "
            "them as its values)");
}

// A step that throws after some batches leaves a pool that only the same steps open.
TEST_F(Steps, WhatWasCutShortGoesOn) {
  fill();
  Options options = test::small_pool();
  options.migrate.batch = 50;
  int calls = 0;
  options.migrate.steps = {to_v2()};
  const auto apply = options.migrate.steps[0].apply;
  options.migrate.steps[0].apply = [&](const void* before, void* now) {
    // Before the switch each row goes through its step for each of its unique members.
    if (++calls == 2 * static_cast<int>(many) + 230) throw std::runtime_error("cut short");
    apply(before, now);
  };
  EXPECT_THROW((void)Pool<v2::Root>::try_open(path, options), std::runtime_error);
  const Status without = Pool<v2::Root>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(without.code(), Code::incompatible);
  EXPECT_NE(without.message().find("with the steps that it began with"), std::string::npos)
      << without.message();
  const Status older = Pool<v1::Root>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(older.code(), Code::incompatible) << older.message();
  options.migrate.steps = {to_v2()};
  std::uint64_t again = 0;
  const auto whole = options.migrate.steps[0].apply;
  options.migrate.steps[0].apply = [&](const void* before, void* now) {
    ++again;
    whole(before, now);
  };
  auto pool = Pool<v2::Root>::open(path, options);
  expect_v2(pool);
  EXPECT_EQ(again, many - 200) << "the batches that were durable were done again";
}

// The unique members that a step makes must differ, in whatever order the rows go through it.
// Opening finds equal ones before anything is changed.
TEST_F(Steps, RowsThatWouldShareAUniqueMemberAreRefusedBeforeTheSwitch) {
  fill();
  const auto refused = [&](auto change, const std::string& expected) {
    Options options = test::small_pool();
    options.migrate.steps = {step<v1::User, v2::User>(
        "users", [&](const v1::User& before, v2::User& now) { change(before, now); })};
    const Status s = Pool<v2::Root>::try_open(path, options).status();
    EXPECT_EQ(s.code(), Code::exists);
    EXPECT_NE(s.message().find(expected), std::string::npos) << s.message();
    EXPECT_TRUE(Pool<v1::Root>::try_open(path, test::small_pool()).ok());
  };
  refused([](const v1::User& before, v2::User& now) { now.mail = before.mail.substr(0, 3); },
          "400 rows share their 'users.mail' with an earlier row");
  // A row gets the value that the next row has until its own step.
  refused([](const v1::User& b, v2::User& now) { now.mail = "M" + std::to_string(b.id + 1); },
          "499 rows share their 'users.mail' with an earlier row");
  refused([](const v1::User&, v2::User& now) { now.id = 3; },
          "rows share their 'users.id' with an earlier row");
}

namespace both {
struct User {
  std::uint64_t id = 0;
  std::string first, last, mail;
  std::int64_t age = 0;
  static constexpr std::string_view perdure_removed[] = {"name"};
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>> users;
};
}  // namespace both

TEST_F(Steps, AFieldThatAStepReadsMustNotBeGivenUp) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {step<v1::User, both::User>("users", [](const auto&, auto&) {})};
  EXPECT_EQ(migration_plan<both::Root>(path, options.migrate).value().refusals,
            Lines{"users.name: a step's struct has it, but perdure_removed lists it (take it out "
                  "of perdure_removed: the step decides what becomes of it)"});
}

namespace mistaken {
struct Short {  // without v1's `mail`
  std::uint64_t id = 0;
  std::string name;
  std::int32_t age = 0;
};
struct Typed {
  std::uint64_t id = 0;
  std::string name, mail;
  std::uint32_t age = 0;
};
/// What v1's rows become by themselves, but for a field that a step makes.
struct User {
  std::uint64_t id = 0;
  std::string name, mail, greeting;
  std::int32_t age = 0;
};
struct Later {
  std::uint64_t id = 0;
  std::string name, mail, greeting, more;
  std::int32_t age = 0;
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>> users;
};
struct Named {
  std::uint64_t id = 0;
  std::string name, mail, greeting, title;
  std::int32_t age = 0;
};
struct Next {
  table<Named, key<&Named::id>, unique<&Named::mail>> users;
};
}  // namespace mistaken

// It was meant for some rows, which would lack what it makes.
TEST_F(Steps, AStepThatFitsNoVersionIsRefused) {
  fill();
  const auto greet = [](const auto& before, auto& now) { now.greeting = "Hello " + before.name; };
  const auto refusals = [&]<class Root = mistaken::Root>(MigrationStep step) {
    Migration migrate;
    migrate.steps = {std::move(step)};
    return migration_plan<Root>(path, migrate).value().refusals;
  };
  const auto expect_unfit = [](const Lines& found, const std::string& from) {
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].starts_with("users: its step from " + from)) << found[0];
    EXPECT_NE(found[0].find(" does not fit this pool, whose newest is " +
                            value::text_of(value::type_of<v1::User>())),
              std::string::npos)
        << found[0];
  };
  using mistaken::User;
  expect_unfit(refusals(step<mistaken::Short, User>("users", greet)),
               value::text_of(value::type_of<mistaken::Short>()));
  expect_unfit(refusals(step<mistaken::Typed, User>("users", greet)),
               value::text_of(value::type_of<mistaken::Typed>()));
  expect_unfit(refusals(step<v1::User, mistaken::Later>("users", greet)),
               value::text_of(value::type_of<v1::User>()));
  Options options = test::small_pool();
  options.migrate.steps = {step<v1::User, User>("users", greet)};
  EXPECT_EQ(migration_plan<mistaken::Root>(path, options.migrate).value().refusals, Lines{});
  (void)Pool<mistaken::Root>::open(path, options);
  // Later versions may keep it: the pool has gone through it.
  EXPECT_EQ(refusals(step<v1::User, User>("users", greet)), Lines{});
  EXPECT_EQ(refusals.operator()<mistaken::Next>(step<v1::User, User>("users", greet)), Lines{});
}

namespace fewer {
/// The program after mistaken::User's: it gives up a field.
struct User {
  std::uint64_t id = 0;
  std::string mail, greeting;
  std::int32_t age = 0;
  static constexpr std::string_view perdure_removed[] = {"name"};
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>> users;
};
}  // namespace fewer

// The program keeps its step for pools of version 1, and gives up a field in version 3.
TEST_F(Steps, AStepStaysWhenALaterVersionGivesUpAField) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {step<v1::User, mistaken::User>(
      "users", [](const auto& before, auto& now) { now.greeting = "Hello " + before.name; })};
  (void)Pool<mistaken::Root>::open(path, options);
  for (int opening = 0; opening < 3; ++opening) {
    auto pool = Pool<fewer::Root>::open(path, options);
    pool.view([](auto& tx, const auto& r) {
      EXPECT_EQ(r.users.find(tx, 7)->greeting, "Hello " + user(7).name);
    });
  }
  const std::string other = scratch.path("other");
  for (int opening = 0; opening < 2; ++opening) (void)Pool<fewer::Root>::open(other, options);
}

// A step from each version to the newest one: which ones a pool needs depends on where it began.
TEST_F(Steps, AStepFromEachVersion) {
  fill();
  Options options = test::small_pool();
  options.migrate.steps = {
      step<v1::User, mistaken::Named>(
          "users", [](const auto& before, auto& now) { now.title = "Hello " + before.name; }),
      step<mistaken::User, mistaken::Named>(
          "users", [](const auto& before, auto& now) { now.title = before.greeting; })};
  {
    auto pool = Pool<mistaken::Next>::open(path, options);
    pool.view([](auto& tx, const auto& r) {
      EXPECT_EQ(r.users.find(tx, 7)->title, "Hello " + user(7).name);
    });
  }
  const std::string other = scratch.path("other");
  {
    auto pool = Pool<mistaken::Root>::open(other, test::small_pool());
    pool.update([](auto& tx, auto& r) { r.users.insert(tx, {1, "Ann", "a", "Dear Ann", 3}); });
  }
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<mistaken::Next>::open(other, options);
    pool.view([](auto& tx, const auto& r) { EXPECT_EQ(r.users.find(tx, 1)->title, "Dear Ann"); });
  }
}

// Rows that version 2 took over as they were are version 2's.
TEST_F(Steps, RowsThatWouldGoThroughNoStepAreRefused) {
  fill();
  {
    auto pool = Pool<mistaken::Root>::open(path, test::small_pool());
    pool.update(
        [](auto& tx, auto& r) { r.users.update(tx, 7, [](auto& u) { u.greeting = "Dear you"; }); });
  }
  Options options = test::small_pool();
  options.migrate.steps = {step<mistaken::User, mistaken::Named>(
      "users", [](const auto& before, auto& now) { now.title = before.greeting + "!"; })};
  const Lines found = migration_plan<mistaken::Next>(path, options.migrate).value().refusals;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("would go through no step (give a step that reads them, too)"),
            std::string::npos)
      << found[0];
  options.migrate.steps.push_back(
      step<v1::User, mistaken::User>("users", [](const auto&, auto&) {}));
  auto pool = Pool<mistaken::Next>::open(path, options);
  pool.view([](auto& tx, const auto& r) {
    EXPECT_EQ(r.users.find(tx, 7)->title, "Dear you!");
    EXPECT_EQ(r.users.find(tx, 8)->title, "!");
  });
}

TEST_F(Steps, APoolThatBeganAfterAStepIsOpenedWithIt) {
  {
    auto pool = Pool<mistaken::Root>::open(path, test::small_pool());
    pool.update([](auto& tx, auto& r) { r.users.insert(tx, {1, "Ann", "a", "Dear Ann", 3}); });
  }
  Options options = test::small_pool();
  options.migrate.steps = {
      step<v1::User, mistaken::User>("users", [](const auto&, auto&) { FAIL(); })};
  (void)Pool<mistaken::Root>::open(path, options);
  auto pool = Pool<mistaken::Next>::open(path, options);
  pool.view([](auto& tx, const auto& r) { EXPECT_EQ(r.users.find(tx, 1)->greeting, "Dear Ann"); });
}

template <class User>
struct Values {
  map<std::uint64_t, User> m;
  hash_map<std::uint64_t, User> h;
  rb_tree<std::uint64_t, User> t;
  multimap<std::uint64_t, User> mm;
  vector<User> v;
  deque<User> d;
  list<User> l;
  queue<User> q;
};

const char* const value_fields[] = {"m", "h", "t", "mm", "v", "d", "l", "q"};

Options with_values_steps() {
  Options options = test::small_pool();
  options.migrate.batch = 70;
  for (const char* field : value_fields) {
    options.migrate.steps.push_back(to_v2());
    options.migrate.steps.back().table = field;
  }
  return options;
}

class ValueSteps : public Steps {
 protected:
  void fill() const {
    auto pool = Pool<Values<v1::User>>::open(path, test::small_pool());
    pool.update([&](auto& tx, Values<v1::User>& r) {
      for (std::uint64_t i = 0; i < many; ++i) {
        const v1::User u = user(i);
        r.m.put(tx, i, u), r.h.put(tx, i, u), r.t.put(tx, i, u), r.mm.insert(tx, i % 7, u);
        r.v.push_back(tx, u), r.d.push_back(tx, u), r.l.push_back(tx, u), r.q.push(tx, u);
      }
    });
  }
  static void expect_v2(Pool<Values<v2::User>>& pool) {
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const Values<v2::User>& r) {
      const auto expect = [](const v2::User& u, std::uint64_t i) {
        EXPECT_EQ(u.id, i);
        EXPECT_EQ(u.first, "F" + std::to_string(i));
        EXPECT_EQ(u.last, "L" + std::to_string(i % 5));
        EXPECT_EQ(u.mail, "m" + std::to_string(i));
      };
      for (std::uint64_t i = 0; i < many; ++i) {
        expect(*r.m.find(tx, i), i);
        expect(*r.h.find(tx, i), i);
        expect(*r.t.find(tx, i), i);
        expect(r.v.get(tx, i), i);
        expect(r.d.get(tx, i), i);
      }
      std::uint64_t n = 0, in_list = 0, in_queue = 0;
      r.mm.for_each(tx, [&](std::uint64_t key, const v2::User& u) {
        EXPECT_EQ(u.id % 7, key);
        expect(u, u.id);
        ++n;
      });
      r.l.for_each(tx, [&](const v2::User& u) { expect(u, in_list++); });
      r.q.for_each(tx, [&](const v2::User& u) { expect(u, in_queue++); });
      EXPECT_EQ(n, many);
      EXPECT_EQ(in_list, many);
      EXPECT_EQ(in_queue, many);
    });
  }
};

TEST_F(ValueSteps, ValuesOfAllContainersAreMadeOfTheirEarlierOnes) {
  fill();
  EXPECT_EQ(migration_plan<Values<v2::User>>(path).value().refusals.size(), 8U);
  const Options options = with_values_steps();
  const Lines changes = migration_plan<Values<v2::User>>(path, options.migrate).value().changes;
  for (const char* const field : value_fields) {
    const Lines lines{
        std::string(field) + ": the program's steps make its values from those in the pool",
        std::string(field) + ".last: new; its initialiser's value is in old ones"};
    for (const std::string& line : lines)
      EXPECT_EQ(std::count(changes.begin(), changes.end(), line), 1) << line;
  }
  {
    auto pool = Pool<Values<v2::User>>::open(path, options);
    expect_v2(pool);
  }
  auto pool =
      Pool<Values<v2::User>>::open(path, test::small_pool());  // the steps are not needed any more
  expect_v2(pool);
}

TEST_F(ValueSteps, WhatWasCutShortGoesOn) {
  fill();
  Options options = with_values_steps();
  std::uint64_t calls = 0;
  const auto apply = options.migrate.steps[1].apply;
  options.migrate.steps[1].apply = [&](const void* before, void* now) {
    if (++calls == 200) throw std::runtime_error("cut short");
    apply(before, now);
  };
  EXPECT_THROW((void)Pool<Values<v2::User>>::try_open(path, options), std::runtime_error);
  const Status without = Pool<Values<v2::User>>::try_open(path, test::small_pool()).status();
  EXPECT_NE(without.message().find("with the steps that it began with"), std::string::npos)
      << without.message();
  options = with_values_steps();
  std::uint64_t again = 0;
  options.migrate.steps[1].apply = [&](const void* before, void* now) {
    ++again;
    apply(before, now);
  };
  auto pool = Pool<Values<v2::User>>::open(path, options);
  expect_v2(pool);
  EXPECT_EQ(again, many - 140) << "the batches that were durable were done again";
}

}  // namespace
}  // namespace perdure
