// SPDX-License-Identifier: BSD-3-Clause
//
// Opens a replay's pool, one family of engines at a time: each family is instantiated in a source
// of its own, engines_FAMILY.cpp. A new family needs such a source, and an entry in the list in
// engines.cpp, where the compiler compares the list with that of all engines.
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string>

#include "tools/advise/replay.hpp"

namespace perdure::tool {

/// Opens a new pool if `options.engine` names an instance of Family, an engines<...>; otherwise
/// returns null. Throws perdure::error.
template <class Family>
[[nodiscard]] std::unique_ptr<ReplayPool> open_family(const std::string& path,
                                                      const Options& options);

}  // namespace perdure::tool
