// SPDX-License-Identifier: BSD-3-Clause
//
// box<T>: a field that owns a T, or nothing; 8 bytes in its owner.
//
// It is for what a struct has sometimes, or of a type that is not complete yet: a tree's node may
// have boxes of such nodes. Freeing a box frees what is in it, and so on, by recursion: a chain of
// boxes that is longer than 1,000 is refused then (error(too_big)). Link more objects behind each
// other by ptr<T>, which owns nothing.
// Thread safety: that of the transaction. Zero bytes are an empty box.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

namespace detail {

/// How what is in a box lies in the pool: a struct of numbers is a record, too.
template <class T>
struct boxed : std::conditional_t<value::placement_of<T>() == value::Placement::object,
                                  stored_object<T>, stored_record<T>> {
  static_assert(value::placement_of<T>() == value::Placement::object || value::plain_struct<T>,
                "perdure::box: a box holds a plain struct, a container, or a struct of p<> fields "
                "and containers: hold a number in a p<>, and text in a perdure::string");
};

}  // namespace detail

/// Owns a T, or nothing. T is a plain struct, a container, or a struct of p<> fields and
/// containers; it may be incomplete where the box is declared.
///
/// Each call takes the transaction first. Calls that change the box need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class T>
class box {
 public:
  /// What is in the box.
  using value_type = T;

  /// Whether there is nothing in the box.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return tx.read(value_) == nullptr;
  }
  /// A copy of what is in the box, as a std::optional<T>; where T is an object in the pool, a
  /// pointer to it, null where there is none.
  template <class Tx>
  [[nodiscard]] auto get(Tx& tx) const {
    const auto& field = this->field<const typename detail::boxed<T>::field>();
    if constexpr (holds_object<T>) {
      return static_cast<const T*>(tx.read(field));
    } else {
      std::optional<T> found;
      if (!empty(tx)) found.emplace(detail::boxed<T>::read(tx, field));
      return found;
    }
  }

  /// Puts a copy of `value` into the box, in the place of what it has. T is a plain struct.
  template <class Tx>
  void put(Tx& tx, const T& value) {
    static_assert(!holds_object<T>,
                  "perdure::box: a container, or a struct of p<> fields and containers, is made in "
                  "its box: make(tx), update(tx, f)");
    detail::require_update<Tx>();
    if (empty(tx))
      tx.write(field<typename detail::boxed<T>::field>(), detail::boxed<T>::make(tx, value));
    else
      detail::boxed<T>::assign(tx, field<typename detail::boxed<T>::field>(), value);
  }
  /// Makes an object from `args` in the box, in the place of what it has. T is a container, or a
  /// struct of p<> fields and containers. Returns it.
  template <class Tx, class... Args>
  T* make(Tx& tx, Args&&... args) {
    static_assert(holds_object<T>,
                  "perdure::box: a plain struct is put into a box: put(tx, value)");
    detail::require_update<Tx>();
    clear(tx);
    T* const object = tx.template make<T>(std::forward<Args>(args)...);
    tx.write(field<ptr<T>>(), object);
    return object;
  }
  /// Calls f(T&), which changes what is in the box. Returns false, without a call, when it is
  /// empty.
  template <class Tx, class F>
  bool update(Tx& tx, F&& f) {
    detail::require_update<Tx>();
    if (empty(tx)) return false;
    detail::boxed<T>::change(tx, field<typename detail::boxed<T>::field>(), f);
    return true;
  }
  /// Frees what is in the box.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    if (empty(tx)) return;
    detail::boxed<T>::drop(tx, tx.read(field<typename detail::boxed<T>::field>()));
    tx.write(value_, nullptr);
  }

  /// Frees up to `blocks` heap blocks of what the box owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the box. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    return detail::boxed<T>::free_some(tx, field<typename detail::boxed<T>::field>(), blocks);
  }

  /// Calls f(const void*) for each heap block that the box owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    if (!empty(tx))
      detail::boxed<T>::each_block(tx, tx.read(field<const typename detail::boxed<T>::field>()), f);
  }
  /// Calls f(const T&) for an object in the box, for Pool::check().
  template <class Tx, class F>
  void each_object(Tx& tx, F f) const {
    if constexpr (holds_object<T>) {
      if (!empty(tx)) f(*get(tx));
    }
  }

  /// What stands for this box in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    // A struct may have boxes of itself: its text is a definition beside the root's.
    if constexpr (holds_object<T>)
      return "box<" + names.name<T*, true>() + ">/1";
    else
      return "box<" + detail::boxed<T>::name(names) + ">/1";
  }
  /// The same, of the box alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  template <class U>
  static constexpr bool holds_object = std::is_same_v<typename detail::boxed<U>::arg, new_object>;

  /// The field as one of its type, which needs T to be complete.
  template <class Field>
  [[nodiscard]] Field& field() const {
    return *reinterpret_cast<Field*>(const_cast<ptr<void>*>(&value_));
  }

  ptr<void> value_;
};

}  // namespace perdure
