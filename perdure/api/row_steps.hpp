// SPDX-License-Identifier: BSD-3-Clause
//
// RowSteps: makes rows of the program's version from rows of earlier versions, by the program's
// steps.
//
// A row goes through the step that reads its own layout. If there is none, and the row can't be
// converted to the program's layout without a step, it is converted to the input of the last step
// for which that is possible, and goes through that step. This repeats until the row has the
// program's layout or can be converted to it. perdure/evolve has the code.
// Thread safety: that of the transaction. Errors: those of Tx, of value::record, and of the steps.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdure/api/migrate.hpp"

namespace perdure {

namespace value {
class Reader;
struct record;
}  // namespace value

namespace detail {

class RowSteps {
 public:
  /// Takes those steps of `all` that are for this table. They must outlive this object.
  RowSteps(const std::vector<MigrationStep>& all, std::string_view table);

  [[nodiscard]] bool empty() const noexcept { return steps_.empty(); }
  /// Whether one of the steps reads objects of a type.
  [[nodiscard]] bool read(const value::Type& type) const;
  /// Whether one of these steps, or a chain of them, makes rows of one type from those of another.
  /// Adds to `lost` the fields that one of them reads although its perdure_removed lists them.
  [[nodiscard]] bool lead(const value::Type& from, const value::Type& to,
                          std::vector<std::string>& lost) const;
  /// The steps that were meant for rows of a pool and that none of them would go through, each by
  /// the texts of its two structs: one reads a layout of the pool, and its rows don't become `to`
  /// that way; or one makes `to`, and no step reads the newest layout. `layouts`: the texts, the
  /// newest first.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> unfit(
      const std::vector<std::string>& layouts, const value::Type& to) const;
  /// Whether rows of one type become those of another one without any of these steps.
  [[nodiscard]] bool passes_over(const value::Type& from, const value::Type& to) const;
  /// Adds to `lost` the fields of `before` that the perdure_removed of `now` lists.
  static void given_up(const value::Type& before, const value::Type& now,
                       std::vector<std::string>& lost);
  /// Whether the record must be rewritten: there are steps, and it has another layout than `type`.
  /// So all records have this layout when the steps are done.
  [[nodiscard]] bool needed(value::Reader& tx, const value::Type& type,
                            const value::record* from) const;
  /// Reads the record into a value-initialised object, through the steps that the record needs.
  void read(value::Reader& tx, const value::Type& type, const value::record* from,
            void* object) const;

 private:
  [[nodiscard]] const MigrationStep* next(const value::Type& from, const value::Type& to) const;
  std::vector<const MigrationStep*> steps_;
};

}  // namespace detail
}  // namespace perdure
