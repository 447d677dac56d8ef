// SPDX-License-Identifier: BSD-3-Clause
//
// A further copy of a replicated pool, made of a backup and the log: on another machine it is what
// takes over when the first one is lost. And what of the log is no longer needed for that.
// Thread safety: functions over their arguments.
#pragma once

#include <chrono>
#include <string>

#include "perdure/backup/restore.hpp"
#include "perdure/base/status.hpp"
#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// How long a log may not answer, unless the caller says otherwise: as ReplicateOptions::patience.
inline constexpr std::chrono::milliseconds log_patience{10'000};

/// Makes the pool file `path`: the newest of the backups in `store` that has nothing that the log
/// lacks, and what the log has after it.
/// It is the same pool (RESTORE-1 without the uuid), closed in order; opened with
/// Options::replicate, it becomes the primary, as long as it lacks nothing that the log has by
/// then. Errors: those of backup::restore(); `not_found` also where no backup was made since the
/// pool is replicated; `diverged` where each has transactions that never got into the log; and
/// those of Stream::read(). For `patience` it waits for a log that does not answer; then
/// `unavailable`. Throws what `progress` throws, and std::bad_alloc.
/// REQUIRES: the thread has a slot.
Result<RestoreReport> make_copy(backup::Store& store, std::shared_ptr<LogService> log,
                                const std::string& path,
                                std::chrono::milliseconds patience = log_patience,
                                const RestoreProgress& progress = {});

/// What trim_log() has done.
struct TrimReport {
  std::uint64_t backup_id = 0;        ///< the backup that the log goes on after
  std::uint64_t first = 0, last = 0;  ///< the messages that the log had
  std::uint64_t removed = 0;          ///< how many of them are gone
};
/// Removes from the log what the newest backup in `store` has that the log continues. Copies are
/// made of that backup, or of a newer one, from then on; a standby that had not come as far has to
/// be made anew (`expired`). Errors: `not_found` where no such backup is there, the store's and the
/// log's; `unavailable` where that does not answer for `patience`.
Result<TrimReport> trim_log(backup::Store& store, std::shared_ptr<LogService> log,
                            std::chrono::milliseconds patience = log_patience);

}  // namespace perdure::replication
