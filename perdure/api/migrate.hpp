// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program: what a root type says of the version before it, and how a pool of that
// version is opened (docs/values.md, "Version 2 of a program").
//
// A struct lists the fields that had another name, {now, before}, and those that it has no more:
//
//     static constexpr perdure::renamed perdure_renamed[] = {{"owner", "user"}};
//     static constexpr std::string_view perdure_removed[] = {"visits"};
//
// Such lists may stay when later versions follow: they say nothing of a pool that has neither name,
// or the new one. The value of a removed field is lost. A container of the root can't be listed: it
// owns blocks, which are freed by its type. Declare it as perdure::retired for one version.
//
// A pool with a catalog (docs/format.md) may be opened with a root type that has more fields, in
// another order, and with other indexes, than the one that it has. A field that is gone, or whose
// type has changed, is refused, unless the root type says what it was.
// Thread safety: values, and functions over their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/renamed.hpp"

namespace perdure {

namespace value {
struct Type;
}

/// A function of the program that makes a table's rows of one version, or a container's records or
/// elements, from those of another one.
/// perdure::step() makes it (step.hpp).
struct MigrationStep {
  std::string table;                                         ///< the root's field: "users"
  const value::Type* before;                                 ///< of the rows that it reads
  const value::Type* now;                                    ///< of those that it makes
  std::shared_ptr<void> (*make_before)();                    ///< makes an empty row of `before`
  std::shared_ptr<void> (*make_now)();                       ///< makes an empty row of `now`
  std::function<void(const void* before, void* now)> apply;  ///< sets a row from one of `before`
};

/// How a pool of another version of the program is opened: Options::migrate.
struct Migration {
  /// Opens a pool although the fields of its root type have other names (otherwise they are other
  /// fields: `incompatible`): for a program that has renamed fields and changed no types or places.
  /// The pool gets the new names.
  bool renamed_fields = false;
  /// Steps for tables and containers whose rows, records or elements can't become those of the
  /// program by themselves. Those of one field are chained: rows of version 1 go through the step
  /// to version 2 and that to version 3.
  std::vector<MigrationStep> steps = {};
  /// Opens the pool at once: rows of tables that need a step go through it each time they are read,
  /// and are rewritten when they are changed or by Pool::settle(). A step must then leave the
  /// members as they are by which rows are found, and stay callable, from several threads at once,
  /// while the pool is open. A table that gets or loses an index is settled before the pool is
  /// open, as without this; so are other containers.
  bool lazy = false;
  /// How many rows one transaction rewrites or indexes; at least 1.
  std::uint64_t batch = 1000;
  /// Called on the opening's thread after each batch of rows that were looked at, with the table
  /// and their number so far.
  std::function<void(const std::string& table, std::uint64_t rows)> progress = {};
};

/// What opening a pool with a root type would do.
struct MigrationPlan {
  /// One line for each thing that changes. Empty: the pool has this layout.
  std::vector<std::string> changes;
  /// One line for each reason why the pool is refused. Empty: it is not.
  std::vector<std::string> refusals;
};

}  // namespace perdure
