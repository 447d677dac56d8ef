// SPDX-License-Identifier: BSD-3-Clause
//
// Containers, boxes and structs of fields that containers and boxes own: edited in place, freed
// with their owner, seen by check().
#include <gtest/gtest.h>

#include "perdure/api/owned.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/container/box.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/vector.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {
namespace {

/// A struct of fields and containers.
struct Account {
  p<std::int64_t> balance{100};
  string owner;
  map<std::int32_t, std::string> entries;
};
struct Root {
  map<std::string, vector<std::int32_t>> numbers;
  hash_map<std::int32_t, map<std::int32_t, std::string>> texts;
  rb_tree<std::int32_t, hash_map<std::int32_t, vector<std::string>>> deep;
  vector<Account> accounts;
  list<hash_map<std::int32_t, std::int32_t>> tables;
  hash_map<std::int32_t, Account> by_number;
};

template <class Pool>
void expect_sound(Pool& pool) {
  std::vector<const void*> blocks;
  const auto problems = pool.view([&](auto& tx, const auto& root) {
    blocks.clear();
    return audit(tx, root, [&](const void* block, bool own) {
      if (own) blocks.push_back(block);
      return own;  // a pointer owns nothing, and is not followed
    });
  });
  EXPECT_TRUE(problems.empty()) << problems.front();
  EXPECT_EQ(pool.compare_blocks(blocks), "");
}

template <class Tx>
void put(Tx& tx, Account& account, std::int32_t n) {
  tx.write(account.balance, tx.read(account.balance) + n);
  account.owner.assign(tx, "owner " + std::to_string(n));
  account.entries.put(tx, n, "an entry that has a block of its own");
}

/// Random transactions on all of Root beside a model; some fail, and leave no trace.
TEST(Owned, NestedContainersComparedWithAModel) {
  struct Model {
    std::map<std::string, std::vector<std::int32_t>> numbers;
    std::map<std::int32_t, std::map<std::int32_t, std::string>> texts;
    std::vector<std::pair<std::int64_t, std::size_t>> accounts;  // balance, number of entries
    std::size_t tables = 0;
  };
  DramPool<Root> pool;
  Model model;
  Random random(seed_of_run());
  int failed = 0;
  for (int i = 0; i < 1500; ++i) {
    Model next = model;
    const auto n = static_cast<std::int32_t>(below(random, 40));
    const std::string key = Sample<std::string>::of(below(random, 20));
    const auto what = below(random, 11);
    const auto step = [&](auto& tx, Root& root) {
      switch (what) {
        case 0:
        case 1:
          EXPECT_EQ(root.numbers.upsert(tx, key, [&](auto& v) { v.push_back(tx, n); }),
                    !next.numbers.contains(key));
          next.numbers[key].push_back(n);
          break;
        case 2: EXPECT_EQ(root.numbers.erase(tx, key), next.numbers.erase(key) == 1); break;
        case 3:
          EXPECT_EQ(root.numbers.put(tx, key, {}), !next.numbers.contains(key));
          next.numbers[key].clear();
          break;
        case 4:
          root.texts.upsert(tx, n % 7, [&](auto& m) { m.put(tx, n, key); });
          next.texts[n % 7][n] = key;
          break;
        case 5: EXPECT_EQ(root.texts.erase(tx, n % 7), next.texts.erase(n % 7) == 1); break;
        case 6:
          root.accounts.push_back(tx);
          root.accounts.update(tx, root.accounts.size(tx) - 1, [&](Account& a) { put(tx, a, n); });
          next.accounts.emplace_back(100 + n, 1);
          break;
        case 7:
          if (next.accounts.empty()) break;
          root.accounts.pop_back(tx);
          next.accounts.pop_back();
          break;
        case 8:
          root.tables.push_back(tx, {});
          root.tables.update(tx, root.tables.last(tx), [&](auto& t) { t.put(tx, n, n); });
          ++next.tables;
          break;
        case 9:
          EXPECT_EQ(root.tables.pop_front(tx), next.tables > 0);
          next.tables -= next.tables > 0 ? 1 : 0;
          break;
        default:
          root.by_number.upsert(tx, n % 5, [&](Account& a) { put(tx, a, n); });
          root.deep.upsert(tx, n % 3, [&](auto& m) {
            m.upsert(tx, n % 2, [&](auto& v) { v.push_back(tx, key); });
          });
          if (n == 0) root.by_number.clear(tx), root.deep.clear(tx);
      }
      if (below(random, 10) == 0) throw UserError();
    };
    if (below(random, 8) == 0) pool.heap().writes_until_conflict = below(random, 30);
    if (below(random, 8) == 0) pool.heap().allocs_until_full = below(random, 4);
    try {
      pool.update(step);
      model = next;
    } catch (const UserError&) {
      ++failed;
    } catch (const Conflict&) {
      ++failed;
    } catch (const error&) {
      ++failed;
    }
    pool.heap().allocs_until_full = pool.heap().writes_until_conflict = ~0ULL;
    if (i % 20 == 0) expect_sound(pool);
    if (i % 100 != 99) continue;
    pool.view([&](auto& tx, const Root& root) {
      EXPECT_EQ(root.numbers.size(tx), model.numbers.size());
      for (const auto& [name, numbers] : model.numbers) {
        std::vector<std::int32_t> found;
        const auto* const there = root.numbers.find(tx, name);
        if (there == nullptr) return ADD_FAILURE() << name, 0;
        there->for_each(tx, [&](std::int32_t number) { found.push_back(number); });
        EXPECT_EQ(found, numbers);
      }
      std::size_t texts = 0;
      root.texts.for_each(tx, [&](std::int32_t number, const auto* m) {
        ++texts;
        EXPECT_EQ(m->size(tx), model.texts.at(number).size());
      });
      EXPECT_EQ(texts, model.texts.size());
      EXPECT_EQ(root.accounts.size(tx), model.accounts.size());
      for (std::size_t a = 0; a < model.accounts.size(); ++a) {
        EXPECT_EQ(tx.read(root.accounts.get(tx, a)->balance), model.accounts[a].first);
        EXPECT_EQ(root.accounts.get(tx, a)->entries.size(tx), model.accounts[a].second);
      }
      EXPECT_EQ(root.tables.size(tx), model.tables);
      EXPECT_EQ(root.numbers.find(tx, "not there"), nullptr);
      return 0;
    });
  }
  EXPECT_GT(failed, 100);
  expect_sound(pool);
  pool.update([](auto& tx, Root& root) { perdure::detail::drop_owned(tx, root); });
  EXPECT_EQ(pool.compare_blocks({}), "");
}

struct Note {
  std::string text;
  std::int32_t stars = 0;
  friend bool operator==(const Note&, const Note&) = default;
};
struct Branch {
  p<std::int32_t> number;
  box<Branch> left, right;
  box<Note> note;
  ptr<Branch> other;  // owns nothing
};
struct Boxes {
  box<Branch> tree;
  box<vector<std::int32_t>> numbers;
  box<Note> note;
  std::array<box<Note>, 2> notes;
};

TEST(Owned, Boxes) {
  DramPool<Boxes> pool;
  pool.update([](auto& tx, Boxes& root) {
    EXPECT_TRUE(root.tree.empty(tx) && root.tree.get(tx) == nullptr);
    EXPECT_FALSE(root.note.get(tx).has_value());
    EXPECT_FALSE(root.note.update(tx, [](Note&) { FAIL(); }));
    Branch* const tree = root.tree.make(tx, 1);
    tree->left.make(tx, 2)->note.put(tx, {"a note that has a block of its own", 3});
    tree->right.make(tx, 3)->right.make(tx, 4);
    tx.write(tree->other, tree);
    root.numbers.make(tx)->push_back(tx, 7);
    root.note.put(tx, {"first", 1});
    root.notes[1].put(tx, {"another note with a block of its own", 1});
  });
  expect_sound(pool);
  EXPECT_EQ(pool.heap().blocks.size() - 1, 12U);
  pool.update([](auto& tx, Boxes& root) {
    root.note.put(tx, {"second", 2});
    EXPECT_TRUE(root.note.update(tx, [](Note& note) { ++note.stars; }));
    root.numbers.update(tx, [&](auto& numbers) { numbers.push_back(tx, 8); });
    root.tree.update(tx, [&](Branch& tree) { tree.right.make(tx, 9); });  // frees the old one
  });
  expect_sound(pool);
  pool.view([](auto& tx, const Boxes& root) {
    EXPECT_EQ(root.note.get(tx), (Note{"second", 3}));
    EXPECT_EQ(root.numbers.get(tx)->get(tx, 1), 8);
    EXPECT_EQ(tx.read(root.tree.get(tx)->right.get(tx)->number), 9);
    EXPECT_TRUE(root.tree.get(tx)->right.get(tx)->right.empty(tx));
    EXPECT_EQ(root.tree.get(tx)->left.get(tx)->note.get(tx)->stars, 3);
    return 0;
  });
  pool.update([](auto& tx, Boxes& root) {
    root.tree.clear(tx);
    root.numbers.clear(tx);
    root.note.clear(tx);
    root.note.clear(tx);
    root.notes[1].clear(tx);
  });
  EXPECT_EQ(pool.compare_blocks({}), "");
}

struct Link {
  p<std::uint32_t> number;
  box<Link> next;
};
struct Chain {
  box<Link> first;
};

/// A chain of 1,000 is walked and freed; a longer one is walked, and refused by name when it is
/// freed.
TEST(Owned, ChainsOfBoxes) {
  for (const std::uint32_t length : {1000U, 20000U}) {
    DramPool<Chain> pool;
    pool.update([&](auto& tx, Chain& root) {
      box<Link>* last = &root.first;
      for (std::uint32_t i = 0; i < length; ++i) last = &last->make(tx, i)->next;
    });
    expect_sound(pool);
    try {
      pool.update([](auto& tx, Chain& root) { root.first.clear(tx); });
      EXPECT_EQ(length, 1000U);
      EXPECT_EQ(pool.compare_blocks({}), "");
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::too_big) << e.what();
      EXPECT_EQ(length, 20000U);
      expect_sound(pool);
    }
  }
}

TEST(Owned, WhatOwnsBlocks) {
  using perdure::detail::owns_blocks;
  static_assert(owns_blocks<Root>() && owns_blocks<Account>() && owns_blocks<Branch>());
  static_assert(owns_blocks<std::array<string, 2>>() && owns_blocks<box<Note>>());
  struct Fields {
    p<int> a;
    ptr<Account> b;
    p<int> c[3];
  };
  static_assert(!owns_blocks<Fields>() && !owns_blocks<p<int>>() && !owns_blocks<ptr<Account>>());
}

}  // namespace
}  // namespace perdure::test
