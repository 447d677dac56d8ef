// SPDX-License-Identifier: BSD-3-Clause
//
// value_in: the type of a container's values or elements, for changes of layout.
// Thread safety: compile time only.
#pragma once

#include <type_traits>

namespace perdure::detail {

/// The type of a container's values or elements.
template <class C>
struct value_in {
  using type = typename C::value_type;
};
template <class C>
  requires requires { typename C::mapped_type; }
struct value_in<C> {
  using type = typename C::mapped_type;
};
/// Whether a container's values are pool pointers, and its each_place() says where they lie.
template <class C>
concept holds_pointers =
    requires { requires C::has_places; } && std::is_pointer_v<typename value_in<C>::type>;

}  // namespace perdure::detail
