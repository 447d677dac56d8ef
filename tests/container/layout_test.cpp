// SPDX-License-Identifier: BSD-3-Clause
//
// Golden values: layout texts, the fingerprint, hashes. They are part of the format: a change here
// means a new format version, not a new expectation.
// Also the walk over a root: pointers are followed once, blocks are named, complaints name their
// field.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "perdure/api/hash.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/vector.hpp"
#include "tests/container/dram_tx.hpp"

namespace perdure::test {
namespace {

enum class Colour : std::uint16_t { red };
struct Plain {
  std::int32_t a;
  double b;
  Colour colour;
  char text[5];
};
struct Pair {
  p<std::uint32_t> left, right;
};
struct Node {
  p<std::uint64_t> value;
  ptr<Node> next;
  ptr<Pair> pair;
};
class Closed {
 public:
  static constexpr std::string_view layout_id = "closed/4";
  Closed() {}

 private:
  [[maybe_unused]] p<std::uint64_t> hidden_;
};
struct Foreign {
  Foreign() {}
  p<std::uint8_t> a;
};

struct Bank {
  hash_map<std::uint64_t, std::int64_t> accounts;
  p<std::uint64_t> transfers;
};

struct Everything {
  p<bool> flag;
  p<std::int8_t> bytes[3];
  Pair pair;
  Pair pairs[2];
  p<Plain> plain;
  std::array<p<float>, 20> floats;
  ptr<Node> head;
  ptr<void> any;
  vector<Node*> nodes;
  vector<std::array<std::uint8_t, 3>> triples;
  list<std::string> names;
  Closed closed;
  queue<Plain> work;
  map<std::string, Plain> plains;
  rb_tree<Colour, std::uint8_t> colours;
};

TEST(Layout, ContainersNameThemselves) {
  EXPECT_EQ((vector<std::uint64_t>::layout_text()), "vector<u64>/1");
  EXPECT_EQ((vector<std::string>::layout_text()), "vector<string>/1");
  EXPECT_EQ(string::layout_text(), "string/1");
  EXPECT_EQ((hash_map<std::uint64_t, std::int64_t>::layout_text()), "hash_map<u64,i64,128>/1");
  EXPECT_EQ((hash_map<std::string, Plain, 16>::layout_text()),
            "hash_map<string,{i32@0,f64@8,enum:u16@16,char[5]@18}24,16>/1");
  EXPECT_EQ((map<std::string, std::string>::layout_text()), "map<string,string,15>/1");
  EXPECT_EQ((rb_tree<std::int16_t, float>::layout_text()), "rb_tree<i16,f32>/1");
  EXPECT_EQ((list<char>::layout_text()), "list<char>/1");
  EXPECT_EQ((queue<bool>::layout_text()), "queue<bool>/1");
}

TEST(Layout, OfARoot) {
  EXPECT_EQ(layout_of<Bank>(), "0: hash_map<u64,i64,128>/1 @0 64\n1: u64 @64 8\n");
  EXPECT_EQ(layout_fingerprint<Bank>(),
            layout_fingerprint("0: hash_map<u64,i64,128>/1 @0 64\n1: u64 @64 8\n"));
  EXPECT_EQ(layout_of<Everything>(),
            "0: bool @0 1\n"
            "1: i8[3] @1 3\n"
            "2.0: u32 @4 4\n"
            "2.1: u32 @8 4\n"
            "3: {u32@0,u32@4}8[2] @12 16\n"
            "4: {i32@0,f64@8,enum:u16@16,char[5]@18}24 @32 24\n"
            "5: f32[20] @56 80\n"
            "6: ptr<#1> @136 8\n"
            "7: ptr<void> @144 8\n"
            "8: vector<ptr<#1>>/1 @152 32\n"
            "9: vector<u8[3]>/1 @184 32\n"
            "10: list<string>/1 @216 24\n"
            "11: closed/4 @240 8\n"
            "12: queue<{i32@0,f64@8,enum:u16@16,char[5]@18}24>/1 @256 128\n"
            "13: map<string,{i32@0,f64@8,enum:u16@16,char[5]@18}24,15>/1 @384 64\n"
            "14: rb_tree<enum:u16,u8>/1 @448 64\n"
            "#1.0: u64 @0 8\n"
            "#1.1: ptr<#1> @8 8\n"
            "#1.2: ptr<#2> @16 8\n"
            "#2.0: u32 @0 4\n"
            "#2.1: u32 @4 4\n");
  EXPECT_EQ(field_names_of<Everything>(),
            "flag,bytes,pair{left,right},pairs{left,right},plain{a,b,colour,text},floats,head,any,"
            "nodes,triples,names,closed,work{a,b,"
            "colour,text},"
            "plains{a,b,colour,text},colours,#1{value,next,pair},#2{left,right}");
  EXPECT_EQ((layout_of<map<std::string, std::string>>()), "0: map<string,string,15>/1 @0 64\n");
  EXPECT_EQ(layout_of<p<Colour>>(), "0: enum:u16 @0 2\n");
}

TEST(Layout, FingerprintIsStable) { EXPECT_EQ(layout_fingerprint<Bank>(), 9241822065710788361U); }

TEST(Layout, DifferencesAreNamed) {
  EXPECT_EQ(layout_difference("0: u64 @0 8\n", "0: u64 @0 8\n"), "");
  EXPECT_EQ(layout_difference("0: u64 @0 8\n1.0: u64 @8 8\n", "0: u64 @0 8\n1.0: i64 @8 8\n"),
            "field 1.0: the pool has 'u64 @8 8', the program 'i64 @8 8'");
  EXPECT_EQ(layout_difference("0: u64 @0 8\n", "0: u64 @0 8\n1: i64 @8 8\n"),
            "field 1: the pool has nothing, the program 'i64 @8 8'");
  EXPECT_EQ(layout_difference("0: u64 @0 8\n1: i64 @8 8\n", "0: u64 @0 8\n"),
            "field 1: the pool has 'i64 @8 8', the program nothing");
}

TEST(Layout, FieldsAreCounted) {
  static_assert(field_count<Bank> == 2 && field_count<Everything> == 15 && field_count<Node> == 3 &&
                field_count<Plain> == 4);
  static_assert(!aggregate_struct<Closed> && !aggregate_struct<Foreign>);
  Everything* object = reinterpret_cast<Everything*>(64);  // never read: only addresses are formed
  std::vector<std::uintptr_t> offsets;
  for_each_field(*object, [&](auto& field) {
    offsets.push_back(reinterpret_cast<std::uintptr_t>(&field) - 64);
  });
  EXPECT_EQ(offsets, (std::vector<std::uintptr_t>{0, 1, 4, 12, 32, 56, 136, 144, 152, 184, 216, 240,
                                                  256, 384, 448}));
}

/// Hashes are stored in pools, so they must never change.
TEST(Hash, IsStable) {
  EXPECT_EQ(hash<std::uint64_t>::of(0), 0U);
  EXPECT_EQ(hash<std::uint64_t>::of(1), 0xb456bcfc34c2cb2cU);
  EXPECT_EQ(hash<int>::of(-1), hash<std::int64_t>::of(-1));
  EXPECT_EQ(hash<std::uint8_t>::of(200), hash<std::uint64_t>::of(200));
  EXPECT_EQ(hash<Colour>::of(Colour::red), 0U);
  EXPECT_EQ(hash<double>::of(-0.0), hash<double>::of(0.0));
  EXPECT_EQ(hash<std::string>::of("perdure"), 7854915811851619400U);
  EXPECT_EQ(hash<std::string>::of(""), 13429863729491566289U);
  EXPECT_EQ(hash<std::string>::of("a text that is longer than two words"), 16412609642722315270U);
  EXPECT_NE(hash<std::string>::of(std::string(1, '\0')), hash<std::string>::of(""));
  EXPECT_EQ((hash<std::array<std::uint32_t, 2>>::of({1, 2})), 8073516154658810121U);
}

struct Graph {
  ptr<Node> head;
  p<std::uint64_t> n;
  vector<Node*> nodes;
  map<std::uint64_t, std::uint64_t> numbers;
};

TEST(Walk, FollowsPointersOnceAndNamesBlocks) {
  DramPool<Graph> pool;
  pool.update([](auto& tx, Graph& root) {
    // A circle of three nodes, of which one is in the vector, too, which also contains a fourth
    // node.
    Node* a = tx.template make<Node>(1U, nullptr, tx.template make<Pair>(1U, 2U));
    Node* b = tx.template make<Node>(2U, a, nullptr);
    Node* c = tx.template make<Node>(3U, b, nullptr);
    tx.write(a->next, c);
    tx.write(root.head, c);
    root.nodes.push_back(tx, b);
    root.nodes.push_back(tx, tx.template make<Node>(4U, nullptr, nullptr));
    root.nodes.push_back(tx, nullptr);
    for (std::uint64_t i = 0; i < 100; ++i) root.numbers.insert(tx, i, i);
  });
  std::set<const void*> reached;
  std::vector<const void*> owned;
  const auto problems = pool.view([&](auto& tx, const Graph& root) {
    return audit(tx, root, [&](const void* block, bool own) {
      if (own) owned.push_back(block);
      return own || reached.insert(block).second;
    });
  });
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(reached.size(), 5U);
  owned.insert(owned.end(), reached.begin(), reached.end());
  EXPECT_EQ(pool.compare_blocks(owned), "");
}

// Damage, as a container sees it: its own walk would never end.
struct Ring {
  ptr<Node> head;
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (Node* node = tx.read(head); node != nullptr; node = tx.read(node->next)) f(node);
  }
};

TEST(Walk, OfACircleOfOwnedBlocksEnds) {
  DramPool<Ring> pool;
  pool.update([](auto& tx, Ring& root) {
    Node* a = tx.template make<Node>(1U, nullptr, nullptr);
    tx.write(a->next, tx.template make<Node>(2U, a, nullptr));
    tx.write(root.head, a);
  });
  const OwnedBlocks found = pool.view([&](auto& tx, const Ring& root) {
    // The allocator chooses the places of the pool's blocks: they lie on both sides of the root.
    constexpr std::uint64_t around = 16 << 20;
    return owned_blocks(tx, root, reinterpret_cast<const std::byte*>(&root) - around, 2 * around);
  });
  EXPECT_FALSE(found.whole);
  ASSERT_EQ(1U, found.problems.size());
  EXPECT_NE(std::string::npos, found.problems.front().find("in a circle"))
      << found.problems.front();
}

TEST(Walk, ComplaintsNameTheirField) {
  DramPool<Graph> pool;
  const void* leaf = nullptr;
  pool.update([&](auto& tx, Graph& root) {
    for (std::uint64_t i = 0; i < 10; ++i) root.numbers.insert(tx, i, i);
    root.numbers.each_block(tx, [&](const void* block) { leaf = block; });
    // Without the map's knowledge a key in the leaf's first slot becomes one that is out of order.
    const std::uint64_t wrong = 1000;
    tx.write_bytes(static_cast<std::byte*>(const_cast<void*>(leaf)) + 16, &wrong, sizeof wrong);
  });
  const auto problems = pool.view([&](auto& tx, const Graph& root) {
    return audit(tx, root, [](const void*, bool) { return true; });
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.front(), "field 3: map: leaf 0: keys 0 and 1 are not in order");
}

}  // namespace
}  // namespace perdure::test
