// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table (hash.hpp) with values of many words: Setting::value_bytes bytes in the node, of
// which the insertion stores every word. For Blurred Persistence's figures 9 and 14 (papers:
// Blurred Persistence, V-C.1 and V-C.5). A node is not constructed: only what was stored is read.
#pragma once

#include <cstdint>

#include "bench/workloads/hash.hpp"

namespace bench {

template <class Model>
struct HashValueNode {
  static constexpr const char* layout_id = "bench::HashValueNode/1";
  static constexpr const char* structure = "hashv";
  using Ref = typename Model::template Ref<HashValueNode>;
  using Word = typename Model::template Field<std::uint64_t>;
  Word key;
  typename Model::template Link<HashValueNode> next;  ///< the value's words follow it

  template <class Tx, class Root>
  static Ref make(Tx& tx, const Root& root, std::uint64_t key, std::uint64_t value, Ref next) {
    static_assert(sizeof(HashValueNode) % sizeof(Word) == 0);
    const std::uint64_t words = tx.get(root.value_words);
    const Ref node = reinterpret_cast<Ref>(
        tx.template allocate<Word>(sizeof(HashValueNode) / sizeof(Word) + words));
    tx.set(node->key, key);
    tx.set(node->next, next);
    for (std::uint64_t i = 0; i < words; ++i) tx.set(word_of(node, i), value + i);
    return node;
  }
  template <class Tx, class Root>
  static bool has_value(Tx& tx, const Root& root, const Ref& node, std::uint64_t value) {
    bool right = true;
    for (std::uint64_t i = 0, words = tx.get(root.value_words); i < words; ++i)
      right = right && tx.get(word_of(node, i)) == value + i;
    return right;
  }

 private:
  static Word& word_of(const Ref& node, std::uint64_t i) {
    return reinterpret_cast<Word*>(&*node + 1)[i];
  }
};

template <class Model>
using HashValues = HashTable<Model, HashValueNode>;

}  // namespace bench
