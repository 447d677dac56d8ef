// SPDX-License-Identifier: BSD-3-Clause
//
// holds_place<T>: whether a value of type T may name a place in a pool, so that it must not leave
// its transaction.
//
// A pool pointer, a reference or a cursor is meaningful only inside its transaction: afterwards
// nothing isolates what it names, and the block may belong to another object. A type that is only
// meaningful there states `using transaction_bound = void;`. The trait looks into arrays,
// aggregates (structs without constructors, field by field, up to 16 fields), and into the
// arguments of class templates (optional, pair, tuple, vector, map, ...). It can't look into
// classes with private members, nor into lambdas. Function pointers do not name places.
// Thread safety: compile time only.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "perdure/api/fields.hpp"
#include "perdure/api/layout.hpp"

namespace perdure::detail {

/// Returns whether a T, or a part of it, names a place in a pool. `Seen`: the types around it,
/// which are not examined again.
template <class T, class... Seen>
consteval bool holds_place();

template <class... T>
struct type_list {
  template <class... Seen>
  static consteval bool hold_place() {
    return (holds_place<T, Seen...>() || ...);
  }
};

/// The types that an instance of a class template is made of.
template <class T>
struct arguments_of {
  using types = type_list<>;
};
template <template <class...> class X, class... A>
struct arguments_of<X<A...>> {
  using types = type_list<A...>;
};
template <class T, std::size_t N>
struct arguments_of<std::array<T, N>> {
  using types = type_list<T>;
};
template <class T, std::size_t N>
struct arguments_of<std::span<T, N>> {
  using types = type_list<T*>;
};
template <class T>
struct arguments_of<std::reference_wrapper<T>> {
  using types = type_list<T&>;
};

/// A type whose objects lie in a pool: p, ptr, a container.
template <class T>
concept lies_in_pool =
    is_field<T> || ((container_text<T> || own_text<T>) && !std::is_copy_constructible_v<T>);

template <class T>
concept complete = requires { sizeof(T); };

/// Initialises a field only of a type that holds a place; never called.
template <class... Seen>
struct PlaceField {
  template <class T>
    requires(holds_place<T, Seen...>())
  operator T() const noexcept;  // NOLINT: implicit by design
};
/// Initialises a field that is a reference, or any other; never called.
struct AnyLvalue {
  template <class T>
  operator T&() const noexcept;  // NOLINT: implicit by design
};
template <std::size_t>
using lvalue_at = AnyLvalue;

/// Structs of more fields are not examined: that would take long to compile.
inline constexpr std::size_t max_examined_fields = 16;

/// The number of fields of an aggregate with a reference among them, which AnyField can't
/// initialise; 0 if it can't be found.
template <class T, std::size_t N = max_examined_fields + 1>
consteval std::size_t fields_with_references() {
  constexpr bool taken = []<std::size_t... I>(std::index_sequence<I...>) {
    return requires { T{lvalue_at<I>{}...}; };
  }(std::make_index_sequence<N>{});
  if constexpr (taken)
    return N <= max_examined_fields ? N : 0;
  else if constexpr (N > 1)
    return fields_with_references<T, N - 1>();
  else
    return 0;
}

/// Returns whether any field of T takes a PlaceField. The result is true also for a field that can
/// be *made* from a place, such as optional<string>: it is a first check that causes no error in a
/// struct that can't be decomposed.
template <class T, class... Seen>
consteval bool takes_place() {
  return []<std::size_t... At>(std::index_sequence<At...> all) {
    constexpr auto at = []<std::size_t Here, std::size_t... I>(
                            std::integral_constant<std::size_t, Here>, std::index_sequence<I...>) {
      return requires { T{std::conditional_t<I == Here, PlaceField<Seen...>, AnyField>{}...}; };
    };
    return (at(std::integral_constant<std::size_t, At>{}, all) || ...);
  }(std::make_index_sequence<initialisers<T>()>{});
}

/// The types of the first N fields of T.
template <class T, std::size_t N>
using field_types = decltype(with_fields<N>(std::declval<const T&>(), [](const auto&... field) {
  return type_list<std::remove_cvref_t<decltype(field)>...>{};
}));

template <class T, class... Seen>
consteval bool fields_hold_place() {
  constexpr std::size_t n = initialisers<T>();
  if constexpr (n == 0) {
    constexpr std::size_t m = fields_with_references<T>();
    if constexpr (m > 0) return field_types<T, m>::template hold_place<Seen...>();
  } else if constexpr (n < max_initialisers) {
    if constexpr (takes_place<T, Seen...>()) {
      if constexpr (field_count<T> <= max_examined_fields)
        return field_types<T, field_count<T>>::template hold_place<Seen...>();
    }
  }
  return false;
}

template <class T, class... Seen>
consteval bool holds_place() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_reference_v<U>) {
    return true;
  } else if constexpr (std::is_pointer_v<U>) {
    return !std::is_function_v<std::remove_pointer_t<U>>;
  } else if constexpr (std::is_array_v<U>) {
    return holds_place<std::remove_all_extents_t<U>, Seen...>();
  } else if constexpr (!std::is_class_v<U> || (std::is_same_v<U, Seen> || ...)) {
    return false;
  } else if constexpr (!complete<U>) {  // a tag
    return false;
  } else if constexpr (requires { typename U::transaction_bound; } || lies_in_pool<U>) {
    return true;
  } else if constexpr (std::is_empty_v<U>) {  // an allocator, an order, a tag
    return false;
  } else if constexpr (aggregate_struct<U> && !is_std_array<U>) {
    return fields_hold_place<U, Seen..., U>();
  } else {
    return arguments_of<U>::types::template hold_place<Seen..., U>();
  }
}

/// Whether update() and view() may return an R.
template <class R>
inline constexpr bool leaves_a_transaction = std::is_void_v<R> || !holds_place<R>();

}  // namespace perdure::detail
