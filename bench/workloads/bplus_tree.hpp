// SPDX-License-Identifier: BSD-3-Clause
//
// A B+-tree of 32-byte records (an 8-byte key and three words), for REWIND's figures 7 to 10
// (papers: REWIND, VLDB '15, section 5.2). Leaves have 32 slots, 1 KiB after a header of one line,
// so that a record lies in one line; they are not sorted: a word says which slots are in use, as in
// trees for persistent memory, so that an insertion stores the record and that word, and a removal
// that word alone. Inner nodes have up to 32 sorted keys, which fill half a KiB: 100,000 records
// lie three nodes deep. A full node is split in halves; a node that is less than a quarter full is
// merged with a neighbour of the same parent, or takes records of it if both would be too full. The
// code is the same for every system under test (see models.md).
//
// Invariants: BENCHTREE-1 all keys below child i are less than keys[i], all others are at least
// that. BENCHTREE-2 leaves are linked in the order of their keys. BENCHTREE-3 except for the top,
// no node is less than a quarter full. A node is not constructed: only what was stored is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/bplus_work.hpp"
#include "bench/workloads/key_set.hpp"

namespace bench {

template <class Model, class Shape = BtLines>
struct BplusTree {
  using Root = BtRoot<Model, Shape>;
  using Leaf = BtLeaf<Model, Shape>;
  using Inner = BtInner<Model, Shape>;
  using LeafRef = typename Model::template Ref<Leaf>;
  static constexpr const char* structure = Shape::node_bytes == 0 ? "bt" : "bp";
  static constexpr std::uint64_t keys = 200'000;  // the paper's 100,000 of them are present

  template <class Host>
  static void prepare(Host&, const Setting&) {}

  /// Reads the record.
  template <class Tx>
  static bool contains(Tx& tx, const Root& root, std::uint64_t key) {
    using Work = BtWork<Model, Shape, Tx>;
    LeafRef leaf = tx.get(root.top);
    if (!leaf) return false;
    for (std::uint64_t level = tx.get(root.height); level != 0; --level) {
      const auto inner = recast<Inner>(leaf);
      leaf = tx.get(inner->child[Work::child_of(tx, inner, key)]);
    }
    const int slot = Work::find(tx, leaf, key);
    if (slot < 0) return false;
    std::uint64_t different = 0;
    for (unsigned i = 0; i < Leaf::value_words; ++i)
      different |= tx.get(leaf->record[slot].value[i]) ^ (key + 1 + i);
    return different == 0;
  }

  template <class Tx>
  static int toggle(Tx& tx, Root& root, std::uint64_t key, std::uint64_t value) {
    return BtWork<Model, Shape, Tx>(tx, root).toggle(key, value);
  }

  /// Checks order, links, how full the nodes are, and values.
  template <class Host>
  static std::uint64_t audit(Host& host, std::vector<std::string>& problems) {
    Audit a;
    host.view([&](auto& tx, const Root& root) {
      a = {};  // a view may run again
      if (const LeafRef top = tx.get(root.top)) {
        look(tx, top, tx.get(root.height), true, 0, ~0ULL, a);
        if (tx.get(a.before->next)) ++a.wrong;
      }
      return true;
    });
    if (a.wrong != 0) {
      problems.push_back(
          "bt: " + std::to_string(a.wrong) +
          " nodes or records break order, a link, a node's least filling or a value");
    }
    return a.found;
  }

 private:
  struct Audit {
    std::uint64_t found = 0, wrong = 0;
    LeafRef before{};  // the leaf on the left
  };
  template <class Tx>
  static void look(Tx& tx, const LeafRef& node, std::uint64_t level, bool is_top,
                   std::uint64_t from, std::uint64_t below, Audit& a) {
    if (level > 8 || a.found > 2 * keys) {  // it is a cycle
      ++a.wrong;
      return;
    }
    if (level == 0) {
      if (a.before && !(tx.get(a.before->next) == node)) ++a.wrong;
      a.before = node;
      const auto used = BtUsed<Leaf::slots>::of(tx, node);
      if (!is_top && used.count() < Leaf::slots / 4) ++a.wrong;
      used.any([&](unsigned slot) {
        const auto& record = node->record[slot];
        const std::uint64_t key = tx.get(record.key);
        ++a.found;
        // Checks the key once.
        bool right = key >= from && key < below &&
                     BtWork<Model, Shape, Tx>::find(tx, node, key) == static_cast<int>(slot);
        for (unsigned i = 0; i < Leaf::value_words; ++i)
          right = right && tx.get(record.value[i]) == key + 1 + i;
        if (!right) ++a.wrong;
        return false;
      });
      return;
    }
    const auto inner = recast<Inner>(node);
    const std::uint64_t count = tx.get(inner->count);
    if (count > Inner::most || count < (is_top ? 1 : Inner::most / 4)) {
      ++a.wrong;
      return;
    }
    for (std::uint64_t i = 0; i <= count; ++i) {
      const std::uint64_t least = i == 0 ? from : tx.get(inner->keys[i - 1]),
                          end = i == count ? below : tx.get(inner->keys[i]);
      if (least > end || least < from || end > below) ++a.wrong;
      look(tx, tx.get(inner->child[i]), level - 1, false, least, end, a);
    }
  }
};

}  // namespace bench
