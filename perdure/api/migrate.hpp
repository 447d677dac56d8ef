// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program: what a root type declares about the version before it, and the options
// with which a pool of that version is opened (docs/values.md, "Version 2 of a program").
//
// A struct lists the fields that had another name, as {now, before}, and the fields that it no
// longer has:
//
//     static constexpr perdure::renamed perdure_renamed[] = {{"owner", "user"}};
//     static constexpr std::string_view perdure_removed[] = {"visits"};
//
// The lists may stay in later versions: an entry has no effect on a pool that does not have the old
// name. The value of a removed field is lost. A container of the root can't be in perdure_removed:
// it owns blocks, and its type is needed to free them. Declare it as perdure::retired for one
// version.
//
// A pool with a catalog (docs/format.md) may be opened with a root type that has more fields than
// the pool's, other indexes, or the fields in another order. A field that is gone, or whose type
// has changed, is refused, unless the root type declares what it was.
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

/// A function of the program that makes a table's rows, or a container's records or elements, of
/// one version from those of another.
/// perdure::step() makes one (step.hpp).
struct MigrationStep {
  std::string table;                                         ///< the root's field: "users"
  const value::Type* before;                                 ///< the type of the rows it reads
  const value::Type* now;                                    ///< the type of the rows it makes
  std::shared_ptr<void> (*make_before)();                    ///< makes an empty row of `before`
  std::shared_ptr<void> (*make_now)();                       ///< makes an empty row of `now`
  std::function<void(const void* before, void* now)> apply;  ///< sets a row from one of `before`
};

/// How a pool of another version of the program is opened: Options::migrate.
struct Migration {
  /// true: opens a pool although the fields of its root type have other names, and gives the pool
  /// the new names. For a program that has renamed fields and changed no types or places. false:
  /// fields with other names are other fields, and such a pool is refused (`incompatible`).
  bool renamed_fields = false;
  /// true: a pool without a catalog (docs/format.md), which can't change its layout, gets one when
  /// it is opened for writing with the root type that it has. From then on later versions of the
  /// program can open it, and builds of the library that don't know catalogs can't. A pool with a
  /// catalog, or of an engine that keeps no data (`volatile`), is not changed by this.
  bool add_catalog = false;
  /// Steps for tables and containers whose rows, records or elements can't be converted without the
  /// program's help. The steps of one field are chained: rows of version 1 go through the step to
  /// version 2 and then through the step to version 3.
  std::vector<MigrationStep> steps = {};
  /// true: opens the pool at once. Rows of tables that need a step go through it each time they are
  /// read, and are rewritten when they are changed, or by Pool::settle(). A step must then not
  /// change the members by which rows are found, and several threads may call it at once, as long
  /// as the pool is open. A table that gets or loses an index is settled before the pool is open;
  /// so are a second table of the same struct, and all other containers.
  bool lazy = false;
  /// The maximum number of rows that one transaction rewrites or indexes, or of elements, objects
  /// or blocks that it moves, copies or frees; at least 1.
  std::uint64_t batch = 1000;
  /// Called after each batch, on the thread that opens the pool, with the root's field and the
  /// number of its rows or elements that were processed so far. While objects behind pointers are
  /// copied: with a path that leads to them ("head", "head->owner"), and the number of copies of
  /// that struct.
  std::function<void(const std::string& table, std::uint64_t rows)> progress = {};
};

/// What opening a pool with a root type would do.
struct MigrationPlan {
  /// One line for each thing that changes. Empty: the pool has this layout.
  std::vector<std::string> changes;
  /// One line for each reason why the pool is refused. Empty: it is not refused.
  std::vector<std::string> refusals;
};

}  // namespace perdure
