// SPDX-License-Identifier: BSD-3-Clause
//
// make_log_durable: what a reader of a live log does before it shows records that may be visible
// only (FOLLOW-4).
// Thread safety: any thread.
#pragma once

#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/engine/follow/log_reader.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine::follow {

/// Makes the log's bytes at these places durable, whoever wrote them. After an error they may never
/// become so, and a second call would not say that.
[[nodiscard]] Status make_log_durable(const pool::OpenPool& file,
                                      const std::vector<LogReader::Place>& places);

}  // namespace perdure::engine::follow
