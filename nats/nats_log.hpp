// SPDX-License-Identifier: BSD-3-Clause
//
// The replicated log in a stream of NATS JetStream: message n is the stream's message n, and an
// append states the number of the last one (Nats-Expected-Last-Sequence). One stream for each log.
// Thread safety: any thread may make all calls of a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perdure/replication/log_service.hpp"

namespace perdure::nats {

struct LogOptions {
  std::string servers;    ///< nats://HOST:PORT, several with commas between them
  std::string stream;     ///< its name: letters, digits, '-' and '_'
  unsigned replicas = 1;  ///< servers that have each message: 1, 3 or 5
  /// How long an answer may take. While a cluster chooses a leader, there is none.
  std::chrono::milliseconds patience{5000};
  /// USER:PASSWORD of the servers' system account. With it, the log asks each server that has its
  /// messages whether it syncs each of them before it answers (`sync_interval: always`), without
  /// which nothing is known of that: LogTraits::synced is false then. Empty: it does not ask.
  std::string system = {};
  bool create = true;  ///< make the stream if there is none; otherwise `not_found`
};

/// The options in the name nats://HOST[:PORT][,HOST[:PORT]...]/STREAM[?KEY=VALUE[&KEY=VALUE...]],
/// with the keys replicas, patience_ms and system. Error: `invalid`.
Result<LogOptions> parse_log_name(const std::string& name);

/// Opens the log, and makes its stream if it is not there. Before that, two connections race for a
/// place of a stream that is made for it and removed: a server by which both succeed is refused.
/// Errors: `unsupported` (no libnats; a fork of a process that has used it), `incompatible` (the
/// server's version, the stream's settings, the race), `invalid`, `io`.
Result<std::shared_ptr<replication::LogService>> open_log(const LogOptions& options);

/// From here on, ReplicateOptions::log can name a log so (parse_log_name).
void enable();

/// ok for versions of the server that are known to keep SERVICE-1 and what they have acknowledged:
/// 2.12.3 and newer. `version`: such as 2.15.1; empty: the server does not say, as before 2.11.
Status check_version(const std::string& servers, std::string_view version);

}  // namespace perdure::nats
