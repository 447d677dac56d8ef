// SPDX-License-Identifier: BSD-3-Clause
//
// hash_node<K, V>: one element of a hash_map: link, the hash where caching it saves time, key,
// value.
//
// Thread safety: that of the transaction.
#pragma once

#include <cstdint>

#include "perdure/api/persistent.hpp"
#include "perdure/container/stored.hpp"

namespace perdure::detail {

template <class K, class V, bool KeepsHash = stored_key<K>::keeps_hash>
struct hash_node {
  ptr<hash_node> next;
  typename stored_key<K>::field key;
  typename stored<V>::field value;

  template <class Tx>
  static hash_node* make(Tx& tx, hash_node* next, std::uint64_t, typename stored_key<K>::arg key,
                         typename stored<V>::arg value) {
    return tx.template make<hash_node>(next, stored_key<K>::make(tx, key),
                                       stored<V>::make(tx, value));
  }
  template <class Tx>
  std::uint64_t hash_of(Tx& tx) const {
    return stored_key<K>::hash(tx.read(key));
  }
  template <class Tx>
  bool is(Tx& tx, std::uint64_t, typename stored_key<K>::arg other) const {
    return stored_key<K>::equal(tx, key, other);
  }
};

template <class K, class V>
struct hash_node<K, V, true> {
  ptr<hash_node> next;
  p<std::uint64_t> hash;
  typename stored_key<K>::field key;
  typename stored<V>::field value;

  template <class Tx>
  static hash_node* make(Tx& tx, hash_node* next, std::uint64_t h, typename stored_key<K>::arg key,
                         typename stored<V>::arg value) {
    return tx.template make<hash_node>(next, h, stored_key<K>::make(tx, key),
                                       stored<V>::make(tx, value));
  }
  template <class Tx>
  std::uint64_t hash_of(Tx& tx) const {
    return tx.read(hash);
  }
  template <class Tx>
  bool is(Tx& tx, std::uint64_t h, typename stored_key<K>::arg other) const {
    return tx.read(hash) == h && stored_key<K>::equal(tx, key, other);
  }
};

}  // namespace perdure::detail
