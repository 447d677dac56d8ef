// SPDX-License-Identifier: BSD-3-Clause
//
// A table of TPC-C as a B+-tree from 8-byte keys to rows, over the Models of models.md: find,
// insert, and a walk in key order. New order removes nothing: the system rolls an abort back. A
// node is 512 bytes, 31 entries of a key and a pointer side by side, so that an insert after the
// last entry stores three words in at most two lines; nodes split in the middle, leaves are
// chained. An entry of an inner node has the smallest key below it, except the first one, whose key
// means nothing.
// Thread safety: the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/recast.hpp"
#include "bench/workloads/snapshot.hpp"

namespace bench::tpcc {

template <class Model>
struct TreeNode {
  static constexpr const char* layout_id = "bench::tpcc::TreeNode/1";
  static constexpr std::uint64_t order = 31;
  struct Entry {
    typename Model::template Field<std::uint64_t> key;
    typename Model::template Link<std::byte> to;  // a node, or a row if this is a leaf
  };
  typename Model::template Field<std::uint64_t> count;
  typename Model::template Link<TreeNode> next;  // of a leaf
  Entry entries[order];
};

template <class Model, class Row>
class Tree {
 public:
  static constexpr const char* layout_id = "bench::tpcc::Tree/1";
  using RowRef = typename Model::template Ref<Row>;

  /// The row of a key, or null.
  template <class Tx>
  RowRef find(Tx& tx, std::uint64_t key) const {
    const NodeRef node = leaf_of(tx, key);
    if (!node) return RowRef{};
    const std::uint64_t at = behind(tx, node, key);
    if (at == 0 || tx.get(node->entries[at - 1].key) != key) return RowRef{};
    return recast<Row>(tx.get(node->entries[at - 1].to));
  }

  /// Calls f(key, row) for up to n rows whose keys are at least `from`, in their order.
  template <class Tx, class F>
  void scan(Tx& tx, std::uint64_t from, std::uint64_t n, F f) const {
    NodeRef node = leaf_of(tx, from);
    if (!node) return;
    std::uint64_t at = behind(tx, node, from);
    if (at != 0 && tx.get(node->entries[at - 1].key) == from) --at;
    for (; node; node = tx.get(node->next), at = 0)
      for (const std::uint64_t count = tx.get(node->count); at < count; ++at) {
        if (n-- == 0) return;
        f(tx.get(node->entries[at].key), recast<Row>(tx.get(node->entries[at].to)));
      }
  }

  /// `key` must not exist.
  template <class Tx>
  void insert(Tx& tx, std::uint64_t key, RowRef row) {
    NodeRef node = tx.get(top_);
    const std::uint64_t height = tx.get(height_);
    if (!node) {
      node = fresh(tx, NodeRef{});
      put(tx, node, 0, key, bytes(row));
      tx.set(node->count, 1);
      tx.set(top_, node);
      tx.set(height_, 1);
      return;
    }
    NodeRef path[max_height];
    std::uint64_t place[max_height];
    for (std::uint64_t h = height; h > 1; --h) {
      path[h] = node;
      place[h] = child_of(tx, node, key);
      node = as_node(tx.get(node->entries[place[h]].to));
    }
    std::uint64_t at = behind(tx, node, key);
    BytesRef to = bytes(row);
    for (std::uint64_t h = 1;; ++h) {
      const NodeRef right = insert_at(tx, node, at, key, to, h == 1);
      if (!right) return;
      key = tx.get(right->entries[0].key);
      to = bytes(right);
      if (h == height) {
        const NodeRef top = fresh(tx, NodeRef{});
        put(tx, top, 0, tx.get(node->entries[0].key), bytes(node));
        put(tx, top, 1, key, to);
        tx.set(top->count, 2);
        tx.set(top_, top);
        tx.set(height_, height + 1);
        return;
      }
      node = path[h + 1];
      at = place[h + 1] + 1;
    }
  }

  /// Calls f(key, row) for every row, in key order.
  template <class Tx, class F>
  void each(Tx& tx, F f) const {
    NodeRef node = tx.get(top_);
    if (!node) return;
    for (std::uint64_t h = tx.get(height_); h > 1; --h) node = as_node(tx.get(node->entries[0].to));
    for (; node; node = tx.get(node->next))
      for (std::uint64_t i = 0, n = tx.get(node->count); i < n; ++i)
        f(tx.get(node->entries[i].key), recast<Row>(tx.get(node->entries[i].to)));
  }

  /// Calls f(block) for every node and row.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (const NodeRef top = tx.get(top_)) below(tx, top, tx.get(height_), f);
  }

  /// Checks that keys rise along the leaves, and that each is found from the top.
  template <class Tx>
  void audit(Tx& tx, const std::string& name, std::vector<std::string>& problems) const {
    std::uint64_t before = 0, falling = 0, lost = 0, rows = 0;
    each(tx, [&](std::uint64_t key, const RowRef& row) {
      if (rows++ != 0 && key <= before) ++falling;
      if (!(find(tx, key) == row)) ++lost;
      before = key;
    });
    if (falling + lost != 0)
      problems.push_back(name + ": of " + std::to_string(rows) + " rows " +
                         std::to_string(falling) + " stand behind a larger key and " +
                         std::to_string(lost) + " are not found from the top; expected none");
  }

 private:
  using Node = TreeNode<Model>;
  using NodeRef = typename Model::template Ref<Node>;
  using BytesRef = typename Model::template Ref<std::byte>;
  static constexpr std::uint64_t max_height = 16;

  static NodeRef as_node(const BytesRef& p) noexcept { return recast<Node>(p); }
  template <class Ref>
  static BytesRef bytes(const Ref& p) noexcept {
    return recast<std::byte>(p);
  }
  /// The leaf in which a key would be; null in an empty tree.
  template <class Tx>
  NodeRef leaf_of(Tx& tx, std::uint64_t key) const {
    NodeRef node = tx.get(top_);
    if (!node) return node;
    for (std::uint64_t h = tx.get(height_); h > 1; --h)
      node = as_node(tx.get(node->entries[child_of(tx, node, key)].to));
    return node;
  }
  template <class Tx>
  static NodeRef fresh(Tx& tx, const NodeRef& next) {
    const NodeRef node = tx.template allocate<Node>(1);
    tx.set(node->next, next);
    return node;
  }
  template <class Tx>
  static void put(Tx& tx, const NodeRef& node, std::uint64_t at, std::uint64_t key,
                  const BytesRef& to) {
    tx.set(node->entries[at].key, key);
    tx.set(node->entries[at].to, to);
  }
  /// How many of a node's keys are at most `key`.
  template <class Tx>
  static std::uint64_t behind(Tx& tx, const NodeRef& node, std::uint64_t key) {
    std::uint64_t low = 0, high = tx.get(node->count);
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      if (tx.get(node->entries[middle].key) <= key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  template <class Tx>
  static std::uint64_t child_of(Tx& tx, const NodeRef& node, std::uint64_t key) {
    const std::uint64_t n = behind(tx, node, key);
    return n == 0 ? 0 : n - 1;
  }

  /// Returns the new right neighbour for the parent if the node was full.
  template <class Tx>
  static NodeRef insert_at(Tx& tx, const NodeRef& node, std::uint64_t at, std::uint64_t key,
                           const BytesRef& to, bool leaf) {
    std::uint64_t count = tx.get(node->count);
    NodeRef right{};
    if (count == Node::order) {
      constexpr std::uint64_t half = (Node::order + 1) / 2;
      right = fresh(tx, leaf ? tx.get(node->next) : NodeRef{});
      for (std::uint64_t i = half; i < count; ++i)
        put(tx, right, i - half, tx.get(node->entries[i].key), tx.get(node->entries[i].to));
      tx.set(right->count, count - half);
      snapshot(tx, *node);
      tx.set(node->count, half);
      if (leaf) tx.set(node->next, right);
      if (at > half) {
        insert_into(tx, right, at - half, count - half, key, to);
        return right;
      }
      count = half;
    }
    insert_into(tx, node, at, count, key, to);
    return right;
  }
  template <class Tx>
  static void insert_into(Tx& tx, const NodeRef& node, std::uint64_t at, std::uint64_t count,
                          std::uint64_t key, const BytesRef& to) {
    snapshot(tx, *node);
    for (std::uint64_t i = count; i > at; --i)
      put(tx, node, i, tx.get(node->entries[i - 1].key), tx.get(node->entries[i - 1].to));
    put(tx, node, at, key, to);
    tx.set(node->count, count + 1);
  }

  template <class Tx, class F>
  static void below(Tx& tx, const NodeRef& node, std::uint64_t height, F& f) {
    f(node);
    for (std::uint64_t i = 0, n = tx.get(node->count); i < n; ++i) {
      const BytesRef to = tx.get(node->entries[i].to);
      if (height > 1)
        below(tx, as_node(to), height - 1, f);
      else
        f(to);
    }
  }

  typename Model::template Link<Node> top_;
  typename Model::template Field<std::uint64_t> height_;  // 1: the top is a leaf
};

}  // namespace bench::tpcc
