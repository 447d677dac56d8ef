// SPDX-License-Identifier: BSD-3-Clause
//
// Restore: makes a pool of a backup and the archived log after it, in the state after any
// transaction; verifies that this is possible; and removes what is too old to be restored.
//
//   PRUNE-1 Backups are removed before the log files that only they need, and these before the
//           chunks that no backup lists. So at whatever instant that is cut off, what remains can
//           be restored. No backup is being written meanwhile: it may rely on a chunk that it has
//           found.
//   RESTORE-1 The file gets its name when it is whole and durable (CREATE-1): it is a pool that was
//             closed cleanly, whose words are those after the last transaction up to the target. It
//             has a uuid of its own, so it can't continue the archive that it comes from; but a
//             copy of a replicated pool has the pool's (replication/copy.hpp).
// Thread safety: functions over their arguments; those with a Store need a thread slot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perdure/backup/store.hpp"
#include "perdure/base/status.hpp"

namespace perdure {

namespace pool {
struct Header;
}

/// Which state is restored. With neither member set: the newest.
struct RestorePoint {
  std::optional<std::uint64_t> id = {};       ///< after the last transaction up to this id
  std::optional<std::uint64_t> unix_ns = {};  ///< as of this time: what was archived by then
};
/// What restore() has done, or has found that it would do.
struct RestoreReport {
  std::uint64_t id = 0;            ///< the state's
  std::uint64_t unix_ns = 0;       ///< when its last transactions were archived
  std::uint64_t backup_id = 0;     ///< the backup that it began with
  std::uint64_t transactions = 0;  ///< that were replayed after it
  /// The archive goes on behind a gap, for which it has no backup that is asked for.
  bool gap = false;
};
/// Told how far it is: bytes of chunks and log that were read, and all of them, roughly.
using RestoreProgress = std::function<void(std::uint64_t done, std::uint64_t bytes)>;

/// What verify_backups() has found.
struct VerifyReport {
  struct Run {
    std::uint64_t first = 0, last = 0;  ///< ids: nothing is missing above `first`, up to `last`
    std::uint64_t files = 0, transactions = 0;
    std::uint64_t first_ns = 0, last_ns = 0;  ///< when its frames were made
  };
  struct Backup {
    std::uint64_t id = 0, unix_ns = 0, chunks = 0, bytes = 0;
    bool whole = false;             ///< its list and all its chunks can be read
    std::uint64_t restores_to = 0;  ///< if so: the last id that can be restored from it
  };
  std::vector<Run> runs;
  std::vector<Backup> backups;
  std::vector<std::string> problems;  ///< what is damaged or missing, a sentence each
  [[nodiscard]] bool ok() const noexcept { return problems.empty(); }
};

/// Makes the pool file `path` of the backups and the archive in a folder. Throws perdure::error:
/// `exists`, `not_found` (no such folder, or no backup reaches the point), `corrupt`,
/// `incompatible`, `full`, `io`, `busy`, `too_many_threads`; no file is left then. And
/// std::bad_alloc, and what `progress` throws.
RestoreReport restore(const std::string& folder, const std::string& path,
                      const RestorePoint& to = {}, const RestoreProgress& progress = {});
/// Reads every file of a folder with backups, and says what can be restored and what is damaged.
/// Throws as restore(); what is wrong with the contents is in the report.
VerifyReport verify_backups(const std::string& folder, const RestoreProgress& progress = {});

/// What prune_backups() has removed, or would remove.
struct PruneReport {
  std::uint64_t oldest_id = 0;                       ///< of the oldest backup that remains
  std::uint64_t backups = 0, files = 0, chunks = 0;  ///< backups, files of the log, chunks
  /// The consumer of events (EventOptions::consumer) for which files of the log were kept; empty:
  /// none were.
  std::string held_by = {};
};
/// Removes from a folder what is not needed to restore states from `from` on: older backups than
/// the newest one before it, the log before that, and chunks that no other backup lists. The pool
/// may be open, with this archive. `dry_run`: only counts. Throws as restore(), and perdure::error:
/// `not_found` where no backup is from before the point, `busy` while a backup is being written.
PruneReport prune_backups(const std::string& folder, const RestorePoint& from,
                          bool dry_run = false);

namespace backup {

class Frames;
struct Base;

/// Makes the pool file `path`. Errors: `exists`, `not_found` (no backup reaches the point),
/// `corrupt`, `incompatible`, `full`, `io`, `busy`; no file is left then. Throws std::bad_alloc and
/// what `progress` throws.
Result<RestoreReport> restore(Store& store, const std::string& path, const RestorePoint& to,
                              const RestoreProgress& progress = {});

/// What a restore makes besides.
struct RestoreSource {
  /// The history after a base.
  std::function<Result<std::unique_ptr<Frames>>(const Base&)> frames;
  /// The new pool's header, made of that of the state when the history was read: its identity. What
  /// depends on the state is filled in, and its checkpoint id is raised to the state's.
  std::function<Result<pool::Header>(const pool::Header&)> header;
  /// Backups of later states are not used; nothing: all may be.
  std::optional<std::uint64_t> newest_base = {};
};
/// restore() of the backups in `store` and another history than that in the store's segments.
Result<RestoreReport> restore(Store& store, const std::string& path, const RestorePoint& to,
                              const RestoreProgress& progress, const RestoreSource& source);

/// Reads every backup, every chunk that one lists, and every segment. Errors: the store's; what is
/// wrong with the contents is in the report. Throws std::bad_alloc and what `progress` throws.
Result<VerifyReport> verify(Store& store, const RestoreProgress& progress = {});

/// prune_backups() of a store.
Result<PruneReport> prune(Store& store, const RestorePoint& from, bool dry_run);

}  // namespace backup
}  // namespace perdure
