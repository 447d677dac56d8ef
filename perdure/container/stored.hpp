// SPDX-License-Identifier: BSD-3-Clause
//
// stored<T>, stored_key<K>: how a key, value or element lies in a container (placement.hpp).
//
// A container moves `raw` values between its nodes without touching what they own. Members:
//   field, raw          what lies in a node, and what a transaction reads from it
//   arg                 how a value is passed in: const T&, or std::string_view
//   kept                what a look-up returns: T, or a pointer to an object that is never copied
//   make, drop          makes a raw value, frees what it owns
//   free_some           frees a number of the blocks that a field's value owns; it is null, or owns
//                       nothing, once that returned true, and may be dropped then
//   value, read         the T of a raw value, of a field
//   assign, change      gives a field a value; lets a function change its value
//   less, above, equal, compare, hash, separator      for keys
//   each_block          the blocks that a raw value owns
//   name                what stands for it in a layout text
// Thread safety: that of the transaction. Crash invariants: none of its own; all writes go through
// the transaction.
#pragma once

#include <string>
#include <type_traits>

#include "perdure/container/stored_bytes.hpp"
#include "perdure/container/stored_object.hpp"
#include "perdure/container/stored_value.hpp"
#include "perdure/value/placement.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure {

namespace detail {

template <class T, value::Placement>
struct stored_as;
template <class T>
struct stored_as<T, value::Placement::bytes> : stored_bytes<T> {};
template <class T>
struct stored_as<T, value::Placement::text> : stored_text {};
template <class T>
struct stored_as<T, value::Placement::image> : stored_image<T> {};
template <class T>
struct stored_as<T, value::Placement::record> : stored_record<T> {};
template <class T>
struct stored_as<T, value::Placement::object> : stored_object<T> {};

}  // namespace detail

class string;

/// How a value or element of type T lies in a container.
template <class T>
struct stored : detail::stored_as<T, value::placement_of<T>()> {
  static_assert(!std::is_same_v<T, string>,
                "perdure: the text of a key, value or element is a std::string: a perdure::string "
                "would be a block of its own that leads to it");
};

/// How a key of type K lies in a container.
template <class K>
struct stored_key : detail::stored_as<K, value::placement_of<K, true>()> {
  static_assert(!std::is_same_v<K, string>,
                "perdure: the text of a key, value or element is a std::string");
  static_assert(value::placement_of<K, true>() != value::Placement::object,
                "perdure: a container can't be a key");

  /// What stands for the key in a layout text.
  static std::string name(LayoutNames& names) {
    if constexpr (value::plain_struct<K> || value::composed<K> || value::detail::opaque<K>) {
      if constexpr (value::described<K>()) {
        if (names.version() == LayoutVersion::named)
          return value::text_of(value::type_of<K>(), value::TextVersion::marked);
      }
    }
    return detail::stored_as<K, value::placement_of<K, true>()>::name(names);
  }
};

namespace detail {

/// Makes every call that changes a pool fail to compile, with a message of one line, when it is
/// given a view's transaction.
template <class Tx>
constexpr void require_update() {
  static_assert(!std::remove_cvref_t<Tx>::read_only,
                "perdure: this call changes the pool: make it inside update(), not view()");
}

/// Calls f(args...). Returns false when f returned the bool false, which ends a walk (any other
/// result is ignored).
template <class F, class... Args>
bool go_on(F& f, Args&&... args) {
  if constexpr (std::is_same_v<std::invoke_result_t<F&, Args...>, bool>) {
    return f(std::forward<Args>(args)...);
  } else {
    f(std::forward<Args>(args)...);
    return true;
  }
}

/// Passes a raw pool pointer among a container's keys and values to f (walk.hpp); ignores other
/// types.
template <class T, class F>
void if_pointer(const T& value, F& f) {
  if constexpr (std::is_pointer_v<T>) f(value);
}

}  // namespace detail
}  // namespace perdure
