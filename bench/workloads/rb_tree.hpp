// SPDX-License-Identifier: BSD-3-Clause
//
// A red-black tree with parent links, nodes of 48 bytes from the system's heap (72 with fat
// pointers): the text-book algorithm (Cormen, Leiserson, Rivest, Stein), without a sentinel,
// because every removal would write the sentinel's parent link (as in java.util.TreeMap). The code
// is the same for every system under test (see models.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/key_set.hpp"
#include "bench/workloads/snapshot.hpp"

namespace bench {

template <class Model>
struct RbNode {
  static constexpr const char* layout_id = "bench::RbNode/1";
  using Ref = typename Model::template Ref<RbNode>;
  template <class T>
  using Field = typename Model::template Field<T>;
  using Link = typename Model::template Link<RbNode>;
  Field<std::uint64_t> key, value;
  Link left, right, parent;
  Field<std::uint64_t> red;

  RbNode(std::uint64_t k, std::uint64_t v, Ref p)
      : key(k), value(v), left(Ref{}), right(Ref{}), parent(p), red(1) {}
};

template <class Model>
struct RbRoot {
  static constexpr const char* layout_id = "bench::RbRoot/1";
  typename Model::template Link<RbNode<Model>> top;

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    std::vector<decltype(tx.read(top))> open{tx.read(top)};
    while (!open.empty()) {
      const auto node = open.back();
      open.pop_back();
      if (!node) continue;
      f(node);
      open.push_back(tx.read(node->left));
      open.push_back(tx.read(node->right));
    }
  }
};

/// The algorithm inside one transaction.
template <class Model, class Tx>
class RbWork {
 public:
  using Root = RbRoot<Model>;
  using Node = RbNode<Model>;
  using Ref = typename Model::template Ref<Node>;

  RbWork(Tx& tx, Root& root) : tx_(tx), root_(root) {}

  int toggle(std::uint64_t key, std::uint64_t value) {
    Ref parent{};
    bool to_left = false;
    for (Ref n = tx_.get(root_.top); n; n = to_left ? left(n) : right(n)) {
      const std::uint64_t k = tx_.get(n->key);
      if (k == key) {
        remove(n);
        return -1;
      }
      parent = n;
      to_left = key < k;
    }
    const Ref node = tx_.template make<Node>(key, value, parent);
    if (!parent)
      tx_.set(root_.top, node);
    else if (to_left)
      tx_.set(own(parent)->left, node);
    else
      tx_.set(own(parent)->right, node);
    mend_insert(node);
    return 1;
  }

 private:
  void remove(Ref n) {
    if (left(n) && right(n)) {  // its successor's element moves up, the successor's node is removed
      Ref next = right(n);
      for (Ref l = left(next); l; l = left(next)) next = l;
      tx_.set(own(n)->key, tx_.get(next->key));
      tx_.set(own(n)->value, tx_.get(next->value));
      n = next;
    }
    const Ref child = left(n) ? left(n) : right(n);
    if (child) {
      replace(n, child);
      if (!is_red(n)) mend_erase(child);
    } else if (!parent_of(n)) {
      tx_.set(root_.top, Ref{});
    } else {
      if (!is_red(n)) mend_erase(n);
      const Ref p = parent_of(n);
      if (left(p) == n)
        tx_.set(own(p)->left, Ref{});
      else
        tx_.set(own(p)->right, Ref{});
    }
    tx_.destroy(n);
  }

  /// A node to which the transaction stores.
  Ref own(Ref n) {
    snapshot(tx_, *n);
    return n;
  }
  Ref left(Ref n) { return tx_.get(n->left); }
  Ref right(Ref n) { return tx_.get(n->right); }
  Ref parent_of(Ref n) { return n ? tx_.get(n->parent) : Ref{}; }
  Ref left_of(Ref n) { return n ? left(n) : Ref{}; }
  Ref right_of(Ref n) { return n ? right(n) : Ref{}; }
  bool is_red(Ref n) { return n && tx_.get(n->red) != 0; }
  void paint(Ref n, bool red) {  // stores only what changes: all threads read the upper nodes
    if (n && is_red(n) != red) tx_.set(own(n)->red, red ? 1ULL : 0ULL);
  }

  /// `child` takes n's place under n's parent.
  void replace(Ref n, Ref child) {
    const Ref p = parent_of(n);
    tx_.set(own(child)->parent, p);
    if (!p)
      tx_.set(root_.top, child);
    else if (left(p) == n)
      tx_.set(own(p)->left, child);
    else
      tx_.set(own(p)->right, child);
  }

  void rotate_left(Ref n) {
    if (!n) return;
    const Ref r = right(n), inner = left(r);
    tx_.set(own(n)->right, inner);
    if (inner) tx_.set(own(inner)->parent, n);
    replace(n, r);
    tx_.set(own(r)->left, n);
    tx_.set(own(n)->parent, r);
  }

  void rotate_right(Ref n) {
    if (!n) return;
    const Ref l = left(n), inner = right(l);
    tx_.set(own(n)->left, inner);
    if (inner) tx_.set(own(inner)->parent, n);
    replace(n, l);
    tx_.set(own(l)->right, n);
    tx_.set(own(n)->parent, l);
  }

  void mend_insert(Ref n) {
    while (n && !(n == tx_.get(root_.top)) && is_red(parent_of(n))) {
      const bool on_left = parent_of(n) == left_of(parent_of(parent_of(n)));
      const Ref uncle =
          on_left ? right_of(parent_of(parent_of(n))) : left_of(parent_of(parent_of(n)));
      if (is_red(uncle)) {
        paint(parent_of(n), false);
        paint(uncle, false);
        n = parent_of(parent_of(n));
        paint(n, true);
        continue;
      }
      if (n == (on_left ? right_of(parent_of(n)) : left_of(parent_of(n)))) {
        n = parent_of(n);
        if (on_left)
          rotate_left(n);
        else
          rotate_right(n);
      }
      paint(parent_of(n), false);
      paint(parent_of(parent_of(n)), true);
      if (on_left)
        rotate_right(parent_of(parent_of(n)));
      else
        rotate_left(parent_of(parent_of(n)));
    }
    paint(tx_.get(root_.top), false);
  }

  void mend_erase(Ref n) {
    while (!(n == tx_.get(root_.top)) && !is_red(n)) {
      const bool on_left = n == left_of(parent_of(n));
      const auto near = [this, on_left](Ref x) { return on_left ? left_of(x) : right_of(x); };
      const auto far = [this, on_left](Ref x) { return on_left ? right_of(x) : left_of(x); };
      const auto turn = [this](Ref x, bool to_left) { to_left ? rotate_left(x) : rotate_right(x); };
      Ref sibling = far(parent_of(n));
      if (is_red(sibling)) {
        paint(sibling, false);
        paint(parent_of(n), true);
        turn(parent_of(n), on_left);
        sibling = far(parent_of(n));
      }
      if (!is_red(near(sibling)) && !is_red(far(sibling))) {
        paint(sibling, true);
        n = parent_of(n);
        continue;
      }
      if (!is_red(far(sibling))) {
        paint(near(sibling), false);
        paint(sibling, true);
        turn(sibling, !on_left);
        sibling = far(parent_of(n));
      }
      paint(sibling, is_red(parent_of(n)));
      paint(parent_of(n), false);
      paint(far(sibling), false);
      turn(parent_of(n), on_left);
      break;
    }
    paint(n, false);
  }

  Tx& tx_;
  Root& root_;
};

template <class Model>
struct RbTree {
  using Root = RbRoot<Model>;
  using Node = RbNode<Model>;
  using Ref = typename Model::template Ref<Node>;
  static constexpr const char* structure = "rb";

  template <class Host>
  static void prepare(Host&, const Setting&) {}

  template <class Tx>
  static bool contains(Tx& tx, const Root& root, std::uint64_t key) {
    for (auto n = tx.get(root.top); n;) {
      const std::uint64_t k = tx.get(n->key);
      if (k == key) return true;
      n = key < k ? tx.get(n->left) : tx.get(n->right);
    }
    return false;
  }

  template <class Tx>
  static int toggle(Tx& tx, Root& root, std::uint64_t key, std::uint64_t value) {
    return RbWork<Model, Tx>(tx, root).toggle(key, value);
  }

  /// Checks order, colours, the same number of black nodes on every path, parent links, and values.
  template <class Host>
  static std::uint64_t audit(Host& host, std::vector<std::string>& problems) {
    std::uint64_t found = 0, wrong = 0;
    host.view([&](auto& tx, const Root& root) {
      found = wrong = 0;  // a view may run again
      const Ref top = tx.get(root.top);
      if (top && tx.get(top->red) != 0) ++wrong;
      black_height(tx, top, Ref{}, -1, KeySet<RbTree>::keys, 0, found, wrong);
      return true;
    });
    if (wrong != 0)
      problems.push_back("rb: " + std::to_string(wrong) +
                         " nodes break order, colour, height, a parent link or a value");
    return found;
  }

 private:
  template <class Tx>
  static int black_height(Tx& tx, Ref n, Ref parent, std::int64_t above, std::int64_t below,
                          int depth, std::uint64_t& found,
                          std::uint64_t& wrong) {  // above < key < below
    if (!n) return 1;
    if (depth > 100) {  // no red-black tree of this size is that deep: it is a cycle
      ++wrong;
      return 1;
    }
    ++found;
    const auto key = static_cast<std::int64_t>(tx.get(n->key));
    const bool red = tx.get(n->red) != 0;
    const auto p = tx.get(n->parent);
    if (key <= above || key >= below || tx.get(n->value) != static_cast<std::uint64_t>(key) + 1 ||
        !(p == parent))
      ++wrong;
    if (red && parent && tx.get(parent->red) != 0) ++wrong;
    const int l = black_height(tx, tx.get(n->left), n, above, key, depth + 1, found, wrong);
    const int r = black_height(tx, tx.get(n->right), n, key, below, depth + 1, found, wrong);
    if (l != r) ++wrong;
    return l + (red ? 0 : 1);
  }
};

}  // namespace bench
