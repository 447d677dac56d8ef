// SPDX-License-Identifier: BSD-3-Clause
//
// hash_set<K>: an unordered set in a pool: the table of hash_map, with a value of one byte that is
// 0.
//
// Thread safety: that of the transaction. Zero bytes are an empty set.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/key_set.hpp"

namespace perdure {

/// An unordered set in a pool. K is a value (docs/values.md); hash<K> says how it is hashed.
///
/// Each call takes the transaction first. Calls that change the set need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's; two threads conflict where they change one chain.
template <class K, unsigned Buckets = 128>
class alignas(64) hash_set : public detail::key_set<hash_map<K, std::uint8_t, Buckets>> {
 public:
  /// Prepares the set for `buckets` chains, as hash_map.
  template <class Tx>
  void reserve(Tx& tx, std::uint64_t buckets) {
    this->entries_.reserve(tx, buckets);
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "hash_set<" + stored_key<K>::name(names) + "," + std::to_string(Buckets) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }
};

}  // namespace perdure
