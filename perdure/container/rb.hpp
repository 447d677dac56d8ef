// SPDX-License-Identifier: BSD-3-Clause
//
// rb<K, V>: the red-black tree under rb_tree.
//
// A field is written only where its value changes. Removing a node with two children moves its
// successor's key and value into it and unlinks the successor: with small keys and values that logs
// less than relinking would.
// Thread safety: that of the transaction.
// Invariants:
// RBTREE-1 A red node's children are black (null is black).
// RBTREE-2 Every path from a node to a null passes the same number of black nodes.
// RBTREE-3 The root is black.
// RBTREE-4 x.left.parent and x.right.parent are x, and the root's parent is null.
// RBTREE-5 Keys left of x are below x's, keys right of it are above.
// Zero bytes are an empty tree.
// Source: Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", 3rd edition, chapter 13
// (with null for its sentinel).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perdure/api/persistent.hpp"
#include "perdure/container/counter.hpp"
#include "perdure/container/stored.hpp"

namespace perdure::detail {

template <class K, class V>
class rb {
  using Key = stored_key<K>;
  using Value = stored<V>;
  using key_arg = typename Key::arg;
  using value_arg = typename Value::arg;
  struct Node {
    /// It lies beside the links, so that a descent seldom touches two lines of a node.
    typename Key::field key;
    ptr<Node> side[2];  ///< left, right
    ptr<Node> parent;
    p<std::uint64_t> red;
    typename Value::field value;
  };
  struct Image {  ///< a node as it is built in DRAM
    typename Key::raw key;
    Node* side[2];
    Node* parent;
    std::uint64_t red;
    typename Value::raw value;
  };

 public:
  /// Whether lower_bound() takes a bound of a number of parts (key_bound.hpp).
  static constexpr bool finds_prefixes = false;
  struct Place {
    Node* node = nullptr;
    [[nodiscard]] bool there() const noexcept { return node != nullptr; }
    [[nodiscard]] bool same(const Place& other) const noexcept { return node == other.node; }
    [[nodiscard]] const auto& key_field() const { return node->key; }
    [[nodiscard]] const auto& value_field() const { return node->value; }
  };

  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return count_.total(tx);
  }
  template <class Tx>
  [[nodiscard]] Node* root(Tx& tx) const {
    return tx.read(root_);
  }
  template <class Tx>
  [[nodiscard]] Place first(Tx& tx) const {
    return {outermost(tx, tx.read(root_), 0)};
  }
  template <class Tx>
  [[nodiscard]] Place last(Tx& tx) const {
    return {outermost(tx, tx.read(root_), 1)};
  }

  template <class Tx>
  [[nodiscard]] Place lower_bound(Tx& tx, key_arg key) const {
    Place best;
    for (Node* node = tx.read(root_); node != nullptr;) {
      const bool right = Key::less(tx, node->key, key);
      if (!right) best.node = node;
      node = tx.read(node->side[right]);
    }
    return best;
  }
  template <class Tx>
  static void next(Tx& tx, Place& place) {
    place.node = neighbour(tx, place.node, 1);
  }
  /// Moves to the entry before; from past the end, to the last one; from the first, past the end.
  template <class Tx>
  void prev(Tx& tx, Place& place) const {
    if (place.there())
      place.node = neighbour(tx, place.node, 0);
    else
      place = last(tx);
  }

  /// Returns the value field of `key`, or null.
  template <class Tx>
  [[nodiscard]] auto find(Tx& tx, key_arg key) const -> typename Value::field* {
    Node* node = find_node(tx, key);
    return node == nullptr ? nullptr : &node->value;
  }

  /// Adds key and value, or calls found(value field) when the key is there. Returns whether it was
  /// added.
  template <class Tx, class Found>
  bool add(Tx& tx, key_arg key, value_arg value, Found found) {
    Node* parent = nullptr;
    unsigned side = 0;
    for (Node* node = tx.read(root_); node != nullptr; node = tx.read(node->side[side])) {
      const int order = Key::compare(tx, node->key, key);
      if (order == 0) {
        found(node->value);
        return false;
      }
      parent = node;
      side = order < 0;
    }
    static_assert(sizeof(Image) == sizeof(Node));
    const Image image{Key::make(tx, key), {nullptr, nullptr}, parent, 1, Value::make(tx, value)};
    auto* node = reinterpret_cast<Node*>(tx.alloc(sizeof(Node)));
    tx.write_bytes(node, &image, sizeof(Node));
    tx.write(parent == nullptr ? root_ : parent->side[side], node);
    balance_added(tx, node);
    count_.add(tx, 1, pick(node));
    return true;
  }

  /// Removes the key. Returns whether it was there.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    Node* node = find_node(tx, key);
    if (node == nullptr) return false;
    Key::drop(tx, tx.read(node->key));
    Value::drop(tx, tx.read(node->value));
    Node* left = tx.read(node->side[0]);
    Node* right = tx.read(node->side[1]);
    Node* out = node;  // the node that leaves the tree; it has one child at most
    if (left != nullptr && right != nullptr) {
      out = outermost(tx, right, 0);
      tx.write(node->key, tx.read(out->key));
      tx.write(node->value, tx.read(out->value));
      left = nullptr;
      right = tx.read(out->side[1]);
    }
    Node* child = left != nullptr ? left : right;
    Node* parent = tx.read(out->parent);
    replace_child(tx, parent, out, child);
    if (child != nullptr) {  // red under black, by RBTREE-2
      tx.write(child->parent, parent);
      paint(tx, child, 0);
    } else if (tx.read(out->red) == 0) {
      balance_removed(tx, parent, parent != nullptr && tx.read(parent->side[1]) == nullptr);
    }
    count_.add(tx, std::uint64_t(0) - 1, pick(out));
    tx.free(out);
    if (tx.read(root_) == nullptr) count_.clear(tx);  // an empty container owns no block
    return true;
  }

  template <class Tx>
  void clear(Tx& tx) {
    Node* root = tx.read(root_);
    if (root == nullptr) return;
    each_node(tx, root, [&](Node* node) {
      Key::drop(tx, tx.read(node->key));
      Value::drop(tx, tx.read(node->value));
      tx.free(node);
    });
    tx.write(root_, nullptr);
    count_.clear(tx);
  }

  template <class Tx, class F>
  void each_block(Tx& tx, F& f) const {
    count_.each_block(tx, f);
    if (Node* root = tx.read(root_)) {
      each_node(tx, root, [&](Node* node) {
        f(static_cast<const void*>(node));
        Key::each_block(tx, tx.read(node->key), f);
        Value::each_block(tx, tx.read(node->value), f);
      });
    }
  }

  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    Audit audit{tx.read(root_), size(tx), 0, {}};
    if (audit.root != nullptr) {
      if (is_red(tx, audit.root)) audit.say("the root is red");
      if (tx.read(audit.root->parent) != nullptr) audit.say("the root has a parent");
      audit_node(tx, audit, audit.root, nullptr, nullptr);
    }
    if (audit.problems.empty() && audit.found != audit.expected) {
      audit.say("found " + std::to_string(audit.found) + " nodes, its count is " +
                std::to_string(audit.expected));
    }
    return audit.problems;
  }

 private:
  static std::uint64_t pick(const Node* node) {
    return reinterpret_cast<std::uintptr_t>(node) >> 4;
  }

  template <class Tx>
  Node* find_node(Tx& tx, key_arg key) const {
    Node* node = tx.read(root_);
    while (node != nullptr) {
      const int order = Key::compare(tx, node->key, key);
      if (order == 0) return node;
      node = tx.read(node->side[order < 0]);
    }
    return nullptr;
  }
  template <class Tx>
  static Node* outermost(Tx& tx, Node* node, unsigned side) {
    for (Node* further = node; further != nullptr; further = tx.read(node->side[side]))
      node = further;
    return node;
  }
  /// Returns the next node in order (side 1), or the one before (side 0); null if there is none.
  template <class Tx>
  static Node* neighbour(Tx& tx, Node* node, unsigned side) {
    if (Node* below = tx.read(node->side[side])) return outermost(tx, below, 1 - side);
    Node* parent = tx.read(node->parent);
    while (parent != nullptr && tx.read(parent->side[side]) == node) {
      node = parent;
      parent = tx.read(node->parent);
    }
    return parent;
  }
  /// Calls f(node) for all nodes at and below `node`, children first (f may free).
  template <class Tx, class F>
  static void each_node(Tx& tx, Node* node, F&& f) {
    for (const auto& side : node->side) {
      if (Node* child = tx.read(side)) each_node(tx, child, f);
    }
    f(node);
  }

  template <class Tx>
  static bool is_red(Tx& tx, const Node* node) {
    return node != nullptr && tx.read(node->red) != 0;
  }
  template <class Tx>
  static void paint(Tx& tx, Node* node, std::uint64_t red) {
    if (tx.read(node->red) != red) tx.write(node->red, red);
  }
  template <class Tx>
  void replace_child(Tx& tx, Node* parent, Node* old, Node* child) {
    if (parent == nullptr)
      tx.write(root_, child);
    else
      tx.write(parent->side[tx.read(parent->side[1]) == old], child);
  }

  /// Moves `down` down to the given side; its child of the other side takes its place.
  template <class Tx>
  void rotate(Tx& tx, Node* down, unsigned side) {
    Node* up = tx.read(down->side[1 - side]);
    Node* middle = tx.read(up->side[side]);
    Node* parent = tx.read(down->parent);
    tx.write(down->side[1 - side], middle);
    if (middle != nullptr) tx.write(middle->parent, down);
    tx.write(up->parent, parent);
    replace_child(tx, parent, down, up);
    tx.write(up->side[side], down);
    tx.write(down->parent, up);
  }

  /// `node` was added as a red node: RBTREE-1 may fail between it and its parent, RBTREE-3 for it.
  template <class Tx>
  void balance_added(Tx& tx, Node* node) {
    for (Node* parent = tx.read(node->parent); is_red(tx, parent); parent = tx.read(node->parent)) {
      Node* grand = tx.read(parent->parent);  // not null: the root is black
      const unsigned side = tx.read(grand->side[1]) == parent;
      Node* uncle = tx.read(grand->side[1 - side]);
      if (is_red(tx, uncle)) {
        paint(tx, parent, 0);
        paint(tx, uncle, 0);
        paint(tx, grand, 1);
        node = grand;
        continue;
      }
      if (tx.read(parent->side[1 - side]) == node) {
        rotate(tx, parent, side);
        parent = node;
      }
      paint(tx, parent, 0);
      paint(tx, grand, 1);
      rotate(tx, grand, 1 - side);
      break;
    }
    paint(tx, tx.read(root_), 0);
  }

  /// Repairs paths through `parent`'s child of this side, which have one black node too few.
  template <class Tx>
  void balance_removed(Tx& tx, Node* parent, unsigned side) {
    while (parent != nullptr) {
      Node* sibling = tx.read(parent->side[1 - side]);  // not null, by RBTREE-2
      if (is_red(tx, sibling)) {
        paint(tx, sibling, 0);
        paint(tx, parent, 1);
        rotate(tx, parent, side);
        sibling = tx.read(parent->side[1 - side]);
      }
      Node* near = tx.read(sibling->side[side]);
      Node* far = tx.read(sibling->side[1 - side]);
      if (!is_red(tx, near) && !is_red(tx, far)) {
        paint(tx, sibling, 1);
        Node* node = parent;
        parent = tx.read(node->parent);
        if (parent == nullptr || is_red(tx, node)) {
          paint(tx, node, 0);
          return;
        }
        side = tx.read(parent->side[1]) == node;
        continue;
      }
      if (!is_red(tx, far)) {
        paint(tx, near, 0);
        paint(tx, sibling, 1);
        rotate(tx, sibling, 1 - side);
        far = sibling;
        sibling = near;
      }
      paint(tx, sibling, tx.read(parent->red));
      paint(tx, parent, 0);
      paint(tx, far, 0);
      rotate(tx, parent, side);
      return;
    }
  }

  struct Audit {
    Node* root;
    std::uint64_t expected, found;
    std::vector<std::string> problems;
    void say(const std::string& what) { problems.push_back("rb_tree: " + what); }
  };
  /// Returns the number of black nodes below; checks RBTREE-1, RBTREE-2, RBTREE-4, RBTREE-5 at and
  /// below `node`.
  template <class Tx>
  static std::uint64_t audit_node(Tx& tx, Audit& audit, Node* node, const K* least, const K* most) {
    if (++audit.found > audit.expected) {
      if (audit.problems.empty())
        audit.say("more nodes than its count, " + std::to_string(audit.expected));
      return 0;
    }
    const K key = Key::read(tx, node->key);
    if ((least != nullptr && !Key::above(tx, node->key, *least)) ||
        (most != nullptr && !Key::less(tx, node->key, *most)))
      audit.say("a key is out of order");
    std::uint64_t black[2] = {0, 0};
    for (unsigned side = 0; side < 2 && audit.problems.size() < 8; ++side) {
      Node* child = tx.read(node->side[side]);
      if (child == nullptr) continue;
      if (tx.read(child->parent) != node) audit.say("a node does not point back at its parent");
      if (is_red(tx, node) && is_red(tx, child)) audit.say("a red node has a red child");
      black[side] =
          audit_node(tx, audit, child, side == 0 ? least : &key, side == 0 ? &key : most) +
          (is_red(tx, child) ? 0 : 1);
    }
    if (audit.problems.empty() && black[0] != black[1])
      audit.say("paths with different numbers of black nodes");
    return black[0];
  }

  ptr<Node> root_;
  counter count_;
};

}  // namespace perdure::detail
