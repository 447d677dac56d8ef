// SPDX-License-Identifier: BSD-3-Clause
//
// ordered<Tree>: the interface of map and rb_tree, over the tree that each is made of.
//
// A Tree has places (Place, tested by there()), find, first, last, lower_bound, next, add, erase,
// clear, each_block, size and the fields of a place. Reads return values; keys and values are
// passed as stored.hpp says (text as std::string_view). Before a change during a walk
// (live_cursor.hpp) each cursor copies its key to DRAM, and later finds its place by it.
// Thread safety: that of the transaction. Zero bytes are an empty map.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "perdure/container/bound.hpp"
#include "perdure/container/key_bound.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/ordered_range.hpp"
#include "perdure/container/record_steps.hpp"
#include "perdure/container/stored.hpp"

namespace perdure::detail {

/// What map and rb_tree offer: an ordered map in a pool. K and V are values, V may
/// be an object that the map owns (docs/values.md). Text is ordered byte by byte, a struct by its
/// operator< or else field by field.
///
/// Each call takes the transaction first. Calls that change the map need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class K, class V, class Tree>
class ordered {
  using Key = stored_key<K>;
  using Value = stored<V>;

 public:
  /// The type of a key.
  using key_type = K;
  /// The type of a value.
  using mapped_type = V;
  using key_arg = typename Key::arg;      ///< const K&, or std::string_view
  using value_arg = typename Value::arg;  ///< const V&, or std::string_view
  /// What a look-up returns: a copy; where V is an object in the pool, a pointer to it.
  using value_kept = typename Value::kept;
  /// What find() returns.
  using look_up = std::conditional_t<std::is_pointer_v<value_kept> && !std::is_pointer_v<V>,
                                     value_kept, std::optional<V>>;

  /// The number of elements.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return tree_.size(tx);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return tree_.root(tx) == nullptr;
  }

  /// A copy of the key's value, or a pointer to it if it is an object in the pool; nothing (null)
  /// where the key is not there.
  template <class Tx>
  [[nodiscard]] look_up find(Tx& tx, key_arg key) const {
    const auto* field = tree_.find(tx, key);
    if (field == nullptr) return {};
    return Value::read(tx, *field);
  }
  /// Whether the key is there.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, key_arg key) const {
    return tree_.find(tx, key) != nullptr;
  }

  /// Adds the key unless it is there. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, key_arg key, value_arg value) {
    require_update<Tx>();
    detach(tx);
    return tree_.add(tx, key, value, [](auto&) {});
  }
  /// Adds the key with a new, empty object, unless the key is there. Returns whether it was added.
  template <class Tx>
  bool insert(Tx& tx, key_arg key)
    requires std::is_same_v<value_arg, new_object>
  {
    return insert(tx, key, value_arg{});
  }
  /// Adds the key, or replaces its value. Returns whether it was added.
  template <class Tx>
  bool put(Tx& tx, key_arg key, value_arg value) {
    require_update<Tx>();
    detach(tx);
    return tree_.add(tx, key, value, [&](auto& field) { Value::assign(tx, field, value); });
  }
  /// Calls f(V&), which changes the key's value. Returns false, without a call, when the key is not
  /// there.
  template <class Tx, class F>
  bool update(Tx& tx, key_arg key, F&& f) {
    require_update<Tx>();
    auto* field = tree_.find(tx, key);
    if (field == nullptr) return false;
    const being_changed changing(places());
    Value::change(tx, *field, f);
    return true;
  }
  /// update, on a V{} that is added first when the key is not there. Returns whether it was added.
  template <class Tx, class F>
  bool upsert(Tx& tx, key_arg key, F&& f) {
    if (update(tx, key, f)) return false;
    if constexpr (std::is_same_v<value_arg, new_object>) {
      insert(tx, key);
      return update(tx, key, f);
    } else {
      V value{};
      f(value);
      return insert(tx, key, value);
    }
  }
  /// Removes the key. Returns whether it was there.
  template <class Tx>
  bool erase(Tx& tx, key_arg key) {
    require_update<Tx>();
    detach(tx);
    return tree_.erase(tx, key);
  }

  /// Removes all elements, in this transaction: empty a very large map with clear_some.
  template <class Tx>
  void clear(Tx& tx) {
    require_update<Tx>();
    detach(tx);
    tree_.clear(tx);
  }
  /// Removes up to `n` elements, the smallest keys first. Returns whether the map is empty.
  template <class Tx>
  bool clear_some(Tx& tx, std::uint64_t n) {
    return remove_some(tx, n, [](const K&, const auto&) {});
  }
  /// As clear_some(), and calls f(key, value) with each element before it removes it. f must not
  /// change the map.
  template <class Tx, class F>
  bool take_some(Tx& tx, std::uint64_t n, F f) {
    return remove_some(tx, n, [&](const K& key, const auto& place) {
      f(key, Value::read(tx, place.value_field()));
    });
  }

  /// Frees up to `blocks` heap blocks of what the map owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the map. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    return free_some(tx, blocks, [&](auto& value) { return Value::free_some(tx, value, blocks); });
  }
  /// The same; free_value(field) frees what a value owns, and returns whether it owns nothing any
  /// more.
  template <class Tx, class F>
  bool free_some(Tx& tx, std::uint64_t& blocks, F free_value) {
    require_update<Tx>();
    detach(tx);
    for (auto place = tree_.first(tx); place.there(); place = tree_.first(tx)) {
      auto& value = const_cast<typename Value::field&>(place.value_field());
      if (blocks == 0 || !free_value(value)) return false;
      blocks -= blocks != 0 ? 1 : 0;  // the entry is freed after its value
      tree_.erase(tx, Key::read(tx, place.key_field()));
    }
    return true;
  }

  /// A place in the map, for this transaction; false past the end. It stays valid whatever changes;
  /// after its element was erased, only next() may be called (live_cursor.hpp).
  class cursor : private live_cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// The type of the map's keys.
    using key_type = K;
    /// Where a range begins or ends.
    using bound_type = key_bound<K>;
    /// The map's address.
    using live_cursor::container;
    /// A cursor of no map.
    cursor() : live_cursor(nullptr, false) {}
    /// Whether the cursor is at an element, or where one was erased.
    [[nodiscard]] explicit operator bool() const noexcept { return place_.there(); }
    /// A copy of the element's key. Throws error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] K key(Tx& tx) const {
      attach(tx);
      return Key::read(tx, place_.key_field());
    }
    /// A copy of the element's value, or a pointer to it if it is an object in the pool. Throws
    /// error(invalid) if the element was erased.
    template <class Tx>
    [[nodiscard]] value_kept value(Tx& tx) const {
      attach(tx);
      return Value::read(tx, place_.value_field());
    }
    /// Whether the element's key is less than `key`. Throws error(invalid) if the element was
    /// erased.
    template <class Tx>
    [[nodiscard]] bool below(Tx& tx, key_arg key) const {
      attach(tx);
      return Key::less(tx, place_.key_field(), key);
    }  ///< returns whether its key is less
    /// Goes on to the element with the next larger key; false behind the last one.
    template <class Tx>
    void next(Tx& tx) {
      if constexpr (!Tx::read_only) {
        if (key_ && !find(tx)) return;  // find moved to the next one
      }
      Tree::next(tx, place_);
    }

    /// Goes back to the element with the next smaller key; from behind the last one, to it; false
    /// before the first one.
    template <class Tx>
    void prev(Tx& tx) {
      if constexpr (!Tx::read_only) {
        if (key_) (void)find(tx);  // at the erased element's next one, prev is the same
      }
      static_cast<const ordered*>(this->container())->tree_.prev(tx, place_);
    }
    /// Whether both are at one element, or past the end. A cursor whose element was erased is where
    /// next() leads.
    template <class Tx>
    [[nodiscard]] bool is(Tx& tx, const cursor& other) const {
      const auto mine = now(tx), theirs = other.now(tx);
      return mine.there() ? theirs.there() && mine.same(theirs) : !theirs.there();
    }
    /// Whether there is an element where it is now.
    template <class Tx>
    [[nodiscard]] bool there_now(Tx& tx) const {
      return now(tx).there();
    }
    /// Whether the element where it is now is before the bound.
    template <class Tx>
    [[nodiscard]] bool below_now(Tx& tx, const bound_type& bound) const {
      return is_below(tx, now(tx).key_field(), bound);
    }
    /// Goes to the first element that is not before the bound.
    template <class Tx>
    void seek(Tx& tx, const bound_type& bound) {
      key_.reset();
      place_ = static_cast<const ordered*>(this->container())->place_of(tx, bound);
    }

   private:
    friend class ordered;
    cursor(const ordered* map, const typename Tree::Place& place, bool live)
        : live_cursor(map, live), place_(place) {}
    /// Its place in the map as it is now.
    template <class Tx>
    [[nodiscard]] typename Tree::Place now(Tx& tx) const {
      if constexpr (!Tx::read_only) {
        if (key_)
          return static_cast<const ordered*>(this->container())->tree_.lower_bound(tx, *key_);
      }
      return place_;
    }
    /// Moves to the element of the saved key, which may lie elsewhere now, or, if it was erased, to
    /// the next one (returns false).
    template <class Tx>
    bool find(Tx& tx) const {
      place_ = static_cast<const ordered*>(this->container())->tree_.lower_bound(tx, *key_);
      const bool there = place_.there() && Key::equal(tx, place_.key_field(), *key_);
      key_.reset();
      return there;
    }
    template <class Tx>
    void attach(Tx& tx) const {
      if constexpr (!Tx::read_only) {
        if (!key_) return;
        const K key = *key_;
        if (find(tx)) return;
        key_ = key;  // the cursor still stands before the next element
        live_cursor::erased();
      }
    }
    mutable typename Tree::Place place_{};
    mutable std::optional<K> key_;  ///< set when the map has changed since place_ was found
  };

  /// A cursor at the smallest key; false where the map is empty.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return cursor(this, tree_.first(tx), !Tx::read_only);
  }
  /// A cursor past the last element: false; prev() leads to the last one.
  template <class Tx>
  [[nodiscard]] cursor end(Tx&) const {
    return cursor(this, {}, !Tx::read_only);
  }
  /// Returns the first element whose key is not below `key`.
  template <class Tx>
  [[nodiscard]] cursor lower_bound(Tx& tx, key_arg key) const {
    return cursor(this, tree_.lower_bound(tx, key), !Tx::read_only);
  }
  /// Returns the first element whose key is above `key`.
  template <class Tx>
  [[nodiscard]] cursor upper_bound(Tx& tx, key_arg key) const {
    cursor c = lower_bound(tx, key);
    if (c && Key::equal(tx, c.place_.key_field(), key)) c.next(tx);
    return c;
  }
  /// A copy of the element with the smallest key; nothing where the map is empty.
  template <class Tx>
  [[nodiscard]] std::optional<std::pair<K, value_kept>> first(Tx& tx) const {
    return at(tx, tree_.first(tx));
  }
  /// A copy of the element with the largest key; nothing where the map is empty.
  template <class Tx>
  [[nodiscard]] std::optional<std::pair<K, value_kept>> last(Tx& tx) const {
    return at(tx, tree_.last(tx));
  }

  /// The elements in order, for a loop or for std::views: `for (auto [key, value] : m.range(tx))`.
  /// It may be changed meanwhile, as live_cursor.hpp says.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx) const {
    return ordered_range<Tx, cursor>(tx, begin(tx), end(tx));
  }
  /// The elements with from <= key.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx, key_arg from) const {
    return ordered_range<Tx, cursor>(tx, lower_bound(tx, from), end(tx), K(from));
  }
  /// The elements with from <= key < to.
  template <class Tx>
  [[nodiscard]] auto range(Tx& tx, key_arg from, key_arg to) const {
    return range_as<pair_of>(tx, from, to);
  }
  /// The elements from a beginning on, up to an end, or between both (bound.hpp): `range(tx,
  /// after(key))`, `range(tx, through(key))`, `range(tx, from(key), through(other))`.
  template <class Tx, range_bound... Bounds>
  [[nodiscard]] auto range(Tx& tx, const Bounds&... bounds) const
    requires(bounds_a_range<Bounds...>)
  {
    return range_in<pair_of>(tx, bounds...);
  }
  /// The same, with other elements than pairs of key and value.
  template <class Element, class Tx>
  [[nodiscard]] auto range_as(Tx& tx, key_arg from, key_arg to) const {
    cursor first = lower_bound(tx, from);
    // An end before the beginning would be passed.
    return ordered_range<Tx, cursor, Element>(
        tx, first, first && first.below(tx, to) ? lower_bound(tx, to) : first, K(from), K(to));
  }
  /// The same with one bound or two (bound.hpp).
  template <class Element, class Tx, class First, class... Second>
  [[nodiscard]] auto range_in(Tx& tx, const First& first, const Second&... second) const {
    if constexpr (sizeof...(Second) == 1)
      return range_between<Element>(tx, bound_of(first), bound_of(second...));
    else if constexpr (is_lower_bound<First>)
      return range_between<Element>(tx, bound_of(first), {});
    else
      return range_between<Element>(tx, {}, bound_of(first));
  }
  /// The same between two bounds; a bound that is empty is the map's beginning or end.
  template <class Element, class Tx>
  [[nodiscard]] auto range_between(Tx& tx, const std::optional<key_bound<K>>& from,
                                   const std::optional<key_bound<K>>& to) const {
    using Range = ordered_range<Tx, cursor, Element>;
    const cursor first = from ? cursor(this, place_of(tx, *from), !Tx::read_only) : this->begin(tx);
    if (!to) return Range(tx, first, end(tx), from, {});
    return Range(
        tx, first,
        first && first.below_now(tx, *to) ? cursor(this, place_of(tx, *to), !Tx::read_only) : first,
        from, to);
  }
  /// The elements of a map whose key, a pair or a tuple, begins with these parts.
  template <class Tx, class... Parts>
  [[nodiscard]] auto starting_with(Tx& tx, const Parts&... parts) const
    requires(has_prefixes<K>)
  {
    static_assert(Tree::finds_prefixes,
                  "perdure: an rb_tree finds no keys by their first parts: use perdure::map");
    static_assert(sizeof...(Parts) > 0 && sizeof...(Parts) < std::tuple_size_v<K>,
                  "perdure::map::starting_with: give it the first parts of the key, in order, and "
                  "not all of them: find(tx, key) takes a whole key");
    const K key = key_beginning_with<K>(parts...);
    return range_between<pair_of>(tx, key_bound<K>(key, sizeof...(Parts), false),
                                  key_bound<K>(key, sizeof...(Parts), true));
  }
  /// The elements whose key begins with `text`.
  template <class Tx>
  [[nodiscard]] auto prefix(Tx& tx, std::string_view text) const
    requires std::is_same_v<K, std::string>
  {
    std::string end_of(text);
    while (!end_of.empty() && static_cast<unsigned char>(end_of.back()) == 0xff) end_of.pop_back();
    if (end_of.empty()) return range(tx, text);
    end_of.back() = static_cast<char>(static_cast<unsigned char>(end_of.back()) + 1);
    return range(tx, text, end_of);
  }

  /// Calls f(key, value) for each element with from <= key < to, in order. A result of false from f
  /// ends the walk.
  template <class Tx, class F>
  void scan(Tx& tx, key_arg from, key_arg to, F f) const {
    for (cursor c = lower_bound(tx, from); c && c.below(tx, to); c.next(tx)) {
      if (!go_on(f, c.key(tx), c.value(tx))) return;
    }
  }
  /// Calls f(key, value) for each element with from <= key, in order. A result of false from f ends
  /// the walk.
  template <class Tx, class F>
  void scan(Tx& tx, key_arg from, F f) const {
    run(tx, lower_bound(tx, from), f);
  }
  /// Calls f(key, value) for each element, in order. A result of false from f ends the walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    run(tx, begin(tx), f);
  }

  /// The container has each_place(), for a change of layout (record_steps.hpp).
  static constexpr bool has_places = true;
  /// Calls f(place) for each place of a value, in the order of begin().
  template <class Tx, class F>
  void each_place(Tx& tx, F f) const {
    for (auto place = tree_.first(tx); place.there(); Tree::next(tx, place)) f(place.value_field());
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    tree_.each_block(tx, f);
  }
  /// Calls f(const V&) for each value that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<value_arg, new_object>
  void each_object(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) f(*c.value(tx));
  }
  /// Calls f(pointer) for each key, value or element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<K> || std::is_pointer_v<V>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const K& key, const V& value) { if_pointer(key, f), if_pointer(value, f); });
  }

 private:
  /// The bound that from(), after(), before() or through() made.
  template <class Bound>
  static key_bound<K> bound_of(const Bound& bound) {
    static_assert(std::is_convertible_v<decltype((bound.value)), key_arg>,
                  "perdure: the bound of a range is a key of the map");
    return {K(static_cast<key_arg>(bound.value)), 0, bound.behind};
  }
  template <class Tx, class F>
  bool remove_some(Tx& tx, std::uint64_t n, F before) {
    require_update<Tx>();
    detach(tx);
    for (auto place = tree_.first(tx); place.there(); place = tree_.first(tx)) {
      if (n-- == 0) return false;
      const K key = Key::read(tx, place.key_field());
      before(key, place);
      tree_.erase(tx, key);
    }
    return true;
  }
  /// The first element that is not before the bound.
  template <class Tx>
  [[nodiscard]] typename Tree::Place place_of(Tx& tx, const key_bound<K>& bound) const {
    if constexpr (Tree::finds_prefixes) {
      if (bound.parts != 0) return tree_.lower_bound(tx, bound);
    }
    auto place = tree_.lower_bound(tx, bound.key);
    if (bound.behind && place.there() && Key::equal(tx, place.key_field(), bound.key))
      Tree::next(tx, place);
    return place;
  }
  template <class Tx, class Field>
  [[nodiscard]] static bool is_below(Tx& tx, const Field& field, const key_bound<K>& bound) {
    if constexpr (Tree::finds_prefixes) {
      if (bound.parts != 0) return Key::less(tx, field, bound);
    }
    if (bound.behind) return !Key::above(tx, field, bound.key);
    return Key::less(tx, field, bound.key);
  }
  template <class Tx>
  static std::optional<std::pair<K, value_kept>> at(Tx& tx, const typename Tree::Place& place) {
    if (!place.there()) return std::nullopt;
    return std::pair<K, value_kept>(Key::read(tx, place.key_field()),
                                    Value::read(tx, place.value_field()));
  }
  /// What update() is listed under: no cursor has this address.
  [[nodiscard]] const void* places() const { return reinterpret_cast<const char*>(this) + 1; }
  /// Called before the tree changes: its cursors save their keys, because their places may move.
  template <class Tx>
  void detach(Tx& tx) const {
    if (!live_cursor::any()) return;
    being_changed::refuse(places());
    live_cursor::each(this, [&](live_cursor& live) {
      auto& c = static_cast<cursor&>(live);
      if (c.place_.there() && !c.key_) c.key_ = Key::read(tx, c.place_.key_field());
    });
  }
  template <class Tx, class F>
  static void run(Tx& tx, cursor c, F& f) {
    for (; c; c.next(tx)) {
      if (!go_on(f, c.key(tx), c.value(tx))) return;
    }
  }

 protected:
  /// The tree, for the class that is made of this one.
  Tree tree_;
};

}  // namespace perdure::detail
