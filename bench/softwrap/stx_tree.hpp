// SPDX-License-Identifier: BSD-3-Clause
//
// A B+-tree like the one that SoftWrAP's paper takes from the STX library (SoftWrAP, MSST '15,
// section V-D), for insertions: keys and data in sorted arrays of slots, each node with its level
// and its number of used slots, leaves in a list, a search that walks the slots from the first (STX
// does so if a node's keys are few), a full node split in the middle. STX chooses the number of
// slots that fill 256 bytes: 16 pairs of our 8-byte words in a leaf, 16 keys in an inner node. For
// the paper's 4-byte integers it would be 32 and 21; that shape is here too (nodes of 512 bytes),
// for the numbers of reads and writes. Written for this benchmark on a transaction handle
// (bench/workloads/models.md); duplicates are refused. A key is at most the key on its right in the
// inner node above. Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench::softwrap {

struct Slots16 {
  static constexpr unsigned leaf = 16, inner = 16;
};
struct SlotsOfInts {
  static constexpr unsigned leaf = 32, inner = 21;
};

template <class Model>
struct StxNode {
  typename Model::template Field<std::uint64_t> level;  ///< 0: a leaf
  typename Model::template Field<std::uint64_t> used;
};
template <class Model, class Slots>
struct StxLeaf : StxNode<Model> {
  typename Model::template Link<StxLeaf> previous, next;
  typename Model::template Field<std::uint64_t> key[Slots::leaf], data[Slots::leaf];
};
template <class Model, class Slots>
struct StxInner : StxNode<Model> {
  typename Model::template Field<std::uint64_t> key[Slots::inner];
  typename Model::template Link<StxNode<Model>> child[Slots::inner + 1];
};

template <class Slots, class Model>
struct StxRoot {
  static constexpr const char* layout_id =
      Slots::leaf == 16 ? "bench::softwrap::StxRoot16/1" : "bench::softwrap::StxRootOfInts/1";
  using Shape = Slots;
  using Node = StxNode<Model>;
  using Leaf = StxLeaf<Model, Slots>;
  using Inner = StxInner<Model, Slots>;
  typename Model::template Link<Node> top;
  typename Model::template Link<Leaf> first, last;
  typename Model::template Field<std::uint64_t> size;

  /// For the library's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (Node* const node = tx.read(top)) below(tx, node, f);
  }

 private:
  template <class Tx, class F>
  static void below(Tx& tx, Node* node, F&& f) {
    f(node);
    if (tx.read(node->level) == 0) return;
    auto* const inner = static_cast<Inner*>(node);
    for (std::uint64_t i = 0, n = tx.read(node->used); i <= n; ++i)
      below(tx, tx.read(inner->child[i]), f);
  }
};

/// The tree's operations on a Root in a transaction.
template <class Root>
class StxTree {
  using Node = typename Root::Node;
  using Leaf = typename Root::Leaf;
  using Inner = typename Root::Inner;
  static constexpr unsigned leaf_slots = Root::Shape::leaf, inner_slots = Root::Shape::inner,
                            max_levels = 32;

 public:
  /// Returns false if the key exists.
  template <class Tx>
  static bool insert(Tx& tx, Root& root, std::uint64_t key, std::uint64_t data) {
    Node* node = tx.get(root.top);
    if (node == nullptr) {
      Leaf* const leaf = new_leaf(tx);
      tx.set(root.first, leaf);
      tx.set(root.last, leaf);
      tx.set(root.top, static_cast<Node*>(leaf));
      node = leaf;
    }
    struct Step {
      Inner* inner;
      std::uint64_t slot, used;
    };
    std::array<Step, max_levels> path;
    std::size_t depth = 0;
    while (tx.get(node->level) != 0) {
      auto* const inner = static_cast<Inner*>(node);
      const std::uint64_t used = tx.get(inner->used), slot = lower_bound(tx, inner->key, used, key);
      path[depth++] = {inner, slot, used};
      node = tx.get(inner->child[slot]);
    }
    Split split;
    if (!insert_in_leaf(tx, root, static_cast<Leaf*>(node), key, data, split)) return false;
    while (split.right != nullptr && depth > 0) {
      const Step& step = path[--depth];
      split = insert_in_inner(tx, step.inner, step.slot, step.used, split);
    }
    if (split.right != nullptr) {
      Node* const old = tx.get(root.top);
      Inner* const top = new_inner(tx, tx.get(old->level) + 1);
      tx.set(top->key[0], split.key);
      tx.set(top->child[0], old);
      tx.set(top->child[1], split.right);
      tx.set(top->used, std::uint64_t{1});
      tx.set(root.top, static_cast<Node*>(top));
    }
    tx.set(root.size, tx.get(root.size) + 1);
    return true;
  }

  /// Returns whether the key exists, and its data.
  template <class Tx>
  static bool find(Tx& tx, const Root& root, std::uint64_t key, std::uint64_t& data) {
    const Node* node = tx.get(root.top);
    if (node == nullptr) return false;
    while (tx.get(node->level) != 0) {
      const auto* const inner = static_cast<const Inner*>(node);
      node = tx.get(inner->child[lower_bound(tx, inner->key, tx.get(inner->used), key)]);
    }
    const auto* const leaf = static_cast<const Leaf*>(node);
    const std::uint64_t used = tx.get(leaf->used), slot = lower_bound(tx, leaf->key, used, key);
    if (slot == used || tx.get(leaf->key[slot]) != key) return false;
    data = tx.get(leaf->data[slot]);
    return true;
  }

  /// The problems of a tree that should contain keys [0, n), each with data_of(key); empty if there
  /// are none.
  template <class Tx, class DataOf>
  static std::vector<std::string> audit(Tx& tx, const Root& root, std::uint64_t n, DataOf data_of) {
    std::vector<std::string> problems;
    const auto expect = [&](const std::string& what, std::uint64_t found, std::uint64_t expected) {
      if (found != expected && problems.size() < 5)
        problems.push_back(what + ": found " + std::to_string(found) + ", expected " +
                           std::to_string(expected));
    };
    expect("size", tx.get(root.size), n);
    std::uint64_t next = 0;  // the next expected key
    const Leaf *previous = nullptr, *leaf = tx.get(root.first);
    for (; leaf != nullptr && problems.empty(); previous = leaf, leaf = tx.get(leaf->next)) {
      expect("a leaf's level", tx.get(leaf->level), 0);
      expect("a leaf's link back", tx.get(leaf->previous) == previous ? 1 : 0, 1);
      for (std::uint64_t i = 0, used = tx.get(leaf->used); i < used; ++i, ++next) {
        expect("a key", tx.get(leaf->key[i]), next);
        expect("the data of key " + std::to_string(next), tx.get(leaf->data[i]), data_of(next));
      }
    }
    expect("keys in the list of leaves", next, n);
    expect("the last leaf", tx.get(root.last) == previous ? 1 : 0, 1);
    for (std::uint64_t key = 0; key < n && problems.empty(); ++key) {  // searched from the top
      std::uint64_t data = 0;
      expect("look-up of key " + std::to_string(key), find(tx, root, key, data) ? 1 : 0, 1);
      expect("looked-up data of key " + std::to_string(key), data, data_of(key));
    }
    return problems;
  }

 private:
  /// The result of splitting a full node: `right` has what is above `key`.
  struct Split {
    std::uint64_t key = 0;
    Node* right = nullptr;
  };
  template <class Tx>
  static Leaf* new_leaf(Tx& tx) {
    Leaf* const leaf = tx.template allocate<Leaf>(1);
    tx.set(leaf->level, std::uint64_t{0});
    tx.set(leaf->used, std::uint64_t{0});
    tx.set(leaf->previous, static_cast<Leaf*>(nullptr));
    tx.set(leaf->next, static_cast<Leaf*>(nullptr));
    return leaf;
  }
  template <class Tx>
  static Inner* new_inner(Tx& tx, std::uint64_t level) {
    Inner* const inner = tx.template allocate<Inner>(1);
    tx.set(inner->level, level);
    tx.set(inner->used, std::uint64_t{0});
    return inner;
  }
  /// The first slot whose key is not smaller than `key`.
  template <class Tx, class Keys>
  static std::uint64_t lower_bound(Tx& tx, const Keys& keys, std::uint64_t used,
                                   std::uint64_t key) {
    std::uint64_t slot = 0;
    while (slot < used && tx.get(keys[slot]) < key) ++slot;
    return slot;
  }
  /// array[to...] = from[at, end)
  template <class Tx, class To, class From>
  static void copy(Tx& tx, To& to, const From& from, std::uint64_t at, std::uint64_t end) {
    for (std::uint64_t i = at; i < end; ++i) tx.set(to[i - at], tx.get(from[i]));
  }
  /// Makes space at `slot` of `used`.
  template <class Tx, class Array>
  static void shift(Tx& tx, Array& array, std::uint64_t slot, std::uint64_t used) {
    for (std::uint64_t i = used; i > slot; --i) tx.set(array[i], tx.get(array[i - 1]));
  }

  template <class Tx>
  static bool insert_in_leaf(Tx& tx, Root& root, Leaf* leaf, std::uint64_t key, std::uint64_t data,
                             Split& split) {
    std::uint64_t used = tx.get(leaf->used), slot = lower_bound(tx, leaf->key, used, key);
    if (slot < used && tx.get(leaf->key[slot]) == key) return false;
    if (used == leaf_slots) {
      Leaf* const right = new_leaf(tx);
      const std::uint64_t left_used = used / 2;
      copy(tx, right->key, leaf->key, left_used, used);
      copy(tx, right->data, leaf->data, left_used, used);
      tx.set(right->used, used - left_used);
      Leaf* const next = tx.get(leaf->next);
      tx.set(right->next, next);
      tx.set(right->previous, leaf);
      if (next != nullptr)
        tx.set(next->previous, right);
      else
        tx.set(root.last, right);
      tx.set(leaf->next, right);
      tx.set(leaf->used, left_used);
      split = {tx.get(leaf->key[left_used - 1]), right};
      if (slot > left_used) {
        // At left_used: above the left leaf's last key, at most the right leaf's first.
        leaf = right;
        slot -= left_used;
        used -= left_used;
      } else {
        if (slot == left_used) split.key = key;
        used = left_used;
      }
    }
    shift(tx, leaf->key, slot, used);
    shift(tx, leaf->data, slot, used);
    tx.set(leaf->key[slot], key);
    tx.set(leaf->data[slot], data);
    tx.set(leaf->used, used + 1);
    return true;
  }

  /// Called when the child at `slot` was split.
  template <class Tx>
  static Split insert_in_inner(Tx& tx, Inner* inner, std::uint64_t slot, std::uint64_t used,
                               const Split& below) {
    Split split;
    if (used == inner_slots) {
      Inner* const right = new_inner(tx, tx.get(inner->level));
      const std::uint64_t middle = used / 2;  // its key goes to the parent
      copy(tx, right->key, inner->key, middle + 1, used);
      copy(tx, right->child, inner->child, middle + 1, used + 1);
      tx.set(right->used, used - middle - 1);
      tx.set(inner->used, middle);
      split = {tx.get(inner->key[middle]), right};
      if (slot > middle) {
        inner = right;
        slot -= middle + 1;
        used -= middle + 1;
      } else {
        used = middle;
      }
    }
    for (std::uint64_t i = used; i > slot; --i) {
      tx.set(inner->key[i], tx.get(inner->key[i - 1]));
      tx.set(inner->child[i + 1], tx.get(inner->child[i]));
    }
    tx.set(inner->key[slot], below.key);
    tx.set(inner->child[slot + 1], below.right);
    tx.set(inner->used, used + 1);
    return split;
  }
};

}  // namespace bench::softwrap
