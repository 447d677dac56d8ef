// SPDX-License-Identifier: BSD-3-Clause
//
// drop_owned: frees what an object in a pool owns: the elements of its containers, the objects of
// its boxes, and what those own. A ptr<T> owns nothing. free_some_owned: the same in several calls,
// each in a transaction of its own.
//
// Thread safety: that of the transaction.
#pragma once

#include <cstdint>
#include <type_traits>

#include "perdure/api/fields.hpp"
#include "perdure/api/layout.hpp"

namespace perdure::detail {

/// Any transaction, to ask whether a type has a call.
struct AnyUpdate {
  static constexpr bool read_only = false;
};
/// A container or a box, or a type of the program that states its layout by a function and has
/// clear(tx).
template <class T>
concept emptied = (container_text<T> || own_text<T>) && requires { &T::template clear<AnyUpdate>; };

/// Whether there is anything in a T to free: a container or a box, in it or in one of its fields.
template <class T>
consteval bool owns_blocks();

template <class... F>
struct fields_of {
  static consteval bool own_blocks() { return (owns_blocks<F>() || ...); }
};

template <class T>
consteval bool owns_blocks() {
  if constexpr (std::is_array_v<T>)
    return owns_blocks<std::remove_all_extents_t<T>>();
  else if constexpr (is_std_array<T>)
    return owns_blocks<typename T::value_type>();
  else if constexpr (is_field<T>)
    return false;
  else if constexpr (emptied<T>)
    return true;
  else if constexpr (opened_by_fields<T>)
    return decltype(with_fields<field_count<T>>(std::declval<T&>(), [](auto&... field) {
      return fields_of<std::remove_cvref_t<decltype(field)>...>{};
    }))::own_blocks();
  else
    return false;
}

/// Leaves the object's containers and boxes empty. In the caller's transaction: first empty a very
/// large container by its clear_some().
template <class Tx, class T>
void drop_owned(Tx& tx, T& object) {
  if constexpr (!owns_blocks<T>()) {
  } else if constexpr (std::is_array_v<T> || is_std_array<T>) {
    for (auto& element : object) drop_owned(tx, element);
  } else if constexpr (emptied<T>) {
    object.clear(tx);
  } else {
    for_each_field(object, [&](auto& field) { drop_owned(tx, field); });
  }
}

/// Frees up to `blocks` heap blocks of what the object owns, and lowers `blocks` by their number.
/// Returns whether nothing is left. Until it has returned true, the object may be used for nothing
/// but a further call.
/// FREE-1: free_some_owned() takes a block from its owner in the transaction that frees the block,
/// so that after a crash a further call can continue. `blocks` bounds the log of one transaction,
/// whatever owns the blocks: a container's elements, their texts and records, and the containers in
/// them are freed block by block. Only a type of the program that states its layout, and has no
/// free_some() of its own, is cleared as a whole.
template <class Tx, class T>
[[nodiscard]] bool free_some_owned(Tx& tx, T& object, std::uint64_t& blocks) {
  if constexpr (!owns_blocks<T>()) {
    return true;
  } else if constexpr (std::is_array_v<T> || is_std_array<T>) {
    for (auto& element : object)
      if (!free_some_owned(tx, element, blocks)) return false;
    return true;
  } else if constexpr (requires { object.free_some(tx, blocks); }) {
    return object.free_some(tx, blocks);
  } else if constexpr (emptied<T>) {
    if (blocks == 0) return false;
    --blocks;
    object.clear(tx);
    return true;
  } else {
    bool done = true;
    for_each_field(object, [&](auto& field) { done = done && free_some_owned(tx, field, blocks); });
    return done;
  }
}

}  // namespace perdure::detail
