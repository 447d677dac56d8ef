// SPDX-License-Identifier: BSD-3-Clause
//
// btree<K, V, Capacity>: the B+-tree under map: descent, insertion with splits, removal with
// merging and borrowing.
//
// A change logs little more than what it changes: an insertion stores key, value, order word and a
// counter (4 words), a removal stores order word and counter; a split stores the new half, and two
// words of the old. Sorted nodes would log half a node per change. A split at the right edge leaves
// the full node full, so that ascending loads fill nodes. A node that is less than a third full is
// merged with a neighbour of the same parent, or, where both don't fit into 7/8 of a node, evened
// out with it.
// Thread safety: that of the transaction.
// Invariants:
// BTREE-1 All leaves are at depth height_.
// BTREE-2 No leaf is empty, and every inner node has a key.
// BTREE-3 Keys are in the bounds that their ancestors' keys set (btree_node.hpp).
// BTREE-4 The leaves are linked in order.
// BTREE-5 An inner node owns its keys: a text key is a copy, the shortest that separates its
// neighbours.
// Zero bytes are an empty tree.
// Source: Bayer, Unterauer, "Prefix B-Trees" (TODS 1977) for BTREE-5; slot_order.hpp for the nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "perdure/api/persistent.hpp"
#include "perdure/container/btree_node.hpp"
#include "perdure/container/counter.hpp"

namespace perdure::detail {

template <class K, class V, unsigned Capacity>
class btree {
 public:
  using N = btree_node<K, V, Capacity>;
  using Key = typename N::Key;
  using Value = typename N::Value;
  using Node = typename N::Node;
  using Order = typename N::Order;
  using LeafKind = typename N::LeafKind;
  using InnerKind = typename N::InnerKind;
  using RawKey = typename N::RawKey;
  using RawValue = typename N::RawValue;
  /// Whether lower_bound() takes a bound of a number of parts.
  static constexpr bool finds_prefixes = has_prefixes<K>;
  using key_arg = typename Key::arg;
  using value_arg = typename Value::arg;

  /// A position in a leaf; leaf is null past the end.
  struct Place {
    Node* leaf = nullptr;
    Order order = {};
    unsigned at = 0;
    [[nodiscard]] bool there() const noexcept { return leaf != nullptr; }
    [[nodiscard]] bool same(const Place& other) const noexcept {
      return leaf == other.leaf && at == other.at;
    }
    [[nodiscard]] const auto& key_field() const { return leaf->key[order[at]]; }
    [[nodiscard]] const auto& value_field() const { return N::values(leaf)[order[at]]; }
  };

  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return count_.total(tx);
  }
  template <class Tx>
  [[nodiscard]] std::uint64_t height(Tx& tx) const {
    return tx.read(height_);
  }
  template <class Tx>
  [[nodiscard]] Node* root(Tx& tx) const {
    return tx.read(root_);
  }

  /// Returns the first entry whose key is not below `key`.
  template <class Tx>
  [[nodiscard]] Place lower_bound(Tx& tx, key_arg key) const {
    return place_of(tx, key);
  }
  /// Returns the first entry that is not before a bound that has a number of parts (key_bound.hpp).
  template <class Tx, class B>
    requires std::is_same_v<B, key_bound<K>>
  [[nodiscard]] Place lower_bound(Tx& tx, const B& bound) const {
    return place_of(tx, bound);
  }
  template <class Tx>
  [[nodiscard]] Place first(Tx& tx) const {
    Place place;
    place.leaf = tx.read(root_);
    for (std::uint64_t level = tx.read(height_); level > 1; --level)
      place.leaf = tx.read(place.leaf->link);
    if (place.leaf != nullptr) place.order = tx.read(place.leaf->order);
    return place;
  }
  template <class Tx>
  [[nodiscard]] Place last(Tx& tx) const {
    Place place;
    place.leaf = tx.read(root_);
    if (place.leaf == nullptr) return place;
    place.order = tx.read(place.leaf->order);
    for (std::uint64_t level = tx.read(height_); level > 1; --level) {
      place.leaf = N::child(tx, place.leaf, place.order, place.order.count());
      place.order = tx.read(place.leaf->order);
    }
    place.at = place.order.count() - 1;
    return place;
  }
  template <class Tx>
  static void next(Tx& tx, Place& place) {
    // Only `at` is written within a leaf: the cursor of an update lies in memory, and copying all
    // of a place that was just written in part cost 12 ns per step.
    if (++place.at >= place.order.count()) place = settled(tx, place);
  }

  /// Moves to the entry before; from past the end, to the last one; from the first, past the end.
  template <class Tx>
  void prev(Tx& tx, Place& place) const {
    if (!place.there()) {
      place = last(tx);
    } else if (place.at > 0) {
      --place.at;
    } else {
      place = before(tx, Key::read(tx, place.key_field()));
    }
  }

  /// Returns the value field of `key`, or null.
  template <class Tx>
  [[nodiscard]] auto find(Tx& tx, key_arg key) const -> typename Value::field* {
    Node* leaf = descend(tx, key, nullptr);
    if (leaf == nullptr) return nullptr;
    const Order order = tx.read(leaf->order);
    const unsigned at = N::lower(tx, leaf, order, key);
    if (at == order.count() || !Key::equal(tx, leaf->key[order[at]], key)) return nullptr;
    return &N::values(leaf)[order[at]];
  }

  /// Adds key and value, or calls found(value field) when the key is there. Returns whether it was
  /// added.
  template <class Tx, class Found>
  bool add(Tx& tx, key_arg key, value_arg value, Found found) {
    Step path[max_height];
    Node* leaf = descend(tx, key, path);
    if (leaf == nullptr) {
      const RawKey k = Key::make(tx, key);
      const RawValue v = Value::make(tx, value);
      tx.write(root_, leaf = N::template make<LeafKind>(tx, nullptr, 1, &k, &v));
      tx.write(height_, 1);
    } else {
      const Order old = tx.read(leaf->order);
      const unsigned at = N::lower(tx, leaf, old, key);
      if (at < old.count() && Key::equal(tx, leaf->key[old[at]], key)) {
        found(N::values(leaf)[old[at]]);
        return false;
      }
      const RawKey k = Key::make(tx, key);
      const RawValue v = Value::make(tx, value);
      if (old.count() < Capacity) {
        Order order = old;
        N::template fill<LeafKind>(tx, leaf, order, at, k, v);
        order.store(tx, leaf->order, old);
      } else {
        split_leaf(tx, path, leaf, old, at, k, v);
      }
    }
    count_.add(tx, 1, pick(leaf));
    return true;
  }

  /// Removes the key. Returns whether it was there.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    Step path[max_height];
    Node* leaf = descend(tx, key, path);
    if (leaf == nullptr) return false;
    const Order old = tx.read(leaf->order);
    const unsigned at = N::lower(tx, leaf, old, key);
    if (at == old.count() || !Key::equal(tx, leaf->key[old[at]], key)) return false;
    Key::drop(tx, tx.read(leaf->key[old[at]]));
    Value::drop(tx, tx.read(N::values(leaf)[old[at]]));
    Order order = old;
    order.erase(at);
    order.store(tx, leaf->order, old);
    count_.add(tx, std::uint64_t(0) - 1, pick(leaf));
    if (order.count() < low_water) refill(tx, path, leaf, order.count());
    return true;
  }

  template <class Tx>
  void clear(Tx& tx) {
    Node* root = tx.read(root_);
    if (root == nullptr) return;
    each_node(tx, root, tx.read(height_), [&](Node* node, const Order& order, bool leaf) {
      for (unsigned i = 0; i < order.count(); ++i) {
        Key::drop(tx, tx.read(node->key[order[i]]));
        if (leaf) Value::drop(tx, tx.read(N::values(node)[order[i]]));
      }
      tx.free(node);
    });
    tx.write(root_, nullptr);
    tx.write(height_, 0);
    count_.clear(tx);
  }

  template <class Tx, class F>
  void each_block(Tx& tx, F& f) const {
    count_.each_block(tx, f);
    Node* root = tx.read(root_);
    if (root == nullptr) return;
    each_node(tx, root, tx.read(height_), [&](Node* node, const Order& order, bool leaf) {
      f(static_cast<const void*>(node));
      for (unsigned i = 0; i < order.count(); ++i) {
        Key::each_block(tx, tx.read(node->key[order[i]]), f);
        if (leaf) Value::each_block(tx, tx.read(N::values(node)[order[i]]), f);
      }
    });
  }

 private:
  template <class Tx, class Bound>
  [[nodiscard]] Place place_of(Tx& tx, const Bound& bound) const {
    Place place;
    place.leaf = descend(tx, bound, nullptr);
    if (place.leaf == nullptr) return place;
    place.order = tx.read(place.leaf->order);
    place.at = N::lower(tx, place.leaf, place.order, bound);
    return settled(tx, place);
  }

  /// Returns `place`, or the next leaf's first entry when it is past its leaf's last.
  template <class Tx>
  [[nodiscard]] static Place settled(Tx& tx, Place place) {
    while (place.leaf != nullptr && place.at >= place.order.count()) {
      place.leaf = tx.read(place.leaf->link);
      if (place.leaf != nullptr) place.order = tx.read(place.leaf->order);
      place.at = 0;
    }
    return place;
  }

  static constexpr unsigned max_height = 48;  ///< far above what a 64-bit address space can fill
  static constexpr unsigned low_water = Capacity / 3;
  static constexpr unsigned merged_most = Capacity - Capacity / 8;

  struct Step {
    Node* node;
    unsigned at;  ///< the child taken
  };

  /// Returns the last entry of the leaf before the one that begins with `key`. Leaves are linked
  /// forwards only: it goes down to `key`, and remembers the last subtree to its left.
  template <class Tx>
  [[nodiscard]] Place before(Tx& tx, key_arg key) const {
    Node* left = nullptr;
    std::uint64_t left_level = 0;
    Node* node = tx.read(root_);
    for (std::uint64_t level = tx.read(height_); level > 1; --level) {
      const Order order = tx.read(node->order);
      const unsigned at = N::upper(tx, node, order, key);
      if (at > 0) {
        left = N::child(tx, node, order, at - 1);
        left_level = level - 1;
      }
      node = N::child(tx, node, order, at);
    }
    Place place;
    if (left == nullptr) return place;
    for (; left_level > 1; --left_level) {
      const Order order = tx.read(left->order);
      left = N::child(tx, left, order, order.count());
    }
    place.leaf = left;
    place.order = tx.read(left->order);
    place.at = place.order.count() - 1;
    return place;
  }

  /// Leaves share counters: nearby leaves use different words, one leaf always the same word.
  static std::uint64_t pick(const Node* leaf) {
    return reinterpret_cast<std::uintptr_t>(leaf) >> 4;
  }

  template <class Tx, class Bound>
  Node* descend(Tx& tx, const Bound& key, Step* path) const {
    Node* node = tx.read(root_);
    for (std::uint64_t level = tx.read(height_); level > 1; --level) {
      const Order order = tx.read(node->order);
      const unsigned at = N::upper(tx, node, order, key);
      if (path != nullptr) *path++ = {node, at};
      node = N::child(tx, node, order, at);
      N::prefetch(node);
    }
    return node;
  }

  /// Calls f(node, order, leaf) for all nodes at and below `node`, children first (f may free).
  template <class Tx, class F>
  static void each_node(Tx& tx, Node* node, std::uint64_t level, F&& f) {
    const Order order = tx.read(node->order);
    for (unsigned i = 0; level > 1 && i <= order.count(); ++i)
      each_node(tx, N::child(tx, node, order, i), level - 1, f);
    f(node, order, level == 1);
  }

  /// Splits a full leaf, to which (k, v) is to be added at position `at`, into two.
  template <class Tx>
  void split_leaf(Tx& tx, Step* path, Node* leaf, const Order& old, unsigned at, const RawKey& k,
                  const RawValue& v) {
    Node* next = tx.read(leaf->link);
    const bool appending = at == Capacity && next == nullptr;
    const bool goes_left = !appending && at <= Capacity / 2;
    // This many of the old entries stay.
    const unsigned cut = appending ? Capacity : goes_left ? Capacity / 2 : Capacity / 2 + 1;
    RawKey keys[Capacity];
    RawValue values[Capacity];
    unsigned n = 0;
    for (unsigned i = cut; i <= Capacity; ++i) {
      if (i == at && !goes_left) {
        keys[n] = k;
        values[n++] = v;
      }
      if (i == Capacity) break;
      keys[n] = tx.read(leaf->key[old[i]]);
      values[n++] = tx.read(N::values(leaf)[old[i]]);
    }
    Node* right = N::template make<LeafKind>(tx, next, n, keys, values);
    Order order = old;
    order.truncate(cut);
    if (goes_left) N::template fill<LeafKind>(tx, leaf, order, at, k, v);
    order.store(tx, leaf->order, old);
    tx.write(leaf->link, right);
    const RawKey separator =
        Key::separator(tx, tx.read(leaf->key[order[order.count() - 1]]), keys[0]);
    insert_above(tx, path, separator, right, appending);
  }

  /// Inserts `right` after `separator` beside the child that the path took at its end; splits
  /// upwards as needed.
  template <class Tx>
  void insert_above(Tx& tx, Step* path, RawKey separator, Node* right, bool appending) {
    for (std::uint64_t depth = tx.read(height_) - 1; depth > 0; --depth) {
      Node* node = path[depth - 1].node;
      const unsigned at = path[depth - 1].at;
      const Order old = tx.read(node->order);
      Order order = old;
      if (old.count() < Capacity) {
        N::template fill<InnerKind>(tx, node, order, at, separator, right);
        order.store(tx, node->order, old);
        return;
      }
      // Of Capacity + 1 entries, including the new one at `at`, `cut` stay, one moves up, the
      // others move right.
      const unsigned cut = appending ? Capacity - 1 : (Capacity + 1) / 2;
      RawKey keys[Capacity + 1];
      Node* children[Capacity + 1];
      unsigned n = 0;
      for (unsigned i = cut; i <= Capacity; ++i, ++n) {
        const unsigned slot = i == at ? 0 : order[i < at ? i : i - 1];
        keys[n] = i == at ? separator : tx.read(node->key[slot]);
        children[n] = i == at ? right : tx.read(N::children(node)[slot]);
      }
      Node* fresh = N::template make<InnerKind>(tx, children[0], n - 1, keys + 1, children + 1);
      order.truncate(at < cut ? cut - 1 : cut);
      if (at < cut) N::template fill<InnerKind>(tx, node, order, at, separator, right);
      order.store(tx, node->order, old);
      separator = keys[0];
      right = fresh;
    }
    tx.write(root_, N::template make<InnerKind>(tx, tx.read(root_), 1, &separator, &right));
    tx.write(height_, tx.read(height_) + 1);
  }

  /// Repairs `node`, at the end of the path, which is left with `n` entries, fewer than low_water.
  template <class Tx>
  void refill(Tx& tx, Step* path, Node* node, unsigned n) {
    const std::uint64_t height = tx.read(height_);
    for (std::uint64_t depth = height - 1; depth > 0; --depth) {
      const bool leaf = depth == height - 1;
      if (n >= low_water) return;
      Node* parent = path[depth - 1].node;
      const Order parent_old = tx.read(parent->order);
      Order parent_order = parent_old;
      // Key i stands between the two.
      const unsigned i = std::min(path[depth - 1].at, parent_old.count() - 1);
      Node* left = N::child(tx, parent, parent_old, i);
      Node* right = N::child(tx, parent, parent_old, i + 1);
      auto& separator = parent->key[parent_old[i]];
      const bool merged =
          leaf ? join_leaves(tx, left, right, separator) : join_inner(tx, left, right, separator);
      if (!merged) return;
      tx.free(right);
      parent_order.erase(i);
      parent_order.store(tx, parent->order, parent_old);
      node = parent;
      n = parent_order.count();
    }
    if (n > 0) return;
    tx.write(root_, height == 1 ? nullptr : tx.read(node->link));
    tx.write(height_, height - 1);
    tx.free(node);
    if (height == 1) count_.clear(tx);
  }

  /// Merges `right` into `left` (returns true; the separator is used up), or evens them out.
  template <class Tx>
  bool join_leaves(Tx& tx, Node* left, Node* right, typename Key::field& separator) {
    const Order lo_old = tx.read(left->order), ro_old = tx.read(right->order);
    const unsigned l = lo_old.count(), r = ro_old.count();
    Order lo = lo_old, ro = ro_old;
    Key::drop(tx, tx.read(separator));
    if (l + r <= merged_most) {
      N::template move_left<LeafKind>(tx, left, lo, right, ro, r);
      lo.store(tx, left->order, lo_old);
      tx.write(left->link, tx.read(right->link));
      return true;
    }
    if (l < r)
      N::template move_left<LeafKind>(tx, left, lo, right, ro, (r - l) / 2);
    else
      N::template move_right<LeafKind>(tx, left, lo, right, ro, (l - r) / 2);
    lo.store(tx, left->order, lo_old);
    ro.store(tx, right->order, ro_old);
    tx.write(separator, Key::separator(tx, tx.read(left->key[lo[lo.count() - 1]]),
                                       tx.read(right->key[ro[0]])));
    return false;
  }

  template <class Tx>
  bool join_inner(Tx& tx, Node* left, Node* right, typename Key::field& separator) {
    const Order lo_old = tx.read(left->order), ro_old = tx.read(right->order);
    const unsigned l = lo_old.count(), r = ro_old.count();
    Order lo = lo_old, ro = ro_old;
    const RawKey down = tx.read(separator);
    const bool merge = l + r + 1 <= merged_most;
    if (merge || l < r) {
      // The separator moves down between them. Of what is moved, the last key moves up in its
      // place, and its child becomes the right node's first.
      N::template fill<InnerKind>(tx, left, lo, l, down, tx.read(right->link));
      N::template move_left<InnerKind>(tx, left, lo, right, ro, merge ? r : (r - l) / 2 - 1);
      if (!merge) {
        tx.write(separator, tx.read(right->key[ro[0]]));
        tx.write(right->link, tx.read(N::children(right)[ro[0]]));
        ro.erase(0);
      }
    } else {
      N::template fill<InnerKind>(tx, right, ro, 0, down, tx.read(right->link));
      N::template move_right<InnerKind>(tx, left, lo, right, ro, (l - r) / 2 - 1);
      const unsigned slot = lo[lo.count() - 1];
      tx.write(separator, tx.read(left->key[slot]));
      tx.write(right->link, tx.read(N::children(left)[slot]));
      lo.truncate(lo.count() - 1);
    }
    lo.store(tx, left->order, lo_old);
    if (!merge) ro.store(tx, right->order, ro_old);
    return merge;
  }

  ptr<Node> root_;
  p<std::uint64_t> height_;
  counter count_;
};

}  // namespace perdure::detail
