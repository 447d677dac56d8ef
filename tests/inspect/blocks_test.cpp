// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of containers as nodes.cpp describes them, against the containers: of every container,
// with keys and values of many sizes and kinds, every capacity that differs, on random content, the
// walk by layout names exactly the blocks that are allocated, with their sizes, and visits as many
// elements as the container has.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <variant>

#include "perdure/container/box.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/container/list.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/queue.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "tests/inspect/compare_blocks.hpp"

namespace perdure::test {
namespace {

template <class Map, class K, class V>
void compare_map() {
  compare<Map>([](DramTx& tx, Map& map, std::uint64_t r) {
    const K key = of<K>(r % 211);
    if (r >> 60 < 4)
      map.erase(tx, key);
    else
      map.put(tx, key, of<V>(r >> 20 & 127));
  });
}
template <class K, class V>
void compare_maps() {
  compare_map<map<K, V, 4>, K, V>();
  compare_map<map<K, V>, K, V>();
  compare_map<map<K, V, 16>, K, V>();
  compare_map<map<K, V, 23>, K, V>();
  compare_map<map<K, V, 100>, K, V>();
  compare_map<hash_map<K, V>, K, V>();
  compare_map<hash_map<K, V, 1>, K, V>();
  compare_map<hash_map<K, V, 4>, K, V>();
  compare_map<rb_tree<K, V>, K, V>();
}

TEST(InspectBlocks, MapsOfNumbers) {
  compare_maps<std::uint64_t, std::uint64_t>();
  compare_maps<std::uint8_t, std::uint8_t>();
  compare_maps<std::int32_t, std::array<std::uint8_t, 5>>();
  compare_maps<std::uint16_t, double>();
  compare_maps<std::chrono::sys_seconds, float>();
}
TEST(InspectBlocks, MapsOfTextAndRecords) {
  compare_maps<std::string, Place>();
  compare_maps<Small, Flat>();
  compare_maps<std::uint8_t, std::optional<std::string>>();
}
TEST(InspectBlocks, MapsOfImages) {
  compare_maps<std::tuple<std::string, std::uint8_t>,
               std::variant<std::uint8_t, std::string, Place>>();
  compare_maps<std::pair<std::int16_t, std::string>, std::vector<std::optional<std::string>>>();
}

template <class T>
void compare_sequences() {
  compare<vector<T>>([](DramTx& tx, vector<T>& x, std::uint64_t r) {
    if (r >> 60 < 4 && !x.empty(tx))
      x.pop_back(tx);
    else
      x.push_back(tx, of<T>(r % 97));
  });
  compare<list<T>>([](DramTx& tx, list<T>& x, std::uint64_t r) {
    if (r >> 60 < 4)
      x.pop_front(tx);
    else
      x.push_back(tx, of<T>(r % 97));
  });
  compare<queue<T>>([](DramTx& tx, queue<T>& x, std::uint64_t r) {
    if (r >> 60 < 5)
      x.pop(tx);
    else
      x.push(tx, of<T>(r % 97));
  });
}
TEST(InspectBlocks, Sequences) {
  compare_sequences<std::uint8_t>();
  compare_sequences<std::uint64_t>();
  compare_sequences<std::array<std::uint8_t, 5>>();
  compare_sequences<std::array<std::uint64_t, 20>>();
  compare_sequences<std::string>();
  compare_sequences<Small>();
  compare_sequences<Place>();
  compare_sequences<std::optional<std::string>>();
  compare_sequences<std::variant<std::uint8_t, std::string, Place>>();
}

TEST(InspectBlocks, StringsBoxesAndNestedContainers) {
  compare<string>([](DramTx& tx, string& x, std::uint64_t r) { x.assign(tx, word(r % 97)); },
                  false);
  compare<box<Place>>([](DramTx& tx, box<Place>& x, std::uint64_t r) {
    if (r % 3 == 0)
      x.clear(tx);
    else
      x.put(tx, of<Place>(r % 97));
  });
  compare<box<Fields>>([](DramTx& tx, box<Fields>& x, std::uint64_t r) {
    if (x.empty(tx)) x.make(tx);
    x.update(tx, [&](Fields& fields) { fields.words.push_back(tx, word(r % 97)); });
  });
  compare<map<std::string, vector<std::string>>>([](DramTx& tx, auto& x, std::uint64_t r) {
    x.upsert(tx, word(r % 31),
             [&](vector<std::string>& inner) { inner.push_back(tx, word(r >> 8 & 63)); });
  });
  compare<hash_map<std::uint32_t, Fields>>([](DramTx& tx, auto& x, std::uint64_t r) {
    x.upsert(tx, static_cast<std::uint32_t>(r % 31),
             [&](Fields& inner) { inner.words.push_back(tx, word(r >> 8 & 63)); });
  });
}

struct Session {
  std::string token;
  std::uint64_t user = 0;
  std::int32_t price = 0;
  std::optional<std::string> mail{};
  std::vector<std::string> roles{};
  std::chrono::sys_seconds until{};
};
struct Numbers {  // with an operator<: a key that lies as its bytes
  std::uint32_t a, b;
  friend bool operator<(const Numbers& x, const Numbers& y) { return x.a < y.a; }
  friend bool operator==(const Numbers&, const Numbers&) = default;
};
struct Parts {  // without one: an image
  std::uint32_t a, b;
};
struct ByNumbers {
  Numbers id;
  std::string text;
};
struct ByParts {
  Parts id;
  std::string text;
};

TEST(InspectBlocks, Tables) {
  using Sessions =
      table<Session, key<&Session::token>, indexed<&Session::user>,
            indexed_descending<&Session::price>, unique<&Session::mail>, expires<&Session::until>>;
  compare<Sessions>([](DramTx& tx, Sessions& x, std::uint64_t r) {
    const std::uint64_t i = r % 151;
    if (r >> 60 < 4)
      x.erase(tx, "t" + std::to_string(i));
    else
      x.put(tx,
            Session{"t" + std::to_string(i),
                    r >> 8 & 7,
                    static_cast<std::int32_t>(i) - 70,
                    i % 2 == 0 ? std::nullopt : std::optional<std::string>("m" + std::to_string(i)),
                    {word(i)},
                    std::chrono::sys_seconds(std::chrono::seconds(r >> 9 & 15))});
  });
  compare<table<ByNumbers, key<&ByNumbers::id>>>([](DramTx& tx, auto& x, std::uint64_t r) {
    const auto a = static_cast<std::uint32_t>(r % 97);
    x.put(tx, ByNumbers{{a, ~a}, word(r >> 8 & 63)});
  });
  compare<table<ByParts, key<&ByParts::id>>>([](DramTx& tx, auto& x, std::uint64_t r) {
    const auto a = static_cast<std::uint32_t>(r % 97);
    x.put(tx, ByParts{{a, ~a}, word(r >> 8 & 63)});
  });
}

TEST(InspectBlocks, PointersAreEnteredOnceAndCirclesEnd) {
  struct Node {
    p<std::uint64_t> value;
    ptr<Node> next;
    string name;
  };
  struct Ring {
    ptr<Node> head;
    vector<Node*> all;
  };
  DramPool<Ring> pool;
  pool.update([](DramTx& tx, Ring& ring) {
    Node* first = nullptr;
    Node* last = nullptr;
    for (std::uint64_t i = 0; i < 50; ++i) {
      Node* const node = tx.make<Node>();
      node->name.assign(tx, "node " + std::to_string(i));
      tx.write(node->next, last);
      if (first == nullptr) first = node;
      last = node;
      ring.all.push_back(tx, node);
    }
    tx.write(first->next, last);
    tx.write(ring.head, first);
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    const inspect::Blocks found = inspect::find_blocks(walker, tree.root(), root);
    EXPECT_TRUE(found.whole());
    std::vector<const void*> blocks;
    for (const std::uint64_t at : found.offsets) blocks.push_back(reinterpret_cast<void*>(at));
    EXPECT_EQ(pool.compare_blocks(blocks), "");
  });
}

}  // namespace
}  // namespace perdure::test
