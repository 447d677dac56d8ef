// SPDX-License-Identifier: BSD-3-Clause
//
// set<K>: an ordered set in a pool: the B+-tree of map, with a value of one byte that is 0.
//
// Thread safety: that of the transaction. Zero bytes are an empty set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "perdure/container/key_set.hpp"
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
class alignas(64) set : public detail::key_set<map<K, std::uint8_t, Capacity>> {
  using Base = detail::key_set<map<K, std::uint8_t, Capacity>>;

 public:
  using typename Base::cursor;
  using typename Base::key_arg;

  /// A cursor past the last element: false; prev() leads to the last one.
  template <class Tx>
  [[nodiscard]] cursor end(Tx& tx) const {
    return this->entries_.end(tx);
  }
  /// Returns the first element that is not below `key`.
  template <class Tx>
  [[nodiscard]] cursor lower_bound(Tx& tx, key_arg key) const {
    return this->entries_.lower_bound(tx, key);
  }
  /// Returns the first element that is above `key`.
  template <class Tx>
  [[nodiscard]] cursor upper_bound(Tx& tx, key_arg key) const {
    return this->entries_.upper_bound(tx, key);
  }
  /// A copy of the smallest element; nothing where the set is empty.
  template <class Tx>
  [[nodiscard]] std::optional<K> first(Tx& tx) const {
    return key_of(this->entries_.first(tx));
  }
  /// A copy of the largest element; nothing where the set is empty.
  template <class Tx>
  [[nodiscard]] std::optional<K> last(Tx& tx) const {
    return key_of(this->entries_.last(tx));
  }

  /// The elements in order, a range as map's: `for (const auto& key : s.range(tx))`.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx) const {
    return detail::ordered_range<Tx, cursor, detail::key_alone>(tx, this->begin(tx), end(tx));
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
    return this->entries_.template range_as<detail::key_alone>(tx, from, to);
  }
  /// The elements from a beginning on, up to an end, or between both, as map::range().
  template <class Tx, detail::range_bound... Bounds>
  [[nodiscard]] auto range(Tx& tx, const Bounds&... bounds) const
    requires(detail::bounds_a_range<Bounds...>)
  {
    return this->entries_.template range_in<detail::key_alone>(tx, bounds...);
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
};

}  // namespace perdure
