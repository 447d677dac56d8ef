// SPDX-License-Identifier: BSD-3-Clause
//
// row, row_ref: a row of a table: one heap block [number u64][record]. The number is given when the
// row is added and never again: it orders rows that are equal in an index.
//
// A row keeps its address as long as its shape: the first change of a row that an earlier version
// of T wrote gives it another one. Nothing outside the table holds it: a row_ref belongs to its
// transaction, and is invalid once its row was erased, or moved in that way.
// Thread safety: that of the transaction.
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

#include "perdure/value/access.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/record.hpp"
#include "perdure/value/text_block.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

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

/// A row of a table of T, in a transaction.
template <class T, class Tx>
class row_ref {
 public:
  /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
  using transaction_bound = void;

  /// Made by the table.
  row_ref(Tx& tx, const row* at) noexcept : tx_(&tx), at_(at) {}

  /// A copy of one field: `row[&Session::token]`. Nothing else of the row is read.
  template <class M>
  [[nodiscard]] M operator[](M T::* member) const {
    value::ReaderOver<Tx> reader(*tx_);
    const value::Part& part = part_at(member);
    value::Buffer image(part.type->size);
    if (!value::record::read_part(reader, value::type_of<T>(), &at_->record, part, image.data()))
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
    if (!value::record::read_part(reader, value::type_of<T>(), &at_->record, part_at(member),
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
    value::record::read(reader, value::type_of<T>(), &at_->record, &out);
    return out;
  }
  /// A copy of the row.
  operator T() const { return value(); }  // NOLINT: a loop may name the struct

  /// A field of a copy of the row, which is made at the first use and lives as long as this
  /// row_ref. Of one field, [] copies less.
  [[nodiscard]] const T* operator->() const {
    if (!copy_) copy_.emplace(value());
    return std::addressof(*copy_);
  }

 private:
  Tx* tx_;
  const row* at_;
  mutable std::optional<T> copy_;
};

/// The elements of a table's ranges.
template <class T>
struct row_of {
  template <class Tx, class Cursor>
  static row_ref<T, Tx> at(Tx& tx, const Cursor& cursor) {
    return row_ref<T, Tx>(tx, cursor.value(tx));
  }
};

/// Whether two keys of a part have the same parts.
template <class K>
bool same_key(const K& a, const K& b) {
  return value::same(value::type_of<K>(), std::addressof(a), std::addressof(b));
}
/// Throws error(exists).
[[noreturn]] inline void throw_not_unique(std::string_view member) {
  throw error(Status(Code::exists, "perdure::table: found another row with the same '" +
                                       std::string(member) +
                                       "', which is unique, expected none: change or erase that "
                                       "row first"));
}

}  // namespace perdure::detail
