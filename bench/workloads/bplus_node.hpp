// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of the B+-tree (bplus_tree.hpp), over a Model (models.md). A node is not constructed: what is read was stored.
#pragma once

#include <cstdint>

namespace bench {

template <class Model>
struct BtLeaf {
  static constexpr const char* layout_id = "bench::BtLeaf/1";
  static constexpr unsigned slots = 32, value_words = 3;
  template <class T>
  using Field = typename Model::template Field<T>;
  struct Record {
    Field<std::uint64_t> key;
    Field<std::uint64_t> value[value_words];
  };
  Field<std::uint64_t> used;  ///< bit i: slot i holds a record
  typename Model::template Link<BtLeaf> next;
  std::uint64_t unused[6 - (sizeof(typename Model::template Link<BtLeaf>) / 8 - 1)];
  Record record[slots];
};

template <class Model>
struct BtInner {
  static constexpr const char* layout_id = "bench::BtInner/1";
  static constexpr unsigned most = 32;
  typename Model::template Field<std::uint64_t> count;  ///< keys
  typename Model::template Field<std::uint64_t> keys[most];
  typename Model::template Link<BtLeaf<Model>> child[most + 1];  ///< leaves, or inner nodes (recast)
};

/// A child in hand as the node that its level says it is.
template <class To, class From>
To* recast(From* node) {
  return reinterpret_cast<To*>(node);
}

template <class Model>
struct BtRoot {
  static constexpr const char* layout_id = "bench::BtRoot/1";
  typename Model::template Link<BtLeaf<Model>> top;            ///< null: empty
  typename Model::template Field<std::uint64_t> height{0ULL};  ///< inner nodes above a leaf

  /// For Perdure's check(): the heap blocks that this owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (auto first = tx.read(top)) below(tx, first, tx.read(height), f);
  }

 private:
  template <class Tx, class Node, class F>
  static void below(Tx& tx, Node node, std::uint64_t level, F& f) {
    f(node);
    if (level == 0) return;
    const auto inner = recast<BtInner<Model>>(node);
    for (std::uint64_t i = 0; i <= tx.read(inner->count); ++i) below(tx, tx.read(inner->child[i]), level - 1, f);
  }
};

}  // namespace bench
