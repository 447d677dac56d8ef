// SPDX-License-Identifier: BSD-3-Clause
//
// hash_set<K>: an unordered set in a pool: the table of hash_map, with a value of one byte that is
// 0.
//
// Thread safety: that of the transaction. Zero bytes are an empty set.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/container/hash_map.hpp"

namespace perdure {

/// An unordered set in a pool. K is a value (docs/values.md); hash<K> says how it is hashed.
///
/// Each call takes the transaction first. Calls that change the set need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's; two threads conflict where they change one chain.
template <class K, unsigned Buckets = 128>
class alignas(64) hash_set {
  using Entries = hash_map<K, std::uint8_t, Buckets>;

 public:
  /// The type of an element.
  using key_type = K;
  /// The same.
  using value_type = K;
  using key_arg = typename Entries::key_arg;  ///< const K&, or std::string_view
  /// A place in the set, as hash_map's; key(tx) is a copy of the element.
  using cursor = typename Entries::cursor;

  /// The number of elements. In a big set it is the sum of several counters, and conflicts with
  /// every insertion.
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
  /// Prepares the set for `buckets` chains, as hash_map.
  template <class Tx>
  void reserve(Tx& tx, std::uint64_t buckets) {
    entries_.reserve(tx, buckets);
  }
  /// Removes all elements, in this transaction: empty a very large set with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    entries_.clear(tx);
  }
  /// Removes up to `n` elements. Returns whether the set is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return entries_.clear_some(tx, n);
  }
  /// A cursor at the first element in the table's order; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return entries_.begin(tx);
  }
  /// Calls f(key) for each element, in the table's order. A result of false from f ends the walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if (!detail::go_on(f, c.key(tx))) return;
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
    requires(std::is_pointer_v<K>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const K& key) { f(key); });
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    return entries_.audit(tx);
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

 private:
  Entries entries_;
};

}  // namespace perdure
