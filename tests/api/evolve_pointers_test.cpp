// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program changes structs behind pointers: their objects are copied where they get
// other places or new fields, and every pointer leads to the copy. What is refused, with the whole
// message. Openings that end at any batch, after which either version goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/api/erased.hpp"
#include "perdure/container/box.hpp"
#include "perdure/container/deque.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/set.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/features.hpp"
#include "tests/api/version_pairs.hpp"
#include "tests/api/versions.hpp"

namespace perdure {
namespace {

using Lines = std::vector<std::string>;
using test::Linked;

class EvolvePointers : public test::Versions {
 protected:
  /// What opening as this version would do.
  template <class Root>
  Lines changes() {
    const auto plan = migration_plan<Root>(path).value();
    EXPECT_EQ(plan.refusals, Lines{});
    return plan.changes;
  }
  void fill(std::uint64_t n) {
    auto pool = Pool<Linked::Before>::open(path, test::small_pool());
    test::fill<Linked>(pool, n);
    EXPECT_EQ(pool.check().problems, Lines{});
  }
  template <class Root>
  std::string problem(std::uint64_t n, const Options& options = test::small_pool()) {
    auto pool = Pool<Root>::open(path, options);
    std::string found = pool.view([&](auto& tx, const Root& r) {
      if constexpr (std::is_same_v<Root, Linked::After>)
        return Linked::problem(tx, r, n, false);
      else
        return Linked::problem(tx, r, n);
    });
    const CheckReport report = pool.check();
    return found.empty() && !report.ok() ? report.problems.front() : found;
  }
  /// The number of the pool's blocks.
  template <class Root>
  std::uint64_t blocks() {
    return Pool<Root>::open(path, test::small_pool()).check().blocks;
  }
};

TEST_F(EvolvePointers, ARingOfTwoKindsGrows) {
  fill(301);
  const std::uint64_t before = blocks<Linked::Before>();
  EXPECT_EQ(changes<Linked::After>(),
            (Lines{"first: new, u64", "head->added: new, u64", "head->number: renamed from key",
                   "head->number: u32 becomes u64", "head->more: new, u64[8]",
                   "head: its objects are copied to new blocks",
                   "owners: its objects lead to such, and are copied, too"}));
  Options options = test::small_pool();
  options.migrate.batch = 100;
  Lines progress;
  options.migrate.progress = [&](const std::string& what, std::uint64_t n) {
    progress.push_back(what + " " + std::to_string(n));
  };
  EXPECT_EQ(problem<Linked::After>(301, options), "");
  EXPECT_EQ(progress, (Lines{"head 100", "head 200", "head 300", "head 301", "owners 2"}));
  progress.clear();
  EXPECT_EQ(problem<Linked::After>(301, options), "");
  EXPECT_EQ(progress, Lines{});
  EXPECT_EQ(blocks<Linked::After>(), before + 2) << "the new root object and layout text";
  const auto older = Pool<Linked::Before>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(older.code(), Code::incompatible);
  EXPECT_EQ(older.message().substr(path.size()),
            ": a pool that a newer version of this program has taken over; this one would lose "
            "what that added. 4 changes are refused: [1] first: the pool has u64, the program has "
            "no such field; [2] head->added: the pool has u64, the program has no such field; [3] "
            "head->number: the pool has u64, the program has no such field; [4] head->more: the "
            "pool has u64[8], the program has no such field; use the newer program");
}

TEST_F(EvolvePointers, ManyNodesInSmallTransactions) {
  constexpr std::uint64_t n = 20'000;
  fill(n);
  const std::uint64_t before = blocks<Linked::Before>();
  Options options = test::small_pool();
  options.migrate.batch = 500;
  std::uint64_t calls = 0;
  options.migrate.progress = [&](const std::string&, std::uint64_t) { ++calls; };
  EXPECT_EQ(problem<Linked::After>(n, options), "");
  EXPECT_EQ(calls, 41U) << "20,000 nodes, then the owners";
  EXPECT_EQ(blocks<Linked::After>(), before + 2);
}

struct Stop {};

/// Opens the pool as version 2, and stops after `batches` batches. Returns whether it did.
bool stops_after(const std::string& path, unsigned batches) {
  Options options = test::small_pool();
  options.migrate.batch = 3;
  options.migrate.progress = [&](const std::string&, std::uint64_t) {
    if (batches-- == 0) throw Stop();
  };
  try {
    (void)Pool<Linked::After>::open(path, options);
    return false;
  } catch (const Stop&) {
    return true;
  }
}

TEST_F(EvolvePointers, EachVersionGoesOnWhereTheCopyingStopped) {
  fill(20);
  const std::uint64_t before = blocks<Linked::Before>();
  for (unsigned batches = 0;; ++batches) {
    if (!stops_after(path, batches)) break;
    ASSERT_LT(batches, 30U);
    // Stopped once more, further on.
    if (batches % 2 == 1) {
      EXPECT_TRUE(stops_after(path, batches));
    }
    {  // readers see version 1
      Options reading = test::small_pool();
      reading.read_only = true;
      EXPECT_EQ(problem<Linked::Before>(20, reading), "");
    }
    EXPECT_EQ(problem<Linked::Before>(20), "") << batches;
    EXPECT_EQ(blocks<Linked::Before>(), before) << "the copies are there";
  }
  EXPECT_EQ(problem<Linked::After>(20), "");
}

TEST_F(EvolvePointers, Version1ChangesThePoolBetweenTwoAttempts) {
  fill(20);
  EXPECT_TRUE(stops_after(path, 4));
  update<Linked::Before>([](auto& tx, Linked::Before& r) { Linked::add(tx, r, 20); });
  EXPECT_TRUE(stops_after(path, 1));
  EXPECT_EQ(problem<Linked::After>(21), "");
}

namespace third {
struct Owner;
struct Node {
  p<std::uint32_t> key;
  ptr<Node> next, prev;
  ptr<Owner> owner;
  string text;
  p<std::uint64_t> other{3};
};
struct Owner {
  p<std::uint64_t> nodes;
  ptr<Node> newest;
};
struct Root {
  ptr<Node> head;
  std::array<ptr<Owner>, 2> owners;
  hash_map<std::uint64_t, Node*> by_key;
  vector<Node*> all;
};
}  // namespace third

TEST_F(EvolvePointers, CopiesForAnotherVersionAreMadeAnew) {
  fill(20);
  const std::uint64_t before = blocks<Linked::Before>();
  EXPECT_TRUE(stops_after(path, 3));
  auto pool = Pool<third::Root>::open(path, test::small_pool());
  EXPECT_EQ(pool.check().problems, Lines{});
  EXPECT_EQ(pool.check().blocks, before + 2);
  pool.view([](auto& tx, const third::Root& r) {
    EXPECT_EQ(tx.read(tx.read(r.head)->other), 3U);
    EXPECT_EQ(tx.read(tx.read(r.head)->key), 19U);
  });
}

// A tree with pointers to parents, containers in its nodes, and values that stay where they are.
namespace tree1 {
struct Leaf {
  p<std::uint64_t> value;
};
struct Tree {
  std::array<ptr<Tree>, 2> below;
  ptr<Tree> above;
  ptr<Leaf> leaf;
  map<std::uint64_t, std::string> names;
  p<std::uint8_t> old, small{1};
};
struct Root {
  ptr<Tree> top, deepest, none;
  vector<Leaf*> leaves;
};
}  // namespace tree1
namespace tree2 {
struct Limits {
  p<std::uint32_t> low{10}, high{20};
};
struct Tree {
  ptr<tree1::Leaf> leaf;
  p<std::int16_t> small{0};
  Limits limits;
  ptr<Tree> above;
  vector<std::string> words;
  map<std::uint64_t, std::string> names;
  std::array<ptr<Tree>, 2> below;
  static constexpr std::string_view perdure_removed[] = {"old"};
};
struct Root {
  vector<tree1::Leaf*> leaves;
  ptr<Tree> deepest, top, none;
};
}  // namespace tree2

TEST_F(EvolvePointers, ATreeKeepsItsParentsAndItsContainers) {
  using tree1::Leaf;
  const Leaf* leaf = nullptr;
  update<tree1::Root>([&](auto& tx, tree1::Root& r) {
    Leaf* const one = tx.template make<Leaf>(7U);
    leaf = one;
    r.leaves.push_back(tx, one);
    const auto add = [&](auto& self, tree1::Tree* above, unsigned depth) -> tree1::Tree* {
      auto* const t = tx.template make<tree1::Tree>();
      tx(t->above) = above;
      tx(t->leaf) = one;
      tx(t->small) = static_cast<std::uint8_t>(200 + depth);
      for (std::uint64_t i = 0; i < 40; ++i) t->names.put(tx, i, std::to_string(i));
      if (depth > 0)
        for (auto& side : t->below) tx(side) = self(self, t, depth - 1);
      else
        tx(r.deepest) = t;
      return t;
    };
    tx(r.top) = add(add, nullptr, 4);
  });
  EXPECT_EQ(changes<tree2::Root>(),
            (Lines{"deepest->small: u8 becomes i16", "deepest->limits.low: new, u32",
                   "deepest->limits.high: new, u32", "deepest->words: new, vector<string>/1",
                   "deepest->old: removed", "deepest: its objects are copied to new blocks"}));
  update<tree2::Root>([&](auto& tx, tree2::Root& r) {
    EXPECT_EQ(tx.read(r.none), nullptr);
    EXPECT_EQ(r.leaves.get(tx, 0), leaf) << "it was moved";
    unsigned seen = 0;
    const auto walk = [&](auto& self, tree2::Tree* t, tree2::Tree* above, unsigned depth) -> void {
      ++seen;
      EXPECT_EQ(tx.read(t->above), above);
      EXPECT_EQ(tx.read(t->leaf), leaf);
      EXPECT_EQ(tx.read(t->small), static_cast<std::int16_t>(200 + depth));
      EXPECT_EQ(tx.read(t->limits.low), 10U);
      EXPECT_EQ(tx.read(t->limits.high), 20U);
      EXPECT_EQ(t->names.size(tx), 40U);
      EXPECT_EQ(t->names.find(tx, 39), "39");
      EXPECT_TRUE(t->names.audit(tx).empty());
      t->names.put(tx, 100, "more");
      t->words.push_back(tx, "word");
      for (auto& side : t->below) {
        if (depth > 0)
          self(self, tx.read(side), t, depth - 1);
        else
          EXPECT_EQ(tx.read(side), nullptr);
      }
      if (depth == 0 && seen == 31) {
        EXPECT_EQ(tx.read(r.deepest), t);
      }
    };
    walk(walk, tx.read(r.top), nullptr, 4);
    EXPECT_EQ(seen, 31U);
  });
  opens<tree2::Root>();
}

// Changes for which nothing has to be copied.
namespace stays1 {
struct Node {
  p<std::uint64_t> key, old;
  ptr<Node> next;
};
struct Root {
  ptr<Node> head;
};
}  // namespace stays1
namespace stays2 {
struct Node {
  p<std::uint64_t> number;
  alignas(16) ptr<Node> next;
  static constexpr renamed perdure_renamed[] = {{"number", "key"}};
  static constexpr std::string_view perdure_removed[] = {"old"};
};
struct Root {
  ptr<Node> head;
};
}  // namespace stays2

TEST_F(EvolvePointers, ObjectsWhoseFieldsKeepTheirPlacesAreNotCopied) {
  const void* first = nullptr;
  update<stays1::Root>([&](auto& tx, stays1::Root& r) {
    auto* const node = tx.template make<stays1::Node>(1U, 2U);
    tx(node->next) = node;
    tx(r.head) = node;
    first = node;
  });
  EXPECT_EQ(changes<stays2::Root>(),
            (Lines{"head->number: renamed from key", "head->old: removed"}));
  update<stays2::Root>([&](auto& tx, stays2::Root& r) {
    stays2::Node* const node = tx.read(r.head);
    EXPECT_EQ(node, first);
    EXPECT_EQ(tx.read(node->number), 1U);
    EXPECT_EQ(tx.read(node->next), node);
  });
}

// Pointers in containers of the root, of every kind that has values.
namespace held1 {
struct Node {
  p<std::uint64_t> key;
};
struct Root {
  map<std::uint64_t, Node*> map_;
  rb_tree<std::uint64_t, Node*> tree;
  hash_map<std::string, Node*> hash;
  multimap<std::uint64_t, Node*> multi;
  vector<Node*> vector_;
  deque<Node*> deque_;
  list<Node*> list_;
  queue<Node*> queue_;
};
}  // namespace held1
namespace held2 {
struct Node {
  p<std::uint64_t> key, added{9};
};
struct Root {
  queue<Node*> queue_;
  list<Node*> list_;
  deque<Node*> deque_;
  vector<Node*> vector_;
  multimap<std::uint64_t, Node*> multi;
  hash_map<std::string, Node*> names;
  rb_tree<std::uint64_t, Node*> tree;
  map<std::uint64_t, Node*> map_;
  static constexpr renamed perdure_renamed[] = {{"names", "hash"}};
};
}  // namespace held2

TEST_F(EvolvePointers, PointersInContainersLeadToTheCopies) {
  constexpr std::uint64_t n = 100;
  update<held1::Root>([](auto& tx, held1::Root& r) {
    for (std::uint64_t i = 0; i < n; ++i) {
      auto* const node = tx.template make<held1::Node>(i);
      r.map_.put(tx, i, node);
      r.tree.put(tx, i, node);
      r.hash.put(tx, std::to_string(i), node);
      r.multi.insert(tx, i / 2, node);
      r.vector_.push_back(tx, i == 5 ? nullptr : node);
      r.deque_.push_back(tx, node);
      r.list_.push_back(tx, node);
      r.queue_.push(tx, node);
    }
  });
  EXPECT_EQ(changes<held2::Root>(), (Lines{"names: renamed from hash", "queue_->added: new, u64",
                                           "queue_: its objects are copied to new blocks"}));
  Options options = test::small_pool();
  options.migrate.batch = 7;
  update<held2::Root>(
      [](auto& tx, held2::Root& r) {
        std::uint64_t i = 0;
        std::vector<held2::Node*> nodes;
        const auto same = [&](held2::Node* node) { EXPECT_EQ(node, nodes[i++]); };
        for (; i < n; ++i) {
          nodes.push_back(*r.map_.find(tx, i));
          EXPECT_EQ(tx.read(nodes.back()->key), i);
          EXPECT_EQ(tx.read(nodes.back()->added), 9U);
          EXPECT_EQ(r.tree.find(tx, i), nodes.back());
          EXPECT_EQ(r.names.find(tx, std::to_string(i)), nodes.back());
          EXPECT_EQ(r.vector_.get(tx, i), i == 5 ? nullptr : nodes.back());
        }
        i = 0;
        r.multi.for_each(tx, [&](std::uint64_t, held2::Node* node) { same(node); });
        i = 0;
        r.deque_.for_each(tx, same);
        i = 0;
        r.list_.for_each(tx, same);
        i = 0;
        r.queue_.for_each(tx, same);
      },
      options);
}

// What is refused. Each struct grows; what else there is forbids to copy its objects.
namespace refused1 {
struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
  list_hook hook;
};
struct Plain {
  p<std::uint64_t> key;
};
struct Opaque {
  static constexpr std::string_view layout_id = "opaque/1";
  std::uint64_t where = 0;
};
struct Other {
  p<std::uint64_t> a, b;
};
struct Root {
  ptr<Node> head;
  ptr<Plain> plain;
  map<std::uint64_t, Plain> owned;
  set<Plain*> set_;
  map<Plain*, Plain*> both;
  box<Other> owner;
  ptr<Other> other;
  ptr<void> any;
  p<Opaque> opaque;
  vector<perdure::vector<Plain*>> deep;
};
}  // namespace refused1
namespace refused2 {
struct Node {
  p<std::uint64_t> key;
  p<std::uint64_t> added;
  ptr<Node> next;
  list_hook hook;
};
struct Plain {
  p<std::uint64_t> key, added;
};
struct Other {
  p<std::uint64_t> a, added, b;
};
struct Root {
  ptr<Node> head;
  ptr<Plain> plain;
  map<std::uint64_t, refused1::Plain> owned;
  set<Plain*> set_;
  map<Plain*, Plain*> both;
  box<Other> owner;
  ptr<Other> other;
  ptr<void> any;
  p<refused1::Opaque> opaque;
  vector<perdure::vector<Plain*>> deep;
};
}  // namespace refused2

TEST_F(EvolvePointers, WhateverLeadsToCopiedObjectsMustBeKnown) {
  opens<refused1::Root>();
  const std::string blocks = ", which would be copied to new blocks (";
  const auto keep = [](const std::string& name) {
    return "keep the struct of " + name + " as it is, and the new fields in a map of the root)";
  };
  EXPECT_EQ(
      refusals<refused2::Root>(),
      (Lines{"owned: map<u64,own<{key:u64@0}8>,15>/1 owns objects of a struct with the fields of "
             "plain, whose objects would be copied to new blocks (keep the struct of plain as it "
             "is)",
             "set_: set<ptr<#2>,15>/1 leads to objects of plain" + blocks + keep("plain"),
             "both: map<ptr<#2>,ptr<#2>,15>/1 leads to objects of plain" + blocks + keep("plain"),
             "owner: box<ptr<#3>>/1 leads to objects of owner" + blocks + keep("owner"),
             "any: ptr<void> may lead to objects of head" + blocks + keep("head"),
             "opaque: pointers in opaque/1 can't be seen, and may lead to objects of head" +
                 blocks + keep("head"),
             "deep: vector<own<vector<ptr<#2>>/1>>/1 leads to objects of plain" + blocks +
                 keep("plain"),
             "head->hook: objects with a list_hook would be copied to new blocks, and a "
             "hooked_list would still lead to the old ones (" +
                 keep("head")}));
}

// Fields of a struct behind a pointer that can't be changed without a loss.
namespace lossy1 {
struct Node {
  p<std::uint64_t> wide, gone;
  string text;
  ptr<Node> next;
  std::array<p<std::uint32_t>, 2> numbers;
};
struct Root {
  ptr<Node> head, tail;
};
}  // namespace lossy1
namespace lossy2 {
struct Node {
  p<std::uint32_t> wide;
  std::array<p<std::uint32_t>, 4> numbers;
};
struct Other {
  p<std::uint64_t> wide;
};
struct Root {
  ptr<Node> head;
  ptr<Other> tail;
};
}  // namespace lossy2

TEST_F(EvolvePointers, NothingIsLostByMistake) {
  opens<lossy1::Root>();
  const std::string type =
      " (keep this field, add one of the new type under another name, and copy in an update)";
  const std::string gone =
      "the program has no such field (one whose value may be lost is listed in perdure_removed, a "
      "renamed one in perdure_renamed)";
  const std::string text =
      "the program has no such field (a struct that pointers lead to keeps its containers; a "
      "renamed one is listed in perdure_renamed)";
  const std::string next =
      "the program has no such field (what it leads to would be lost; a renamed one is listed in "
      "perdure_renamed)";
  EXPECT_EQ(
      refusals<lossy2::Root>(),
      (Lines{"head->wide: the pool has u64, the program u32" + type,
             "head->numbers: the pool has u32[2], the program u32[4]" + type,
             "head->gone: the pool has u64, " + gone, "head->text: the pool has string/1, " + text,
             "head->next: the pool has ptr<#1>, " + next, "tail->gone: the pool has u64, " + gone,
             "tail->text: the pool has string/1, " + text,
             "tail->next: the pool has ptr<#1>, " + next,
             "tail->numbers: the pool has u32[2], " + gone}));
}

namespace two1 {
struct Node {
  p<std::uint64_t> key;
};
struct Root {
  ptr<Node> head, tail;
};
}  // namespace two1
namespace two2 {
struct Node {
  p<std::uint64_t> key, more;
};
struct Other {
  p<std::uint64_t> key, other;
};
struct Root {
  ptr<Node> head;
  ptr<Other> tail;
};
}  // namespace two2

TEST_F(EvolvePointers, ObjectsOfOneStructStaySo) {
  opens<two1::Root>();
  EXPECT_EQ(refusals<two2::Root>(),
            (Lines{"tail: its objects are of one struct with those of head in the pool, and not in "
                   "the program (change both in the same way, as one struct)"}));
}

// Pointers that break the rules of ptr<>: found before anything is written.
namespace stray1 {
struct Inner {
  p<std::uint64_t> x;
};
struct Node {
  p<std::uint64_t> key;
  Inner inner;
};
struct Root {
  ptr<Node> head;
  ptr<Inner> inner;
  ptr<std::uint64_t> number;
};
}  // namespace stray1
namespace stray2 {
struct Inner {
  p<std::uint64_t> x, y;
};
struct Node {
  p<std::uint64_t> key;
  stray1::Inner inner;
  p<std::uint64_t> more;
};
struct Root {
  ptr<Node> head;
  ptr<Inner> inner;
  ptr<std::uint64_t> number;
};
}  // namespace stray2

TEST_F(EvolvePointers, PointersIntoObjectsAreFound) {
  update<stray1::Root>(
      [](auto& tx, stray1::Root& r) { tx(r.head) = tx.template make<stray1::Node>(1U); });
  const auto again = [&](auto f) {
    auto pool = Pool<stray1::Root>::open(path, test::small_pool());
    pool.update([&](auto& tx, stray1::Root& r) { f(tx, r); });
  };
  const auto stray = [&] {
    const Status s = Pool<stray2::Root>::try_open(path, test::small_pool()).status();
    EXPECT_EQ(s.code(), Code::incompatible);
    const std::string text = s.message().substr(std::min(path.size(), s.message().size()));
    return text.substr(0, text.find(", expected"));
  };
  again([](auto& tx, stray1::Root& r) { tx(r.inner) = &tx.read(r.head)->inner; });
  EXPECT_EQ(stray(), ": 1 objects of inner that are no blocks of their own");
  again([](auto& tx, stray1::Root& r) {
    tx(r.inner) = reinterpret_cast<stray1::Inner*>(tx.read(r.head));
  });
  EXPECT_EQ(stray(), ": an object to which pointers of two types lead, from the root object");
  again([](auto& tx, stray1::Root& r) {
    tx(r.inner) = nullptr;
    tx(r.number) = reinterpret_cast<std::uint64_t*>(&tx.read(r.head)->inner);
  });
  EXPECT_EQ(stray(), ": a pointer of another type that leads to an object of head, or into it");
  again([](auto& tx, stray1::Root& r) { tx(r.number) = nullptr; });
  opens<stray2::Root>();
}

// Pointers that opening does not follow, and classes that hide theirs.
namespace unseen1 {
struct Node {
  p<std::uint64_t> key, hits;
};
struct Stat {
  ptr<std::uint64_t> top;
};
struct Root {
  ptr<Node> head;
  ptr<Stat> stat;
  vector<std::uint64_t*> tops;
  vector<refused1::Opaque> opaque;
  map<std::uint64_t*, Node*> keys;
};
}  // namespace unseen1
namespace unseen2 {
struct Node {
  p<std::uint64_t> key, hits, added;
};
struct Root {
  ptr<Node> head;
  ptr<unseen1::Stat> stat;
  vector<std::uint64_t*> tops;
  vector<refused1::Opaque> opaque;
  map<std::uint64_t*, Node*> keys;
};
}  // namespace unseen2

TEST_F(EvolvePointers, PointersThatAreNotFollowedAreRefused) {
  opens<unseen1::Root>();
  Lines found;
  for (const std::string& one : refusals<unseen2::Root>())
    found.push_back(one.substr(0, one.find(':')));
  EXPECT_EQ(found, (Lines{"tops", "opaque", "keys", "stat->top"}));
}

// The text of both is the same; the objects of the second are larger.
namespace sized {
struct Before {
  p<std::uint64_t> key;
};
struct Small {
  p<std::uint64_t> key, added{4};
};
struct alignas(64) Large {
  p<std::uint64_t> key, added{4};
};
template <class T>
struct Root {
  ptr<T> a, b;
};
}  // namespace sized

TEST_F(EvolvePointers, CopiesForSmallerObjectsAreNotUsed) {
  update<sized::Root<sized::Before>>([](auto& tx, sized::Root<sized::Before>& r) {
    tx(r.a) = tx.template make<sized::Before>(1U);
    tx(r.b) = tx.template make<sized::Before>(2U);
  });
  Options options = test::small_pool();
  options.migrate.progress = [](const std::string&, std::uint64_t) { throw Stop(); };
  EXPECT_THROW((void)Pool<sized::Root<sized::Small>>::open(path, options), Stop);
  update<sized::Root<sized::Large>>([](auto& tx, sized::Root<sized::Large>& r) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tx.read(r.a)) % 64, 0U);
    EXPECT_EQ(tx.read(tx.read(r.b)->key), 2U);
    EXPECT_EQ(tx.read(tx.read(r.b)->added), 4U);
  });
}

// A block that holds more than its struct's fields: an array, or a header with what follows it.
TEST_F(EvolvePointers, ABlockOfSeveralObjectsIsRefused) {
  using Before = sized::Root<sized::Before>;
  using After = sized::Root<sized::Small>;
  {
    auto pool = Pool<Before>::open(path, test::small_pool());
    pool.update([](auto& tx, Before& r) {
      tx(r.a) = reinterpret_cast<sized::Before*>(tx.alloc(3 * sizeof(sized::Before)));
    });
  }
  const Status s = Pool<After>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("a block of 32 bytes with an object of a, whose fields end at 8: what "
                             "follows it would be lost"),
            std::string::npos)
      << s.message();
  update<Before>([](auto& tx, Before& r) {
    tx.free(tx.read(r.a));
    tx(r.a) = nullptr;
  });
  opens<After>();
}

// Version 2 removes fields and copies nothing; the objects of version 1 keep their larger blocks.
namespace shrunk1 {
struct Node {
  p<std::uint64_t> key;
  std::array<p<std::uint64_t>, 10> old;
};
struct Root {
  ptr<Node> head;
};
}  // namespace shrunk1
namespace shrunk2 {
struct Node {
  p<std::uint64_t> key;
  static constexpr std::string_view perdure_removed[] = {"old"};
};
struct Root {
  ptr<Node> head;
};
}  // namespace shrunk2
namespace shrunk3 {
struct Node {
  p<std::uint64_t> key, added{6};
};
struct Root {
  ptr<Node> head;
};
}  // namespace shrunk3

TEST_F(EvolvePointers, BlocksOfAnEarlierLargerVersionAreKnown) {
  update<shrunk1::Root>(
      [](auto& tx, auto& r) { tx(r.head) = tx.template make<shrunk1::Node>(5U); });
  opens<shrunk2::Root>();
  update<shrunk3::Root>([](auto& tx, auto& r) {
    EXPECT_EQ(tx.read(tx.read(r.head)->key), 5U);
    EXPECT_EQ(tx.read(tx.read(r.head)->added), 6U);
  });
}

// A pointer to an object that was freed, and whose block a container has now.
namespace stale {
template <class T>
struct Root {
  map<std::uint64_t, std::uint64_t> numbers;
  ptr<T> head;
};
}  // namespace stale

TEST_F(EvolvePointers, ABlockOfAContainerIsNoObject) {
  struct Node {
    p<std::uint64_t> fields[64];
  };
  struct Larger {
    p<std::uint64_t> fields[64];
    p<std::uint64_t> added;
  };
  {
    auto pool = Pool<stale::Root<Node>>::open(path, test::small_pool());
    pool.update([](auto& tx, stale::Root<Node>& r) {
      r.numbers.put(tx, 1, 2);
      const void* block = nullptr;
      r.numbers.each_block(tx, [&](const void* one) { block = one; });
      tx(r.head) = static_cast<Node*>(const_cast<void*>(block));
    });
  }
  const Status s = Pool<stale::Root<Larger>>::try_open(path, test::small_pool()).status();
  EXPECT_EQ(s.code(), Code::incompatible);
  EXPECT_NE(s.message().find("an object of head that a container owns, too"), std::string::npos)
      << s.message();
  update<stale::Root<Node>>([](auto& tx, auto& r) { tx(r.head) = nullptr; });
  opens<stale::Root<Larger>>();
}

namespace room {
struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
};
struct Root {
  ptr<Node> head;
};
}  // namespace room
namespace room2 {
struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
  std::array<p<std::uint64_t>, 256> more;
};
struct Root {
  ptr<Node> head;
};
}  // namespace room2

TEST_F(EvolvePointers, WithoutRoomForTheCopiesThePoolIsAsBefore) {
  Options options = test::small_pool();
  options.creation.max_size = 16 << 20;
  const auto blocks = [&] {  // a reader frees nothing
    Options reading = options;
    reading.read_only = true;
    const CheckReport report = Pool<room::Root>::open(path, reading).check();
    EXPECT_EQ(report.problems, Lines{});
    return report.blocks;
  };
  update<room::Root>(
      [](auto& tx, room::Root& r) {
        for (std::uint64_t i = 0; i < 10'000; ++i) {
          auto* const node = tx.template make<room::Node>(i);
          tx(node->next) = tx.read(r.head);
          tx(r.head) = node;
        }
      },
      options);
  const std::uint64_t before = blocks();
  const Status s = Pool<room2::Root>::try_open(path, options).status();
  EXPECT_EQ(s.code(), Code::full) << s.message();
  EXPECT_NE(s.message().find("; opening needs room for copies of 10000 objects and their list, "
                             "at least 25763840 bytes, besides what the pool has; its data is "
                             "as it was"),
            std::string::npos)
      << s.message();
  EXPECT_EQ(blocks(), before);
}

// One object whose copy is larger than the log.
namespace large {
inline std::array<std::uint8_t, 1 << 20> ones() {
  std::array<std::uint8_t, 1 << 20> all;
  all.fill(1);
  return all;
}
struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
  p<std::array<std::uint8_t, 1 << 20>> more{ones()};
};
struct Root {
  ptr<Node> head;
};
}  // namespace large

TEST_F(EvolvePointers, WithACopyLargerThanTheLogThePoolIsAsBefore) {
  Options options = test::small_pool();
  options.creation.log_size = 512 << 10;
  update<room::Root>([](auto& tx, room::Root& r) { tx(r.head) = tx.template make<room::Node>(1U); },
                     options);
  const Status s = Pool<large::Root>::try_open(path, options).status();
  EXPECT_EQ(s.code(), Code::too_big) << s.message();
  EXPECT_NE(s.message().find("; opening needs room for copies of 1 objects and "),
            std::string::npos)
      << s.message();
  Options reading = options;
  reading.read_only = true;
  const CheckReport report = Pool<room::Root>::open(path, reading).check();
  EXPECT_EQ(report.problems, Lines{});
  EXPECT_EQ(report.blocks, 2U) << "the catalog, and the object";
}

// Elements of a hooked_list to which no pointer leads.
namespace hooked1 {
struct Node {
  p<std::uint64_t> key;
};
struct Order {
  list_hook hook;
  ptr<Node> node;
};
struct Plain {
  p<std::uint64_t> number;
  list_hook hook;
};
struct Root {
  ptr<Node> head;
  ptr<Plain> plain;
  hooked_list<Order, &Order::hook> live;
  map<std::uint64_t, hooked_list<Order, &Order::hook>> levels;
  hooked_list<Plain, &Plain::hook> known;
};
}  // namespace hooked1
namespace hooked2 {
struct Node {
  p<std::uint64_t> key, added;
};
struct Root {
  ptr<Node> head;
  ptr<hooked1::Plain> plain;
  hooked_list<hooked1::Order, &hooked1::Order::hook> live;
  map<std::uint64_t, hooked_list<hooked1::Order, &hooked1::Order::hook>> levels;
  hooked_list<hooked1::Plain, &hooked1::Plain::hook> known;
};
}  // namespace hooked2

TEST_F(EvolvePointers, ElementsOfAHookedListMustBeKnown) {
  opens<hooked1::Root>();
  Lines found;
  for (const std::string& one : refusals<hooked2::Root>())
    found.push_back(one.substr(0, one.find(" and may")));
  const std::string list = "hooked_list<0/" + std::to_string(sizeof(hooked1::Order)) + ">/2";
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "live: the objects in " + list + " can't be seen,");
  EXPECT_TRUE(found[1].starts_with("levels: the objects in map<u64,")) << found[1];
}

// A record's field that version 2 removes and version 3 has again.
namespace again1 {
struct Rec {
  std::uint64_t a = 0, b = 0;
  std::string text;
};
struct Node {
  p<std::uint64_t> key;
  map<std::uint64_t, Rec> recs;
};
struct Root {
  ptr<Node> head;
};
}  // namespace again1
namespace again2 {
struct Rec {
  std::uint64_t a = 0;
  std::string text;
  static constexpr std::string_view perdure_removed[] = {"b"};
};
struct Late {
  p<std::uint64_t> key;
  map<std::uint64_t, Rec> late;
};
struct Node {
  p<std::uint64_t> key;
  map<std::uint64_t, Rec> recs;
  ptr<Late> next;
};
struct Root {
  ptr<Node> head;
};
}  // namespace again2
namespace again3 {
template <class Rec>
struct Late {
  p<std::uint64_t> key;
  map<std::uint64_t, Rec> late;
};
template <class Rec>
struct Node {
  p<std::uint64_t> key;
  map<std::uint64_t, Rec> recs;
  ptr<Late<Rec>> next;
};
template <class Rec>
struct Root {
  ptr<Node<Rec>> head;
};
struct Old {
  std::uint64_t a = 0;
  std::string text;
  std::uint64_t b = 7;
};
struct Fresh {
  std::uint64_t a = 0;
  std::string text;
  std::uint64_t c = 7;
  static constexpr std::string_view perdure_removed[] = {"b"};
};
}  // namespace again3

TEST_F(EvolvePointers, AFieldOfARecordBehindAPointerDoesNotComeBack) {
  update<again1::Root>([](auto& tx, auto& r) {
    auto* const node = tx.template make<again1::Node>(1U);
    node->recs.put(tx, 1, again1::Rec{1, 2, "three"});
    tx(r.head) = node;
  });
  opens<again2::Root>();
  EXPECT_EQ(refusals<again3::Root<again3::Old>>(),
            (Lines{"head->recs.b: an earlier version had a field of this name, removed since, and "
                   "its records may still be there (take a name that no version had)"}));
  EXPECT_EQ(refusals<again3::Root<again3::Fresh>>(), Lines{});
  update<again3::Root<again3::Fresh>>([](auto& tx, auto& r) {
    const auto found = tx.read(r.head)->recs.find(tx, 1);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->text, "three");
    EXPECT_EQ(found->c, 7U);
  });
}

// FEATURE-1: a program that does not know the list of copies refuses the pool.
TEST_F(EvolvePointers, APoolWithCopiesHasTheirFeature) {
  const auto has = [&] {
    Options reading = test::small_pool();
    reading.read_only = true;
    return pool::has_feature(Pool<Linked::Before>::open(path, reading).header(),
                             pool::Feature::copied_objects);
  };
  fill(20);
  EXPECT_FALSE(has());
  EXPECT_TRUE(stops_after(path, 0));
  EXPECT_TRUE(has());
}
TEST_F(EvolvePointers, AProgramOfNoVersionDoesNotWriteAPoolWithCopies) {
  fill(20);
  EXPECT_TRUE(stops_after(path, 0));
  const auto opened = [&] {
    const ErasedPool::Root any{.layout = {}, .bytes = 0, .any_layout = true};
    return ErasedPool::open(path, test::small_pool(), any).status().message();
  };
  EXPECT_NE(opened().find("a pool with copies of objects for another version of its program; open "
                          "it with the program that has it"),
            std::string::npos)
      << opened();
  opens<Linked::Before>();
  EXPECT_EQ(opened(), "");
}
TEST_F(EvolvePointers, APoolWithoutObjectsToCopyDoesNotNeedTheFeature) {
  opens<room::Root>();
  opens<room2::Root>();
  EXPECT_FALSE(pool::has_feature(Pool<room2::Root>::open(path, test::small_pool()).header(),
                                 pool::Feature::copied_objects));
}

// A struct behind a pointer needs no default constructor.
namespace exact {
struct Value {
  static constexpr std::string_view layout_id = "exact/1";
  constexpr explicit Value(std::uint64_t n) : number(n) {}
  std::uint64_t number;
};
struct Node {
  p<Value> value;
  ptr<Node> next;
};
struct Root {
  ptr<Node> head;
};
static_assert(!std::is_default_constructible_v<p<Value>>);
static_assert(std::is_default_constructible_v<p<std::uint64_t>>);
}  // namespace exact

TEST_F(EvolvePointers, AStructWithoutADefaultConstructorIsOpened) {
  update<exact::Root>([](auto& tx, exact::Root& r) {
    tx(r.head) = tx.template make<exact::Node>(exact::Value(3));
  });
  opens<exact::Root>();
}

}  // namespace
}  // namespace perdure
