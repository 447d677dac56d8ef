// SPDX-License-Identifier: BSD-3-Clause
//
// TypeChanges: whether the objects of one version of a program can stay where they are as those of
// another one.
//
// They can if the types of both are the same text, but for the structs that are records (rec<...>,
// and the rows of tables): a record says itself with which layout it was written, so these may
// differ in what value::compare() allows. Structs behind pointers have numbers, which may be others
// in the other text.
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdure/evolve/layout_lines.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/type.hpp"

namespace perdure::detail {

class TypeChanges {
 public:
  /// `records`: the types of the program's records and rows. All must outlive this object.
  TypeChanges(const LayoutLines& before, const LayoutLines& now,
              const std::vector<const value::Type*>& records)
      : before_(before), now_(now), records_(records) {}

  /// Whether objects of type `x` in the pool can stay as objects of the program's type `y`. What
  /// changed in records is in taken(), each with a path that begins with `path`; where it has a
  /// need, they can't.
  bool can_stay(std::string_view x, std::string_view y, const std::string& path);
  /// The same of the rows of two tables.
  bool rows_can_stay(std::string_view x, std::string_view y, const std::string& path);
  /// What the calls before found; empty from then on.
  [[nodiscard]] std::vector<value::Change> taken() { return std::exchange(changes_, {}); }

  /// The types of the program's records and rows.
  [[nodiscard]] const std::vector<const value::Type*>& records() const noexcept { return records_; }
  /// The program's record or row of this text; null if there is none.
  [[nodiscard]] const value::Type* of_program(std::string_view text) const;
  /// A part of the program's table, with the names that the members have in the pool's rows.
  std::string part_in_pool(const TableText& before, const TableText& now, const std::string& part);
  /// Whether the members of a part, as part_in_pool() returned it, lie in both rows in one way.
  /// `now_part` is the part itself.
  bool same_members(const TableText& before, const std::string& part, const TableText& now,
                    const std::string& now_part);

 private:
  bool same_struct(std::string_view x, std::string_view y);
  bool struct_changes(std::string_view before, std::string_view now, const std::string& path);
  bool record(std::string_view& x, std::string_view& y, const std::string& path);
  bool table(std::string_view& x, std::string_view& y, const std::string& path);

  const LayoutLines &before_, &now_;
  const std::vector<const value::Type*>& records_;
  std::map<std::pair<std::string, std::string>, bool> known_;
  std::vector<value::Change> changes_;
};

}  // namespace perdure::detail
