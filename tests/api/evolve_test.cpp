// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program: what opening does with root fields and indexes that are new, removed,
// moved or of another type; what it refuses, with the whole message; and what it writes.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "perdure/container/counter.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;

struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
};
struct User {
  std::uint64_t id = 0;
  std::string name, mail;
  std::int32_t age = 0;
  friend bool operator==(const User&, const User&) = default;
};

namespace v1 {
struct Limits {
  p<std::uint32_t> low{1}, high{2};
};
struct Root {
  p<std::uint64_t> visits{3};
  p<std::uint32_t> small{4};
  p<std::int16_t> minus{-5};
  p<float> ratio{0.5F};
  Limits limits;
  string title;
  vector<std::uint64_t> numbers;
  hash_map<std::string, std::vector<std::string>> by_name;
  map<std::uint64_t, std::string> by_id;
  rb_tree<std::uint64_t, std::uint64_t> tree;
  list<std::string> names;
  queue<std::string> jobs;
  box<User> owner;
  ptr<Node> head;
  table<User, key<&User::id>, indexed<&User::name>> users;
};
}  // namespace v1

namespace v2 {
struct Limits {
  p<std::uint32_t> low{10}, middle{11}, top{12};
  static constexpr renamed perdure_renamed[] = {{"top", "high"}};
};
struct Extra {
  p<std::uint64_t> more{9};
};
struct Root {
  ptr<Extra> extra;  // so that Node gets another number
  queue<std::string> jobs;
  p<std::uint64_t> added{7};
  table<User, key<&User::id>, indexed<&User::age>, dropped<indexed<&User::name>>,
        unique<&User::mail>>
      users;
  list<std::string> names;
  p<std::int64_t> small{0};
  p<std::int32_t> minus{0};
  p<double> ratio{0};
  map<std::uint64_t, std::uint64_t> fresh;
  ptr<Node> head;
  rb_tree<std::uint64_t, std::uint64_t> ordered;
  map<std::uint64_t, std::string> by_id;
  retired<hash_map<std::string, std::vector<std::string>>> by_name;
  box<User> owner;
  vector<std::uint64_t> numbers;
  string title;
  Limits limits;
  static constexpr renamed perdure_renamed[] = {{"ordered", "tree"}};
  static constexpr std::string_view perdure_removed[] = {"visits"};
};
}  // namespace v2

namespace v3 {  // what was retired and dropped is gone
struct Root {
  p<std::uint64_t> added;
  table<User, key<&User::id>, unique<&User::mail>, indexed<&User::age>> users;
  queue<std::string> jobs;
  list<std::string> names;
  p<std::int64_t> small;
  p<std::int32_t> minus;
  p<double> ratio;
  map<std::uint64_t, std::uint64_t> fresh;
  rb_tree<std::uint64_t, std::uint64_t> ordered;
  map<std::uint64_t, std::string> by_id;
  box<User> owner;
  vector<std::uint64_t> numbers;
  string title;
  v2::Limits limits;
  ptr<v2::Extra> extra;
  ptr<Node> head;
};
}  // namespace v3

constexpr std::uint64_t many = 2'500;

User user(std::uint64_t i) {
  return {i, "name " + std::to_string(i % 7), "mail " + std::to_string(i),
          static_cast<std::int32_t>(i % 50)};
}

void fill(Pool<v1::Root>& pool, std::uint64_t n) {
  pool.update([&](auto& tx, v1::Root& r) {
    r.title.assign(tx, "a title");
    r.owner.put(tx, user(1));
    Node* const node = tx.template make<Node>();
    tx(node->key) = 77;
    tx(r.head) = node;
  });
  for (std::uint64_t from = 0; from < n; from += 500)
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = from; i < std::min(n, from + 500); ++i) {
        r.numbers.push_back(tx, i * 3);
        r.by_name.put(tx, std::to_string(i), {"a", std::to_string(i)});
        r.by_id.put(tx, i, std::to_string(i));
        r.tree.put(tx, i, i * 2);
        r.names.push_back(tx, std::to_string(i));
        r.jobs.push(tx, std::to_string(i));
        r.users.insert(tx, user(i));
      }
    });
}

/// The fields that v2 and v3 have in common.
template <class Root>
void expect_all(Pool<Root>& pool, std::uint64_t n) {
  pool.view([&](auto& tx, const Root& r) {
    EXPECT_EQ(tx.read(r.added), 7U);
    EXPECT_EQ(tx.read(r.small), 4);
    EXPECT_EQ(tx.read(r.minus), -5);
    EXPECT_EQ(tx.read(r.ratio), 0.5);
    EXPECT_EQ(tx.read(r.limits.low), 1U);
    EXPECT_EQ(tx.read(r.limits.middle), 11U);
    EXPECT_EQ(tx.read(r.limits.top), 2U);
    EXPECT_EQ(r.title.str(tx), "a title");
    EXPECT_EQ(r.owner.get(tx), user(1));
    EXPECT_EQ(tx.read(tx.read(r.head)->key), 77U);
    EXPECT_EQ(tx.read(r.extra), nullptr);
    EXPECT_EQ(r.fresh.size(tx), 0U);
    EXPECT_EQ(r.numbers.size(tx), n);
    EXPECT_EQ(r.by_id.size(tx), n);
    EXPECT_EQ(r.ordered.size(tx), n);
    EXPECT_EQ(r.names.size(tx), n);
    EXPECT_EQ(r.jobs.size(tx), n);
    EXPECT_EQ(r.users.size(tx), n);
    for (std::uint64_t i = 0; i < n; i += 11) {
      EXPECT_EQ(r.numbers.get(tx, i), i * 3);
      EXPECT_EQ(r.by_id.find(tx, i), std::to_string(i));
      EXPECT_EQ(r.ordered.find(tx, i), i * 2);
      EXPECT_EQ(r.users.find(tx, i), user(i));
      EXPECT_EQ(r.users.template one<&User::mail>(tx, "mail " + std::to_string(i)), user(i));
    }
    std::uint64_t found = 0, last = 0;
    for (const User u : r.users.template by<&User::age>(tx, 3)) {
      EXPECT_EQ(u, user(u.id));
      EXPECT_TRUE(found == 0 || u.id > last) << "not in the order in which they were added";
      last = u.id;
      ++found;
    }
    EXPECT_EQ(found, (n + 46) / 50);
  });
  EXPECT_EQ(pool.check().problems, Lines{});
}

class Evolve : public ::testing::Test {
 protected:
  template <class Root>
  Status opens(const Options& options = test::small_pool()) {
    return Pool<Root>::try_open(path, options).status();
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The refusal, without the path. The pool stays as it is.
  template <class Root>
  std::string refusal(Code code = Code::incompatible) {
    const std::string before = bytes();
    const Status s = opens<Root>();
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_TRUE(bytes() == before) << "the refusal wrote to the pool";
    const std::string prefix = path + ": ";
    EXPECT_EQ(s.message().substr(0, prefix.size()), prefix);
    return s.message().substr(std::min(prefix.size(), s.message().size()));
  }
  std::vector<std::string> layouts() {
    pool::OpenFile how;
    how.path = path;
    how.read_only = true;
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto pool = pool::OpenPool::open(how, who).value();
    return pool::read_catalog(path, pool->header(), pool->medium().data()).value().layouts;
  }

  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

TEST_F(Evolve, FieldsAndIndexesComeAndGo) {
  {
    auto pool = Pool<v1::Root>::open(path, test::small_pool());
    fill(pool, many);
    pool.close();
  }
  const std::string before = bytes();
  const MigrationPlan plan = migration_plan<v2::Root>(path).value();
  EXPECT_EQ(plan.refusals, Lines{});
  EXPECT_EQ(plan.changes,
            (Lines{"extra: new, ptr<#1>", "added: new, u64",
                   "users: index age is new, its entries are made", "users: index name is dropped",
                   "users: unique mail is new, its entries are made", "small: u32 becomes i64",
                   "minus: i16 becomes i32", "ratio: f32 becomes f64",
                   "fresh: new, map<u64,u64,15>/1", "ordered: renamed from tree",
                   "by_name: retired, its elements are freed", "limits.middle: new, u32",
                   "limits.top: renamed from limits.high", "visits: removed"}));
  EXPECT_TRUE(bytes() == before) << "the plan wrote to the pool";
  std::uint64_t blocks = 0;
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<v2::Root>::open(path, test::small_pool());
    expect_all(pool, many);
    const CheckReport report = pool.check();
    EXPECT_TRUE(opening == 0 || report.blocks == blocks);
    blocks = report.blocks;
    pool.close();
  }
  EXPECT_EQ(layouts(), (Lines{named_layout_of<v2::Root>(), named_layout_of<v1::Root>()}));
  EXPECT_TRUE(migration_plan<v2::Root>(path).value().changes.empty());
  EXPECT_EQ(migration_plan<v3::Root>(path).value().refusals, Lines{});
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<v3::Root>::open(path, test::small_pool());
    expect_all(pool, many);
    pool.close();
  }
  EXPECT_EQ(layouts().size(), 3U);
  pool::Header header;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  EXPECT_EQ(pool::layout_text(header), layout_of<v3::Root>()) << "what tools show";
  EXPECT_EQ(pool::field_names_text(header), field_names_of<v3::Root>());
}

namespace newer {
struct Root {
  p<std::uint64_t> a, added;
  p<std::int64_t> b;
  table<User, key<&User::id>, indexed<&User::age>> users;
};
}  // namespace newer
namespace older {
struct Root {
  p<std::uint64_t> a;
  p<std::uint32_t> b;
  table<User, key<&User::id>> users;
};
}  // namespace older

TEST_F(Evolve, AnOlderProgramIsRefused) {
  ASSERT_TRUE(opens<older::Root>().ok());
  ASSERT_TRUE(opens<newer::Root>().ok());
  EXPECT_EQ(refusal<older::Root>(),
            "a pool that a newer version of this program has taken over; this one would lose what "
            "that added. 3 changes are refused: [1] b: the pool has i64, the program u32; "
            "[2] users: the pool has 'index age', the program has not; "
            "[3] added: the pool has u64, the program has no such field; use the newer program");
}

namespace changed {
struct Root {
  p<std::int64_t> visits;                      // another sign
  p<std::uint16_t> small;                      // narrower
  hash_map<std::uint64_t, std::string> by_id;  // another container
  table<User, key<&User::name>> users;         // another key
  map<std::string, std::uint64_t> title;
};
}  // namespace changed
namespace old {
struct Inner {
  p<std::uint64_t> left;
};
struct Root {
  p<std::uint64_t> visits;
  p<std::uint32_t> small;
  map<std::uint64_t, std::string> by_id;
  table<User, key<&User::id>, indexed<&User::name>> users;
  string title;
  p<std::uint64_t> lost;
  Inner inner;
  vector<std::uint64_t> numbers;
  ptr<Node> head;
};
}  // namespace old

TEST_F(Evolve, AllRefusalsAreNamedAtOnce) {
  ASSERT_TRUE(opens<old::Root>().ok());
  EXPECT_EQ(
      refusal<changed::Root>(),
      "a pool of another layout. 9 changes are refused: "
      "[1] visits: the pool has u64, the program i64 (keep this field, add one of the new type "
      "under another name, and copy in an update); "
      "[2] small: the pool has u32, the program u16 (keep this field, add one of the new type "
      "under another name, and copy in an update); "
      "[3] by_id: the pool has map<u64,string,15>/1, the program hash_map<u64,string,128>/1 (to "
      "make it from the pool's, declare it as perdure::rebuilt<the program's, the pool's> in one "
      "version); "
      "[4] users: the pool has 'key id', the program 'key name' (to make it from the pool's, "
      "declare it as perdure::rebuilt<the program's, the pool's> in one version); "
      "[5] title: the pool has string/1, the program map<string,u64,15>/1 (keep this field, add "
      "one of the new type under another name, and copy in an update); "
      "[6] lost: the pool has u64, the program has no such field (one whose value may be lost is "
      "listed in perdure_removed, a renamed one in perdure_renamed); "
      "[7] inner.left: the pool has u64, the program has no such field (one whose value may be "
      "lost is listed in perdure_removed, a renamed one in perdure_renamed); "
      "[8] numbers: the pool has vector<u64>/1, the program has no such field (a container that is "
      "no longer used is perdure::retired<...> in one version; a renamed one is listed in "
      "perdure_renamed); "
      "[9] head: the pool has ptr<#1>, the program has no such field (what it leads to would be "
      "lost; a renamed one is listed in perdure_renamed); nothing was changed");
  EXPECT_TRUE(opens<old::Root>().ok());
}

namespace one {
struct Root {
  table<User, key<&User::id>> users;
};
}  // namespace one
namespace two {
struct Root {
  p<std::uint64_t> first;
  table<User, key<&User::id>, unique<&User::name>> users;
};
}  // namespace two
namespace index_gone {
struct Root {
  table<User, key<&User::id>> users;
};
}  // namespace index_gone

TEST_F(Evolve, RowsThatShareAUniqueMemberAreFoundBeforeTheSwitch) {
  {
    auto pool = Pool<one::Root>::open(path, test::small_pool());
    pool.update([](auto& tx, one::Root& r) {
      for (std::uint64_t i = 0; i < 10; ++i) r.users.insert(tx, user(i));
    });
    pool.close();
  }
  const Status s = opens<two::Root>();
  EXPECT_EQ(s.code(), Code::exists);
  EXPECT_EQ(
      s.message(),
      path +
          ": 3 rows share their 'users.name' with an earlier row, expected none, "
          "since the program declares it unique; change or erase these rows with the program that "
          "has the pool; nothing was changed");
  {
    auto pool = Pool<one::Root>::open(path, test::small_pool());
    pool.update([](auto& tx, one::Root& r) {
      for (std::uint64_t i = 7; i < 10; ++i) r.users.erase(tx, i);
    });
  }
  {
    auto pool = Pool<two::Root>::open(path, test::small_pool());
    pool.view([](auto& tx, const two::Root& r) {
      EXPECT_EQ(r.users.one<&User::name>(tx, "name 4"), user(4));
    });
    EXPECT_EQ(pool.check().problems, Lines{});
    pool.close();
  }
  EXPECT_EQ(refusal<index_gone::Root>(),
            "a pool that a newer version of this program has taken over; this one would lose what "
            "that added. 2 changes are refused: [1] users: the pool has 'unique name', the program "
            "has not; [2] first: the pool has u64, the program has no such field; use the newer "
            "program");
}

TEST_F(Evolve, UnfinishedWorkIsForTheVersionThatBeganIt) {
  { auto pool = Pool<one::Root>::open(path, test::small_pool()); }
  { auto pool = Pool<two::Root>::open(path, test::small_pool()); }
  pool::Header header;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto mark = static_cast<std::streamoff>(header.log_bytes + header.root_offset +
                                                offsetof(pool::Catalog, pending));
  const std::uint64_t pending = 1;
  file.seekp(mark);
  file.write(reinterpret_cast<const char*>(&pending), sizeof pending);
  file.flush();
  struct Three {
    p<std::uint64_t> first, second;
    table<User, key<&User::id>, unique<&User::name>> users;
  };
  EXPECT_EQ(refusal<Three>(),
            "a pool whose change to an earlier version of the program is not finished; open it "
            "once with that version");
  Options options = test::small_pool();
  options.read_only = true;
  EXPECT_EQ(opens<two::Root>(options).code(), Code::read_only);
  EXPECT_EQ(migration_plan<two::Root>(path).value().changes,
            Lines{"opening finishes the change to this version, which an earlier opening began"});
  EXPECT_TRUE(opens<two::Root>().ok());
  EXPECT_TRUE(migration_plan<two::Root>(path).value().changes.empty());
  EXPECT_TRUE(opens<Three>().ok());
}

TEST_F(Evolve, APoolWithoutATransactionGetsTheNewFirstValues) {
  { auto pool = Pool<one::Root>::open(path, test::small_pool()); }
  auto pool = Pool<v2::Root>::open(path, test::small_pool());
  EXPECT_EQ(pool.view([](auto& tx, const v2::Root& r) { return tx.read(r.added); }), 7U);
  EXPECT_EQ(pool.check().problems, Lines{});
}

namespace swapped {
struct Root {
  p<std::uint64_t> b, a;
};
}  // namespace swapped
namespace straight {
struct Root {
  p<std::uint64_t> a, b;
};
}  // namespace straight
namespace reused {  // a is what b was, and there is a new b
struct Root {
  p<std::uint64_t> b{8}, a, c;
  static constexpr renamed perdure_renamed[] = {{"c", "b"}};
};
}  // namespace reused

TEST_F(Evolve, FieldsFollowTheirNames) {
  Pool<straight::Root>::open(path, test::small_pool()).update([](auto& tx, straight::Root& r) {
    tx(r.a) = 1;
    tx(r.b) = 2;
  });
  const auto values = [&]<class Root>(std::type_identity<Root>, const Options& options) {
    return Pool<Root>::open(path, options).view([](auto& tx, const Root& r) {
      return std::array{tx.read(r.a), tx.read(r.b)};
    });
  };
  EXPECT_EQ(migration_plan<swapped::Root>(path).value().changes,
            Lines{"fields are in another order"});
  EXPECT_EQ(values(std::type_identity<swapped::Root>{}, test::small_pool()),
            (std::array{1UL, 2UL}));
  Options options = test::small_pool();
  options.migrate.renamed_fields = true;
  EXPECT_EQ(values(std::type_identity<straight::Root>{}, options), (std::array{2UL, 1UL}));
  EXPECT_EQ(values(std::type_identity<straight::Root>{}, test::small_pool()),
            (std::array{2UL, 1UL}));
  auto pool = Pool<reused::Root>::open(path, test::small_pool());
  pool.view([](auto& tx, const reused::Root& r) {
    EXPECT_EQ(tx.read(r.a), 2U);
    EXPECT_EQ(tx.read(r.b), 8U);
    EXPECT_EQ(tx.read(r.c), 1U);
  });
}

TEST_F(Evolve, AReadOnlyOpeningChangesNothing) {
  ASSERT_TRUE(opens<straight::Root>().ok());
  Options options = test::small_pool();
  options.read_only = true;
  const Status s = opens<reused::Root>(options);
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_EQ(s.message(), path +
                             ": a pool of another version of the program, opened for reading "
                             "only: b: new, u64, and more; open it once for writing");
  EXPECT_TRUE(opens<straight::Root>(options).ok());
}

// The work of the opening after a field was added does not depend on the number of rows.
TEST_F(Evolve, AnAddedFieldCostsTheSameHoweverManyRowsThereAre) {
  struct Added {
    p<std::uint64_t> first;
    table<User, key<&User::id>> users;
  };
  std::vector<std::uint64_t> logged;
  for (const std::uint64_t rows : {10U, 10'000U}) {
    std::filesystem::remove(path);
    {
      auto pool = Pool<one::Root>::open(path, test::small_pool());
      for (std::uint64_t from = 0; from < rows; from += 500)
        pool.update([&](auto& tx, one::Root& r) {
          for (std::uint64_t i = from; i < std::min(rows, from + 500); ++i)
            r.users.insert(tx, user(i));
        });
      pool.close();
    }
    auto pool = Pool<Added>::open(path, test::small_pool());
    EXPECT_EQ(pool.view([](auto& tx, const Added& r) { return r.users.size(tx); }), rows);
    logged.push_back(pool.stats().log_bytes);
  }
  EXPECT_EQ(logged[0], logged[1]);
  EXPECT_LT(logged[0], 4096U);
}

}  // namespace
}  // namespace perdure
