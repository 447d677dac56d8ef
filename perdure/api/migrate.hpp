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

#include <string>
#include <string_view>
#include <vector>

#include "perdure/value/renamed.hpp"

namespace perdure {

/// How a pool of another version of the program is opened: Options::migrate.
struct Migration {
  /// Opens a pool although the fields of its root type have other names (otherwise they are other
  /// fields: `incompatible`): for a program that has renamed fields and changed no types or places.
  /// The pool gets the new names.
  bool renamed_fields = false;
};

/// What opening a pool with a root type would do.
struct MigrationPlan {
  /// One line for each thing that changes. Empty: the pool has this layout.
  std::vector<std::string> changes;
  /// One line for each reason why the pool is refused. Empty: it is not.
  std::vector<std::string> refusals;
};

}  // namespace perdure
