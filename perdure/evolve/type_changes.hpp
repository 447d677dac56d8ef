// SPDX-License-Identifier: BSD-3-Clause
//
// TypeChanges: whether the objects of one version of a program can stay in place as objects of
// another version.
//
// They can if both types have the same text, except for structs that are records (rec<...>, and the
// rows of tables). Each record says with which layout it was written, so these structs may differ
// as value::compare() allows. Structs behind pointers have numbers, which may differ in the two
// texts.
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

/// A struct of the pool and one of the program that pointers in the same place lead to.
struct StructPair {
  std::string before, now;  ///< their numbers: "#1", "#2"
  std::string path;         ///< what leads there
};

class TypeChanges {
 public:
  /// `records`: the types of the program's records and rows. All must outlive this object.
  TypeChanges(const LayoutLines& before, const LayoutLines& now,
              const std::vector<const value::Type*>& records)
      : before_(before), now_(now), records_(records) {}

  /// Whether objects of type `x` in the pool can stay as objects of the program's type `y`, except
  /// for changes in records. taken() returns these, each with a path that begins with `path`; a
  /// change with a need other than `nothing` does not allow the records to stay.
  bool can_stay(std::string_view x, std::string_view y, const std::string& path);
  /// The same, but structs that pointers lead to may differ: they are added to pairs(), if the
  /// result is true.
  bool can_stay_but_pointed(std::string_view x, std::string_view y, const std::string& path);
  /// The pairs of structs, each once, in the order in which they were found.
  [[nodiscard]] const std::vector<StructPair>& pairs() const noexcept { return pairs_; }
  /// As can_stay() for the rows of two tables.
  bool rows_can_stay(std::string_view x, std::string_view y, const std::string& path);
  /// Returns the changes in records that the calls so far have found, and forgets them.
  [[nodiscard]] std::vector<value::Change> taken() { return std::exchange(changes_, {}); }

  /// The types of the program's records and rows.
  [[nodiscard]] const std::vector<const value::Type*>& records() const noexcept { return records_; }
  /// The program's record or row of this text; null if there is none.
  [[nodiscard]] const value::Type* of_program(std::string_view text) const;
  /// A part of the program's table, with the names that the members have in the pool's rows.
  std::string part_in_pool(const TableText& before, const TableText& now, const std::string& part);
  /// Whether the members of a part have the same types in both rows. `part`, in the pool's table,
  /// comes from part_in_pool(); `now_part` is the part in the program's table.
  bool same_members(const TableText& before, const std::string& part, const TableText& now,
                    const std::string& now_part);

 private:
  bool compare(std::string_view x, std::string_view y, const std::string& path, bool noted);
  void note(std::string_view x, std::string_view y, const std::string& path);
  bool same_struct(std::string_view x, std::string_view y);
  bool struct_changes(std::string_view before, std::string_view now, const std::string& path);
  bool record(std::string_view& x, std::string_view& y, const std::string& path);
  bool table(std::string_view& x, std::string_view& y, const std::string& path);

  const LayoutLines &before_, &now_;
  const std::vector<const value::Type*>& records_;
  std::map<std::pair<std::string, std::string>, bool> known_;
  std::vector<value::Change> changes_;
  std::vector<StructPair> pairs_;
};

}  // namespace perdure::detail
