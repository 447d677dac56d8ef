// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a log service compares what an append names: some servers let two writers win.
// Thread safety: plain functions.
#pragma once

#include <string>

#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// Sixteen letters that nobody else has drawn.
[[nodiscard]] std::string random_name();

/// Two threads append to each place of a log, which `one` and `other` show; it is there for this
/// alone. ok if one of them succeeds at each place, the other one is refused, and the message is the
/// first one's. `incompatible` otherwise, `io` where there was no answer.
Status self_test(LogService& one, LogService& other);

}  // namespace perdure::replication
