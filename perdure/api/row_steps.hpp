// SPDX-License-Identifier: BSD-3-Clause
//
// RowSteps: how rows of an earlier version become the program's by its steps.
//
// A row goes through the step that reads its own layout, or else through the last one whose rows it
// can become by itself, and on from there, until it is the program's or becomes that by itself.
// perdure/evolve has the code.
// Thread safety: that of the transaction. Errors: those of Tx, of value::record, and of the steps.
#pragma once

#include <string>
#include <string_view>
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
  /// Those of `all` that are for this table. They must outlive this object.
  RowSteps(const std::vector<MigrationStep>& all, std::string_view table);

  [[nodiscard]] bool empty() const noexcept { return steps_.empty(); }
  /// Whether one of the steps reads objects of a type.
  [[nodiscard]] bool read(const value::Type& type) const;
  /// Whether rows of one type become those of another one by one of these steps, or several. Adds
  /// to `lost` the fields that a step of the way reads, and that its perdure_removed gives up.
  [[nodiscard]] bool lead(const value::Type& from, const value::Type& to,
                          std::vector<std::string>& lost) const;
  /// Adds to `lost` the fields that a step reads, and that its perdure_removed gives up.
  static void given_up(const value::Type& before, const value::Type& now,
                       std::vector<std::string>& lost);
  /// Whether there are steps, and a record has another layout than `type`: then it is rewritten, so
  /// that all records have this layout when the steps are done.
  [[nodiscard]] bool needed(value::Reader& tx, const value::Type& type,
                            const value::record* from) const;
  /// Gives a value-initialised object the record's value, through the steps that it needs.
  void read(value::Reader& tx, const value::Type& type, const value::record* from,
            void* object) const;

 private:
  [[nodiscard]] const MigrationStep* next(const value::Type& from, const value::Type& to) const;
  std::vector<const MigrationStep*> steps_;
};

}  // namespace detail
}  // namespace perdure
