// SPDX-License-Identifier: BSD-3-Clause
//
// A change of a transaction throws (the pool is full, the transaction too large), and the lambda
// catches that and returns: the transaction does not commit what it has done so far (REFUSED-1). On
// every engine, behind virtual calls and compiled in.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/engine/shadow/default_instances.hpp"
#include "perdure/engine/undo/instances.hpp"
#include "perdure/perdure.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

struct Row {
  std::uint64_t id = 0;
  std::string text, mail;
};
struct Root {
  p<std::uint64_t> before, after;
  table<Row, key<&Row::id>, unique<&Row::mail>> rows;
  map<std::string, std::string> texts;
  ptr<std::uint64_t> block;
};

template <class F>
Code code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return Code::ok;
}

/// `change` throws an error with this code, and a lambda catches it between two other changes.
/// `at_commit`: or the commit throws it, of engines that log there.
template <class P, class F>
void expect_refused(P& pool, Code code, F&& change, const char* what, bool at_commit = false) {
  std::uint64_t before = 0, rows = 0, texts = 0, used = 0;
  const auto look = [&] {
    pool.view([&](auto& tx, const Root& r) {
      before = tx(r.before);
      rows = r.rows.size(tx);
      texts = r.texts.size(tx);
      EXPECT_EQ(before, tx(r.after)) << what;
    });
    used = pool.stats().heap_used;
  };
  look();
  const std::uint64_t was = before, had_rows = rows, had_texts = texts, had_used = used;
  bool caught = false;
  const Code thrown = code_of([&] {
    pool.update([&](auto& tx, Root& r) {
      ++tx(r.before);
      caught = code_of([&] { change(tx, r); }) == code;
      ++tx(r.after);
    });
  });
  EXPECT_TRUE(caught || at_commit) << what;
  EXPECT_EQ(code, thrown) << what;
  look();
  EXPECT_EQ(was, before) << what;
  EXPECT_EQ(had_rows, rows) << what;
  EXPECT_EQ(had_texts, texts) << what;
  EXPECT_EQ(had_used, used) << what;
  const CheckReport check = pool.check();
  EXPECT_TRUE(check.ok()) << what << ": " << check.problems.front();
}

template <class P>
void expect_all_refused(P& pool) {
  pool.update([](auto& tx, Root& r) { r.rows.put(tx, {0, "text", "mail"}); });
  const auto number = [](std::uint64_t i) { return "number " + std::to_string(i); };
  expect_refused(
      pool, Code::full,
      [](auto& tx, Root& r) {
        tx(r.block) = reinterpret_cast<std::uint64_t*>(tx.alloc(16));
        (void)tx.alloc(64 << 20);
      },
      "a block");
  // Of one size the last block that fits is the row's, of another one the mail's, or a node's.
  for (const std::size_t bytes : {4U, 40U, 300U, 3000U, 9000U})
    expect_refused(
        pool, Code::full,
        [&](auto& tx, Root& r) {
          tx.write(r.block, nullptr);
          (void)tx.alloc(700 << 10);  // so that the heap is full before the log is
          for (std::uint64_t i = 1;; ++i)
            r.rows.put(tx, {i, std::string(bytes, 'x'), "a mail that is not short " + number(i)});
        },
        "rows");
  // Nested: the inner update joins the outer one.
  expect_refused(
      pool, Code::full,
      [&](auto&, Root&) {
        pool.update([](auto& tx, Root& r) {
          ++tx(r.before);
          (void)tx.alloc(64 << 20);
        });
      },
      "an update in an update");

  // What is no block is not freed, and nothing has changed.
  bool caught = false;
  pool.update([&](auto& tx, Root& r) {
    ++tx(r.before);
    caught = code_of([&] { tx.free(&r.after); }) == Code::invalid;
    ++tx(r.after);
  });
  EXPECT_TRUE(caught);
  pool.view([&](auto& tx, const Root& r) { EXPECT_EQ(tx(r.before), tx(r.after)); });
  // The next transaction of the thread knows nothing of the ones before.
  pool.update([&](auto& tx, Root& r) { r.rows.put(tx, {1, "text", "another mail"}); });
  pool.view([&](auto& tx, const Root& r) { EXPECT_EQ(2U, r.rows.size(tx)); });
}

// The data region is full before a transaction is too large.
Shape small() {
  Shape shape;
  shape.max_data_bytes = shape.data_bytes = 16 * pool::chunk_bytes;
  shape.ring_bytes = 4 << 20;
  return shape;
}

class Refusals : public EngineTest {};
ENGINE_SUITE(Refusals, all_of_them);
class TooBig : public EngineTest {};
ENGINE_SUITE(TooBig, durable_ones);

TEST_P(Refusals, EndTheTransactionWhereTheLambdaCatchesThem) {
  auto rig = open_rig<Root>(GetParam(), small());
  expect_all_refused(rig.pool);
}

TEST_P(TooBig, IsNoPartOfACommit) {
  Shape shape;
  shape.ring_bytes = 65536;
  auto rig = open_rig<Root>(GetParam(), shape);
  // The text's block is there when it turns out to be too large.
  expect_refused(
      rig.pool, Code::too_big,
      [](auto& tx, Root& r) { r.texts.put(tx, "a", std::string(700 << 10, 'x')); }, "a text", true);
}

// --- what containers throw themselves ------------------------------------------------------------

struct Deep {
  std::string name;
  std::vector<Deep> below;
};
/// One that is more than 100 deep is refused, when a part of it has been stored.
Deep deep(unsigned depth) {
  Deep all{"a name that has a block of its own", {}};
  for (; depth > 0; --depth) all = {"a name that has a block of its own", {std::move(all)}};
  return all;
}
struct DeepRow {
  std::uint64_t id = 0;
  std::string text;
  Deep tree;
};
struct Link {
  p<std::uint32_t> number;
  box<Link> next;
};
/// More than 1,000 of them can't be freed.
struct Chain {
  box<Link> first;
};
struct Less {
  static constexpr std::string_view layout_id = "test::Less/1";
  static inline bool throws = false;
  bool operator()(std::uint64_t a, std::uint64_t b) const {
    if (throws) throw error(Status(Code::not_found, "not comparable"));
    return a < b;
  }
};
struct Owner {
  p<std::uint64_t> before, after;
  table<DeepRow, key<&DeepRow::id>> rows;
  map<std::string, Deep> trees;
  hash_map<std::string, Chain> chains;
  list<Chain> chain_list;
  queue<Deep> line;
  priority_queue<std::uint64_t, Less> order;
};

/// `change` throws in the middle of a call, a lambda catches it, and nothing of it stays.
template <class P, class F>
void expect_nothing_of(P& pool, Code code, F&& change, const char* what) {
  const std::uint64_t used = pool.stats().heap_used;
  const Code thrown = code_of([&] {
    pool.update([&](auto& tx, Owner& r) {
      ++tx(r.before);
      Less::throws = code == Code::not_found;
      EXPECT_EQ(code, code_of([&] { change(tx, r); })) << what;
      Less::throws = false;
      ++tx(r.after);
    });
  });
  EXPECT_EQ(code, thrown) << what;
  EXPECT_EQ(used, pool.stats().heap_used) << what;
  pool.view([&](auto& tx, const Owner& r) { EXPECT_EQ(tx(r.before), 0U) << what; });
  const CheckReport check = pool.check();
  EXPECT_TRUE(check.ok()) << what << ": " << check.problems.front();
}

class HalfCalls : public EngineTest {};
ENGINE_SUITE(HalfCalls, all_of_them);

TEST_P(HalfCalls, OfContainersAreNotCommitted) {
  Shape shape;
  shape.ring_bytes = 4 << 20;
  auto rig = open_rig<Owner>(GetParam(), shape);
  auto& pool = rig.pool;
  const auto make_chain = [](auto& tx, Chain& chain) {
    box<Link>* last = &chain.first;
    for (std::uint32_t i = 0; i < 1200; ++i) last = &last->make(tx, i)->next;
  };
  pool.update([&](auto& tx, Owner& r) {
    r.rows.put(tx, {1, "a text that has a block of its own", {}});
    r.trees.put(tx, "tree", deep(2));
    r.chains.upsert(tx, "one", [&](Chain& chain) { make_chain(tx, chain); });
    r.chains.upsert(tx, "two", [&](Chain&) {});
    r.chain_list.push_back(tx, {});
    r.chain_list.update(tx, r.chain_list.last(tx), [&](Chain& chain) { make_chain(tx, chain); });
    for (std::uint64_t i = 0; i < 9; ++i) r.order.push(tx, i);
  });
  expect_nothing_of(
      pool, Code::too_big,
      [](auto& tx, Owner& r) {
        r.rows.update(tx, 1, [](DeepRow& row) {
          row.text = "another text, longer than the block of the one before it";
          row.tree = deep(120);
        });
      },
      "a row with a new text");
  expect_nothing_of(
      pool, Code::too_big, [](auto& tx, Owner& r) { r.trees.put(tx, "tree", deep(120)); },
      "a value of a map");
  expect_nothing_of(
      pool, Code::too_big, [](auto& tx, Owner& r) { r.line.push(tx, deep(120)); },
      "an element of a queue, in its first block");
  expect_nothing_of(
      pool, Code::too_big, [](auto& tx, Owner& r) { r.chains.erase(tx, "one"); },
      "an entry that owns a long chain");
  expect_nothing_of(
      pool, Code::too_big, [](auto& tx, Owner& r) { r.chains.clear(tx); }, "all entries");
  expect_nothing_of(
      pool, Code::too_big, [](auto& tx, Owner& r) { r.chain_list.clear(tx); },
      "all elements of a list");
  expect_nothing_of(
      pool, Code::not_found, [](auto& tx, Owner& r) { r.order.push(tx, 4); },
      "a comparison of the program's");
  expect_nothing_of(
      pool, Code::not_found, [](auto& tx, Owner& r) { (void)r.order.pop(tx); },
      "a comparison in pop()");
  pool.view([&](auto& tx, const Owner& r) {
    EXPECT_EQ(r.rows.find(tx, 1)->text, "a text that has a block of its own");
    EXPECT_EQ(r.trees.find(tx, "tree")->below.size(), 1U);
    EXPECT_EQ(r.chains.size(tx), 2U);
    EXPECT_EQ(r.line.size(tx), 0U);
    EXPECT_EQ(r.order.size(tx), 9U);
  });
}

template <class Engine>
class CompiledIn : public ::testing::Test {};
using CompiledInEngines = ::testing::Types<shadow, undo>;
TYPED_TEST_SUITE(CompiledIn, CompiledInEngines);

TYPED_TEST(CompiledIn, EndsTheTransactionToo) {
  const EngineInfo& e = *engine::find_family(TypeParam::names[0].name);
  auto made = medium::RecordingMedium::make(small().medium()).value();
  auto pool = Pool<Root, engines<TypeParam>>::try_open_on("recording", small().options(e),
                                                          std::move(made), true)
                  .value();
  expect_all_refused(pool);
}

}  // namespace
}  // namespace perdure::test
