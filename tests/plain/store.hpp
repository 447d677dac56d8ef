// SPDX-License-Identifier: BSD-3-Clause
//
// The plain C program (store.h) as a pool's root, and what must be true of it, read through a
// transaction.
// Thread safety: a transaction's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "perdure/base/checksum.hpp"
#include "tests/plain/store.h"

namespace perdure::plain::test {

struct Store {
  static constexpr const char* layout_id = "plain::test::Store/1";
  store s;

  template <class Tx, class T>
  static T at(Tx& tx, T const& field) {
    T value;
    tx.read_bytes(&value, &field, sizeof value);
    return value;
  }
  template <class Tx, class F>
  void each_item(Tx& tx, F&& f) const {
    for (const item* i = at(tx, s.queue.tqh_first); i != nullptr; i = at(tx, i->in_queue.tqe_next))
      f(i);
  }
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    each_item(tx, f);
  }

  /// A hash of the items, in the order of the queue.
  template <class Tx>
  std::uint64_t digest(Tx& tx) const {
    std::uint64_t hash = 1;
    each_item(tx, [&](const item* i) {
      hash = base::mix(hash ^ base::mix(at(tx, i->key)) ^ base::mix(at(tx, i->value) + 99));
    });
    return hash;
  }

  /// What is wrong with it; empty: nothing.
  template <class Tx>
  std::string problem(Tx& tx) const {
    std::map<std::uint64_t, const item*> items;
    std::uint64_t in_buckets = 0;
    const item* const* previous = &s.queue.tqh_first;
    std::string wrong;
    each_item(tx, [&](const item* i) {
      if (const_cast<const item* const*>(at(tx, i->in_queue.tqe_prev)) != previous)
        wrong = "a queue whose links contradict each other";
      previous = const_cast<const item* const*>(&i->in_queue.tqe_next);
      if (!items.emplace(at(tx, i->key), i).second) wrong = "a key twice";
    });
    for (const item* const& bucket : s.buckets)
      for (const item* i = at(tx, bucket); i != nullptr; i = at(tx, i->in_bucket)) {
        ++in_buckets;
        if (!items.contains(at(tx, i->key))) wrong = "an item in a bucket that is not in the queue";
      }
    if (in_buckets != items.size() || at(tx, s.count) != items.size())
      wrong = "buckets or a count of another number of items";
    auto next = items.begin();
    walk(
        tx, at(tx, s.tree.rbh_root), nullptr,
        [&](const item* i) {
          if (next == items.end() || next->second != i)
            wrong = "a tree of other items, or unsorted";
          if (next != items.end()) ++next;
        },
        wrong);
    if (next != items.end()) wrong = "a tree without some of the items";
    return wrong;
  }

 private:
  // Returns how many black nodes each path has.
  template <class Tx, class F>
  static int walk(Tx& tx, const item* i, const item* parent, F&& f, std::string& wrong) {
    if (i == nullptr) return 1;
    const auto links = at(tx, i->in_tree);
    if (links.rbe_parent != parent) wrong = "a node of the tree with another parent";
    if (links.rbe_color == RB_RED && parent != nullptr &&
        at(tx, parent->in_tree).rbe_color == RB_RED)
      wrong = "two red nodes in a row";
    const int left = walk(tx, links.rbe_left, i, f, wrong);
    f(i);
    const int right = walk(tx, links.rbe_right, i, f, wrong);
    if (left != right) wrong = "paths with different numbers of black nodes";
    return left + (links.rbe_color == RB_BLACK ? 1 : 0);
  }
};

}  // namespace perdure::plain::test
