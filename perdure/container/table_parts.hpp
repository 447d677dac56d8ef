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

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/table_row.hpp"
#include "perdure/value/reversed.hpp"

namespace perdure {

/// Rows are found by this member, which no two of them share; in no order. Of several members, here
/// and below: no two rows share all of them, and rows lie in the order of the first one, those of
/// one value in the order of the next one, and so on.
template <auto... Members>
struct key {};
/// Rows are found by this member, which no two of them share, and lie in its order.
template <auto... Members>
struct ordered_key {};
/// Rows are found by this member, and lie in its order.
template <auto... Members>
struct indexed {};
/// The same, the largest first.
template <auto... Members>
struct indexed_descending {};
/// Rows are found by this member, which no two of them share. Of a std::optional member any number
/// of rows may have no value; they are not found by it. Nor is, of several members, a row of which
/// one has no value.
template <auto... Members>
struct unique {};
/// A row is removed by expire() once the time in this member has come. It is an index, too, of the
/// rows that have a time: a row whose std::optional member has no value never expires.
template <auto Member>
struct expires {};

/// dropped<indexed<&T::member>> declares that this version of the program no longer finds rows by a
/// member by which the version before did. Opening the pool frees the entries, in batches; the next
/// version leaves the declaration out.
template <class Declared>
struct dropped {};

namespace detail {

template <class T, class... Declared>
class shared_rows;  // table_shared.hpp

/// One way to find rows: a map, and what it holds of a row.
template <class Declared>
struct table_part;

/// A list of members, in order.
template <auto... Members>
struct members {};
/// The same, of one member or more.
template <auto First, auto... Rest>
struct members<First, Rest...> {
  /// The struct that they are members of.
  using object = typename member_of<decltype(First)>::object;
  /// The member, or a tuple of several.
  using type = std::conditional_t<sizeof...(Rest) == 0, member_type<First>,
                                  std::tuple<member_type<First>, member_type<Rest>...>>;
  /// How many they are.
  static constexpr unsigned count = 1 + sizeof...(Rest);

  /// Whether a row has a value in each that is an optional.
  static bool all_there(const object& row) {
    return there<First>(row) && (there<Rest>(row) && ...);
  }
  /// Whether a row's record has each of the members (record::has_part).
  static bool all_in(value::Reader& tx, const value::Type& type, const value::record* row) {
    return value::record::has_part(tx, type, row, part_at(First)) &&
           (value::record::has_part(tx, type, row, part_at(Rest)) && ...);
  }
  /// Whether each of them is the same in two rows.
  static bool same_in(const object& a, const object& b) {
    return same<First>(a, b) && (same<Rest>(a, b) && ...);
  }
  /// Their values in a row.
  static decltype(auto) of(const object& row) {
    if constexpr (sizeof...(Rest) == 0)
      return static_cast<const type&>(row.*First);
    else
      return type(row.*First, row.*Rest...);
  }
  /// Sets the member, which is the only one.
  static void set(object& row, const type& value) { row.*First = value; }
  /// The members' names, with + between them.
  static std::string names() {
    std::string out(part_at(First).name);
    ((out += "+", out += part_at(Rest).name), ...);
    return out;
  }
  /// ":" and the members' types if one of them has an order or a hash of its own; otherwise empty.
  static std::string marks() {
    std::string plain, marked;
    for (const value::Type* type : {part_at(First).type, part_at(Rest).type...}) {
      plain += "+" + value::text_of(*type);
      marked += "+" + value::text_of(*type, value::TextVersion::marked);
    }
    return marked == plain ? std::string() : ":" + marked.substr(1);
  }

 private:
  template <auto Member>
  static bool same(const object& a, const object& b) {
    return value::same(value::type_of<member_type<Member>>(), std::addressof(a.*Member),
                       std::addressof(b.*Member));
  }
  template <auto Member>
  static bool there(const object& row) {
    if constexpr (value::detail::is_a<member_type<Member>, std::optional>)
      return (row.*Member).has_value();
    else
      return true;
  }
};

/// Whether two pointers to members name one member.
template <auto A, auto B>
constexpr bool same_member() {
  if constexpr (std::is_same_v<decltype(A), decltype(B)>)
    return A == B;
  else
    return false;
}
/// Whether a list of members begins with another one.
template <class Long, class Short>
inline constexpr bool begins_with = false;
/// Every list begins with the empty one.
template <auto... Members>
inline constexpr bool begins_with<members<Members...>, members<>> = true;
/// The first members are one, and what follows them begins so, too.
template <auto A, auto... As, auto B, auto... Bs>
inline constexpr bool begins_with<members<A, As...>, members<B, Bs...>> =
    same_member<A, B>() && begins_with<members<As...>, members<Bs...>>;

/// Members by which rows are found. `SkipsNothing`: a row of which one is an optional without a
/// value has no entry.
template <class Members, bool SkipsNothing>
struct found_by : Members {
  using list = Members;
  /// Whether a row has an entry.
  static bool holds(const typename Members::object& row) {
    return !SkipsNothing || Members::all_there(row);
  }
};

template <class Members, class Map, bool SkipsNothing = false>
struct by_members : found_by<Members, SkipsNothing> {
  using typename Members::object;
  using entry = typename Members::type;
  static constexpr bool is_unique = true;
  Map rows;

  static decltype(auto) key_of(const object& row, std::uint64_t) { return Members::of(row); }
  /// Sets the member by which a row is found, if it is only one.
  static void set_key(object& row, const entry& value) { Members::set(row, value); }
  /// The entry of members' values: all of them, or, of several, the first ones.
  template <class... Values>
  static entry entry_of(const Values&... values) {
    if constexpr (Members::count == 1)
      return static_cast<entry>((values, ...));
    else
      return key_beginning_with<entry>(values...);
  }
};

/// What an index's entry holds of a member.
template <auto Member, bool Descending>
using index_part =
    std::conditional_t<Descending, value::reversed<member_type<Member>>, member_type<Member>>;

template <bool Descending, bool SkipsNothing, auto... M>
struct by_members_and_number : found_by<members<M...>, SkipsNothing> {
  using typename members<M...>::object;
  using entry = std::tuple<index_part<M, Descending>..., std::uint64_t>;
  static constexpr bool is_unique = false;
  map<entry, row*> rows;

  static entry key_of(const object& row, std::uint64_t number) {
    return entry(index_part<M, Descending>{row.*M}..., number);
  }
  template <class... Values>
  static entry entry_of(const Values&... values) {
    entry out{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (put(std::get<I>(out), values), ...);
    }(std::index_sequence_for<Values...>{});
    return out;
  }

 private:
  template <class Part, class Value>
  static void put(Part& part, const Value& value) {
    if constexpr (Descending)
      part.value = value;
    else
      part = value;
  }
};

template <auto... M>
struct table_part<key<M...>>
    : by_members<members<M...>, hash_map<typename members<M...>::type, row*>> {
  static constexpr std::string_view word = "key";
};
template <auto... M>
struct table_part<ordered_key<M...>>
    : by_members<members<M...>, map<typename members<M...>::type, row*>> {
  static constexpr std::string_view word = "ordered_key";
};
template <auto... M>
struct table_part<unique<M...>>
    : by_members<members<M...>, map<typename members<M...>::type, row*>, true> {
  static constexpr std::string_view word = "unique";
};
template <auto... M>
struct table_part<indexed<M...>> : by_members_and_number<false, false, M...> {
  static constexpr std::string_view word = "index";
};
template <auto... M>
struct table_part<indexed_descending<M...>> : by_members_and_number<true, false, M...> {
  static constexpr std::string_view word = "descending";
};
template <auto Member>
struct table_part<expires<Member>> : by_members_and_number<false, true, Member> {
  static constexpr std::string_view word = "expires";
};

/// "dropped " and the word of a part.
template <class Part>
struct dropped_word {
  static constexpr std::string_view begin = "dropped ";
  static constexpr auto text = [] {
    std::array<char, begin.size() + Part::word.size()> all{};
    std::copy(begin.begin(), begin.end(), all.begin());
    std::copy(Part::word.begin(), Part::word.end(), all.begin() + begin.size());
    return all;
  }();
};
template <class Declared>
struct table_part<dropped<Declared>> : table_part<Declared> {
  using dropped_part = table_part<Declared>;
  using list = members<>;  // no rows are found by it
  static constexpr auto letters = dropped_word<dropped_part>::text;
  static constexpr std::string_view word{letters.data(), letters.size()};
  static constexpr bool is_unique = false;
  static bool holds(const typename dropped_part::object&) { return false; }
};
/// Whether a part is dropped.
template <class Part>
concept is_dropped = requires { typename Part::dropped_part; };

/// The type of the argument for a table's key.
template <class K>
struct key_passed {
  using arg = typename stored_key<K>::arg;
};
/// For a key of several parts, the argument may have other types that convert to those of the
/// parts: std::tie(a, b), or std::string_view for text.
template <class... K>
struct key_passed<std::tuple<K...>> {
  struct arg {
    std::tuple<K...> key;
    template <class... Parts>
      requires(sizeof...(Parts) == sizeof...(K) && sizeof...(K) > 1 &&
               (std::is_constructible_v<K, const Parts&> && ...))
    arg(const Parts&... parts) : key(parts...) {}  // NOLINT: braces make a key
    template <class... Parts>
      requires(sizeof...(Parts) == sizeof...(K) &&
               (std::is_constructible_v<K, const Parts&> && ...))
    arg(const std::tuple<Parts...>& parts) : key(parts) {}    // NOLINT: std::tie makes a key
    operator const std::tuple<K...>&() const { return key; }  // NOLINT: it is a key
  };
};

/// Whether a part is the key.
template <class Declared>
inline constexpr bool is_key = false;
/// A key: see above.
template <auto... M>
inline constexpr bool is_key<key<M...>> = true;
/// A key: see above.
template <auto... M>
inline constexpr bool is_key<ordered_key<M...>> = true;
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

/// Whether a part finds rows by exactly these members, in this order.
template <class Part, auto... M>
inline constexpr bool finds_by = std::is_same_v<typename Part::list, members<M...>>;
/// Whether it finds them by these and others after them: rows lie in the order of these.
template <class Part, auto... M>
inline constexpr bool orders_by =
    Part::word != "key" && begins_with<typename Part::list, members<M...>>;

}  // namespace detail
}  // namespace perdure
