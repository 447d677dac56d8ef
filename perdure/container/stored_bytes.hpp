// SPDX-License-Identifier: BSD-3-Clause
//
// stored_bytes<T>, stored_text: a key, value or element that lies in a container as its bytes, and
// text. stored.hpp says what the members mean.
//
// Text is a pointer to a length-prefixed block (text_block), null when empty, looked up and written
// by std::string_view.
// Thread safety: that of the transaction. Crash invariants: none of its own; all writes go through
// the transaction.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "perdure/api/hash.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/text_block.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

/// A T held inline.
template <class T>
struct stored_bytes {
  static_assert(!std::is_same_v<T, std::string_view> &&
                    !(std::is_pointer_v<T> &&
                      std::is_same_v<std::remove_cv_t<std::remove_pointer_t<T>>, char>),
                "perdure: a string_view or char* in a pool would point at memory that is gone "
                "after a restart: use std::string");
  static_assert(
      plain_value<T>,
      "perdure: a container's key, value or element is a number, enum, time, std::string, "
      "std::vector, std::optional, std::variant, std::pair, std::tuple, std::array, a plain struct "
      "of these, or another container; store a struct of p<> fields as an object of its own, made "
      "by perdure::make<T>(tx), and its T* here");
  using field = p<T>;
  using raw = T;         ///< what a field holds
  using arg = const T&;  ///< how a value is passed in
  using kept = T;        ///< what a look-up returns
  /// Hashing again is cheaper than storing the hash beside the key.
  static constexpr bool keeps_hash = false;

  template <class Tx>
  static raw make(Tx&, arg value) {
    return value;
  }
  template <class Tx>
  static void drop(Tx&, const raw&) {}
  template <class Tx>
  static T value(Tx&, const raw& r) {
    return r;
  }
  template <class Tx>
  static T read(Tx& tx, const field& f) {
    return tx.read(f);
  }
  template <class Tx>
  static void assign(Tx& tx, field& f, arg value) {
    tx.write(f, value);
  }
  template <class Tx, class F>
  static void change(Tx& tx, field& f, F& by) {
    const T old = tx.read(f);
    T value = old;
    by(value);
    if (std::memcmp(&old, &value, sizeof(T)) != 0) tx.write(f, value);
  }
  template <class Tx>
  static bool less(Tx& tx, const field& f, arg key) {
    return before(tx.read(f), key);
  }  ///< returns whether the field is below key
  template <class Tx>
  static bool above(Tx& tx, const field& f, arg key) {
    return before(key, tx.read(f));
  }  ///< returns whether the field is above key
  template <class Tx>
  static bool equal(Tx& tx, const field& f, arg key) {
    return same(tx.read(f), key);
  }
  /// Returns a negative value, zero or a positive value: the field is below, equal to or above
  /// `key`.
  template <class Tx>
  static int compare(Tx& tx, const field& f, arg key) {
    const T mine = tx.read(f);
    return before(mine, key) ? -1 : before(key, mine) ? 1 : 0;
  }
  static std::uint64_t hash(arg key) { return perdure::hash<T>::of(key); }
  template <class Tx, class F>
  static void each_block(Tx&, const raw&, F&&) {}
  template <class Tx>
  static bool free_some(Tx&, field&, std::uint64_t&) {
    return true;
  }
  /// Returns a key s with left < s <= right, for an inner node.
  template <class Tx>
  static raw separator(Tx&, const raw&, const raw& right) {
    return right;
  }

  /// What stands for T in a layout text.
  static std::string name(LayoutNames& names) {
    if constexpr (value::detail::is_duration<T> || value::detail::is_time_point<T>)
      return value::text_of(value::type_of<T>());
    else
      return names.name<T, true>();
  }

 private:
  static bool before(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>)
      return value::number_less(a, b);
    else
      return a < b;
  }
  static bool same(const T& a, const T& b) {
    if constexpr (std::equality_comparable<T> && !std::is_floating_point_v<T>)
      return a == b;
    else
      return !before(a, b) && !before(b, a);
  }
};

/// Text: a pointer to a text_block.
struct stored_text {
  using field = ptr<text_block>;
  using raw = text_block*;
  using arg = std::string_view;
  using kept = std::string;
  /// A stored hash saves reading the text of other keys, and of all keys when a table grows.
  static constexpr bool keeps_hash = true;

  template <class Tx>
  static raw make(Tx& tx, arg value) {
    return text_block::make(tx, value);
  }
  template <class Tx>
  static void drop(Tx& tx, raw r) {
    if (r != nullptr) tx.free(r);
  }
  template <class Tx>
  static bool free_some(Tx& tx, field& f, std::uint64_t& blocks) {
    const raw r = tx.read(f);
    if (r == nullptr) return true;
    if (blocks == 0) return false;
    --blocks;
    tx.free(r);
    tx.write(f, nullptr);
    return true;
  }
  template <class Tx>
  static std::string value(Tx& tx, raw r) {
    return text_block::read(tx, r);
  }
  template <class Tx>
  static std::string read(Tx& tx, const field& f) {
    return text_block::read(tx, tx.read(f));
  }
  template <class Tx>
  static void assign(Tx& tx, field& f, arg value) {
    text_block::assign(tx, f, value);
  }
  template <class Tx, class F>
  static void change(Tx& tx, field& f, F& by) {
    const std::string old = read(tx, f);
    std::string value = old;
    by(value);
    if (old != value) text_block::assign(tx, f, value);
  }
  template <class Tx>
  static bool less(Tx& tx, const field& f, arg key) {
    return compare(tx, f, key) < 0;
  }
  template <class Tx>
  static bool above(Tx& tx, const field& f, arg key) {
    return compare(tx, f, key) > 0;
  }
  template <class Tx>
  static bool equal(Tx& tx, const field& f, arg key) {
    const raw r = tx.read(f);
    return text_block::length(tx, r) == key.size() && text_block::compare(tx, r, key) == 0;
  }
  template <class Tx>
  static int compare(Tx& tx, const field& f, arg key) {
    return text_block::compare(tx, tx.read(f), key);
  }
  static std::uint64_t hash(arg key) { return perdure::hash<std::string_view>::of(key); }
  static std::string name(LayoutNames&) { return "string"; }
  template <class Tx, class F>
  static void each_block(Tx&, raw r, F&& f) {
    if (r != nullptr) f(static_cast<const void*>(r));
  }
  /// Returns the shortest prefix of `right` that is above `left`.
  template <class Tx>
  static raw separator(Tx& tx, raw left, raw right) {
    const std::string a = value(tx, left), b = value(tx, right);
    std::size_t common = 0;
    while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
    return make(tx, std::string_view(b).substr(0, common + 1));
  }
};

}  // namespace perdure::detail
