// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a struct: what compare() says of each change, and containers whose records were
// written by version 1: read, rewritten, walked and dropped.
#include <gtest/gtest.h>

#include "perdure/api/walk.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/value/parse.hpp"
#include "perdure/value/shapes.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {
namespace {

namespace v1 {
struct Item {
  std::string label;
  std::uint32_t n;
};
struct User {
  std::uint64_t id = 0;
  std::string name;
  std::uint32_t visits = 0;
  float score = 0;
  std::string mail;
  std::string notes;  // removed in version 2; owns a block
  std::string user;   // "owner" in version 2
  Item first;
  std::vector<Item> items;
  std::variant<std::uint8_t, std::string> mark;
};
}  // namespace v1

namespace v2 {
struct Item {
  std::uint64_t n;  // wider, and before the label
  std::string label;
  std::uint8_t colour = 9;  // new
};
struct User {
  std::string name;  // moved to the front
  std::uint64_t id = 0;
  std::uint64_t visits = 0;
  double score = 0;
  std::optional<std::string> mail;
  std::string owner;
  Item first;
  std::vector<Item> items;
  std::variant<std::uint8_t, std::string, double> mark;
  std::vector<std::string> roles = {"reader"};  // new
  static constexpr renamed perdure_renamed[] = {{"owner", "user"}};
  static constexpr std::string_view perdure_removed[] = {"notes"};
};
}  // namespace v2

template <class User>
struct RootOf {
  map<std::uint64_t, User> ordered;
  hash_map<std::uint64_t, User> hashed;
  list<User> listed;
  vector<User> numbered;
  queue<User> waiting;
  /// A change of the type of a member that finds rows needs a step.
  table<User, key<&User::id>, indexed<&User::name>, indexed_descending<&User::id>> rows;
};
using Before = RootOf<v1::User>;
using Now = RootOf<v2::User>;
static_assert(sizeof(Before) == sizeof(Now));

/// The root as version 2 declares it: the heads of containers are the same in both.
Now& now(Before& root) { return *reinterpret_cast<Now*>(&root); }
const Now& now(const Before& root) { return *reinterpret_cast<const Now*>(&root); }

std::string long_text(const char* what, std::uint64_t i) {
  return std::string(what) + " of number " + std::to_string(i);
}
v1::User old_user(std::uint64_t i) {
  v1::User user{i,
                long_text("name", i),
                static_cast<std::uint32_t>(i + 7),
                static_cast<float>(i) / 2,
                long_text("mail", i),
                long_text("notes", i),
                long_text("user", i),
                {long_text("first", i), static_cast<std::uint32_t>(i)},
                {},
                {}};
  for (std::uint32_t n = 0; n < i % 4; ++n) user.items.push_back({long_text("item", n), n});
  if (i % 2 == 1) user.mark = long_text("mark", i);
  return user;
}
void expect_user(const v2::User& user, std::uint64_t i, std::uint64_t more_visits = 0) {
  const v1::User old = old_user(i);
  EXPECT_EQ(user.id, i);
  EXPECT_EQ(user.name, old.name);
  EXPECT_EQ(user.visits, old.visits + more_visits);
  EXPECT_EQ(user.score, static_cast<double>(i) / 2);
  EXPECT_EQ(user.mail, old.mail);
  EXPECT_EQ(user.owner, old.user);
  EXPECT_EQ(user.first.label, old.first.label);
  EXPECT_EQ(user.first.n, i);
  EXPECT_EQ(user.first.colour, 9);
  ASSERT_EQ(user.items.size(), old.items.size());
  for (std::size_t n = 0; n < user.items.size(); ++n) {
    EXPECT_EQ(user.items[n].label, old.items[n].label);
    EXPECT_EQ(user.items[n].n, old.items[n].n);
    EXPECT_EQ(user.items[n].colour, 9);
  }
  ASSERT_EQ(user.mark.index(), old.mark.index());
  if (i % 2 == 1) {
    EXPECT_EQ(std::get<1>(user.mark), std::get<1>(old.mark));
  }
  EXPECT_EQ(user.roles, std::vector<std::string>{"reader"});
}

constexpr std::uint64_t count = 200;

template <class Pool>
void expect_sound(Pool& pool) {
  std::vector<const void*> blocks;
  const auto problems = pool.view([&](auto& tx, const auto& root) {
    blocks.clear();
    return audit(tx, now(root), [&](const void* block, bool own) {
      if (own) blocks.push_back(block);
      return own;
    });
  });
  EXPECT_TRUE(problems.empty()) << problems.front();
  EXPECT_EQ(pool.compare_blocks(blocks), "");
}

template <class Pool>
void fill(Pool& pool) {
  value::shapes::add(value::text_of(value::type_of<v1::User>())).or_throw();
  for (std::uint64_t i = 0; i < count; ++i) {
    pool.update([&](auto& tx, Before& root) {
      const v1::User user = old_user(i);
      root.ordered.put(tx, i, user);
      root.hashed.put(tx, i, user);
      root.listed.push_back(tx, user);
      root.numbered.push_back(tx, user);
      root.waiting.push(tx, user);
      root.rows.insert(tx, user);
    });
  }
}

/// All containers hold the users; the visits of those that `changed` tells are one more.
template <class Pool, class F>
void expect_all(Pool& pool, F changed) {
  pool.view([&](auto& tx, const auto& root) {
    const Now& all = now(root);
    std::uint64_t i = 0;
    for (auto at = all.listed.begin(tx); at; at.next(tx), ++i)
      expect_user(at.value(tx), i, changed(i));
    EXPECT_EQ(i, count);
    for (i = 0; i < count; ++i) {
      SCOPED_TRACE(i);
      expect_user(*all.ordered.find(tx, i), i, changed(i));
      expect_user(*all.hashed.find(tx, i), i, changed(i));
      expect_user(all.numbered.get(tx, i), i, changed(i));
      expect_user(*all.rows.find(tx, i), i, changed(i));
      const auto row = all.rows.at(tx, i);
      EXPECT_EQ((*row)[&v2::User::owner], long_text("user", i));
      EXPECT_EQ((*row)[&v2::User::visits], i + 7 + changed(i));
      EXPECT_EQ((*row)[&v2::User::roles].size(), 1U);
      row->peek(&v2::User::name,
                [&](std::string_view name) { EXPECT_EQ(name, long_text("name", i)); });
      std::uint64_t n = 0;
      for (auto one : all.rows.template by<&v2::User::name>(tx, long_text("name", i))) {
        EXPECT_EQ(one[&v2::User::id], i);
        ++n;
      }
      EXPECT_EQ(n, 1U);
    }
  });
}

TEST(Version, RecordsOfVersion1AreReadRewrittenAndDropped) {
  DramPool<Before> pool;
  fill(pool);
  const auto none = [](std::uint64_t) { return std::uint64_t{0}; };
  expect_all(pool, none);
  expect_sound(pool);

  // Every second one is rewritten: both shapes lie side by side.
  const auto half = [](std::uint64_t i) { return std::uint64_t{i % 2}; };
  const auto visit = [](v2::User& user) { ++user.visits; };
  for (std::uint64_t i = 1; i < count; i += 2) {
    pool.update([&](auto& tx, Before& root) {
      Now& all = now(root);
      EXPECT_TRUE(all.ordered.update(tx, i, visit));
      EXPECT_TRUE(all.hashed.update(tx, i, visit));
      v2::User user = all.numbered.get(tx, i);
      ++user.visits;
      all.numbered.set(tx, i, user);
      EXPECT_TRUE(all.rows.update(tx, i, [](v2::User& row) { ++row.visits; }));
    });
  }
  pool.update([&](auto& tx, Before& root) {
    std::uint64_t i = 0;
    for (auto at = now(root).listed.begin(tx); at; at.next(tx), ++i) {
      if (i % 2 == 0) continue;
      v2::User user = at.value(tx);
      ++user.visits;
      now(root).listed.set(tx, at, user);
    }
  });
  expect_all(pool, half);
  expect_sound(pool);

  // A rewritten one is changed where it lies; one is erased of each shape.
  pool.update([&](auto& tx, Before& root) {
    Now& all = now(root);
    for (const std::uint64_t i : {4U, 5U}) {
      EXPECT_TRUE(all.ordered.erase(tx, i));
      EXPECT_TRUE(all.hashed.erase(tx, i));
      EXPECT_TRUE(all.rows.erase(tx, i));
    }
    for (std::uint64_t i = 0; i < count; ++i) expect_user(*all.waiting.pop(tx), i);
  });
  expect_sound(pool);
  pool.update([&](auto& tx, Before& root) {
    Now& all = now(root);
    all.ordered.clear(tx);
    all.hashed.clear(tx);
    all.listed.clear(tx);
    all.numbered.clear(tx);
    all.waiting.clear(tx);
    all.rows.clear(tx);
  });
  expect_sound(pool);
}

TEST(Version, ARewrittenRowIsSeenByARangeThatLedToIt) {
  DramPool<Before> pool;
  fill(pool);
  pool.update([&](auto& tx, Before& root) {
    std::uint64_t n = 0;
    for (auto row : now(root).rows.template ordered<&v2::User::name>(tx)) {
      const std::uint64_t id = row[&v2::User::id];
      now(root).rows.update(tx, id, [](v2::User& user) { user.score = 1; });
      ++n;
    }
    EXPECT_EQ(n, count);
  });
  expect_sound(pool);
}

std::string changes(std::string_view before, std::string_view now,
                    value::Need least = value::Need::nothing) {
  const auto a = value::parse(before), b = value::parse(now);
  return value::compare(a->type(), b->type()).lines(least);
}
value::Need need(std::string_view before, std::string_view now) {
  const auto a = value::parse(before), b = value::parse(now);
  return value::compare(a->type(), b->type()).need();
}

TEST(Version, AllChangesAreNamedAtOnce) {
  const value::Comparison all =
      value::compare(value::type_of<v1::User>(), value::type_of<v2::User>(), "rows");
  EXPECT_EQ(all.need(), value::Need::nothing);
  EXPECT_EQ(all.lines(value::Need::nothing),
            "rows.owner: renamed from user\n"
            "rows.visits: widened from u32 to u64\n"
            "rows.score: widened from f32 to f64\n"
            "rows.mail: is optional now; each old value is there\n"
            "rows.first.n: widened from u32 to u64\n"
            "rows.first.colour: new; its initialiser's value is in old ones\n"
            "rows.mark: 1 alternatives added\n"
            "rows.roles: new; its initialiser's value is in old ones\n"
            "rows.notes: removed; what it holds is freed when its value is rewritten or erased");
  // The other way round the program is older than the pool.
  const value::Comparison back =
      value::compare(value::type_of<v2::User>(), value::type_of<v1::User>());
  EXPECT_EQ(back.need(), value::Need::refusal);
  const std::string refused = back.lines(value::Need::refusal);
  for (const char* field : {"owner: found", "roles: found", "first.colour: found"})
    EXPECT_NE(refused.find(field), std::string::npos) << field << "\n" << refused;
  EXPECT_NE(refused.find("perdure_removed"), std::string::npos);
}

TEST(Version, WhichChangesNeedAStep) {
  using value::Need;
  EXPECT_EQ(need("u8", "i16"), Need::nothing);
  EXPECT_EQ(need("enum:u8", "enum:u32"), Need::nothing);
  EXPECT_EQ(need("enum:u8", "u8"), Need::nothing);
  EXPECT_EQ(need("time<1/1,i32>", "time<1/1,i64>"), Need::nothing);
  EXPECT_EQ(need("arr<u8,2>", "arr<u16,3>"), Need::nothing);
  EXPECT_EQ(need("vec<u8>", "vec<opt<u8>>"), Need::nothing);
  EXPECT_EQ(need("var<u8,string>", "var<u16,string,f64>"), Need::nothing);
  EXPECT_EQ(need("u64", "u32"), Need::step);
  EXPECT_EQ(need("u64", "i64"), Need::step);
  EXPECT_EQ(need("i8", "u16"), Need::step);
  EXPECT_EQ(need("u8", "enum:u8"), Need::step);
  EXPECT_EQ(need("u64", "f64"), Need::step);
  EXPECT_EQ(need("bool", "u8"), Need::step);
  EXPECT_EQ(need("time<1/1,i64>", "time<1/1000,i64>"), Need::step);
  EXPECT_EQ(need("time<1/1,i64>", "span<1/1,i64>"), Need::step);
  EXPECT_EQ(need("money/1!8", "money/2!8"), Need::step);
  EXPECT_EQ(need("string", "u8"), Need::step);
  EXPECT_EQ(need("opt<u8>", "u8"), Need::step);
  EXPECT_EQ(need("arr<u8,3>", "arr<u8,2>"), Need::step);
  EXPECT_EQ(need("var<u8,string>", "var<string,u8>"), Need::step);
  EXPECT_EQ(need("var<u8,string>", "var<u8>"), Need::step);
  EXPECT_EQ(changes("{a:u8@0}1", "{a:i8@0}1"),
            "a: found 'u8' in the pool, expected 'i8' (a value could be lost or mean something "
            "else): give a step that makes one of the other, or a new name for the new field");
  EXPECT_EQ(need("{n:string@0,below:vec<^1>@8}16", "{below:vec<^1>@0,n:string@8,k:u8@16}24"),
            Need::nothing);
}

TEST(Version, ARecordThatNeedsAStepIsRefusedUntilThereIsOne) {
  struct Narrow {
    std::uint32_t id;
    std::string name;
    std::uint8_t more = 3;
  };
  struct Wide {
    std::uint64_t id;
    std::string name;
  };
  struct RootBefore {
    map<int, Wide> all;
  };
  struct RootNow {
    map<int, Narrow> all;
  };
  value::shapes::add(value::text_of(value::type_of<Wide>())).or_throw();
  DramPool<RootBefore> pool;
  pool.update([&](auto& tx, RootBefore& root) { root.all.put(tx, 1, {5, "a name"}); });
  pool.view([&](auto& tx, const auto& root) {
    try {
      (void)reinterpret_cast<const RootNow&>(root).all.find(tx, 1);
      ADD_FAILURE() << "it was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::incompatible);
      EXPECT_NE(std::string(e.what()).find("id: found 'u64'"), std::string::npos) << e.what();
    }
  });
}

TEST(Version, ShapesThatAreNoStructAreRefused) {
  EXPECT_EQ(value::shapes::add("u64").code(), Code::corrupt);
  EXPECT_EQ(value::shapes::add("less<{a:u8@0}1>").code(), Code::corrupt);
  EXPECT_EQ(value::shapes::add("{a:u8@1}1").code(), Code::corrupt);
  EXPECT_TRUE(value::shapes::add("{a:u8@0}1").ok());
  EXPECT_TRUE(value::shapes::add("{a:u8@0}1").ok());
  EXPECT_EQ(value::shapes::find(value::shape_of("{a:u8@0}1"))->size, 1U);
  EXPECT_EQ(value::shapes::find(12345), nullptr);
}

}  // namespace
}  // namespace perdure::test
