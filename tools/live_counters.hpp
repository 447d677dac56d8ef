// SPDX-License-Identifier: BSD-3-Clause
//
// The live counters of a pool that a program has open (perdure/engine/stat_page.hpp), as JSON and
// for Prometheus. They lie in shared memory; of the pool only the header is read, without a lock.
// Thread safety: single-threaded.
#pragma once

#include <optional>
#include <string>

#include "perdure/engine/stat_page.hpp"
#include "perdure/pool/format.hpp"
#include "tools/json.hpp"
#include "tools/metrics.hpp"

namespace perdure::tool {

/// The counters of the pool in this file; none where no program has it open for writing. Throws
/// perdure::error.
[[nodiscard]] std::optional<engine::StatReader> open_counters(const std::string& path,
                                                              const pool::Header& header);
/// What they are now. `replication` is there in a pool that is replicated.
[[nodiscard]] Json describe(const engine::StatReader& reader, const std::string& path,
                            const pool::Header& header);
/// The same for Prometheus; null: no program has the pool open.
[[nodiscard]] Metrics metrics_of(const Json& counters, const std::string& path);

}  // namespace perdure::tool
