// SPDX-License-Identifier: BSD-3-Clause
//
// detail::field_names<T>(): the names of an aggregate's fields, in order, as the program's text has
// them.
//
// C++20 has no reflection, but GCC and clang print a template argument that points to a member of a
// variable with the member's name. The variable is declared and never defined: no T is constructed,
// read or stored, so it works on types without constructors and on p<T>. With another compiler, or
// where the form of that text changes, no name is known (all are empty).
// Thread safety: pure functions.
// Source: the technique that Boost.PFR and reflect-cpp use for names.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

#include "perdure/api/fields.hpp"

namespace perdure::detail {

template <class T>
struct NamedObject {
  T value;
};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored \
    "-Wundefined-internal"  // a T of an unnamed namespace or a function
#pragma clang diagnostic ignored "-Wundefined-var-template"  // never defined, as it is never used
#endif

template <class T>
extern const NamedObject<T> never_defined;

/// The address of field I of T, for a template argument.
template <class T, std::size_t I>
consteval auto field_address() {
  return with_fields<field_count<T>>(
      never_defined<T>.value, [](auto&... field) { return std::get<I>(std::tuple{&field...}); });
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// The identifier at the end of "... [with auto Address = (&
/// never_defined<T>.NamedObject<T>::value.T::name)]" (GCC) or "... [Address =
/// &never_defined.value.name]" (clang). Empty where there is none.
constexpr std::string_view trailing_name(std::string_view text) {
  while (!text.empty() && (text.back() == ')' || text.back() == ']')) text.remove_suffix(1);
  std::size_t begin = text.size();
  const auto in_a_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (c & 0x80) != 0;
  };
  while (begin != 0 && in_a_name(text[begin - 1])) --begin;
  return text.substr(begin);
}

/// Returns its own name, which has the template's argument last. The result type is no typedef: GCC
/// would explain one after the argument.
template <auto Address>
constexpr const char* text_with() {
#if defined(__GNUC__)
  return __PRETTY_FUNCTION__;
#else
  return "";
#endif
}

/// The names of T's fields; those of a T with more than max_fields are empty (for_each_field
/// refuses it).
template <aggregate_struct T>
constexpr auto field_names() {
  constexpr std::size_t n = field_count<T>;
  if constexpr (n == 0 || n > max_fields) {
    return std::array<std::string_view, (n == 0 ? 1 : n)>{};
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<std::string_view, n>{trailing_name(text_with<field_address<T, I>()>())...};
    }(std::make_index_sequence<n>{});
  }
}

}  // namespace perdure::detail
