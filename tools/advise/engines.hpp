// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a replay's pool, family of engines by family: each is instantiated in a source of its
// own, engines_FAMILY.cpp. A new family needs such a source, and its list in engines.cpp, where the
// compiler compares the lists with those of all engines.
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string>

#include "tools/advise/replay.hpp"

namespace perdure::tool {

/// Opens a new pool if `options.engine` names an instance of Family, an engines<...>; else null.
/// Throws perdure::error.
template <class Family>
[[nodiscard]] std::unique_ptr<ReplayPool> open_family(const std::string& path,
                                                      const Options& options);

}  // namespace perdure::tool
