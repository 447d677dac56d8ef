// SPDX-License-Identifier: BSD-3-Clause
//
// key_set<Entries>: what set and hash_set have in common: the keys of a map whose values are one
// byte that is 0.
//
// Thread safety: that of the transaction. Zero bytes are an empty set.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/container/stored.hpp"

namespace perdure::detail {

/// A set over `Entries`, a map or a hash_map.
template <class Entries>
class key_set {
 public:
  /// The type of an element.
  using key_type = typename Entries::key_type;
  /// The same.
  using value_type = key_type;
  using key_arg = typename Entries::key_arg;  ///< const K&, or std::string_view
  /// A place in the set, as the map's; key(tx) is a copy of the element.
  using cursor = typename Entries::cursor;

  /// The number of elements. In a big hash_set it is the sum of several counters, and conflicts
  /// with every insertion.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return entries_.size(tx);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return entries_.empty(tx);
  }
  /// Whether the key is there.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, key_arg key) const {
    return entries_.contains(tx, key);
  }
  /// Adds the key unless it is there. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, key_arg key) {
    return entries_.insert(tx, key, 0);
  }
  /// Removes the key. Returns whether it was there.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    return entries_.erase(tx, key);
  }
  /// Removes all elements, in this transaction: empty a very large set with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    entries_.clear(tx);
  }
  /// Removes up to `n` elements, of a set the smallest first. Returns whether the set is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return entries_.clear_some(tx, n);
  }
  /// Frees up to `blocks` heap blocks of what the set owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the set. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    return entries_.free_some(tx, blocks);
  }
  /// As clear_some(), and calls f(key) with each element before it removes it. f must not change
  /// the set.
  template <class Tx, class F>
  bool take_some(Tx& tx, std::uint64_t n, F f) {
    return entries_.take_some(tx, n, [&](const key_type& key, std::uint8_t) { f(key); });
  }
  /// A cursor at the first element: the smallest one, or of a hash_set the first in the table's
  /// order. False where the set is empty.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return entries_.begin(tx);
  }
  /// Calls f(key) for each element, in the order of begin(). A result of false from f ends the
  /// walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if (!go_on(f, c.key(tx))) return;
    }
  }

  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    entries_.each_block(tx, f);
  }
  /// Calls f(pointer) for each element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<key_type>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const key_type& key) { f(key); });
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return entries_.audit(tx);
  }

 protected:
  /// The map.
  Entries entries_;
};

}  // namespace perdure::detail
