// SPDX-License-Identifier: BSD-3-Clause
//
// set, hash_set, multimap, deque, priority_queue, hooked_list and tables with keys of several
// members: their blocks and elements against the containers', what a dump writes of them, what
// find() finds, and what is reported of words that are not known.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "perdure/container/deque.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/set.hpp"
#include "perdure/container/table.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/find.hpp"
#include "tests/inspect/compare_blocks.hpp"

namespace perdure::test {
namespace {

template <class Set, class K>
void compare_set() {
  compare<Set>([](DramTx& tx, Set& set, std::uint64_t r) {
    if (r >> 60 < 4)
      set.erase(tx, of<K>(r % 211));
    else
      set.insert(tx, of<K>(r % 211));
  });
}
TEST(InspectMore, Sets) {
  compare_set<set<std::uint64_t>, std::uint64_t>();
  compare_set<set<std::string, 23>, std::string>();
  compare_set<set<Small>, Small>();
  compare_set<hash_set<std::uint8_t>, std::uint8_t>();
  compare_set<hash_set<std::string, 4>, std::string>();
}

template <class K, class V>
void compare_multimap() {
  using Map = multimap<K, V>;
  compare<Map>([](DramTx& tx, Map& map, std::uint64_t r) {
    if (r >> 60 < 4)
      map.erase(tx, of<K>(r % 23));
    else
      map.insert(tx, of<K>(r % 23), of<V>(r >> 20 & 127));
  });
}
TEST(InspectMore, Multimaps) {
  compare_multimap<std::uint8_t, std::string>();
  compare_multimap<std::string, Place>();
  compare_multimap<Small, std::uint8_t>();
  compare_multimap<std::optional<std::string>, double>();
}

template <class T>
void compare_ends() {
  compare<deque<T>>([](DramTx& tx, deque<T>& x, std::uint64_t r) {
    // It grows at both ends, and shrinks in between.
    for (unsigned i = 0; i < 30; ++i) {
      if (r >> 60 < 3)
        (r >> 59 & 1) != 0 ? (void)x.pop_front(tx) : (void)x.pop_back(tx);
      else if ((r & 2) != 0)
        x.push_front(tx, of<T>((r + i) % 97));
      else
        x.push_back(tx, of<T>((r + i) % 97));
    }
  });
}
TEST(InspectMore, Deques) {
  compare_ends<std::uint64_t>();
  compare_ends<std::array<std::uint8_t, 5>>();
  compare_ends<std::array<std::uint64_t, 20>>();
  compare_ends<std::string>();
  compare_ends<std::optional<std::string>>();
}

template <class T, class Compare = std::less<T>>
void compare_heap() {
  using Queue = priority_queue<T, Compare>;
  compare<Queue>([](DramTx& tx, Queue& x, std::uint64_t r) {
    if (r >> 60 < 4)
      x.pop(tx);
    else
      x.push(tx, of<T>(r % 97));
  });
}
TEST(InspectMore, PriorityQueues) {
  compare_heap<std::uint64_t>();
  compare_heap<std::int32_t, std::greater<>>();
  compare_heap<std::string>();
  compare_heap<double>();
  compare_heap<Small>();
}

struct Order {
  list_hook by_price, by_owner;
  p<std::uint64_t> quantity;
};
struct Book {
  hash_map<std::uint64_t, Order> orders;
  map<std::int64_t, hooked_list<Order, &Order::by_price>> levels;
  hooked_list<Order, &Order::by_owner> all;
};
TEST(InspectMore, HookedLists) {
  DramPool<Holder<Book>> pool;
  pool.update([](DramTx& tx, Holder<Book>& root) {
    Book& book = root.x;
    for (std::uint64_t i = 0; i < 60; ++i) {
      book.orders.upsert(tx, i, [&](Order& order) { tx.write(order.quantity, i); });
      Order* order = nullptr;
      book.orders.update(tx, i, [&](Order& found) { order = &found; });
      book.levels.upsert(tx, static_cast<std::int64_t>(i % 5),
                         [&](auto& level) { level.push_back(tx, *order); });
      book.all.push_front(tx, *order);
    }
    for (std::uint64_t i = 0; i < 60; i += 3) book.orders.erase(tx, i);
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    const inspect::Member all = tree.field("x.all");
    ASSERT_EQ(all.type->kind, Kind::hooked_list);
    EXPECT_EQ(walker.count(*all.type, root + all.at), 40U);
    const inspect::Blocks found = inspect::find_blocks(walker, tree.root(), root);
    EXPECT_TRUE(found.whole()) << (found.problems.empty() ? "" : found.problems.front());
    std::vector<const void*> blocks;
    for (const std::uint64_t at : found.offsets) blocks.push_back(reinterpret_cast<void*>(at));
    EXPECT_EQ(pool.compare_blocks(blocks), "");
    // The second one from the front is order 58.
    const auto second = inspect::find(walker, *all.type, root + all.at, "1");
    ASSERT_TRUE(second);
    EXPECT_EQ(walker.read<std::uint64_t>(second->value + offsetof(Order, quantity)), 58U);
    EXPECT_FALSE(inspect::find(walker, *all.type, root + all.at, "40"));
  });
  // A hook that is damaged is found from its list and from its neighbours.
  pool.update([](DramTx& tx, Holder<Book>& root) {
    const std::uint64_t next = 0;
    root.x.orders.update(tx, 58, [&](Order& order) {
      tx.write_bytes(reinterpret_cast<std::byte*>(&order) + offsetof(Order, by_owner), &next, 8);
    });
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    const inspect::Blocks found = inspect::find_blocks(walker, tree.root(), root);
    std::string problems;
    for (const std::string& problem : found.problems) problems += problem + "\n";
    EXPECT_NE(problems.find("does not point back"), std::string::npos) << problems;
    EXPECT_NE(problems.find("a neighbour does not lead to it"), std::string::npos) << problems;
  });
}

struct Seat {
  std::uint32_t hall = 0;
  std::uint16_t row = 0;
  std::string guest;
  std::optional<std::string> code{};
};
using Seats =
    table<Seat, key<&Seat::hall, &Seat::row>, indexed<&Seat::row, &Seat::guest>,
          indexed_descending<&Seat::guest, &Seat::hall>, unique<&Seat::hall, &Seat::code>>;
using Ordered = table<Seat, ordered_key<&Seat::guest, &Seat::row>>;
template <class Table>
void compare_seats() {
  compare<Table>([](DramTx& tx, Table& x, std::uint64_t r) {
    const auto i = static_cast<std::uint32_t>(r % 151);
    x.put(tx, Seat{i % 7, static_cast<std::uint16_t>(i), word(i),
                   i % 3 == 0 ? std::nullopt : std::optional<std::string>(std::to_string(i))});
  });
}
TEST(InspectMore, TablesByKeysOfSeveralMembers) {
  compare_seats<Seats>();
  compare_seats<Ordered>();
}

struct All {
  set<std::string> names;
  hash_set<std::uint32_t> numbers;
  multimap<std::string, std::uint8_t> several;
  deque<std::int16_t> both;
  priority_queue<std::uint32_t, std::greater<>> next;
  hash_map<std::uint64_t, Order> orders;
  hooked_list<Order, &Order::by_owner> all;
};
TEST(InspectMore, DumpAndFind) {
  DramPool<All> pool;
  pool.update([](DramTx& tx, All& root) {
    for (const char* name : {"b", "a", "c"}) root.names.insert(tx, name);
    root.numbers.insert(tx, 7);
    root.several.insert(tx, "x", 2);
    root.several.insert(tx, "x", 1);
    root.several.insert(tx, "a", 3);
    for (std::int16_t i = 0; i < 3; ++i) root.both.push_front(tx, i);
    for (const std::uint32_t i : {5U, 3U, 9U}) root.next.push(tx, i);
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    std::string text;
    inspect::JsonWriter out([&](std::string_view piece) { text += piece; });
    inspect::Dump dump(walker, out);
    dump.document(tree.root().parts, root);
    dump.lines({tree.field("names"), tree.field("several"), tree.field("both")}, root);
    out.flush();
    EXPECT_TRUE(dump.damage().empty());
    EXPECT_EQ(text, R"({"names": ["a", "b", "c"], "numbers": [7], )"
                    R"("several": [["a", 3], ["x", 2], ["x", 1]], "both": [2, 1, 0], )"
                    R"("next": [3, 5, 9], "orders": [], "all": []})"
                    "\n"
                    R"({"field": "names", "key": "a"})"
                    "\n"
                    R"({"field": "names", "key": "b"})"
                    "\n"
                    R"({"field": "names", "key": "c"})"
                    "\n"
                    R"({"field": "several", "key": "a", "value": 3})"
                    "\n"
                    R"({"field": "several", "key": "x", "value": 2})"
                    "\n"
                    R"({"field": "several", "key": "x", "value": 1})"
                    "\n"
                    R"({"field": "both", "index": 0, "value": 2})"
                    "\n"
                    R"({"field": "both", "index": 1, "value": 1})"
                    "\n"
                    R"({"field": "both", "index": 2, "value": 0})"
                    "\n");
    const auto find = [&](const char* field, const char* key) {
      const inspect::Member member = tree.field(field);
      return inspect::find(walker, *member.type, root + member.at, key);
    };
    EXPECT_TRUE(find("names", "b"));
    EXPECT_FALSE(find("names", "d"));
    EXPECT_TRUE(find("numbers", "7"));
    EXPECT_FALSE(find("numbers", "8"));
    const auto several = find("several", "x");
    ASSERT_TRUE(several);
    EXPECT_EQ(walker.read<std::uint8_t>(several->value), 2);
    const auto both = find("both", "2");
    ASSERT_TRUE(both);
    EXPECT_EQ(walker.read<std::int16_t>(both->value), 0);
  });
}

TEST(InspectMore, AHeapOutOfOrderIsFound) {
  DramPool<All> pool;
  pool.update([](DramTx& tx, All& root) {
    for (std::uint32_t i = 0; i < 9; ++i) root.next.push(tx, i);
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    const inspect::Member next = tree.field("next");
    const auto last = inspect::find(walker, *next.type, root + next.at, "8");
    ASSERT_TRUE(last);
    std::memset(reinterpret_cast<void*>(last->value), 0, 4);
    const inspect::Blocks found = inspect::find_blocks(walker, tree.root(), root);
    ASSERT_EQ(found.problems.size(), 1U);
    EXPECT_EQ(found.problems[0], "field next: priority_queue: element 8 is above its parent");
  });
}

// A newer build's words, and a multimap whose keys are only named, may lead to blocks.
TEST(InspectMore, WordsThatAreNotKnownAreSaid) {
  for (const char* type :
       {"deque<u64>/2", "deque<money/1>/1", "multimap<money/1,u64,15>/1", "hooked_list<8/16>/2",
        "hooked_list<8>/2", "hooked_list<8/64>/1", "priority_queue<u64>/1", "set<u64>/1",
        "hash_set<u64,3>/1", "list_hook/2", "b_epsilon_tree<u64,set<u64,15>/1>/1",
        "table<{a:u32@0}4,key a+b>/1"}) {
    SCOPED_TRACE(type);
    const inspect::Tree tree =
        inspect::read_layout("0: " + std::string(type) + " @0 1024\n1: u64 @1024 8\n", "x,y");
    EXPECT_EQ(tree.root().parts[0].type->kind, Kind::unknown);
    EXPECT_EQ(tree.root().parts[0].type->size, 1024U);
    DramPool<std::array<std::byte, 1032>> pool;
    pool.view([&](DramReadTx& tx, const auto& root) {
      value::ReaderOver<DramReadTx> reader(tx);
      inspect::Walker walker(reader, 0, std::uint64_t{1} << 48);
      const inspect::Blocks found =
          inspect::find_blocks(walker, tree.root(), reinterpret_cast<Address>(&root));
      EXPECT_TRUE(found.problems.empty());
      EXPECT_FALSE(found.whole());
      ASSERT_EQ(found.unknown.size(), 1U);
      EXPECT_EQ(found.unknown[0], "x: " + std::string(type));
    });
  }
}

}  // namespace
}  // namespace perdure::test
