// SPDX-License-Identifier: BSD-3-Clause
//
// step(): a function that makes the rows of version 2 of a table from those of version 1.
//
//     options.migrate.steps = {perdure::step<v1::User, User>("users",
//         [](const v1::User& before, User& now) { now.first = before.name; })};
//
// Thread safety: compile time, and values.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "perdure/api/migrate.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure {

/// A step for Migration::steps. `f(const Before&, Now&)` is called for each row of the table that
/// an earlier version wrote. The fields of `now` that Before has under the same name, or under the
/// one that Now's perdure_renamed lists, and in a type that becomes theirs by itself, have their
/// values; the others have their initialisers'. It is called more than once for one row: before the
/// switch for each unique member, and again after a crash or a conflict. It must depend on the row
/// alone. What it throws ends the opening: before the switch, nothing was changed; after it, the
/// next opening goes on.
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
