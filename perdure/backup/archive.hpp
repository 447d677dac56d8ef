// SPDX-License-Identifier: BSD-3-Clause
//
// Archive: copies the log of an open pool to a store, as frames in segments, while transactions go
// on; and, at an opening, what the log still has that the archive lacks.
//
//   ARCHIVE-1 Only what is durable in the pool's log is archived, in id order (TAP-1): the archive
//             never knows more than the pool after any crash.
//   ARCHIVE-2 The archive's floor (FLOOR-1) is raised when a segment is durable in the store. So
//             after a crash of the process or the machine, the log has every record that the
//             archive lacks: the next opening appends them before the session empties the log.
//   ARCHIVE-3 While the archive is kept, a session's log_from_id is at most the archive's last id.
//             At an opening it is above that exactly if records are missing from both: a session
//             without the archive, or after it was given up. Then a new run begins, with a gap
//             before it, and a backup is needed before it can be restored from.
// Thread safety: open() to start() in the thread that opens the pool; then as each call says.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "perdure/backup/frame.hpp"
#include "perdure/backup/log_tap.hpp"
#include "perdure/backup/options.hpp"
#include "perdure/backup/segment.hpp"
#include "perdure/backup/store.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::backup {

class Archive {
 public:
  /// Opens and locks the store, and finds where its history ends. It writes nothing but the folder.
  /// `file` is open, and not yet recovered. Errors: `busy`, `incompatible` (another pool's),
  /// `corrupt`, `io`.
  static Result<std::unique_ptr<Archive>> open(const ArchiveOptions& options,
                                               const pool::OpenPool& file);
  /// Ends the thread; what is not in the store stays in the log. The engine is still there.
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// After recovery and before the session: archives what the log has. Errors: `incompatible` where
  /// the archive has transactions that the pool does not have, and the store's, unless they make
  /// the archive begin anew (ArchiveOptions::when_full).
  Status catch_up(pool::OpenPool& file);
  /// In the session, before its first transaction: from now on the log is archived. The engine and
  /// the file outlive this object.
  Status start(engine::FollowedLog& log, pool::OpenPool& file);

  /// Whether the run has no backup from which it can be restored.
  [[nodiscard]] bool needs_backup() const noexcept { return !newest_base_ || *newest_base_ < run_; }
  [[nodiscard]] const std::shared_ptr<Store>& store() const noexcept { return store_; }
  /// Returns when the store has every transaction up to `id`, which is durable in the pool. Returns
  /// why it can't be written. Any thread may call it.
  Status flush(std::uint64_t id);
  [[nodiscard]] ArchiveStats stats() const;  ///< any thread may call it
  /// The opening has succeeded. Without this call the destructor leaves a store that had no history
  /// as it was, where the opening made the pool: that file is removed.
  void keep() noexcept { kept_ = true; }

 private:
  explicit Archive(const ArchiveOptions& options, std::shared_ptr<Store> store)
      : options_(options), store_(std::move(store)) {}
  Status find_end();
  Status begin_anew(std::uint64_t last);
  Status catch_up_with_log(pool::OpenPool& file, bool& dependent);
  void show();
  void forget_all() noexcept;
  void run();
  Status step(bool now);
  bool gather();
  Status gather_all();
  void append(std::uint64_t data_bytes);
  Status seal();
  Status write_all();
  Status header_changed();
  Status finish(std::uint64_t last);
  void gave_up(const std::string& why);

  const ArchiveOptions options_;
  const std::shared_ptr<Store> store_;
  std::shared_ptr<void> lock_;
  std::uint8_t uuid_[16] = {};
  bool has_history_ = false, had_gap_ = false, created_ = false, kept_ = false;

  std::optional<std::uint64_t> newest_base_;  // in the store, at the opening

  LogTap tap_;
  pool::OpenPool* file_ = nullptr;
  std::uint64_t log_eighth_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  EntryGatherer entries_;
  std::vector<std::byte> frames_;  // of the next segment
  HistoryEnd begin_, end_;         // before these frames, and after them
  std::uint64_t log_bytes_ = 0;    // that these frames take in the log
  struct Sealing {
    SegmentName name;
    std::vector<std::byte> bytes;
  };
  std::optional<Sealing> sealing_;  // the segment before these frames, until the store has it
  std::uint64_t stored_ = 0;        // the last id that the store has
  std::uint64_t number_ = 0;        // the next segment's
  std::uint64_t run_ = 0;
  std::chrono::steady_clock::time_point oldest_;  // when the first of the frames was made
  std::uint64_t files_ = 0, bytes_ = 0;
  std::string problem_;
  bool given_up_ = false, finished_ = false;

  mutable std::mutex shown_mutex_;  // guards shown_
  ArchiveStats shown_;

  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace perdure::backup
