// SPDX-License-Identifier: BSD-3-Clause
//
// hash_map::audit: whether a map's nodes are where their hashes put them (HASHMAP-1 to HASHMAP-4 of
// hash_map.hpp, which includes this file at its end).
// Thread safety: that of the transaction.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perdure/container/hash_map.hpp"

namespace perdure {

template <class K, class V, unsigned Buckets>
template <class Tx>
std::vector<std::string> hash_map<K, V, Buckets>::audit(Tx& tx) const {
  std::vector<std::string> problems;
  const std::uint64_t n = tx.read(segments_), expected = count_.total(tx);
  std::uint64_t found = 0;
  const auto place = [](std::uint64_t s, unsigned b) {
    return "hash_map: segment " + std::to_string(s) + ", bucket " + std::to_string(b);
  };
  if (n != 0 && tx.read(*directory_.at(tx, 0)) == nullptr)
    return {"hash_map: segment 0 is missing"};
  for (std::uint64_t s = 0; s < n && problems.size() < 8; ++s) {
    const Segment* segment = tx.read(*directory_.at(tx, s));
    for (unsigned b = 0; segment != nullptr && b < Buckets; ++b) {
      std::vector<K> keys;
      for (Node* node = tx.read(segment->bucket[b]); node != nullptr; node = tx.read(node->next)) {
        if (++found > expected)
          return {place(s, b) + ": more nodes than its count, " + std::to_string(expected) +
                  ", or a chain in a circle"};
        K key = Key::read(tx, node->key);
        const std::uint64_t h = Key::hash(key);
        if (h != node->hash_of(tx))
          problems.push_back(place(s, b) + ": a node's kept hash is not its key's");
        else if (bucket_of(tx, n, h) != &segment->bucket[b])
          problems.push_back(place(s, b) + ": a key that belongs elsewhere");
        for (const K& other : keys) {
          if (Key::hash(other) == h && Key::equal(tx, node->key, other))
            problems.push_back(place(s, b) + ": a key twice");
        }
        keys.push_back(std::move(key));
      }
    }
  }
  if (problems.empty() && found != expected) {
    problems.push_back("hash_map: found " + std::to_string(found) + " nodes, its count is " +
                       std::to_string(expected));
  }
  return problems;
}

}  // namespace perdure
