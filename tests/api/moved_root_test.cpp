// SPDX-License-Identifier: BSD-3-Clause
//
// A change of layout gives the root object another address. Lists in it continue to work, and
// pointers and hooks that lead into it are refused by name (HOOK-3, ROOT-1). A field that owns
// blocks can't be removed without freeing them.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "perdure/container/box.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/perdure.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

struct Order {
  p<std::uint64_t> number;
  list_hook hook;
};

class MovedRoot : public ::testing::Test {
 protected:
  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

namespace list1 {
struct Root {
  hash_map<std::uint64_t, Order> orders;
  hooked_list<Order, &Order::hook> waiting;
  map<std::uint64_t, hooked_list<Order, &Order::hook>> others;
};
}  // namespace list1
namespace list2 {
struct Root {
  p<std::uint64_t> more;
  hash_map<std::uint64_t, Order> orders;
  hooked_list<Order, &Order::hook> waiting;
  map<std::uint64_t, hooked_list<Order, &Order::hook>> others;
};
}  // namespace list2
namespace list3 {
struct Root {
  p<std::uint64_t> most, more;
  hash_map<std::uint64_t, Order> orders;
  retired<hooked_list<Order, &Order::hook>> waiting;
  retired<map<std::uint64_t, hooked_list<Order, &Order::hook>>> others;
};
}  // namespace list3

template <class Root>
std::vector<std::uint64_t> waiting(Pool<Root>& pool) {
  std::vector<std::uint64_t> numbers;
  pool.view([&](auto& tx, const Root& r) {
    numbers.clear();
    EXPECT_EQ(r.waiting.audit(tx), Lines{});
    r.waiting.for_each(tx, [&](const Order& order) { numbers.push_back(tx.read(order.number)); });
    EXPECT_EQ(numbers.size(), r.waiting.size(tx));
  });
  return numbers;
}

TEST_F(MovedRoot, HookedListsGoOn) {
  const auto add = [](auto& tx, auto& r, std::uint64_t i) {
    r.orders.upsert(tx, i, [&](Order& order) {
      tx(order.number) = i;
      if (i == 9)
        r.others.upsert(tx, 1, [&](auto& other) { other.push_back(tx, order); });
      else
        r.waiting.push_back(tx, order);
    });
  };
  {
    auto pool = Pool<list1::Root>::open(path);
    pool.update([&](auto& tx, auto& r) {
      for (const std::uint64_t i : {1, 2, 3, 9}) add(tx, r, i);
    });
    EXPECT_EQ(pool.check().problems, Lines{});
  }
  {
    auto pool = Pool<list2::Root>::open(path);
    EXPECT_EQ(pool.check().problems, Lines{});
    EXPECT_EQ(waiting(pool), (std::vector<std::uint64_t>{1, 2, 3}));
    pool.update([&](auto& tx, auto& r) {
      r.orders.erase(tx, 1);
      r.orders.erase(tx, 3);
      add(tx, r, 4);
    });
    EXPECT_EQ(waiting(pool), (std::vector<std::uint64_t>{2, 4}));
    EXPECT_EQ(pool.check().problems, Lines{});
  }
  auto pool = Pool<list3::Root>::open(path);
  pool.view([](auto& tx, const list3::Root& r) {
    EXPECT_EQ(r.orders.size(tx), 3U);
    for (const std::uint64_t i : {2, 4, 9}) EXPECT_FALSE(r.orders.find(tx, i)->hook.linked(tx));
  });
  EXPECT_EQ(pool.check().problems, Lines{});
}

namespace inside1 {
struct Part {
  p<std::uint64_t> number;
};
struct Root {
  Part part;
  ptr<Part> first, last;
  std::array<ptr<Part>, 2> two;
  std::array<Order, 2> orders;
  hooked_list<Order, &Order::hook> waiting;
};
}  // namespace inside1
namespace inside2 {
struct Root {
  p<std::uint64_t> more;
  inside1::Part part;
  ptr<inside1::Part> first, last;
  std::array<ptr<inside1::Part>, 2> two;
  std::array<Order, 2> orders;
  hooked_list<Order, &Order::hook> waiting;
};
}  // namespace inside2

TEST_F(MovedRoot, WhatLeadsIntoTheRootObjectIsRefusedByName) {
  {
    auto pool = Pool<inside1::Root>::open(path);
    pool.update([](auto& tx, auto& r) {
      tx(r.part.number) = 7;
      tx(r.first) = &r.part;
      tx(r.last) = tx.template make<inside1::Part>();
      tx(r.two[1]) = &r.part;
      r.waiting.push_back(tx, r.orders[1]);
    });
  }
  const Lines refused{
      "first: it points into the root object, which moves (let it lead to a block of its own, by "
      "an "
      "update of the program that has the pool)",
      "two: it points into the root object, which moves (let it lead to a block of its own, by an "
      "update of the program that has the pool)",
      "orders: it lies in the root object, which moves, and is in a hooked_list (take it out of "
      "the "
      "list, by an update of the program that has the pool, and hold such objects in a container "
      "or "
      "a box)"};
  EXPECT_EQ(migration_plan<inside2::Root>(path).value().refusals, refused);
  EXPECT_EQ(Pool<inside2::Root>::try_open(path).status().code(), Code::incompatible);
  {
    auto pool = Pool<inside1::Root>::open(path);
    pool.update([](auto& tx, auto& r) {
      tx(r.first) = nullptr;
      tx(r.two[1]) = nullptr;
      r.waiting.clear(tx);
    });
  }
  EXPECT_EQ(migration_plan<inside2::Root>(path).value().refusals, Lines{});
  auto pool = Pool<inside2::Root>::open(path);
  EXPECT_EQ(pool.check().problems, Lines{});
}

namespace arrays1 {
struct Pair {
  p<std::uint64_t> number;
  vector<std::uint64_t> values;
};
struct Root {
  p<std::uint64_t> x;
  std::array<vector<std::uint64_t>, 2> lists;
  std::array<Pair, 2> pairs;
  std::array<p<std::uint64_t>, 3> numbers;
};
}  // namespace arrays1
namespace arrays2 {
struct Root {
  p<std::uint64_t> x;
  static constexpr std::string_view perdure_removed[] = {"lists", "pairs", "numbers"};
};
}  // namespace arrays2
namespace arrays3 {
struct Root {
  p<std::uint64_t> x;
  retired<std::array<vector<std::uint64_t>, 2>> lists;
  retired<std::array<arrays1::Pair, 2>> pairs;
  static constexpr std::string_view perdure_removed[] = {"numbers"};
};
}  // namespace arrays3

TEST_F(MovedRoot, AnArrayOfContainersIsRetiredAndNotRemoved) {
  std::uint64_t empty = 0;
  {
    auto pool = Pool<arrays1::Root>::open(path);
    empty = pool.check().blocks;
    pool.update([](auto& tx, auto& r) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        r.lists[i % 2].push_back(tx, i);
        r.pairs[i % 2].values.push_back(tx, i);
      }
    });
  }
  const MigrationPlan plan = migration_plan<arrays2::Root>(path).value();
  ASSERT_EQ(plan.refusals.size(), 2U);
  EXPECT_EQ(plan.refusals[0].substr(0, 40), "lists: the pool has vector<u64>/1[2], th");
  EXPECT_EQ(plan.refusals[1].substr(0, 21), "pairs: the pool has {");
  EXPECT_EQ(plan.changes, (Lines{"numbers: removed"}));
  {
    auto pool = Pool<arrays3::Root>::open(path);
    EXPECT_EQ(pool.check().problems, Lines{});
    EXPECT_LE(pool.check().blocks, empty + 2);  // the new root object and its layout
  }
  auto pool = Pool<arrays2::Root>::open(path);
  EXPECT_EQ(pool.check().problems, Lines{});
}

namespace box1 {
struct Owner {
  p<std::uint64_t> number;
  map<std::uint64_t, std::uint64_t> values;
};
struct Root {
  box<Owner> owner, other;
  p<std::uint64_t> x;
};
}  // namespace box1
namespace box2 {  // the same text, and another struct behind it
struct Owner {
  p<std::uint64_t> number;
};
struct Root {
  retired<box<Owner>> owner;
  box<box1::Owner> other;
  p<std::uint64_t> x;
};
}  // namespace box2
namespace box3 {  // another number, and the same struct behind it
struct First {
  p<std::uint32_t> number;
};
struct Root {
  ptr<First> first;
  retired<box<box1::Owner>> owner;
  box<box1::Owner> other;
  p<std::uint64_t> x;
};
}  // namespace box3

TEST_F(MovedRoot, ARetiredBoxIsFreedByTheStructThatItHas) {
  {
    auto pool = Pool<box1::Root>::open(path);
    pool.update([](auto& tx, auto& r) {
      auto* const owner = r.owner.make(tx);
      for (std::uint64_t i = 0; i < 100; ++i) owner->values.put(tx, i, i);
    });
  }
  EXPECT_EQ(migration_plan<box2::Root>(path).value().refusals,
            (Lines{"owner: it is retired, and a struct that it owns has another layout (retire it "
                   "with that struct as it was, under another name)"}));
  EXPECT_EQ(migration_plan<box3::Root>(path).value().refusals, Lines{});
  auto pool = Pool<box3::Root>::open(path);
  EXPECT_EQ(pool.check().problems, Lines{});
}

}  // namespace
}  // namespace perdure
