// SPDX-License-Identifier: BSD-3-Clause
//
// Migration::lazy: a pool of the version before is open at once, its rows go through their steps
// when they are read, and settle() rewrites those that are left.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/source.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
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
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::age>> users;
};
}  // namespace v1
namespace v2 {
struct User {
  std::uint64_t id = 0;
  std::string first, last, mail;
  std::int32_t age = 0;
};
struct Root {
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::age>> users;
};
struct Indexed {
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::age>, indexed<&User::last>> users;
};
}  // namespace v2

constexpr std::uint64_t many = 400;

v1::User user(std::uint64_t i) {
  return {i, "F" + std::to_string(i) + " L" + std::to_string(i % 5), "m" + std::to_string(i),
          static_cast<std::int32_t>(i % 40)};
}

std::atomic<std::uint64_t> calls{0};

class Lazy : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] Options options(bool lazy) const {
    Options o;
    o.engine = GetParam();
    o.creation.max_size = 256 << 20;
    o.creation.log_size = 4 << 20;
    o.migrate.lazy = lazy;
    if (lazy)
      o.migrate.steps = {
          step<v1::User, v2::User>("users", [](const v1::User& before, v2::User& now) {
            // Relaxed: it is read when no transaction runs.
            calls.fetch_add(1, std::memory_order_relaxed);
            now.first = before.name.substr(0, before.name.find(' '));
            now.last = before.name.substr(before.name.find(' ') + 1);
          })};
    return o;
  }
  void fill() const {
    auto pool = Pool<v1::Root>::open(path, options(false));
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = 0; i < many; ++i) r.users.insert(tx, user(i));
    });
    calls = 0;
  }
  static void expect_user(const v2::User& u, std::uint64_t i) {
    EXPECT_EQ(u.id, i);
    EXPECT_EQ(u.first, "F" + std::to_string(i));
    EXPECT_EQ(u.last, "L" + std::to_string(i % 5));
    EXPECT_EQ(u.mail, "m" + std::to_string(i));
  }
  template <class Root>
  static void expect_all(Pool<Root>& pool, std::uint64_t from = 0) {
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.view([&](auto& tx, const Root& r) {
      for (std::uint64_t i = from; i < many; ++i) {
        const auto found = r.users.template one<&v2::User::mail>(tx, "m" + std::to_string(i));
        ASSERT_TRUE(found.has_value()) << i;
        expect_user(*found, i);
        EXPECT_EQ((*r.users.at(tx, i))[&v2::User::last], "L" + std::to_string(i % 5));
      }
      std::uint64_t n = 0;
      for (const v2::User u : r.users.template by<&v2::User::age>(tx, 39)) {
        expect_user(u, u.id);
        ++n;
      }
      EXPECT_EQ(n, many / 40);
    });
  }

  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

/// How many rows are of the program's version, and of an earlier one, by the pool's layout text.
std::pair<std::uint64_t, std::uint64_t> versions_of(Pool<v2::Root>& opened) {
  return opened.view([&](auto& tx, const v2::Root&) {
    pool::OpenPool& file = opened.file();
    value::ReaderOver<std::remove_reference_t<decltype(tx)>> reader(tx);
    inspect::Walker walker(reader, reinterpret_cast<inspect::Address>(file.view()),
                           file.data_bytes());
    const auto catalog = pool::read_catalog(file.path(), file.header(), file.view()).value();
    const inspect::Source source = inspect::read_source(walker, file.header(), catalog);
    walker.use_records_of(source.tree);
    const inspect::Blocks found = inspect::find_blocks(walker, source.tree.root(), source.root);
    EXPECT_EQ(found.problems, Lines{});
    std::pair<std::uint64_t, std::uint64_t> n{0, 0};
    if (const auto users = found.versions.find("users"); users != found.versions.end()) {
      n.first = users->second.now;
      for (const auto& [layout, rows] : users->second.earlier) n.second += rows;
    }
    return n;
  });
}

TEST_P(Lazy, RowsGoThroughTheirStepsWhenTheyAreRead) {
  fill();
  {
    auto pool = Pool<v2::Root>::open(path, options(true));
    EXPECT_EQ(calls, 0U) << "opening it depends on the number of rows";
    expect_all(pool);
    EXPECT_GT(calls, 0U);
    pool.update([](auto& tx, v2::Root& r) {
      r.users.update(tx, 7, [](v2::User& u) { u.age = 7; });
      r.users.update(tx, 8, [](v2::User& u) { u.last = "L3"; });
    });
    calls = 0;
    pool.view([](auto& tx, const v2::Root& r) { expect_user(*r.users.find(tx, 7), 7); });
    EXPECT_EQ(calls, 0U) << "a row that was changed is rewritten";
    EXPECT_EQ(versions_of(pool), std::pair(std::uint64_t{2}, many - 2));
  }
  const Status without = Pool<v2::Root>::try_open(path, options(false)).status();
  EXPECT_EQ(without.code(), Code::incompatible);
  EXPECT_NE(without.message().find("with the steps that it began with"), std::string::npos)
      << without.message();
  {
    auto pool = Pool<v2::Root>::open(path, options(true));
    expect_all(pool);
  }
  // Without `lazy` the next opening finishes it.
  Options eager = options(true);
  eager.migrate.lazy = false;
  {
    auto pool = Pool<v2::Root>::open(path, eager);
    EXPECT_TRUE(pool.settle(1));
    expect_all(pool);
  }
  auto pool = Pool<v2::Root>::open(path, options(false));
  expect_all(pool);
}

// Such rows could become the program's without a step, and would lack what the step makes.
TEST_P(Lazy, AlsoAStepThatOnlyAddsToWhatIsAutomatic) {
  struct More {
    std::uint64_t id = 0;
    std::string name, mail;
    std::int32_t age = 0;
    std::string upper;
  };
  struct Root {
    table<More, key<&More::id>, unique<&More::mail>, indexed<&More::age>> users;
  };
  fill();
  Options lazily = options(true);
  lazily.migrate.steps = {step<v1::User, More>(
      "users", [](const v1::User& before, More& now) { now.upper = "U " + before.name; })};
  auto pool = Pool<Root>::open(path, lazily);
  const auto expect_steps = [&] {
    pool.view([&](auto& tx, const Root& r) {
      for (std::uint64_t i = 0; i < many; ++i) {
        EXPECT_EQ(r.users.find(tx, i)->upper, "U " + user(i).name) << i;
        EXPECT_EQ((*r.users.at(tx, i))[&More::upper], "U " + user(i).name) << i;
      }
    });
  };
  expect_steps();
  pool.update([](auto& tx, Root& r) { r.users.update(tx, 7, [](More& row) { row.age = 8; }); });
  expect_steps();
  while (!pool.settle(100)) {}
  expect_steps();
  EXPECT_EQ(pool.check().problems, Lines{});
}

TEST_P(Lazy, SettleRewritesWhatIsLeft) {
  fill();
  {
    auto pool = Pool<v2::Root>::open(path, options(true));
    EXPECT_FALSE(pool.settle(100));
    pool.update([](auto& tx, v2::Root& r) {
      for (std::uint64_t i = 0; i < 20; ++i) {
        r.users.erase(tx, i);  // some are among those that are left
        r.users.insert(tx, {i + many, "x", "y", "x" + std::to_string(i), 1});
      }
    });
    int n = 1;
    while (!pool.settle(100)) ++n;
    EXPECT_EQ(n, 3);
    calls = 0;
    expect_all(pool, 20);
    EXPECT_EQ(calls, 0U);
    EXPECT_TRUE(pool.settle(1));
    EXPECT_EQ(versions_of(pool), std::pair(many, std::uint64_t{0}));
  }
  auto pool = Pool<v2::Root>::open(path, options(false));  // the step is not needed any more
  expect_all(pool, 20);
}

TEST_P(Lazy, ItIsSettledBesideOtherTransactions) {
  fill();
  auto pool = Pool<v2::Root>::open(path, options(true));
  std::thread other([&] {
    for (std::uint64_t i = 0; i < many; ++i)
      pool.update([&](auto& tx, v2::Root& r) {
        r.users.update(tx, i * 7 % many, [](v2::User& u) { ++u.age; });
        r.users.update(tx, i * 7 % many, [](v2::User& u) { --u.age; });
      });
  });
  while (!pool.settle(10)) {}
  other.join();
  expect_all(pool);
}

TEST_P(Lazy, ATableThatGetsAnIndexIsSettledAtOnce) {
  fill();
  {
    auto pool = Pool<v2::Indexed>::open(path, options(true));
    EXPECT_TRUE(pool.settle(1));
    expect_all(pool);
  }
  auto pool = Pool<v2::Indexed>::open(path, options(false));
  expect_all(pool);
}

// What entries were made of must stay.
TEST_P(Lazy, AStepThatChangesAMemberByWhichRowsAreFoundIsRefused) {
  fill();
  Options o = options(true);
  o.migrate.steps = {step<v1::User, v2::User>(
      "users", [](const v1::User&, v2::User& now) { now.mail = "new" + now.mail; })};
  {
    auto pool = Pool<v2::Root>::open(path, o);
    try {
      pool.view([](auto& tx, const v2::Root& r) { (void)r.users.find(tx, 1); });
      FAIL() << "the row was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::invalid);
      EXPECT_NE(std::string(e.what()).find("'mail'"), std::string::npos) << e.what();
    }
  }
  o.migrate.lazy = false;
  auto pool = Pool<v2::Root>::open(path, o);
  EXPECT_EQ(pool.check().problems, Lines{});
  pool.view([](auto& tx, const v2::Root& r) {
    EXPECT_EQ(r.users.one<&v2::User::mail>(tx, "newm1")->id, 1U);
  });
}

// The steps are a pool's, not the process's.
TEST_P(Lazy, TwoPoolsHaveStepsOfTheirOwn) {
  fill();
  const std::string other = scratch.path("other");
  {
    // It is created beside the other one, so they differ in their addresses.
    const auto pool = Pool<v1::Root>::open(path, options(false));
    auto second = Pool<v1::Root>::open(other, options(false));
    second.update([](auto& tx, v1::Root& r) { r.users.insert(tx, user(3)); });
  }
  auto pool = Pool<v2::Root>::open(path, options(true));
  Options o = options(true);
  o.migrate.steps = {step<v1::User, v2::User>(
      "users", [](const v1::User& before, v2::User& now) { now.first = "Dear " + before.name; })};
  const auto first_in = [](Pool<v2::Root>& in) {
    return in.view([](auto& tx, const v2::Root& r) { return r.users.find(tx, 3)->first; });
  };
  {
    auto second = Pool<v2::Root>::open(other, o);
    EXPECT_EQ(first_in(second), "Dear F3 L3");
    EXPECT_EQ(first_in(pool), "F3");
  }
  // What is mapped next may lie where the closed pool was.
  auto second = Pool<v2::Root>::open(other, options(true));
  EXPECT_EQ(first_in(second), "F3");
  while (!pool.settle(1000)) {}
  expect_all(pool);
  EXPECT_EQ(first_in(second), "F3");
}

namespace twice {
struct One {
  table<v1::User, key<&v1::User::id>> users, others;
};
struct Two {
  table<v2::User, key<&v2::User::id>> users, others;
};
}  // namespace twice

// A row's struct says which step it needs, so only one table of a struct can wait.
TEST_P(Lazy, ASecondTableOfTheSameStructIsSettledAtOnce) {
  {
    auto pool = Pool<twice::One>::open(path, options(false));
    pool.update([](auto& tx, twice::One& r) {
      r.users.insert(tx, user(1));
      r.others.insert(tx, user(2));
    });
  }
  Options o = options(true);
  o.migrate.steps.push_back(step<v1::User, v2::User>(
      "others", [](const v1::User&, v2::User& now) { now.first = "other"; }));
  auto pool = Pool<twice::Two>::open(path, o);
  const auto look = [&] {
    pool.view([](auto& tx, const twice::Two& r) {
      EXPECT_EQ(r.users.find(tx, 1)->first, "F1");
      EXPECT_EQ(r.others.find(tx, 2)->first, "other");
    });
  };
  look();
  EXPECT_TRUE(pool.settle(10));
  look();
}

INSTANTIATE_TEST_SUITE_P(Engines, Lazy, ::testing::Values("shadow", "dudetm", "shadow/stm"),
                         [](const auto& i) {
                           std::string name = i.param;
                           for (char& c : name)
                             if (c == '/') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace perdure
