// SPDX-License-Identifier: BSD-3-Clause
//
// What a table is declared with: its key, and the members by which its rows are found.
//
//     table<Session, key<&Session::token>, indexed<&Session::user>, expires<&Session::until>>
//
// Each is a map from the member to the row. An index's keys end with the row's number, so that rows
// of one value lie in the order in which they were added, in a descending index, too.
// Thread safety: compile time only; the maps are the table's.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/table_row.hpp"
#include "perdure/value/reversed.hpp"

namespace perdure {

/// Rows are found by this member, which no two of them share; in no order.
template <auto Member>
struct key {};
/// Rows are found by this member, which no two of them share, and lie in its order.
template <auto Member>
struct ordered_key {};
/// Rows are found by this member, and lie in its order.
template <auto Member>
struct indexed {};
/// The same, the largest first.
template <auto Member>
struct indexed_descending {};
/// Rows are found by this member, which no two of them share. Of a std::optional member any number
/// of rows may have no value; they are not found by it.
template <auto Member>
struct unique {};
/// A row is removed by expire() once the time in this member has come. It is an index, too, of the
/// rows that have a time: a row whose std::optional member has no value never expires.
template <auto Member>
struct expires {};

namespace detail {

/// One way to find rows: a map, and what it holds of a row.
template <class Declared>
struct table_part;

/// A member by which rows are found. `SkipsNothing`: a row whose member is an optional without a
/// value has no entry.
template <auto Member, bool SkipsNothing>
struct found_by {
  using object = typename member_of<decltype(Member)>::object;
  using type = member_type<Member>;
  static constexpr auto member = Member;

  /// Whether a row has an entry.
  static bool holds(const object& row) {
    if constexpr (SkipsNothing && value::detail::is_a<type, std::optional>)
      return (row.*Member).has_value();
    else
      return true;
  }
};

template <auto Member, class Map, bool SkipsNothing = false>
struct by_member : found_by<Member, SkipsNothing> {
  using typename found_by<Member, SkipsNothing>::object;
  using typename found_by<Member, SkipsNothing>::type;
  static constexpr bool is_unique = true;
  Map rows;

  static const type& key_of(const object& row, std::uint64_t) { return row.*Member; }
};

template <auto Member, class Part, bool SkipsNothing = false>
struct by_member_and_number : found_by<Member, SkipsNothing> {
  using typename found_by<Member, SkipsNothing>::object;
  using typename found_by<Member, SkipsNothing>::type;
  using entry = std::tuple<Part, std::uint64_t>;
  static constexpr bool is_unique = false;
  map<entry, row*> rows;

  static entry key_of(const object& row, std::uint64_t number) {
    return entry(Part{row.*Member}, number);
  }
  /// The place before all rows of a value.
  static entry first_of(const type& value) { return entry(Part{value}, 0); }
};

template <auto Member>
struct table_part<key<Member>> : by_member<Member, hash_map<member_type<Member>, row*>> {
  static constexpr std::string_view word = "key";
};
template <auto Member>
struct table_part<ordered_key<Member>> : by_member<Member, map<member_type<Member>, row*>> {
  static constexpr std::string_view word = "ordered_key";
};
template <auto Member>
struct table_part<unique<Member>> : by_member<Member, map<member_type<Member>, row*>, true> {
  static constexpr std::string_view word = "unique";
};
template <auto Member>
struct table_part<indexed<Member>> : by_member_and_number<Member, member_type<Member>> {
  static constexpr std::string_view word = "index";
};
template <auto Member>
struct table_part<indexed_descending<Member>>
    : by_member_and_number<Member, value::reversed<member_type<Member>>> {
  static constexpr std::string_view word = "descending";
};
template <auto Member>
struct table_part<expires<Member>> : by_member_and_number<Member, member_type<Member>, true> {
  static constexpr std::string_view word = "expires";
};

/// Whether a part is the key.
template <class Declared>
inline constexpr bool is_key = false;
/// A key: see above.
template <auto Member>
inline constexpr bool is_key<key<Member>> = true;
/// A key: see above.
template <auto Member>
inline constexpr bool is_key<ordered_key<Member>> = true;
/// The parts of a table, one after the other: a std::tuple has no layout to rely on.
template <class... Declared>
struct table_parts {
  template <class F>
  void each(F&&) {}
  template <class F>
  void each(F&&) const {}
};
template <class First, class... Rest>
struct table_parts<First, Rest...> {
  table_part<First> first;
  table_parts<Rest...> rest;

  /// Calls f(part) for each, in order.
  template <class F>
  void each(F&& f) {
    f(first);
    rest.each(f);
  }
  template <class F>
  void each(F&& f) const {
    f(first);
    rest.each(f);
  }
};

/// Whether a part finds rows by this member.
template <auto Member, class Part>
constexpr bool finds_by() {
  if constexpr (std::is_same_v<std::remove_const_t<decltype(Part::member)>, decltype(Member)>)
    return Part::member == Member;
  else
    return false;
}

}  // namespace detail
}  // namespace perdure
