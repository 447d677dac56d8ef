// SPDX-License-Identifier: BSD-3-Clause
//
// The B+-tree's algorithm (bplus_tree.hpp has its shape and invariants): search, insertion with
// splits, removal with merges.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "bench/workloads/bplus_node.hpp"
#include "bench/workloads/snapshot.hpp"

namespace bench {

/// The algorithm inside one transaction.
template <class Model, class Shape, class Tx>
class BtWork {
 public:
  using Root = BtRoot<Model, Shape>;
  using Leaf = BtLeaf<Model, Shape>;
  using Inner = BtInner<Model, Shape>;
  using LeafRef = typename Model::template Ref<Leaf>;
  using InnerRef = typename Model::template Ref<Inner>;
  using Word = std::uint64_t;
  using Used = BtUsed<Leaf::slots>;

  BtWork(Tx& tx, Root& root) : tx_(tx), root_(root) {}

  int toggle(Word key, Word value) {
    LeafRef leaf = tx_.get(root_.top);
    if (!leaf) {
      leaf = new_leaf(LeafRef{});
      tx_.set(root_.top, leaf);
      insert(leaf, key, value);
      return 1;
    }
    for (Word level = tx_.get(root_.height); level != 0; --level) {
      const InnerRef inner = recast<Inner>(leaf);
      const unsigned i = child_of(tx_, inner, key);
      path_[depth_++] = {inner, i};
      leaf = tx_.get(inner->child[i]);
    }
    if (const int slot = find(tx_, leaf, key); slot >= 0) {
      remove(leaf, static_cast<unsigned>(slot));
      return -1;
    }
    if (Used::of(tx_, leaf).count() == Leaf::slots) leaf = split(leaf, key);
    insert(leaf, key, value);
    return 1;
  }

  /// The child below which a key belongs.
  static unsigned child_of(Tx& tx, const InnerRef& inner, Word key) {
    unsigned low = 0, high = static_cast<unsigned>(tx.get(inner->count));
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      if (tx.get(inner->keys[middle]) <= key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  /// The slot of a key, or -1.
  static int find(Tx& tx, const LeafRef& leaf, Word key) {
    int found = -1;
    Used::of(tx, leaf).any([&](unsigned slot) {
      if (tx.get(leaf->record[slot].key) != key) return false;
      found = static_cast<int>(slot);
      return true;
    });
    return found;
  }

 private:
  static constexpr unsigned deepest = 16;
  struct Step {
    InnerRef inner{};
    unsigned child = 0;
  };
  struct Place {
    Word key;
    unsigned slot;
    bool operator<(const Place& o) const { return key < o.key; }
  };
  struct Places {
    std::array<Place, Leaf::slots> at;
    unsigned n = 0;
  };

  LeafRef new_leaf(const LeafRef& next) {
    const LeafRef leaf = tx_.template allocate<Leaf>(1);
    for (auto& word : leaf->used) tx_.set(word, 0);
    tx_.set(leaf->next, next);
    return leaf;
  }
  void insert(const LeafRef& leaf, Word key, Word value) {
    const Used used = Used::of(tx_, leaf);
    Used more = used;
    const unsigned slot = used.first_free();
    more.set(slot);
    auto& record = leaf->record[slot];
    snapshot(tx_, record);
    tx_.set(record.key, key);
    for (unsigned i = 0; i < Leaf::value_words; ++i) tx_.set(record.value[i], value + i);
    more.store(tx_, leaf, used);
  }
  Places sorted(const LeafRef& leaf) {
    Places p;
    Used::of(tx_, leaf).any([&](unsigned slot) {
      p.at[p.n++] = {tx_.get(leaf->record[slot].key), slot};
      return false;
    });
    std::sort(p.at.begin(), p.at.begin() + p.n);
    return p;
  }
  /// Moves records [first, last) of `places`, which are in `from`, to free slots of `to`.
  void move(const LeafRef& from, const LeafRef& to, const Places& places, unsigned first,
            unsigned last) {
    const Used to_before = Used::of(tx_, to), from_before = Used::of(tx_, from);
    Used used = to_before, left = from_before;
    snapshot(tx_, *to);
    for (unsigned i = first; i < last; ++i) {
      const auto& old = from->record[places.at[i].slot];
      const unsigned slot = used.first_free();
      auto& now = to->record[slot];
      tx_.set(now.key, places.at[i].key);
      for (unsigned w = 0; w < Leaf::value_words; ++w) tx_.set(now.value[w], tx_.get(old.value[w]));
      used.set(slot);
      left.clear(places.at[i].slot);
    }
    used.store(tx_, to, to_before);
    left.store(tx_, from, from_before);
  }

  /// Moves a full leaf's upper half to a new leaf; returns the leaf to which `key` belongs.
  LeafRef split(const LeafRef& leaf, Word key) {
    const Places places = sorted(leaf);
    const LeafRef right = new_leaf(tx_.get(leaf->next));
    move(leaf, right, places, Leaf::slots / 2, Leaf::slots);
    tx_.set(leaf->next, right);
    const Word least = places.at[Leaf::slots / 2].key;
    add_child(depth_, least, right);
    return key < least ? leaf : right;
  }

  // The keys and children of one inner node, or of two and the key between them.
  struct Row {
    std::array<Word, 2 * Inner::most + 2> keys;
    std::array<LeafRef, 2 * Inner::most + 3> child;
    unsigned n = 0;  // keys
  };
  void take(Row& row, const InnerRef& inner) {
    const auto count = static_cast<unsigned>(tx_.get(inner->count));
    for (unsigned i = 0; i < count; ++i) row.keys[row.n + i] = tx_.get(inner->keys[i]);
    for (unsigned i = 0; i <= count; ++i) row.child[row.n + i] = tx_.get(inner->child[i]);
    row.n += count;
  }
  /// Stores keys [first, last) of the row and the children around them into the node. It stores
  /// only what changes, unless the node is new.
  void give(const Row& row, unsigned first, unsigned last, const InnerRef& inner,
            bool is_new = false) {
    snapshot(tx_, *inner);
    const unsigned old = is_new ? 0 : static_cast<unsigned>(tx_.get(inner->count)) + 1;  // children
    for (unsigned i = 0; first + i < last; ++i)
      if (i + 1 >= old || tx_.get(inner->keys[i]) != row.keys[first + i])
        tx_.set(inner->keys[i], row.keys[first + i]);
    for (unsigned i = 0; first + i <= last; ++i)
      if (i >= old || !(tx_.get(inner->child[i]) == row.child[first + i]))
        tx_.set(inner->child[i], row.child[first + i]);
    if (old != last - first + 1) tx_.set(inner->count, last - first);
  }

  /// Inserts `right`, whose smallest key is `least`, after the child by which the path leaves the
  /// node above `depth`.
  void add_child(unsigned depth, Word least, const LeafRef& right) {
    Row row;
    if (depth == 0) {
      row.keys[0] = least;
      row.child[0] = tx_.get(root_.top);
      row.child[1] = right;
      const InnerRef top = tx_.template allocate<Inner>(1);
      give(row, 0, 1, top, true);
      tx_.set(root_.top, recast<Leaf>(top));
      tx_.set(root_.height, tx_.get(root_.height) + 1);
      return;
    }
    const auto& [inner, at] = path_[depth - 1];
    take(row, inner);
    std::copy_backward(row.keys.begin() + at, row.keys.begin() + row.n,
                       row.keys.begin() + row.n + 1);
    std::copy_backward(row.child.begin() + at + 1, row.child.begin() + row.n + 1,
                       row.child.begin() + row.n + 2);
    row.keys[at] = least;
    row.child[at + 1] = right;
    if (++row.n <= Inner::most) return give(row, 0, row.n, inner);
    const unsigned middle = row.n / 2;
    const InnerRef beside = tx_.template allocate<Inner>(1);
    give(row, middle + 1, row.n, beside, true);
    give(row, 0, middle, inner);
    add_child(depth - 1, row.keys[middle], recast<Leaf>(beside));
  }

  void remove(const LeafRef& leaf, unsigned slot) {
    const Used used = Used::of(tx_, leaf);
    Used left = used;
    left.clear(slot);
    left.store(tx_, leaf, used);
    if (depth_ == 0) {
      if (left.count() != 0) return;
      tx_.set(root_.top, LeafRef{});
      tx_.destroy(leaf);
    } else if (left.count() < Leaf::slots / 4) {
      mend_leaf();
    }
  }

  void mend_leaf() {
    const auto& [parent, at] = path_[depth_ - 1];
    const unsigned between = at == 0 ? 0 : at - 1;  // the key between the two
    const LeafRef left = tx_.get(parent->child[between]),
                  right = tx_.get(parent->child[between + 1]);
    const Places l = sorted(left), r = sorted(right);
    if (l.n + r.n <= Leaf::slots * 3 / 4) {
      move(right, left, r, 0, r.n);
      tx_.set(left->next, tx_.get(right->next));
      tx_.destroy(right);
      return drop_child(depth_, between);
    }
    const unsigned half = (l.n + r.n) / 2;
    if (l.n < half) {
      move(right, left, r, 0, half - l.n);
      tx_.set(parent->keys[between], r.at[half - l.n].key);
    } else {
      move(left, right, l, half, l.n);
      tx_.set(parent->keys[between], l.at[half].key);
    }
  }

  /// Removes the child after keys[between] from the node above `depth`.
  void drop_child(unsigned depth, unsigned between) {
    const InnerRef inner = path_[depth - 1].inner;
    Row row;
    take(row, inner);
    std::copy(row.keys.begin() + between + 1, row.keys.begin() + row.n, row.keys.begin() + between);
    std::copy(row.child.begin() + between + 2, row.child.begin() + row.n + 1,
              row.child.begin() + between + 1);
    --row.n;
    if (depth == 1) {
      if (row.n != 0) return give(row, 0, row.n, inner);
      tx_.set(root_.top, row.child[0]);
      tx_.set(root_.height, tx_.get(root_.height) - 1);
      tx_.destroy(inner);
      return;
    }
    give(row, 0, row.n, inner);
    if (row.n >= Inner::most / 4) return;
    const auto& [parent, at] = path_[depth - 2];
    const unsigned above = at == 0 ? 0 : at - 1;
    const InnerRef left = recast<Inner>(tx_.get(parent->child[above])),
                   right = recast<Inner>(tx_.get(parent->child[above + 1]));
    Row both;
    take(both, left);
    both.keys[both.n++] = tx_.get(parent->keys[above]);
    take(both, right);
    if (both.n <= Inner::most * 3 / 4) {
      give(both, 0, both.n, left);
      tx_.destroy(right);
      return drop_child(depth - 1, above);
    }
    const unsigned middle = both.n / 2;
    give(both, 0, middle, left);
    give(both, middle + 1, both.n, right);
    tx_.set(parent->keys[above], both.keys[middle]);
  }

  Tx& tx_;
  Root& root_;
  std::array<Step, deepest> path_{};
  unsigned depth_ = 0;
};

}  // namespace bench
