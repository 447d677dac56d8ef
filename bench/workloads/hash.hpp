// SPDX-License-Identifier: BSD-3-Clause
//
// A chained hash table of 1 M buckets over an array of links; a node is 24 bytes from the system's
// heap (32 with fat pointers). The code is the same for every system under test (see models.md).
// There is no element counter: every update would share that word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/key_set.hpp"

namespace bench {

template <class Model>
struct HashNode {
  static constexpr const char* layout_id = "bench::HashNode/1";
  static constexpr const char* structure = "hash";
  using Ref = typename Model::template Ref<HashNode>;
  typename Model::template Field<std::uint64_t> key, value;
  typename Model::template Link<HashNode> next;

  HashNode(std::uint64_t k, std::uint64_t v, Ref n) : key(k), value(v), next(n) {}

  template <class Tx, class Root>
  static Ref make(Tx& tx, const Root&, std::uint64_t key, std::uint64_t value, Ref next) {
    return tx.template make<HashNode>(key, value, next);
  }
  template <class Tx, class Root>
  static bool has_value(Tx& tx, const Root&, const Ref& node, std::uint64_t value) {
    return tx.get(node->value) == value;
  }
};

template <class Model, template <class> class NodeOf>
struct HashRoot {
  static constexpr const char* layout_id = "bench::HashRoot/1";
  static constexpr std::uint64_t bucket_count = 1 << 20;
  typename Model::template Link<typename Model::template Link<NodeOf<Model>>> buckets;
  typename Model::template Field<std::uint64_t> value_words{1ULL};  ///< for nodes that have several

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    const auto table = tx.read(buckets);
    if (!table) return;
    f(table);
    for (std::uint64_t i = 0; i < bucket_count; ++i) {
      for (auto node = tx.read(table[i]); node; node = tx.read(node->next)) f(node);
    }
  }
};

/// `NodeOf<Model>` has key and next, makes a node with make() and checks its value with
/// has_value().
template <class Model, template <class> class NodeOf = HashNode>
struct HashTable {
  using Root = HashRoot<Model, NodeOf>;
  using Node = NodeOf<Model>;
  using NodeRef = typename Model::template Ref<Node>;
  using Bucket = typename Model::template Link<Node>;
  static constexpr const char* structure = Node::structure;
  static constexpr std::uint64_t buckets = Root::bucket_count;

  static std::uint64_t bucket_of(std::uint64_t key) noexcept {
    return (key * 0x9e3779b97f4a7c15ULL) >> 44;
  }
  static_assert(buckets == 1ULL << (64 - 44));

  template <class Host>
  static void prepare(Host& host, const Setting& setting) {
    host.update([&setting](auto& tx, Root& root) {
      tx.set(root.value_words, (setting.value_bytes + 7) / 8);
      tx.set(root.buckets, tx.template allocate<Bucket>(buckets));
      return true;
    });
    constexpr std::uint64_t a_transaction = 1024;
    for (std::uint64_t from = 0; from < buckets; from += a_transaction) {
      host.update([from](auto& tx, Root& root) {
        const auto table = tx.get(root.buckets);
        for (std::uint64_t i = from; i < from + a_transaction; ++i) tx.set(table[i], NodeRef{});
        return true;
      });
    }
  }

  template <class Tx>
  static bool contains(Tx& tx, const Root& root, std::uint64_t key) {
    const auto table = tx.get(root.buckets);
    for (auto node = tx.get(table[bucket_of(key)]); node; node = tx.get(node->next)) {
      if (tx.get(node->key) == key) return true;
    }
    return false;
  }

  template <class Tx>
  static int toggle(Tx& tx, Root& root, std::uint64_t key, std::uint64_t value) {
    const auto table = tx.get(root.buckets);
    auto& bucket = table[bucket_of(key)];
    const auto first = tx.get(bucket);
    auto* link = &bucket;
    for (auto node = first; node; node = tx.get(*link)) {
      if (tx.get(node->key) == key) {
        tx.set(*link, tx.get(node->next));
        tx.destroy(node);
        return -1;
      }
      link = &node->next;
    }
    tx.set(bucket, Node::make(tx, root, key, value, first));
    return 1;
  }

  /// Checks that every element is in its own bucket, with its own value, once.
  template <class Host>
  static std::uint64_t audit(Host& host, std::vector<std::string>& problems) {
    std::vector<bool> seen(KeySet<HashTable>::keys, false);
    std::uint64_t found = 0, misplaced = 0, wrong = 0, twice = 0;
    host.view([&](auto& tx, const Root& root) {
      seen.assign(seen.size(), false);  // a view may run again
      found = misplaced = wrong = twice = 0;
      const auto table = tx.get(root.buckets);
      for (std::uint64_t i = 0; i < buckets; ++i) {
        for (auto node = tx.get(table[i]); node; node = tx.get(node->next)) {
          const std::uint64_t key = tx.get(node->key);
          ++found;
          if (bucket_of(key) != i || key >= seen.size())
            ++misplaced;
          else if (seen[key])
            ++twice;
          else
            seen[key] = true;
          if (!Node::has_value(tx, root, node, key + 1)) ++wrong;
          if (found > 2 * seen.size()) return true;  // it is a cycle: then found is wrong, too
        }
      }
      return true;
    });
    if (misplaced + wrong + twice != 0) {
      problems.push_back("hash: " + std::to_string(misplaced) + " elements in a wrong bucket, " +
                         std::to_string(wrong) + " with a wrong value, " + std::to_string(twice) +
                         " twice");
    }
    return found;
  }
};

}  // namespace bench
