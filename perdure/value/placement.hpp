// SPDX-License-Identifier: BSD-3-Clause
//
// placement_of<T>: how a key, value or element of type T lies in a container.
//
// A struct of numbers lies in the container's node as its bytes. A struct that owns text or other
// blocks, or has a part with a tag (an optional, a variant), is a record if it is a value or an
// element: a block of its own with a word for its layout. As a key, or if fixed<T> is true, it lies
// in the node, as everything does that is no struct.
// Thread safety: compile time only.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "perdure/api/leaving.hpp"
#include "perdure/value/kinds.hpp"

namespace perdure {

/// Whether values of a struct that would be records lie in the container's node instead. That is
/// smaller and faster to read, and makes nodes larger:
///     template <> inline constexpr bool perdure::fixed<Point> = true;
template <class T>
inline constexpr bool fixed = false;

namespace value {

/// How a T lies in a container's node.
enum class Placement : std::uint8_t {
  bytes,   ///< as its bytes
  text,    ///< std::string: a pointer to its block
  image,   ///< as its image
  record,  ///< a pointer to a record
  object,  ///< a container, or a struct of p<> fields and containers: a pointer to it
};

namespace detail {

/// Whether the bytes of an object are its image, as far as it can be told at compile time: nothing
/// in it has a tag or owns a block.
template <class T>
consteval bool bytes_alone();

template <class... A>
consteval bool all_bytes_alone(types<A...>) {
  return (bytes_alone<A>() && ...);
}

template <class T>
consteval bool bytes_alone() {
  if constexpr (is_array<T>)
    return bytes_alone<typename elements_of<T>::type>();
  else if constexpr (!plain_value<T>)
    return false;
  else if constexpr (scalar<T> || !storable<T>)
    return true;
  else if constexpr (plain_struct<T>)
    return all_bytes_alone(typename parts_of<T>::type{});
  else
    return false;
}

/// Whether a T, or a part of it, is a field or a container of a pool: then it is never copied.
template <class T>
consteval bool lies_in_pool();

template <class... A>
consteval bool any_lies_in_pool(types<A...>) {
  return (lies_in_pool<A>() || ...);
}

template <class T>
consteval bool lies_in_pool() {
  if constexpr (perdure::detail::lies_in_pool<T>)
    return true;
  else if constexpr (is_array<T>)
    return lies_in_pool<typename elements_of<T>::type>();
  else if constexpr (plain_struct<T>)
    return any_lies_in_pool(typename parts_of<T>::type{});
  else
    return false;
}

}  // namespace detail

namespace detail {

template <class T>
consteval bool described_part();

template <class... A>
consteval bool all_described(types<A...>) {
  return (described_part<A>() && ...);
}

template <class T>
consteval bool described_part() {
  if constexpr (is_array<T>)
    return described_part<typename elements_of<T>::type>();
  else if constexpr (std::is_pointer_v<T> || !storable<T>)
    return false;
  else if constexpr (scalar<T>)
    return alignof(T) <= 8;
  else if constexpr (plain_struct<T>)
    return alignof(T) <= 8 && all_described(typename parts_of<T>::type{});
  else
    return true;
}

}  // namespace detail

/// Whether T, which may lie as its bytes, has a Type: it contains no pointer and no large number.
template <class T>
consteval bool described() {
  return detail::described_part<T>();
}

/// How a T lies in a container's node; as a key if `Key`. A struct that is a key and has no
/// operator< is an image: its fields are compared in order.
template <class T, bool Key = false>
consteval Placement placement_of() {
  if constexpr (std::is_same_v<T, std::string>) {
    return Placement::text;
  } else if constexpr (detail::lies_in_pool<T>()) {
    return Placement::object;
  } else if constexpr (plain_struct<T>) {
    if constexpr (detail::bytes_alone<T>() && (!Key || requires(const T& a) { a < a; }))
      return Placement::bytes;
    else if constexpr (!Key && !fixed<T>)
      return Placement::record;
    else
      return Placement::image;
  } else if constexpr (composed<T> && !detail::bytes_alone<T>()) {
    return Placement::image;
  } else {
    return Placement::bytes;
  }
}

}  // namespace value
}  // namespace perdure
