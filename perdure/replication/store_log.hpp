// SPDX-License-Identifier: BSD-3-Clause
//
// A log in a store: each message is an object, which is made only if there is none of its name. In
// a folder that several processes of one machine see, it serves tests and copies on that machine;
// in an object store it is a complete, slow log.
//
//   STORELOG-1 What read() returns is durable: a power cut does not take back what a standby has
//              applied.
// Thread safety: any thread may make all calls.
#pragma once

#include <memory>

#include "perdure/backup/store.hpp"
#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// Opens the log in `store`; `create`: makes it if it is not there. Errors: the store's, and
/// `not_found`.
Result<std::shared_ptr<LogService>> open_store_log(std::shared_ptr<backup::Store> store,
                                                   bool create = true);

}  // namespace perdure::replication
