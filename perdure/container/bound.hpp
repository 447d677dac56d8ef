// SPDX-License-Identifier: BSD-3-Clause
//
// from, after, before, through: where a range begins and ends.
//
//     orders.range<&Order::price>(tx, through(1001))   // orders of this price, and all before
//     days.range(tx, after("2024-01-31"), before("2024-03"))
//
// Thread safety: plain values.
#pragma once

#include <type_traits>
#include <utility>

namespace perdure {

namespace detail {

/// Where a range begins: at the elements equal to a value, or behind them.
template <class V>
struct lower_bound_at {
  V value;      ///< where the range begins
  bool behind;  ///< whether values equal to it are left out
};
/// Where a range ends.
template <class V>
struct upper_bound_at {
  V value;      ///< where the range ends
  bool behind;  ///< whether values equal to it are in it
};

/// Whether a type is the beginning of a range.
template <class T>
inline constexpr bool is_lower_bound = false;
/// It is, if from() or after() made it.
template <class V>
inline constexpr bool is_lower_bound<lower_bound_at<V>> = true;
/// Whether a type is the end of a range.
template <class T>
inline constexpr bool is_upper_bound = false;
/// It is, if before() or through() made it.
template <class V>
inline constexpr bool is_upper_bound<upper_bound_at<V>> = true;
/// Whether a type is the beginning or the end of a range.
template <class T>
concept range_bound = is_lower_bound<T> || is_upper_bound<T>;
/// Whether these types are one bound, or a beginning and an end.
template <class... Bounds>
inline constexpr bool bounds_a_range = false;
/// One is enough.
template <class One>
inline constexpr bool bounds_a_range<One> = range_bound<One>;
/// Two are a beginning and an end.
template <class First, class Second>
inline constexpr bool bounds_a_range<First, Second> =
    is_lower_bound<First> && is_upper_bound<Second>;

}  // namespace detail

/// A range that begins with the elements of this value. "Before" and "after" refer to the order of
/// the range: in a descending index the larger values come before.
template <class V>
[[nodiscard]] detail::lower_bound_at<std::decay_t<V>> from(V&& value) {
  return {std::forward<V>(value), false};
}
/// A range that begins behind the elements of this value.
template <class V>
[[nodiscard]] detail::lower_bound_at<std::decay_t<V>> after(V&& value) {
  return {std::forward<V>(value), true};
}
/// A range that ends before the elements of this value.
template <class V>
[[nodiscard]] detail::upper_bound_at<std::decay_t<V>> before(V&& value) {
  return {std::forward<V>(value), false};
}
/// A range that ends with the elements of this value.
template <class V>
[[nodiscard]] detail::upper_bound_at<std::decay_t<V>> through(V&& value) {
  return {std::forward<V>(value), true};
}

}  // namespace perdure
