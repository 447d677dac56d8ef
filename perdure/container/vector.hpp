// SPDX-License-Identifier: BSD-3-Clause
//
// vector<T>: an array in a pool that grows at its end.
//
// Elements lie in segments of doubling sizes (segments.hpp), so that push_back never moves one: it
// writes the element and the size, and a vector may be far bigger than a transaction's record.
// reserve() on an empty vector makes one segment, found with one load.
// Elements lie as stored.hpp says. An index out of
// range throws perdure::error (invalid).
// Thread safety: that of the transaction; threads that push conflict on the size word. Zero bytes
// are an empty vector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/compact.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/record_steps.hpp"
#include "perdure/container/segments.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

namespace detail {
/// Throws error(invalid) for an index that is not below the size.
[[noreturn]] inline void bad_index(std::uint64_t index, std::uint64_t size) {
  throw error(Status(Code::invalid, "perdure::vector: found index " + std::to_string(index) +
                                        ", expected less than the size, " + std::to_string(size)));
}
}  // namespace detail

/// An array in a pool that grows at its end; elements never move. T is a value, or an
/// object that the vector owns (docs/values.md).
///
/// Each call takes the transaction first. Calls that change the vector need an update()'s `tx`
/// (they do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory)
/// or std::bad_alloc where memory or log space is lacking; the transaction is then rolled back.
/// Thread safety: the transaction's.
template <class T>
class vector {
  using Stored = stored<T>;
  using Field = typename Stored::field;
  using Raw = typename Stored::raw;

 public:
  /// The type of an element.
  using value_type = T;
  /// How an element is passed in: const T&, or std::string_view.
  using arg = typename Stored::arg;
  /// What reading returns: a copy; where T is an object in the pool, a pointer to it.
  using kept = typename Stored::kept;

  /// The number of elements. Reads the word that every push_back and pop_back writes.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return tx.read(size_);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return size(tx) == 0;
  }

  /// A copy of element `i`, counted from 0, or a pointer to it if it is an object in the pool.
  /// Throws error(invalid) if `i` is not below the size.
  template <class Tx>
  [[nodiscard]] kept get(Tx& tx, std::uint64_t i) const {
    return Stored::read(tx, *checked(tx, i));
  }
  /// A copy of the first element. Throws error(invalid) if there is none.
  template <class Tx>
  [[nodiscard]] kept front(Tx& tx) const {
    return get(tx, 0);
  }
  /// A copy of the last element. Throws error(invalid) if there is none.
  template <class Tx>
  [[nodiscard]] kept back(Tx& tx) const {
    return get(tx, size(tx) - 1);
  }

  /// Gives element `i` a new value. Throws error(invalid) if `i` is not below the size.
  template <class Tx>
  void set(Tx& tx, std::uint64_t i, arg value) {
    detail::require_update<Tx>();
    Stored::assign(tx, *checked(tx, i), value);
  }

  /// Calls f(T&), which changes the element. Throws error(invalid) if f removes elements of this
  /// vector.
  template <class Tx, class F>
  void update(Tx& tx, std::uint64_t i, F&& f) {
    detail::require_update<Tx>();
    Field& field = *checked(tx, i);
    const detail::being_changed changing(this);
    Stored::change(tx, field, f);
  }

  /// Adds an element at the end. Logs the element and the size.
  template <class Tx>
  void push_back(Tx& tx, arg value = arg{})
    requires std::is_same_v<arg, new_object>
  {
    add(tx, value);
  }
  /// Adds an element at the end. Logs the element and the size.
  template <class Tx>
  void push_back(Tx& tx, arg value) {
    add(tx, value);
  }

  /// Removes the last element and returns it; an object in the pool is only removed.
  template <class Tx>
  auto pop_back(Tx& tx) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    if (n == 0) detail::bad_index(0, 0);
    refuse_removal();
    const Raw raw = tx.read(*slots_.at(tx, n - 1));
    const auto remove = [&] {
      Stored::drop(tx, raw);
      tx.write(size_, n - 1);
      // A segment ends at a power of two only.
      if (((n - 1) & (n - 2)) == 0) slots_.trim(tx, n - 1);
    };
    if constexpr (std::is_same_v<arg, new_object>) {
      remove();
    } else {
      T value = Stored::value(tx, raw);
      remove();
      return value;
    }
  }

  /// Appends a run, with one bulk write per segment. T lies in the vector as its bytes.
  template <class Tx>
  void append(Tx& tx, std::span<const T> values) {
    detail::require_update<Tx>();
    static_assert(
        std::is_same_v<Raw, T>,
        "perdure::vector::append: only elements that lie in the vector as their bytes are "
        "appended in one piece; use push_back");
    const std::uint64_t n = size(tx), total = values.size();
    if (total == 0) return;
    reserve(tx, n + total);
    slots_.each_run(tx, n, n + total, [&](Field* run, std::uint64_t count) {
      tx.write_bytes(run, values.data(), count * sizeof(T));
      values = values.subspan(count);
    });
    tx.write(size_, n + total);
  }

  /// Copies elements [first, first + out.size()) to `out`. T lies in the vector as its bytes.
  template <class Tx>
  void read(Tx& tx, std::uint64_t first, std::span<T> out) const {
    static_assert(std::is_same_v<Raw, T>,
                  "perdure::vector::read: only elements that lie in the vector as their bytes are "
                  "read in one piece; use get");
    const std::uint64_t n = size(tx);
    if (out.size() > n || first > n - out.size()) detail::bad_index(first + out.size(), n);
    slots_.each_run(tx, first, first + out.size(), [&](const Field* run, std::uint64_t count) {
      tx.read_bytes(out.data(), run, count * sizeof(T));
      out = out.subspan(count);
    });
  }

  /// Makes the size `n`, with copies of `value` in the new elements. All of it is one transaction:
  /// grow a large vector in steps.
  template <class Tx>
  void resize(Tx& tx, std::uint64_t n, arg value = arg{}) {
    detail::require_update<Tx>();
    const std::uint64_t old = size(tx);
    if (n == old) return;
    if (n < old) refuse_removal();
    if (n > old) {
      reserve(tx, n);
      fill(tx, old, n, value);
    } else {
      drop(tx, n, old);
    }
    tx.write(size_, n);
    if (n < old) slots_.trim(tx, n);
  }

  /// Allocates space for `n` elements. On a vector that never held any it makes one segment for
  /// all.
  template <class Tx>
  void reserve(Tx& tx, std::uint64_t n) {
    detail::require_update<Tx>();
    if (n == 0) return;
    if (!slots_.holds(tx, 0)) slots_.grow(tx, 0, std::max<std::uint64_t>(n, first_room));
    // Segments are missing at the end only.
    for (std::uint64_t i = n - 1; !slots_.holds(tx, i); i >>= 1) slots_.grow(tx, i, n);
  }

  /// Removes the elements for which pred(value) is true; the others move up, in their order.
  /// Returns how many it removed. A cursor stays at its index.
  template <class Tx, class F>
  std::uint64_t erase_if(Tx& tx, F pred) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    const std::uint64_t left = detail::compact<Stored>(
        tx, n, this, [&](std::uint64_t i) -> Field& { return *slots_.at(tx, i); }, pred);
    if (left == n) return 0;
    tx.write(size_, left);
    slots_.trim(tx, left);
    return n - left;
  }

  /// Removes all elements and frees all memory.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    refuse_removal();
    const std::uint64_t n = size(tx);
    drop(tx, 0, n);
    slots_.clear(tx);
    if (n != 0) tx.write(size_, 0);
  }

  /// Frees up to `blocks` heap blocks of what the vector owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the vector. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    using Owning = std::conditional_t<std::is_same_v<Raw, T>, void, Stored>;
    return slots_.template free_some<Owning>(tx, size_, blocks);
  }

  /// Calls f(value) for each element in order. A result of false from f ends the walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (auto c = begin(tx); c; c.next(tx)) {
      if (!detail::go_on(f, c.value(tx))) return;
    }
  }

  /// A place in the vector, for this transaction; false past what was the end when it was made, or
  /// past the end now if elements were removed. It stays valid whatever changes; reading an element
  /// that was removed throws error(invalid) (live_cursor.hpp).
  class cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is at an element.
    [[nodiscard]] explicit operator bool() const noexcept { return i_ < size_; }
    /// The index of the cursor's element.
    [[nodiscard]] std::uint64_t index() const noexcept { return i_; }
    /// A copy of the cursor's element, or a pointer to it if it is an object in the pool.
    template <class Tx>
    [[nodiscard]] kept value(Tx& tx) const {
      if constexpr (!Tx::read_only) return in_->get(tx, i_);
      return Stored::read(tx, *field_);
    }
    /// Goes on to the next element.
    template <class Tx>
    void next(Tx& tx) {
      ++i_;
      if constexpr (!Tx::read_only) {
        size_ = std::min(size_, in_->size(tx));
        // Not ++field_: the segment may be another one now.
        if (i_ < size_) field_ = in_->slots_.at(tx, i_);
        return;
      }
      if (i_ >= size_) return;
      if ((i_ & (i_ - 1)) == 0)
        field_ = in_->slots_.at(tx, i_);  // a segment starts at a power of two only
      else
        ++field_;
    }

   private:
    friend class vector;
    cursor(const vector* in, std::uint64_t size, std::uint64_t i, const Field* field)
        : in_(in), size_(size), i_(i), field_(field) {}
    const vector* in_;
    std::uint64_t size_, i_;
    const Field* field_;
  };
  /// A cursor at element `at`; false where the vector has no such element.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx, std::uint64_t at = 0) const {
    const std::uint64_t n = size(tx);
    return cursor(this, n, at, at < n ? slots_.at(tx, at) : nullptr);
  }

  /// The container has each_place(), for a change of layout (record_steps.hpp).
  static constexpr bool has_places = true;
  /// Calls f(place) for each place of a value, in the order of begin().
  template <class Tx, class F>
  void each_place(Tx& tx, F f) const {
    for (auto c = begin(tx); c; c.next(tx)) f(*c.field_);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    slots_.each_block(tx, f);
    if constexpr (!std::is_same_v<Raw, T>) {
      for (auto c = begin(tx); c; c.next(tx)) Stored::each_block(tx, tx.read(*c.field_), f);
    }
  }
  /// Calls f(const T&) for each element that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<arg, new_object>
  void each_object(Tx& tx, F f) const {
    for (auto c = begin(tx); c; c.next(tx)) f(*c.value(tx));
  }
  /// Calls f(pointer) for each key, value or element that is a pool pointer, for Pool::check().
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
        return {"vector of " + std::to_string(n) + " elements: no segment for element " +
                std::to_string(i - 1)};
    }
    return {};
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "vector<" + stored<T>::name(names) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  static constexpr std::uint64_t first_room = sizeof(Field) >= 64 ? 1 : 64 / sizeof(Field);

  template <class Tx>
  void add(Tx& tx, arg value) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    slots_.grow(tx, n, first_room);
    tx.write(*slots_.at(tx, n), Stored::make(tx, value));
    tx.write(size_, n + 1);
  }

  /// Called before elements are removed: the function of an update() must not.
  void refuse_removal() const {
    if (detail::live_cursor::any()) detail::being_changed::refuse(this);
  }
  template <class Tx>
  Field* checked(Tx& tx, std::uint64_t i) const {
    const std::uint64_t n = tx.read(size_);
    if (i >= n) [[unlikely]]
      detail::bad_index(i, n);
    return slots_.at(tx, i);
  }

  template <class Tx>
  void fill(Tx& tx, std::uint64_t from, std::uint64_t to, arg value) {
    if constexpr (std::is_same_v<Raw, T>) {
      const std::vector<T> copies(
          static_cast<std::size_t>(std::min<std::uint64_t>(to - from, 4096 / sizeof(T) + 1)),
          value);
      slots_.each_run(tx, from, to, [&](Field* run, std::uint64_t n) {
        for (std::uint64_t done = 0; done < n;) {
          const std::uint64_t part = std::min<std::uint64_t>(n - done, copies.size());
          tx.write_bytes(run + done, copies.data(), part * sizeof(T));
          done += part;
        }
      });
    } else {
      for (std::uint64_t i = from; i < to; ++i)
        tx.write(*slots_.at(tx, i), Stored::make(tx, value));
    }
  }

  template <class Tx>
  void drop(Tx& tx, std::uint64_t from, std::uint64_t to) {
    if constexpr (!std::is_same_v<Raw, T>) {
      for (std::uint64_t i = from; i < to; ++i) Stored::drop(tx, tx.read(*slots_.at(tx, i)));
    }
  }

  p<std::uint64_t> size_;
  detail::segments<Field> slots_;
};

}  // namespace perdure
