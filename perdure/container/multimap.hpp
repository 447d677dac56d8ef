// SPDX-License-Identifier: BSD-3-Clause
//
// multimap<K, V>: an ordered map in a pool that has any number of values per key: the B+-tree of
// map, whose keys are (key, number).
//
// The number is given when an element is added and never again, so that elements of one key lie in
// the order in which they were added.
// Thread safety: that of the transaction. Zero bytes are an empty multimap.
// Invariants:
// MULTIMAP-1 Each element's number is less than next_.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/container/map.hpp"

namespace perdure {

/// An ordered map in a pool with any number of values per key. K and V are values, V may be an
/// object that the map owns (docs/values.md).
///
/// Each call takes the transaction first. Calls that change the map need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class K, class V, unsigned Capacity = 15>
class alignas(64) multimap {
  using Entry = std::tuple<K, std::uint64_t>;
  using Entries = map<Entry, V, Capacity>;
  static constexpr std::uint64_t behind_all = ~std::uint64_t{0};

  struct KeyAndValue {
    template <class Tx, class Cursor>
    static auto at(Tx& tx, const Cursor& cursor) {
      return std::pair(std::get<0>(cursor.key(tx)), cursor.value(tx));
    }
  };

 public:
  /// The type of a key.
  using key_type = K;
  /// Several elements may have one key.
  static constexpr bool shares_keys = true;
  /// The type of a value.
  using mapped_type = V;
  using value_arg = typename Entries::value_arg;    ///< const V&, or std::string_view
  using value_kept = typename Entries::value_kept;  ///< what a look-up returns, as map's

  /// A place in the map, as map's cursor.
  class cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is at an element, or where one was erased.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(at_); }
    /// A copy of the element's key. Throws error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] K key(Tx& tx) const {
      return std::get<0>(at_.key(tx));
    }
    /// A copy of the element's value, or a pointer to it if it is an object in the pool. Throws
    /// error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] value_kept value(Tx& tx) const {
      return at_.value(tx);
    }
    /// Goes on to the next element; false behind the last one.
    template <class Tx>
    void next(Tx& tx) {
      at_.next(tx);
    }
    /// Goes back to the element before; from behind the last one, to it.
    template <class Tx>
    void prev(Tx& tx) {
      at_.prev(tx);
    }

   private:
    friend class multimap;
    explicit cursor(typename Entries::cursor at) : at_(std::move(at)) {}
    typename Entries::cursor at_;
  };

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
  /// Whether there is an element of the key.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, const K& key) const {
    const auto at = entries_.lower_bound(tx, Entry(key, 0));
    return at && at.below(tx, Entry(key, behind_all));
  }
  /// The number of elements of the key, each of which is visited.
  template <class Tx>
  [[nodiscard]] std::uint64_t count(Tx& tx, const K& key) const {
    std::uint64_t n = 0;
    for (auto at = entries_.lower_bound(tx, Entry(key, 0));
         at && at.below(tx, Entry(key, behind_all)); at.next(tx))
      ++n;
    return n;
  }

  /// Adds an element, behind those of its key. Returns its place.
  template <class Tx>
  cursor insert(Tx& tx, const K& key, value_arg value) {
    detail::require_update<Tx>();
    const std::uint64_t number = tx.read(next_);
    const Entry entry(key, number);
    tx.write(next_, number + 1);
    entries_.insert(tx, entry, value);
    return cursor(entries_.lower_bound(tx, entry));
  }
  /// Adds an element with a new, empty object, behind those of its key. Returns its place.
  template <class Tx>
  cursor insert(Tx& tx, const K& key)
    requires std::is_same_v<value_arg, new_object>
  {
    return insert(tx, key, value_arg{});
  }
  /// Calls f(V&), which changes the value of the element at `where`. REQUIRES: `where` is true.
  /// Throws error(invalid) if its element was erased, or if f adds or erases elements.
  template <class Tx, class F>
  void update(Tx& tx, const cursor& where, F&& f) {
    entries_.update(tx, where.at_.key(tx), f);
  }
  /// Removes the element at `where`, whose next() then leads to the one after it. REQUIRES: `where`
  /// is true. Throws error(invalid) if its element was erased.
  template <class Tx>
  void erase(Tx& tx, const cursor& where) {
    entries_.erase(tx, where.at_.key(tx));
  }
  /// Removes all elements of the key. Returns how many.
  template <class Tx>
  std::uint64_t erase(Tx& tx, const K& key) {
    detail::require_update<Tx>();
    std::uint64_t n = 0;
    for (auto at = entries_.lower_bound(tx, Entry(key, 0));
         at && at.below(tx, Entry(key, behind_all)); at.next(tx), ++n)
      entries_.erase(tx, at.key(tx));
    return n;
  }
  /// Removes all elements, in this transaction: empty a very large map with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    entries_.clear(tx);
  }
  /// Removes up to `n` elements, the smallest keys first. Returns whether the map is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return entries_.clear_some(tx, n);
  }
  /// As clear_some(), and calls f(key, value) with each element before it removes it. f must not
  /// change the map.
  template <class Tx, class F>
  bool take_some(Tx& tx, std::uint64_t n, F f) {
    return entries_.take_some(
        tx, n, [&](const Entry& entry, const auto& value) { f(std::get<0>(entry), value); });
  }

  /// Frees up to `blocks` heap blocks of what the map owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the map. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    return entries_.free_some(tx, blocks);
  }
  /// A cursor at the first element of the smallest key; false where the map is empty.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return cursor(entries_.begin(tx));
  }
  /// Returns the first element whose key is not below `key`.
  template <class Tx>
  [[nodiscard]] cursor lower_bound(Tx& tx, const K& key) const {
    return cursor(entries_.lower_bound(tx, Entry(key, 0)));
  }
  /// The elements of one key, in the order in which they were added: a range of pairs, as map's.
  template <class Tx>
  [[nodiscard]] auto of(Tx& tx, const K& key) const {
    return entries_.template range_as<KeyAndValue>(tx, Entry(key, 0), Entry(key, behind_all));
  }
  /// All elements, in order.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx) const {
    return detail::ordered_range<Tx, typename Entries::cursor, KeyAndValue>(tx, entries_.begin(tx),
                                                                            entries_.end(tx));
  }
  /// The elements with from <= key < to.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx, const K& from, const K& to) const {
    return entries_.template range_as<KeyAndValue>(tx, Entry(from, 0), Entry(to, 0));
  }
  /// Calls f(key, value) for each element, in order. A result of false from f ends the walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if (!detail::go_on(f, c.key(tx), c.value(tx))) return;
    }
  }

  /// The container has each_place(), for a change of layout (record_steps.hpp).
  static constexpr bool has_places = true;
  /// Calls f(place) for each place of a value, in the order of begin().
  template <class Tx, class F>
  void each_place(Tx& tx, F f) const {
    entries_.each_place(tx, f);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    entries_.each_block(tx, f);
  }
  /// Calls f(const V&) for each value that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<value_arg, new_object>
  void each_object(Tx& tx, F f) const {
    entries_.each_object(tx, f);
  }
  /// Calls f(pointer) for each value that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<V>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const K&, const V& value) { f(value); });
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    std::vector<std::string> problems = entries_.audit(tx);
    if (!problems.empty()) return problems;
    const std::uint64_t next = tx.read(next_);
    for (auto at = entries_.begin(tx); at; at.next(tx)) {
      const std::uint64_t number = std::get<1>(at.key(tx));
      if (number >= next)
        return {"multimap: an element has number " + std::to_string(number) +
                ", expected less than the next one, " + std::to_string(next)};
    }
    return {};
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "multimap<" + stored_key<K>::name(names) + "," + stored<V>::name(names) + "," +
           std::to_string(Capacity) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  p<std::uint64_t> next_;
  Entries entries_;
};

}  // namespace perdure
