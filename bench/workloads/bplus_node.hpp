// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of the B+-tree (bplus_tree.hpp), over a Model (models.md). A node is not constructed:
// only what was stored is read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "bench/workloads/recast.hpp"

namespace bench {

/// The sizes of a tree's nodes.
struct BtLines {
  static constexpr unsigned slots = 32, value_words = 3;  ///< of a leaf: a record is half a line
  static constexpr unsigned most = 32;                    ///< keys of an inner node
  static constexpr std::size_t node_bytes = 0;            ///< as large as its content
};
struct BtPages {  ///< 4 KiB nodes of 200 pairs (papers: Blurred Persistence, V-A)
  static constexpr unsigned slots = 200, value_words = 1, most = 200;
  static constexpr std::size_t node_bytes = 4096;
};

template <std::size_t bytes>
struct BtRest {
  std::byte rest[bytes];
};
template <>
struct BtRest<0> {};

template <class Model, class Shape>
struct BtLeaf {
  static constexpr const char* layout_id = "bench::BtLeaf/1";
  static constexpr unsigned slots = Shape::slots, value_words = Shape::value_words,
                            used_words = (slots + 63) / 64;
  template <class T>
  using Field = typename Model::template Field<T>;
  struct Record {
    Field<std::uint64_t> key;
    Field<std::uint64_t> value[value_words];
  };
  Field<std::uint64_t> used[used_words];  ///< bit i % 64 of word i / 64: slot i holds a record
  typename Model::template Link<BtLeaf> next;
  std::uint64_t unused[8 - used_words - sizeof(typename Model::template Link<BtLeaf>) / 8];
  Record record[slots];
  [[no_unique_address]] BtRest<
      Shape::node_bytes == 0 ? 0 : Shape::node_bytes - 64 - 8 * slots * (1 + value_words)> rest;
};

template <class Model, class Shape>
struct BtInner {
  static constexpr const char* layout_id = "bench::BtInner/1";
  static constexpr unsigned most = Shape::most;
  using Link = typename Model::template Link<BtLeaf<Model, Shape>>;
  typename Model::template Field<std::uint64_t> count;  ///< keys
  typename Model::template Field<std::uint64_t> keys[most];
  Link child[most + 1];  ///< leaves, or inner nodes (recast)
  [[no_unique_address]] BtRest<Shape::node_bytes == 0 ? 0
                                                      : Shape::node_bytes - 8 * (1 + most) -
                                                            sizeof(Link) * (1 + most)> rest;
};

/// A local copy of a leaf's used slots.
template <unsigned slots>
struct BtUsed {
  static constexpr unsigned words = (slots + 63) / 64;
  std::uint64_t word[words] = {};

  [[nodiscard]] unsigned count() const {
    unsigned n = 0;
    for (const std::uint64_t w : word) n += static_cast<unsigned>(std::popcount(w));
    return n;
  }
  [[nodiscard]] unsigned first_free() const {
    unsigned i = 0;
    while (i + 1 < words && word[i] == ~0ULL) ++i;
    return 64 * i + static_cast<unsigned>(std::countr_one(word[i]));
  }
  void set(unsigned slot) { word[slot / 64] |= 1ULL << slot % 64; }
  void clear(unsigned slot) { word[slot / 64] &= ~(1ULL << slot % 64); }
  /// Calls f(slot) for each, in order, until it returns true; returns whether it did.
  template <class F>
  bool any(F f) const {
    for (unsigned i = 0; i < words; ++i)
      for (std::uint64_t left = word[i]; left != 0; left &= left - 1)
        if (f(64 * i + static_cast<unsigned>(std::countr_zero(left)))) return true;
    return false;
  }

  template <class Tx, class Leaf>
  static BtUsed of(Tx& tx, const Leaf& leaf) {
    BtUsed u;
    for (unsigned i = 0; i < words; ++i) u.word[i] = tx.get(leaf->used[i]);
    return u;
  }
  /// Stores the words that differ from `before`.
  template <class Tx, class Leaf>
  void store(Tx& tx, const Leaf& leaf, const BtUsed& before) const {
    for (unsigned i = 0; i < words; ++i)
      if (word[i] != before.word[i]) tx.set(leaf->used[i], word[i]);
  }
};

template <class Model, class Shape>
struct BtRoot {
  static constexpr const char* layout_id = "bench::BtRoot/1";
  typename Model::template Link<BtLeaf<Model, Shape>> top;     ///< null: empty
  typename Model::template Field<std::uint64_t> height{0ULL};  ///< inner nodes above a leaf

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (auto first = tx.read(top)) below(tx, first, tx.read(height), f);
  }

 private:
  template <class Tx, class Node, class F>
  static void below(Tx& tx, Node node, std::uint64_t level, F& f) {
    f(node);
    if (level == 0) return;
    const auto inner = recast<BtInner<Model, Shape>>(node);
    for (std::uint64_t i = 0; i <= tx.read(inner->count); ++i)
      below(tx, tx.read(inner->child[i]), level - 1, f);
  }
};

}  // namespace bench
