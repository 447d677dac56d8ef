// SPDX-License-Identifier: BSD-3-Clause
//
// step(): declares a function that makes the rows of version 2 of a table from those of version 1.
//
//     options.migrate.steps = {perdure::step<v1::User, User>("users",
//         [](const v1::User& before, User& now) { now.first = before.name; })};
//
// Thread safety: step() may be called by any thread; it makes a value.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "perdure/api/migrate.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure {

/// Makes a step for Migration::steps. `f(const Before&, Now&)` is called for each row of the table
/// that an earlier version wrote. When it is called, a field of `now` already has its value if
/// Before has a field with the same name, or with the former name in Now's perdure_renamed, whose
/// type can be converted without a step; the other fields have the values of their initialisers. f
/// may be called more than once for a row: before the switch for each unique member, and again
/// after a crash or a conflict. So it must depend on the row alone. If it throws, the opening ends:
/// before the switch nothing was changed, and after it the next opening continues.
template <class Before, class Now, class F>
[[nodiscard]] MigrationStep step(std::string table, F f) {
  return {std::move(table),
          &value::type_of<Before>(),
          &value::type_of<Now>(),
          [] { return std::shared_ptr<void>(std::make_shared<Before>()); },
          [] { return std::shared_ptr<void>(std::make_shared<Now>()); },
          [f = std::move(f)](const void* before, void* now) {
            f(*static_cast<const Before*>(before), *static_cast<Now*>(now));
          }};
}

}  // namespace perdure
