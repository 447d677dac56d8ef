// SPDX-License-Identifier: BSD-3-Clause
//
// row, row_ref: a row of a table: one heap block [number u64][record]. A row gets its number when
// it is added, and no other row ever gets the same one. The number orders rows that are equal in an
// index.
//
// A row keeps its address as long as it keeps its shape: the first change of a row that an earlier
// version of T wrote moves it to another address. Outside the table only a row_ref holds the
// address, and a row_ref belongs to its transaction. The row_refs of an update are in the thread's
// list of cursors. So they follow a row that moves, and know when the row was erased: reading it
// then throws.
// Thread safety: that of the transaction.
// Invariants:
// ROW-1 Between two calls, a row_ref of an update has the address of a row that exists, or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "perdure/container/live_cursor.hpp"
#include "perdure/value/access.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/record.hpp"
#include "perdure/value/text_block.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure {

template <class T, class Key, class... Others>
class table;

namespace detail {

struct row {
  std::uint64_t number;
  value::record record;
};
static_assert(sizeof(row) == 16);

/// The class and the type of a member, of its pointer.
template <class>
struct member_of;
template <class T, class M>
struct member_of<M T::*> {
  using object = T;
  using type = M;
};
/// The type of a member.
template <auto Member>
using member_type = typename member_of<decltype(Member)>::type;

/// The part of T's Type that is the member. Only addresses in storage that is never read are
/// formed.
template <class T, class M>
const value::Part& part_at(M T::* member) {
  alignas(T) static std::byte storage[sizeof(T)];
  const auto at = static_cast<std::size_t>(
      reinterpret_cast<const std::byte*>(std::addressof(reinterpret_cast<T*>(storage)->*member)) -
      storage);
  for (const value::Part& part : value::type_of<T>().parts) {
    if (part.in_object == at && part.type->object_bytes == sizeof(M)) return part;
  }
  std::abort();  // every member is a part
}

/// The address of a row_ref's row. It is in the list of cursors under this address.
class live_row : private live_cursor {
 public:
  /// The row's address. Throws error(invalid) if it was erased.
  [[nodiscard]] const row* at() const {
    if (container() == nullptr) was_erased();
    return static_cast<const row*>(container());
  }
  /// Called when a row has changed and is at `now` from then on.
  static void changed(const row* before, const row* now) {
    if (!any()) return;
    each(before, [&](live_cursor& cursor) {
      auto& live = static_cast<live_row&>(cursor);
      live.changed_ = true;
      live.move_to(now);
    });
  }
  /// Called when a row is erased.
  static void erased(const row* at) { changed(at, nullptr); }

 protected:
  live_row(const row* at, bool live) noexcept : live_cursor(at, live) {}
  /// Whether the row has changed since the last call.
  [[nodiscard]] bool has_changed() const noexcept { return std::exchange(changed_, false); }

 private:
  [[noreturn]] static void was_erased() {
    throw error(Status(Code::invalid,
                       "perdure::table: found a row that was erased, expected one that is there: "
                       "copy it before (T copy = row), or erase it last"));
  }
  mutable bool changed_ = false;
};

/// A row of a table of T, in a transaction. It may be kept while the table changes; reading it
/// throws error(invalid) once it was erased.
template <class T, class Tx>
class row_ref : private live_row {
 public:
  /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
  using transaction_bound = void;

  /// Made by the table. `part`: the table's map that led to it.
  row_ref(Tx& tx, const row* at, const void* part) noexcept
      : live_row(at, !Tx::read_only), tx_(&tx), part_(part) {}

  /// A copy of one field: `row[&Session::token]`. Nothing else of the row is read.
  template <class M>
  [[nodiscard]] M operator[](M T::* member) const {
    value::ReaderOver<Tx> reader(*tx_);
    const value::Part& part = part_at(member);
    value::Buffer image(part.type->size);
    if (!value::record::read_part(reader, value::type_of<T>(), &at()->record, part, image.data()))
      return value().*member;  // of an earlier version of T
    M out{};
    value::decode(reader, *part.type, image.data(), &out);
    return out;
  }
  /// Calls f(std::string_view) with one text field, and returns what it returns: no std::string is
  /// made of a text of up to 512 bytes.
  template <class F>
  auto peek(std::string T::* member, F&& f) const {
    value::ReaderOver<Tx> reader(*tx_);
    const text_block* block = nullptr;
    if (!value::record::read_part(reader, value::type_of<T>(), &at()->record, part_at(member),
                                  &block)) {
      const T copy = value();  // of an earlier version of T
      return f(std::string_view(copy.*member));
    }
    const std::size_t n = text_block::length(reader, block);
    if (n > text_block::piece) return f(std::string_view(text_block::read(reader, block)));
    char text[text_block::piece];
    if (n != 0) reader.read_bytes(text, block->bytes(), n);
    return f(std::string_view(text, n));
  }
  /// A copy of the row.
  [[nodiscard]] T value() const {
    value::ReaderOver<Tx> reader(*tx_);
    T out{};
    value::record::read(reader, value::type_of<T>(), &at()->record, &out);
    return out;
  }
  /// A copy of the row.
  operator T() const { return value(); }  // NOLINT: a loop may name the struct

  /// A field of a copy of the row. The copy is made at the first use, and again after each change
  /// of the row. To read one field, [] copies less.
  [[nodiscard]] const T* operator->() const {
    if (has_changed() || !copy_) copy_.emplace(value());
    return std::addressof(*copy_);
  }

 private:
  template <class, class, class...>
  friend class perdure::table;

  Tx* tx_;
  const void* part_;
  mutable std::optional<T> copy_;
};

/// The elements of a table's ranges.
template <class T>
struct row_of {
  template <class Tx, class Cursor>
  static row_ref<T, Tx> at(Tx& tx, const Cursor& cursor) {
    return row_ref<T, Tx>(tx, cursor.value(tx), cursor.container());
  }
};

/// Whether two keys of a part have the same parts.
template <class K>
bool same_key(const K& a, const K& b) {
  return value::same(value::type_of<K>(), std::addressof(a), std::addressof(b));
}
/// The type of the argument for a value by which rows are found: std::string_view for text.
template <class M>
struct look_up {
  using arg = const M&;
};
template <>
struct look_up<std::string> {
  using arg = std::string_view;
};
template <>
struct look_up<std::optional<std::string>> {
  using arg = std::optional<std::string_view>;
};
/// The same, of a member.
template <auto Member>
using look_up_arg = typename look_up<member_type<Member>>::arg;

/// Throws error(full): the key's type has no number above this one.
[[noreturn]] inline void throw_no_key(std::uint64_t last) {
  throw error(Status(Code::full,
                     "perdure::table::add: found no number above " + std::to_string(last) +
                         " in the type of the key, expected one: put() takes a row whose number "
                         "is free"));
}
/// Throws error(invalid).
[[noreturn]] inline void throw_not_mine() {
  throw error(Status(Code::invalid,
                     "perdure::table: found a row of another table, expected one of this: use the "
                     "table that the loop is over, or give the key"));
}
/// Throws error(exists).
[[noreturn]] inline void throw_not_unique(std::string_view member) {
  throw error(Status(Code::exists, "perdure::table: found another row with the same '" +
                                       std::string(member) +
                                       "', which is unique, expected none: change or erase that "
                                       "row first"));
}

}  // namespace detail
}  // namespace perdure
