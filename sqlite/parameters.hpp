// SPDX-License-Identifier: BSD-3-Clause
//
// What a file: URI asks of a pool: ?vfs=perdure&engine=softwrap&log_size=256M. docs/sqlite.md lists
// the parameters.
// Thread safety: functions of their arguments alone.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "perdure/api/options.hpp"
#include "sqlite/store.hpp"

namespace perdure::sqlite {

/// `value(name)`: the URI's parameter, or null. Throws error(invalid), which names the parameter,
/// for one that it does not understand.
Options options_of(const std::string& path, const std::function<const char*(const char*)>& value);
/// ?design=a or b; none: the design of the existing pool.
std::optional<Design> design_of(const std::string& path,
                                const std::function<const char*(const char*)>& value);

}  // namespace perdure::sqlite
