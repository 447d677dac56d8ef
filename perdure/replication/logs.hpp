// SPDX-License-Identifier: BSD-3-Clause
//
// Logs: what names a LogService (ReplicateOptions::log). KIND://... is a log of a kind that a
// library beside this one has registered, such as perdure::nats; any other name is that of a place
// (backup/places.hpp), a folder for example, in which each message is a file.
// Thread safety: any thread may call both.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// Opens the log; `create`: makes it where there is none. Errors: the kind's own, those of
/// backup::open_place(), and `not_found`.
Result<std::shared_ptr<LogService>> open_named_log(const std::string& name, bool create = true);

/// Opens a log of one kind, given the whole name.
using OpenLog =
    std::function<Result<std::shared_ptr<LogService>>(const std::string& name, bool create)>;
/// From here on, `kind`://... is opened so.
void register_logs(const std::string& kind, OpenLog open);

}  // namespace perdure::replication
