// SPDX-License-Identifier: BSD-3-Clause
//
// Locks in a bucket, without leases and clocks.
//
//   S3LOCK-1 A process that wants a lock makes an object of its own, then lists those of others.
//            If one of them excludes its own, it removes its own and does not have the lock. So of
//            two processes that exclude each other, at least one sees the other: the store lists
//            what was made before.
// The object names the process. Another process on the same machine can tell that it has ended,
// also after a restart of the machine. On other machines a person decides, and removes the object.
// Thread safety: functions; a lock belongs to one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "perdure/backup/store.hpp"
#include "s3/client.hpp"

namespace perdure::s3 {

/// Takes the lock in the folder `prefix` of the bucket, until the result is destroyed. Errors:
/// `busy`, `io`.
Result<std::shared_ptr<void>> take_lock(std::shared_ptr<Client> client, const std::string& prefix,
                                        const std::string& place, backup::Store::Use use);

}  // namespace perdure::s3
