// SPDX-License-Identifier: BSD-3-Clause
//
// Logs: what names a LogService (ReplicateOptions::log). KIND://... is a log of a kind that a
// library beside this one has registered, such as perdure::nats; any other name is that of a place
// (backup/places.hpp), a folder for example, in which each message is a file.
// Thread safety: any thread may call both.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "perdure/replication/log_service.hpp"
#include "perdure/replication/options.hpp"

namespace perdure::replication {

/// Opens the log; `create`: makes it where there is none. Errors: the kind's own, those of
/// backup::open_place(), and `not_found`.
Result<std::shared_ptr<LogService>> open_named_log(const std::string& name, bool create = true);

/// The log of a pool, and what it promises.
struct OpenedLog {
  std::shared_ptr<LogService> service;
  LogTraits traits;
};
/// Opens the log that a pool is replicated over, and waits until it answers: a cluster does when it
/// has chosen its leader. `path`: the pool's, for messages. Errors: `unavailable` where there is no
/// answer within the patience, `invalid`, and those of open_named_log().
Result<OpenedLog> connect(const ReplicateOptions& options, const std::string& path, bool create);

/// How long a call that has had no answer waits before the next one.
inline constexpr std::chrono::microseconds retry_after{20'000};
/// Whether a later attempt may succeed.
[[nodiscard]] inline bool may_pass(const Status& s) noexcept {
  return s.code() == Code::io || s.code() == Code::unavailable;
}
/// The error when the patience has run out; `why`: the last attempt's failure.
[[nodiscard]] Status no_answer(const std::string& path, const LogService& log, const Status& why);

/// Opens a log of one kind, given the whole name.
using OpenLog =
    std::function<Result<std::shared_ptr<LogService>>(const std::string& name, bool create)>;
/// From here on, `kind`://... is opened so.
void register_logs(const std::string& kind, OpenLog open);

}  // namespace perdure::replication
