// SPDX-License-Identifier: BSD-3-Clause
//
// for_each_field(object, f): the fields of an aggregate, in order, without a macro or a list
// maintained by hand.
//
// C++20 has no reflection. The number of initialisers that an aggregate takes is found by trying
// braces, arrays (which take one initialiser per element) are recognised by nesting a brace, and a
// structured binding of that many names then yields the fields. None of it reads, copies or
// constructs a field, so it works on pool bytes and on p<T>, which can't be copied.
// Thread safety: pure functions.
// Source: the technique of Boost.PFR and reflect-cpp, reduced to what a pool's root needs.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace perdure {

/// The most fields that one struct may have: nest structs for more.
inline constexpr std::size_t max_fields = 64;

namespace detail {

/// Initialises a field of any type; never called.
struct AnyField {
  /// To a field's type. It is defined, since clang wants a definition where a constructor of a
  /// std::optional of a type without linkage is instantiated with it.
  template <class T>
  operator T() const noexcept {  // NOLINT: implicit by design
    __builtin_trap();
  }
};
/// Initialises only a base class of T.
template <class T>
struct AnyBase {
  /// To a base class of T.
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const noexcept {  // NOLINT: implicit by design
    __builtin_trap();
  }
};
/// One for each number, so that a pack of numbers makes a pack of these.
template <std::size_t>
using any_at = AnyField;

/// T takes as many initialisers as there are numbers.
template <class T, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{any_at<I>{}...}; };
}

/// T{before..., {nested...}, after...} compiles.
template <class T, std::size_t... B, std::size_t... N, std::size_t... A>
consteval bool takes_nested(std::index_sequence<B...>, std::index_sequence<N...>,
                            std::index_sequence<A...>) {
  return requires { T{any_at<B>{}..., {any_at<N>{}...}, any_at<A>{}...}; };
}

/// Enough for max_fields fields that include small arrays; the message for a longer array asks for
/// std::array.
inline constexpr std::size_t max_initialisers = 160;

/// The most initialisers that T takes.
template <class T, std::size_t N = 0>
consteval std::size_t initialisers() {
  if constexpr (N < max_initialisers && takes<T>(std::make_index_sequence<N + 1>{}))
    return initialisers<T, N + 1>();
  else
    return N;
}

/// Whether the field at initialiser `At` takes a brace with N initialisers beside all others: an
/// array does not, because its brace leaves too few fields for them.
template <class T, std::size_t Total, std::size_t At, std::size_t N>
consteval bool takes_all_beside() {
  return takes_nested<T>(std::make_index_sequence<At>{}, std::make_index_sequence<N>{},
                         std::make_index_sequence<Total - At - 1>{});
}

/// How many of T's `total` initialisers the field at initialiser `At` takes: more than one when it
/// is an array. Nearly every other field is recognised by the first two tests; the search that
/// follows is slow to compile.
template <class T, std::size_t Total, std::size_t At, std::size_t N = 2>
consteval std::size_t span_at() {
  if constexpr (At + N > Total) {
    return 1;
  } else if constexpr (N == 2 && (takes_all_beside<T, Total, At, 1>() ||
                                  takes_all_beside<T, Total, At, 2>())) {
    return 1;
  } else if constexpr (takes_nested<T>(std::make_index_sequence<At>{},
                                       std::make_index_sequence<N>{},
                                       std::make_index_sequence<Total - At - N>{}) &&
                       !takes_nested<T>(std::make_index_sequence<At>{},
                                        std::make_index_sequence<N>{},
                                        std::make_index_sequence<Total - At - N + 1>{})) {
    return N;
  } else {
    return span_at<T, Total, At, N + 1>();
  }
}

/// The number of fields from initialiser `At` on.
template <class T, std::size_t Total, std::size_t At = 0>
consteval std::size_t fields_from() {
  if constexpr (At >= Total)
    return 0;
  else
    return 1 + fields_from<T, Total, At + span_at<T, Total, At>()>();
}

template <class T>
concept has_base = requires { T{AnyBase<T>{}}; };

}  // namespace detail

/// An aggregate that for_each_field can walk: no constructor, no base class, no private field.
template <class T>
concept aggregate_struct =
    std::is_class_v<T> && std::is_aggregate_v<T> && (std::is_empty_v<T> || !detail::has_base<T>);

/// The number of fields of an aggregate.
template <aggregate_struct T>
inline constexpr std::size_t field_count = detail::fields_from<T, detail::initialisers<T>()>();

namespace detail {

/// Returns f(fields of `object`...). REQUIRES: N is the number of fields, at most max_fields.
template <std::size_t N, class T, class F>
constexpr decltype(auto) with_fields(T& object, F&& f) {
  // clang-format off
#define PERDURE_1(x) x##0
#define PERDURE_2(x) PERDURE_1(x), x##1
#define PERDURE_3(x) PERDURE_2(x), x##2
#define PERDURE_4(x) PERDURE_3(x), x##3
#define PERDURE_5(x) PERDURE_4(x), x##4
#define PERDURE_6(x) PERDURE_5(x), x##5
#define PERDURE_7(x) PERDURE_6(x), x##6
#define PERDURE_8(x) PERDURE_7(x), x##7
#define PERDURE_WITH(...) { auto& [__VA_ARGS__] = object; return f(__VA_ARGS__); }
// For 1 to 8 fields more than those named by the other arguments, of which there are `Before`.
#define PERDURE_EIGHT(Before, ...)                                               \
  else if constexpr (N == Before + 1) PERDURE_WITH(__VA_ARGS__ PERDURE_1(z))     \
  else if constexpr (N == Before + 2) PERDURE_WITH(__VA_ARGS__ PERDURE_2(z))     \
  else if constexpr (N == Before + 3) PERDURE_WITH(__VA_ARGS__ PERDURE_3(z))     \
  else if constexpr (N == Before + 4) PERDURE_WITH(__VA_ARGS__ PERDURE_4(z))     \
  else if constexpr (N == Before + 5) PERDURE_WITH(__VA_ARGS__ PERDURE_5(z))     \
  else if constexpr (N == Before + 6) PERDURE_WITH(__VA_ARGS__ PERDURE_6(z))     \
  else if constexpr (N == Before + 7) PERDURE_WITH(__VA_ARGS__ PERDURE_7(z))     \
  else if constexpr (N == Before + 8) PERDURE_WITH(__VA_ARGS__ PERDURE_8(z))
#define PERDURE_16 PERDURE_8(a), PERDURE_8(b)
#define PERDURE_32 PERDURE_16, PERDURE_8(c), PERDURE_8(d)
#define PERDURE_48 PERDURE_32, PERDURE_8(e), PERDURE_8(g)
  if constexpr (N == 0) return f();
  PERDURE_EIGHT(0, )
  PERDURE_EIGHT(8, PERDURE_8(a),)
  PERDURE_EIGHT(16, PERDURE_16,)
  PERDURE_EIGHT(24, PERDURE_16, PERDURE_8(c),)
  PERDURE_EIGHT(32, PERDURE_32,)
  PERDURE_EIGHT(40, PERDURE_32, PERDURE_8(e),)
  PERDURE_EIGHT(48, PERDURE_48,)
  PERDURE_EIGHT(56, PERDURE_48, PERDURE_8(h),)
#undef PERDURE_48
#undef PERDURE_32
#undef PERDURE_16
#undef PERDURE_EIGHT
#undef PERDURE_WITH
#undef PERDURE_8
#undef PERDURE_7
#undef PERDURE_6
#undef PERDURE_5
#undef PERDURE_4
#undef PERDURE_3
#undef PERDURE_2
#undef PERDURE_1
  // clang-format on
}

}  // namespace detail

/// Calls f(field) for each field of `object`, in order of declaration.
template <class T, class F>
  requires aggregate_struct<std::remove_const_t<T>>
constexpr void for_each_field(T& object, F&& f) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>;
  static_assert(
      detail::initialisers<std::remove_const_t<T>>() < detail::max_initialisers && n <= max_fields,
      "perdure: a struct in a pool may have at most 64 fields (and C arrays of 96 elements "
      "together): group fields in nested "
      "structs, hold long arrays as std::array<p<E>, N>, or state `static constexpr "
      "std::string_view layout_id`");
  detail::with_fields<(n <= max_fields ? n : 0)>(object, [&](auto&... field) { (f(field), ...); });
}

}  // namespace perdure
