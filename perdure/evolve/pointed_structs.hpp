// SPDX-License-Identifier: BSD-3-Clause
//
// PointedStructs: the part of a plan for structs that pointers lead to. Where such a struct gets a
// field, or its fields get other places, its objects are copied to new blocks, and so are all
// objects whose pointers lead to copied ones (api/copies.hpp).
//
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/plan.hpp"
#include "perdure/evolve/layout_lines.hpp"
#include "perdure/evolve/type_changes.hpp"
#include "perdure/value/match_names.hpp"

namespace perdure::detail {

/// The fields of two layouts, matched by their names. `renamed`, `prefix`: the pairs whose paths
/// begin with the prefix belong to these fields.
[[nodiscard]] value::MatchedNames match_lines(const std::vector<LayoutLine>& before,
                                              const std::vector<LayoutLine>& now,
                                              const SaidOfBefore& said, std::string_view prefix);
/// Adds what becomes of a field that the program does not have. `owner`: what comes before its
/// path. `behind`: it is a field of a struct that pointers lead to.
void field_is_gone(Plan& plan, const LayoutLine& line, const std::string& owner, bool said,
                   bool behind);

class PointedStructs {
 public:
  /// `types` has noted the structs that the root's fields lead to. `records` takes changes in
  /// records. `earlier`: the pool's earlier layouts. All must outlive this object.
  PointedStructs(const LayoutLines& before, const LayoutLines& now, const RootType& program,
                 TypeChanges& types, Plan& plan,
                 std::function<void(const std::vector<value::Change>&)> records,
                 const std::vector<LayoutLines>& earlier);

  /// Adds the changes and refusals of all structs, and what has to be copied, to the plan. Call it
  /// after the root's fields have been planned.
  void add();

  /// Compares the records of containers in structs that pointers lead to, of an earlier layout and
  /// of the program. `types` has noted these structs, and takes the changes.
  /// Returns the fields that were compared. `numbered`: the paths of fields and changes begin with
  /// the number of the program's struct, "#1->recent", and not with a path that leads to it.
  static std::set<std::string> compare_records(TypeChanges& types, const LayoutLines& before,
                                               const LayoutLines& now, const SaidOfBefore& said,
                                               bool numbered = false);

 private:
  struct Compared {
    std::vector<Move> moves;
    bool differs = false, adds = false;  ///< its objects must be copied; it has new fields
  };
  void compare(std::size_t pair);
  void field(const StructPair& pair, const LayoutLine& from, const LayoutLine& to, Compared& made);
  void close();
  void refuse_what_stays();
  void refuse_part(const std::string& path, std::string_view type, bool copied, bool walked);
  void refuse_unseen(const std::string& path, std::string_view type, const std::string& first);
  bool add_container(const LayoutLine& line);
  void refuse_owned(const std::string& path, std::string_view type);
  void refuse_hooks(const std::string& path, std::string_view type, const std::string& first);
  void add_copies();
  /// The size of the fields of the largest version of a struct whose objects may still lie in their
  /// blocks.
  [[nodiscard]] std::uint64_t most_bytes(const std::vector<LayoutLine>& lines) const;
  std::vector<PointerPlace> pointers(const std::vector<LayoutLine>& lines,
                                     const std::vector<Move>& moves) const;
  [[nodiscard]] const std::vector<LayoutLine>& old_lines(std::string_view number) const;
  /// The number of the copied struct that a type names; empty if it names none.
  [[nodiscard]] std::string_view copied_in(std::string_view type) const;
  [[nodiscard]] const std::string& name_of(std::string_view number) const;

  const LayoutLines &before_, &now_;
  const RootType& program_;
  TypeChanges& types_;
  Plan& plan_;
  const std::function<void(const std::vector<value::Change>&)> records_;
  const std::vector<LayoutLines>& earlier_;
  std::vector<Compared> compared_;                          ///< by pair
  std::map<std::string, std::size_t, std::less<>> copied_;  ///< by number in the pool: the pair
};

}  // namespace perdure::detail
