// SPDX-License-Identifier: BSD-3-Clause
//
// set<K>: an ordered set in a pool: the B+-tree of map, with a value of one byte that is 0.
//
// Thread safety: that of the transaction. Zero bytes are an empty set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/container/map.hpp"

namespace perdure {

namespace detail {
/// An element of a set's range is a copy of its key.
struct key_alone {
  /// The cursor's key.
  template <class Tx, class Cursor>
  static auto at(Tx& tx, const Cursor& cursor) {
    return cursor.key(tx);
  }
};
}  // namespace detail

/// An ordered set in a pool. K is a value (docs/values.md). Text is ordered byte by byte, a struct
/// by its operator< or else field by field.
///
/// Each call takes the transaction first. Calls that change the set need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class K, unsigned Capacity = 15>
class alignas(64) set {
  using Entries = map<K, std::uint8_t, Capacity>;

 public:
  /// The type of an element.
  using key_type = K;
  /// The same.
  using value_type = K;
  using key_arg = typename Entries::key_arg;  ///< const K&, or std::string_view
  /// A place in the set, as map's; key(tx) is a copy of the element.
  using cursor = typename Entries::cursor;

  /// The number of elements.
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
  /// Removes up to `n` elements, the smallest first. Returns whether the set is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return entries_.clear_some(tx, n);
  }

  /// A cursor at the smallest element; false where the set is empty.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return entries_.begin(tx);
  }
  /// A cursor past the last element: false; prev() leads to the last one.
  template <class Tx>
  [[nodiscard]] cursor end(Tx& tx) const {
    return entries_.end(tx);
  }
  /// Returns the first element that is not below `key`.
  template <class Tx>
  [[nodiscard]] cursor lower_bound(Tx& tx, key_arg key) const {
    return entries_.lower_bound(tx, key);
  }
  /// Returns the first element that is above `key`.
  template <class Tx>
  [[nodiscard]] cursor upper_bound(Tx& tx, key_arg key) const {
    return entries_.upper_bound(tx, key);
  }
  /// A copy of the smallest element; nothing where the set is empty.
  template <class Tx>
  [[nodiscard]] std::optional<K> first(Tx& tx) const {
    return key_of(entries_.first(tx));
  }
  /// A copy of the largest element; nothing where the set is empty.
  template <class Tx>
  [[nodiscard]] std::optional<K> last(Tx& tx) const {
    return key_of(entries_.last(tx));
  }

  /// The elements in order, a range as map's: `for (const auto& key : s.range(tx))`.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx) const {
    return detail::ordered_range<Tx, cursor, detail::key_alone>(tx, begin(tx), end(tx));
  }
  /// The elements with from <= element.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx, key_arg from) const {
    return detail::ordered_range<Tx, cursor, detail::key_alone>(tx, lower_bound(tx, from), end(tx),
                                                                K(from));
  }
  /// The elements with from <= element < to.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx, key_arg from, key_arg to) const {
    return entries_.template range_as<detail::key_alone>(tx, from, to);
  }
  /// Calls f(key) for each element, in order. A result of false from f ends the walk.
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
    return "set<" + stored_key<K>::name(names) + "," + std::to_string(Capacity) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  static std::optional<K> key_of(std::optional<std::pair<K, std::uint8_t>> entry) {
    if (!entry) return std::nullopt;
    return std::move(entry->first);
  }

  Entries entries_;
};

}  // namespace perdure
