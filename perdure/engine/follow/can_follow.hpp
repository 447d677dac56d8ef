// SPDX-License-Identifier: BSD-3-Clause
//
// can_follow: whether other processes can follow the log of a pool, to read the pool beside the
// process that writes it, or for its events.
// Thread safety: a function of its arguments.
#pragma once

#include <algorithm>
#include <span>

#include "perdure/engine/engine_info.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::engine::follow {

/// Whether an engine of the pool's family, among `engines`, serves readers and has its transactions
/// behind virtual calls, and the pool's log has no record that only recovery can order.
[[nodiscard]] inline bool can_follow(std::span<const EngineInfo> engines,
                                     const pool::Header& header) {
  return !pool::has_feature(header, pool::Feature::dependent_records) &&
         std::any_of(engines.begin(), engines.end(), [&](const EngineInfo& e) {
           return e.dynamic && e.serves_readers && e.family == pool::engine_name(header);
         });
}

}  // namespace perdure::engine::follow
