// SPDX-License-Identifier: BSD-3-Clause
//
// btree_node<K, V, Capacity>: the nodes of map, and the operations within one node or between two
// neighbours.
//
// Leaf and inner node begin alike: the order of the slots, a link (leaf: the next leaf; inner: the
// child left of all keys), the keys. Then a leaf has values, an inner node the child right of each
// key. With 8-byte keys and values and the default of 15 entries a node is 256 bytes. Slots are not
// sorted (slot_order.hpp). In an inner node key i is at most every key of child i + 1 and above
// every key of child i.
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/api/persistent.hpp"
#include "perdure/container/slot_order.hpp"
#include "perdure/container/stored.hpp"

namespace perdure::detail {

template <class K, class V, unsigned Capacity>
struct btree_node {
  static_assert(Capacity >= 4 && Capacity <= 255,
                "perdure::map: Capacity (entries a node) is 4 to 255; 15 and less keep their order "
                "in one word");
  using Key = stored_key<K>;
  using Value = stored<V>;
  using RawKey = typename Key::raw;
  using RawValue = typename Value::raw;
  using Order = slot_order<Capacity>;

  struct Node {
    p<Order> order;
    ptr<Node> link;
    typename Key::field key[Capacity];
  };
  struct Leaf {
    Node node;
    typename Value::field value[Capacity];
  };
  struct Inner {
    Node node;
    ptr<Node> child[Capacity];
  };
  static_assert(
      sizeof(Leaf) <= 65536 && sizeof(Inner) <= 65536,
      "perdure::map: a node is at most 64 KiB: lower Capacity, or hold big values as std::string");

  static auto& values(Node* node) { return reinterpret_cast<Leaf*>(node)->value; }
  static auto& children(Node* node) { return reinterpret_cast<Inner*>(node)->child; }

  /// Returns the position of the first key that is not below `key`.
  template <class Tx, class Bound>
  static unsigned lower(Tx& tx, const Node* node, const Order& order, const Bound& key) {
    unsigned at = 0, n = order.count();
    while (n > 0) {
      const unsigned half = n / 2;
      const bool right = Key::less(tx, node->key[order[at + half]], key);
      at = right ? at + half + 1 : at;
      n = right ? n - half - 1 : half;
    }
    return at;
  }
  /// Returns the position of the first key above `key`: that of the child that `key` belongs to.
  template <class Tx, class Bound>
  static unsigned upper(Tx& tx, const Node* node, const Order& order, const Bound& key) {
    unsigned at = 0, n = order.count();
    while (n > 0) {
      const unsigned half = n / 2;
      const bool right = !Key::above(tx, node->key[order[at + half]], key);
      at = right ? at + half + 1 : at;
      n = right ? n - half - 1 : half;
    }
    return at;
  }
  /// Returns child i of count() + 1.
  template <class Tx>
  static Node* child(Tx& tx, Node* node, const Order& order, unsigned i) {
    return i == 0 ? tx.read(node->link) : tx.read(children(node)[order[i - 1]]);
  }

  /// Prefetches the lines that a search of the node will read, so that their misses overlap that of
  /// the first line.
  static void prefetch(const Node* node) {
    for (std::size_t at = 64; at < sizeof(Node) && at < 256; at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(node) + at);
  }

  /// What a node holds besides its keys, chosen by the kind of node.
  struct LeafKind {
    using Payload = RawValue;
    static constexpr std::size_t bytes = sizeof(Leaf);
    static auto& payload(Node* node) { return values(node); }
  };
  struct InnerKind {
    using Payload = Node*;
    static constexpr std::size_t bytes = sizeof(Inner);
    static auto& payload(Node* node) { return children(node); }
  };

  /// Fills the entry at position `at` of a node that is not full. `order` becomes the node's new
  /// order, which the caller stores.
  template <class Kind, class Tx>
  static void fill(Tx& tx, Node* node, Order& order, unsigned at, const RawKey& key,
                   const typename Kind::Payload& payload) {
    const unsigned slot = order.insert(at);
    tx.write(node->key[slot], key);
    tx.write(Kind::payload(node)[slot], payload);
  }

  /// Makes a new node of `n` entries in slots 0 ... n - 1. The other slots are left undefined.
  template <class Kind, class Tx>
  static Node* make(Tx& tx, Node* link, unsigned n, const RawKey* keys,
                    const typename Kind::Payload* payloads) {
    auto* node = reinterpret_cast<Node*>(tx.alloc(Kind::bytes));
    tx.write(node->order, Order::first(n));
    tx.write(node->link, link);
    tx.write_bytes(node->key, keys, n * sizeof(RawKey));
    tx.write_bytes(Kind::payload(node), payloads, n * sizeof(typename Kind::Payload));
    return node;
  }

  /// Moves the first `n` entries of `right` to the end of `left`; the caller stores the orders.
  template <class Kind, class Tx>
  static void move_left(Tx& tx, Node* left, Order& lo, Node* right, Order& ro, unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      fill<Kind>(tx, left, lo, lo.count(), tx.read(right->key[ro[0]]),
                 tx.read(Kind::payload(right)[ro[0]]));
      ro.erase(0);
    }
  }
  /// Moves the last `n` entries of `left` to the front of `right`; the caller stores the orders.
  template <class Kind, class Tx>
  static void move_right(Tx& tx, Node* left, Order& lo, Node* right, Order& ro, unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      const unsigned slot = lo[lo.count() - 1];
      fill<Kind>(tx, right, ro, 0, tx.read(left->key[slot]), tx.read(Kind::payload(left)[slot]));
      lo.truncate(lo.count() - 1);
    }
  }
};

}  // namespace perdure::detail
