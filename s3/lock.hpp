// SPDX-License-Identifier: BSD-3-Clause
//
// Locks in a bucket, without leases and clocks.
//
//   S3LOCK-1 Who wants a lock makes an object of its own that says so, then lists the others. Where
//            it finds one that excludes it, it removes its own and does not have the lock. So of
//            two that exclude each other, at least one sees the other: the store lists what was
//            made before.
// The object says which process made it. One that has ended is found out on its own machine, also
// after a restart of that machine; elsewhere a person decides, and removes the object.
// Thread safety: functions; a lock belongs to one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "perdure/backup/store.hpp"
#include "s3/client.hpp"

namespace perdure::s3 {

/// Takes the lock in the folder `prefix` of the bucket, until the result is destroyed. Errors:
/// `busy`, `io`. `client` outlives the result.
Result<std::shared_ptr<void>> take_lock(std::shared_ptr<Client> client, const std::string& prefix,
                                        const std::string& place, backup::Store::Use use);

}  // namespace perdure::s3
