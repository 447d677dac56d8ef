// SPDX-License-Identifier: BSD-3-Clause
//
// priority_queue<T, Compare>: a binary heap in a pool: the largest element first.
//
// Elements lie in segments (segments.hpp), as those of vector. A push or a pop moves the elements
// of one path: a pop of n elements writes up to log2(n) of them, a push 2 to 3 on average. What an
// element owns stays where it is.
// Thread safety: that of the transaction; threads conflict on the size word. Zero bytes are an
// empty queue.
// Invariants:
// HEAPQ-1 No element is above its parent: element i's is (i - 1) / 2.
// Source: Williams, "Algorithm 232: Heapsort" (CACM 1964).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/compact.hpp"
#include "perdure/container/segments.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

/// A priority queue in a pool: of all elements, the largest as Compare says comes first;
/// std::greater makes it the smallest. T is a value (docs/values.md). Elements that are equal come
/// in no certain order: give them a number to make it one. Compare is part of the layout: it is
/// std::less, std::greater, or a class with a `static constexpr std::string_view layout_id`.
///
/// Each call takes the transaction first. Calls that change the queue need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class T, class Compare = std::less<T>>
class priority_queue {
  using Stored = stored<T>;
  static_assert(
      !std::is_same_v<typename Stored::arg, new_object>,
      "perdure::priority_queue: an element is popped by value, so it can't be a container or a "
      "struct of p<> fields: use a plain struct");
  static constexpr bool descending =
      std::is_same_v<Compare, std::less<T>> || std::is_same_v<Compare, std::less<>>;
  static constexpr bool ascending =
      std::is_same_v<Compare, std::greater<T>> || std::is_same_v<Compare, std::greater<>>;
  static_assert(
      descending || ascending || requires { std::string_view(Compare::layout_id); },
      "perdure::priority_queue: the order of the elements is part of the layout: Compare "
      "is std::less, std::greater, or has `static constexpr std::string_view layout_id "
      "= \"name/version\";`");
  using Field = typename Stored::field;
  using Raw = typename Stored::raw;

 public:
  /// The type of an element.
  using value_type = T;
  /// How an element is passed in: const T&, or std::string_view.
  using arg = typename Stored::arg;

  /// The number of elements.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return tx.read(size_);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return size(tx) == 0;
  }
  /// A copy of the first element; nothing where there is none.
  template <class Tx>
  [[nodiscard]] std::optional<T> top(Tx& tx) const {
    if (empty(tx)) return std::nullopt;
    return Stored::read(tx, at(tx, 0));
  }
  /// Adds an element.
  template <class Tx>
  void push(Tx& tx, arg value) {
    detail::require_update<Tx>();
    refuse_change();
    const std::uint64_t n = size(tx);
    detail::whole_change(tx, [&] {
      slots_.grow(tx, n, 8);
      const Raw raw = Stored::make(tx, value);
      tx.write(size_, n + 1);
      const T mine(value);
      std::uint64_t hole = n;
      for (; hole > 0; hole = (hole - 1) / 2) {
        Field& parent = at(tx, (hole - 1) / 2);
        if (!Compare()(Stored::read(tx, parent), mine)) break;
        tx.write(at(tx, hole), tx.read(parent));
      }
      tx.write(at(tx, hole), raw);
    });
  }
  /// Removes the first element and returns it; nothing where there is none.
  template <class Tx>
  std::optional<T> pop(Tx& tx) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    if (n == 0) return std::nullopt;
    refuse_change();
    const Raw first = tx.read(at(tx, 0));
    std::optional<T> value(Stored::value(tx, first));
    const Raw last = tx.read(at(tx, n - 1));
    if (n > 1) sink(tx, 0, n - 1, last);
    Stored::drop(tx, first);
    tx.write(size_, n - 1);
    if (((n - 1) & (n - 2)) == 0) slots_.trim(tx, n - 1);  // a segment ends at a power of two only
    return value;
  }
  /// Removes the elements for which pred(value) is true, and orders the others anew. Returns how
  /// many it removed.
  template <class Tx, class F>
  std::uint64_t erase_if(Tx& tx, F pred) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    const std::uint64_t left = detail::compact<Stored>(
        tx, n, this, [&](std::uint64_t i) -> Field& { return at(tx, i); }, pred);
    if (left == n) return 0;
    tx.write(size_, left);
    for (std::uint64_t i = left / 2; i-- > 0;) {
      const Raw raw = tx.read(at(tx, i));
      sink(tx, i, left, raw);
    }
    slots_.trim(tx, left);
    return n - left;
  }
  /// Removes all elements and frees all memory, in this transaction.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    refuse_change();
    const std::uint64_t n = size(tx);
    if constexpr (!std::is_same_v<Raw, T>) {
      for (std::uint64_t i = 0; i < n; ++i) Stored::drop(tx, tx.read(at(tx, i)));
    }
    slots_.clear(tx);
    if (n != 0) tx.write(size_, 0);
  }

  /// Frees up to `blocks` heap blocks of what the queue owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the queue. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    using Owning = std::conditional_t<std::is_same_v<Raw, T>, void, Stored>;
    return slots_.template free_some<Owning>(tx, size_, blocks);
  }

  /// Calls f(value) for each element, the first one first and the others in no order. A result of
  /// false from f ends the walk. f must not change the queue.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    const detail::being_changed changing(this);
    for (std::uint64_t i = 0, n = size(tx); i < n; ++i) {
      if (!detail::go_on(f, Stored::read(tx, at(tx, i)))) return;
    }
  }

  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    slots_.each_block(tx, f);
    if constexpr (!std::is_same_v<Raw, T>) {
      for (std::uint64_t i = 0, n = size(tx); i < n; ++i)
        Stored::each_block(tx, tx.read(at(tx, i)), f);
    }
  }
  /// Calls f(pointer) for each element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<T>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const T& value) { detail::if_pointer(value, f); });
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    const std::uint64_t n = size(tx);
    for (std::uint64_t i = n; i != 0; i >>= 1) {
      if (!slots_.holds(tx, i - 1))
        return {"priority_queue of " + std::to_string(n) + " elements: no segment for element " +
                std::to_string(i - 1)};
    }
    for (std::uint64_t i = 1; i < n; ++i) {
      if (Compare()(Stored::read(tx, at(tx, (i - 1) / 2)), Stored::read(tx, at(tx, i))))
        return {"priority_queue: element " + std::to_string(i) + " is above its parent"};
    }
    return {};
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    std::string order = "less";
    if constexpr (ascending)
      order = "greater";
    else if constexpr (!descending)
      order = Compare::layout_id;
    return "priority_queue<" + stored<T>::name(names) + "," + order + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  template <class Tx>
  [[nodiscard]] Field& at(Tx& tx, std::uint64_t i) const {
    return *slots_.at(tx, i);
  }
  /// Called before a change: for_each()'s function and erase_if()'s must not.
  void refuse_change() const {
    if (detail::live_cursor::any()) detail::being_changed::refuse(this);
  }
  /// Puts `raw` at `hole`, or below it where its children are above it, among `n` elements.
  template <class Tx>
  void sink(Tx& tx, std::uint64_t hole, std::uint64_t n, const Raw& raw) {
    detail::whole_change(tx, [&] {
      const T mine = Stored::value(tx, raw);
      for (std::uint64_t child; (child = 2 * hole + 1) < n; hole = child) {
        T other = Stored::read(tx, at(tx, child));
        if (child + 1 < n) {
          T right = Stored::read(tx, at(tx, child + 1));
          if (Compare()(other, right)) {
            other = std::move(right);
            ++child;
          }
        }
        if (!Compare()(mine, other)) break;
        tx.write(at(tx, hole), tx.read(at(tx, child)));
      }
      tx.write(at(tx, hole), raw);
    });
  }

  p<std::uint64_t> size_;
  detail::segments<Field> slots_;
};

}  // namespace perdure
