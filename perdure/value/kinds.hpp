// SPDX-License-Identifier: BSD-3-Clause
//
// kind_of<T>, extent_of<T>: which kind of value a C++ type is, and the size and alignment of its
// image, both known at compile time because the nodes of containers hold images.
//
// An image has the parts of a value one after the other, each at its alignment; text and sequences
// are a pointer of 8 bytes. docs/format.md has the table.
// Thread safety: compile time only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/api/fields.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/value/reversed.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

namespace detail {

template <class T, template <class...> class X>
inline constexpr bool is_a = false;
template <class... A, template <class...> class X>
inline constexpr bool is_a<X<A...>, X> = true;
template <class T>
inline constexpr bool is_array = false;
template <class E, std::size_t N>
inline constexpr bool is_array<std::array<E, N>> = true;
template <class E, std::size_t N>
inline constexpr bool is_array<E[N]> = true;
/// The element type and the number of elements of an array.
template <class T>
struct elements_of;
template <class E, std::size_t N>
struct elements_of<std::array<E, N>> {
  using type = E;
  static constexpr std::size_t count = N;
};
template <class E, std::size_t N>
struct elements_of<E[N]> : elements_of<std::array<E, N>> {};
template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;
template <class T>
inline constexpr bool is_time_point = false;
template <class Clock, class Duration>
inline constexpr bool is_time_point<std::chrono::time_point<Clock, Duration>> = true;

/// A class of its bytes alone, with a layout that is stated by name.
template <class T>
concept opaque = std::is_class_v<T> && plain_value<T> &&
                 (perdure::detail::names_itself<T> || perdure::detail::named_outside<T>);

template <class T>
concept number = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::is_enum_v<T>;

template <class... T>
struct types {};

template <class T>
struct parts_of;
template <class A, class B>
struct parts_of<std::pair<A, B>> {
  using type = types<A, B>;
};
template <class... A>
struct parts_of<std::tuple<A...>> {
  using type = types<A...>;
};
template <class... A>
struct parts_of<std::variant<A...>> {
  using type = types<A...>;
};
template <aggregate_struct T>
struct parts_of<T> {
  using type =
      decltype(perdure::detail::with_fields<field_count<T>>(std::declval<T&>(), [](auto&... field) {
        return types<std::remove_cvref_t<decltype(field)>...>{};
      }));
};

}  // namespace detail

/// Whether the bytes of a T are its value: a number, an enumerator, a time, or a
/// trivially copyable class that states its layout by name.
template <class T>
concept scalar =
    detail::number<T> || detail::is_duration<T> || detail::is_time_point<T> || detail::opaque<T>;

/// std::vector, std::optional, std::variant, std::pair, std::tuple, std::array; a C array, which
/// can be in a struct only.
template <class T>
concept composed = detail::is_a<T, std::vector> || detail::is_a<T, std::optional> ||
                   detail::is_a<T, std::variant> || detail::is_a<T, std::pair> ||
                   detail::is_a<T, std::tuple> || detail::is_array<T>;

/// A part of a key that is ordered the other way round.
template <class T>
concept turned = detail::is_a<T, reversed>;

/// A plain struct: no constructor, no base class, no private field, no stated layout.
template <class T>
concept plain_struct =
    perdure::detail::opened_by_fields<T> && !composed<T> && !scalar<T> && !turned<T>;

/// Whether a value of type T can lie in a pool, as far as its outermost type tells.
template <class T>
concept storable =
    scalar<T> || composed<T> || plain_struct<T> || turned<T> || std::is_same_v<T, std::string>;

/// The size and alignment of an image.
struct Extent {
  std::size_t size = 0, align = 1;
  /// Appends a part at its alignment. Returns where it lies.
  constexpr std::size_t add(Extent part) {
    const std::size_t at = (size + part.align - 1) / part.align * part.align;
    size = at + part.size;
    align = std::max(align, part.align);
    return at;
  }
  /// Fills up to a multiple of the alignment.
  [[nodiscard]] constexpr Extent whole() const {
    return {(size + align - 1) / align * align, align};
  }
};

/// The size and alignment of a T's image.
template <class T>
consteval Extent extent_of();

namespace detail {

template <class... A>
consteval Extent extent_of_all(types<A...>) {
  Extent all;
  (all.add(extent_of<A>()), ...);
  return all.whole();
}
template <class... A>
consteval Extent extent_of_any(types<A...>) {
  static_assert(sizeof...(A) < 256, "perdure: a std::variant in a pool has at most 255 types");
  Extent largest;
  ((largest = {std::max(largest.size, extent_of<A>().size),
               std::max(largest.align, extent_of<A>().align)}),
   ...);
  Extent all{1, 1};
  all.add(largest.whole());
  return all.whole();
}

}  // namespace detail

template <class T>
consteval Extent extent_of() {
  static_assert(!std::is_pointer_v<T>,
                "perdure: a pointer can't be in a value: it would be followed by no check(), and "
                "own nothing; a container's value may be a T* as a whole, or hold the key of what "
                "it leads to");
  static_assert(
      std::is_pointer_v<T> || storable<T>,
      "perdure: a value in a pool is a number, enum, time, std::string, std::vector, "
      "std::optional, std::variant, std::pair, std::tuple, std::array, or a struct of these "
      "without constructors, base classes and private fields (a trivially copyable class may "
      "state `static constexpr std::string_view layout_id = \"name/version\";`)");
  if constexpr (turned<T>) {
    return extent_of<decltype(T::value)>();
  } else if constexpr (scalar<T>) {
    static_assert(alignof(T) <= 8, "perdure: a value in a pool is aligned to at most 8 bytes");
    return {sizeof(T), alignof(T)};
  } else if constexpr (std::is_same_v<T, std::string> || detail::is_a<T, std::vector>) {
    return {8, 8};
  } else if constexpr (detail::is_a<T, std::optional>) {
    Extent all{1, 1};
    all.add(extent_of<typename T::value_type>());
    return all.whole();
  } else if constexpr (detail::is_a<T, std::variant>) {
    return detail::extent_of_any(typename detail::parts_of<T>::type{});
  } else if constexpr (detail::is_array<T>) {
    constexpr Extent one = extent_of<typename detail::elements_of<T>::type>();
    return {one.size * detail::elements_of<T>::count, one.align};
  } else if constexpr (storable<T>) {
    return detail::extent_of_all(typename detail::parts_of<T>::type{});
  } else {
    return {};
  }
}

}  // namespace perdure::value
