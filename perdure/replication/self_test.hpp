// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a log service compares what an append names: some servers let two writers win.
// Thread safety: plain functions.
#pragma once

#include <string>

#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// A random name of 16 letters.
[[nodiscard]] std::string random_name();

/// Two threads append to each place of a log, which `one` and `other` show; it is made for this
/// test. ok if at each place one append succeeds, the other is refused, and the message is that of
/// the one that succeeded. `incompatible` otherwise, `io` where there was no answer.
Status self_test(LogService& one, LogService& other);

}  // namespace perdure::replication
