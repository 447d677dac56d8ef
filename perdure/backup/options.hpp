// SPDX-License-Identifier: BSD-3-Clause
//
// ArchiveOptions: where a pool's log is kept, so that each of its states can be restored; what is
// reported of archives and backups.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure {

namespace backup {
class Store;
}

/// The archive of a pool's log (docs/backup.md). Everything that transactions log is copied there
/// by a thread of its own once it is durable; with a backup (Pool::backup), the state after any
/// transaction can be restored. Thread safety: a value.
struct ArchiveOptions {
  /// A folder, which is made if its parent exists, or KIND://... of a kind that the program has
  /// enabled, such as s3://BUCKET/FOLDER after perdure::s3::enable(). One pool's archive and
  /// backups may share a place, two pools' may not. Empty: no archive.
  std::string folder = {};
  /// Another place than a folder (perdure/backup/store.hpp).
  std::shared_ptr<backup::Store> store = {};
  /// What happens when the archive can't be written, or is too slow, and the log is full of what
  /// it does not have yet.
  enum class WhenFull : std::uint8_t {
    wait,    ///< commits wait for it: nothing is ever missing
    give_up  ///< after `patience` the archive ends with a gap; the pool goes on without it
  };
  WhenFull when_full = WhenFull::wait;
  std::chrono::milliseconds patience{1000};  ///< how long a commit waits before `give_up`
  /// A file of the archive is finished when it has `file_bytes` bytes, or when its first
  /// transaction is `file_age` old. If the pool's own file is lost, so are those of the unfinished
  /// file.
  std::uint64_t file_bytes = std::uint64_t{8} << 20;
  std::chrono::milliseconds file_age{1000};

  /// Whether there is to be an archive.
  [[nodiscard]] bool wanted() const noexcept { return !folder.empty() || store != nullptr; }
  /// Returns ok, or `invalid`.
  [[nodiscard]] Status check(const std::string& path) const {
    if (!folder.empty() && store != nullptr)
      return failure(Code::invalid, path, "Options::archive with a folder and a store",
                     "one of them", "leave one empty");
    if (file_bytes == 0 || file_age.count() <= 0)
      return failure(Code::invalid, path, "Options::archive with files of no size or no age",
                     "file_bytes and file_age above 0", "leave them as they are");
    return {};
  }
};

/// What a backup has done: Pool::backup().
struct BackupReport {
  std::uint64_t id = 0;      ///< the state's: every transaction up to it is in the backup
  std::uint64_t bytes = 0;   ///< in the state's blocks
  std::uint64_t chunks = 0;  ///< of 64 KiB, in the state
  std::uint64_t new_chunks = 0, new_bytes = 0;  ///< that were written; as they lie in the folder
};

/// What is known of a pool's archive: PoolBase::archive().
struct ArchiveStats {
  bool on = false;                     ///< the pool has one, and it was not given up
  std::uint64_t last_id = 0;           ///< every transaction up to it is in the archive
  std::uint64_t files = 0, bytes = 0;  ///< written since opening
  std::uint64_t waits = 0;             ///< how often a commit had to wait for it
  std::uint64_t gaps = 0;              ///< 1: transactions before this opening are missing from it
  std::string problem = {};  ///< why the last attempt to write failed, or why it was given up
};

}  // namespace perdure
