// SPDX-License-Identifier: BSD-3-Clause
//
// Replica: a copy of a replicated pool whose log is written from the replicated one, frame by
// frame. No transaction runs here: the entries of a frame become records of the pool's own log, as
// they are, and a checkpoint is recovery's replay of these records. So a crash at any time leaves
// what a crash of the primary leaves, and the next opening recovers it as any other pool.
//
//   REPLICA-1 A frame's transactions are durable in the pool's log before the header may say that
//             this copy has what the replicated log has up to the frame (STREAM-5).
//   REPLICA-2 What an entry names is in this copy's data region, and every place in that has the
//             use that it has in the primary's, before the entry gets into the log.
//   REPLICA-3 Readers of the pool see the states after whole transactions, in order, as readers of
//             a primary do (READER-1, FOLLOW-4). From before a transaction changes the catalog
//             until it is durable, `sequence` is odd (READER-2), so that they look at the layout
//             anew.
// Other processes, and this one, read the pool beside it (docs/readers.md).
// Thread safety: one thread at a time; last() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "perdure/backup/archive.hpp"
#include "perdure/backup/frame.hpp"
#include "perdure/backup/history.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/engine/reader_options.hpp"
#include "perdure/engine/shadow/reader_gate.hpp"
#include "perdure/engine/stat_page.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::replication {

/// How a Replica opens its pool.
struct ReplicaFile {
  std::string path;
  std::string medium = "auto";  ///< as Options::medium
  ReaderOptions readers = {};
  ArchiveOptions archive = {};  ///< what is applied is archived, too
};

class Replica {
 public:
  /// Opens the pool, recovers it, and begins a session. Errors: those of opening a pool;
  /// `unsupported` for another engine than shadow; `invalid` where the pool is not replicated; the
  /// archive's.
  static Result<std::unique_ptr<Replica>> open(const ReplicaFile& how);
  /// The same on a medium of the caller's: the path names it, for messages.
  static Result<std::unique_ptr<Replica>> open_on(std::unique_ptr<medium::Medium> medium,
                                                  const ReplicaFile& how);
  /// Without close(), what was applied stays in the pool's log.
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  [[nodiscard]] pool::OpenPool& file() noexcept { return *file_; }
  /// Every transaction up to it is durable in this copy.
  [[nodiscard]] std::uint64_t last() const noexcept {
    // Acquire: pairs with the release in append(), for the records.
    return last_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept { return checkpoint_id_; }
  /// The live counters; show() sets those that a pool without replication has, too.
  [[nodiscard]] engine::StatWriter& page() noexcept { return *page_; }
  void show();
  /// From now on apply() does not wait for an archive that takes nothing, but fails with `busy`; or
  /// it waits again. Any thread.
  void stop_waiting(bool stop = true) noexcept { stop_.store(stop, std::memory_order_relaxed); }

  /// Applies a frame of kind group or header that counts, durably when it returns ok; then the next
  /// header says so by `words` (REPLICA-1). What this copy has already is passed over. Errors:
  /// `corrupt` for entries that the pool can't have, `incompatible` (same_places()), `full` (later
  /// it may succeed), `io`; after the last, or `poisoned`, nothing more can be applied until the
  /// pool is opened again.
  Status apply(const backup::Frame& frame, const pool::ReplicationWords& words);
  /// Makes the words durable in the header, for a place up to which this copy has everything.
  Status note(const pool::ReplicationWords& words);

  /// Brings the data region to the last transaction, and empties the log.
  Status checkpoint();
  /// The same, and marks the pool as closed in order. Nothing is to be applied afterwards.
  Status close();

 private:
  // Its log, for the archive.
  class Log final : public engine::FollowedLog {
   public:
    explicit Log(Replica& replica) noexcept : replica_(replica) {}
    [[nodiscard]] std::uint64_t followable_id() const noexcept override { return replica_.last(); }
    [[nodiscard]] std::uint32_t refuses() const noexcept override { return 0; }
    [[nodiscard]] log::LogCursor cursor() const override;
    void depose(const Status&) noexcept override {}
    [[nodiscard]] engine::StatWriter& page() noexcept override { return replica_.page(); }

   private:
    Replica& replica_;
  };

  explicit Replica(std::unique_ptr<pool::OpenPool> file);
  static Result<std::unique_ptr<Replica>> begin(Result<std::unique_ptr<pool::OpenPool>> file,
                                                const ReplicaFile& how);
  Status begin_session(const ReplicaFile& how);
  [[nodiscard]] Status poisoned() const;
  Status apply_group(const backup::Frame& frame);
  Status apply_header(const backup::Frame& frame);
  Status look_at(const backup::Entries& entries, bool& changes_catalog) const;
  Status append_entries(const backup::Entries& entries, std::uint64_t last_of_frame);
  Status append(std::uint64_t id);
  Status room_for(std::uint64_t bytes);
  Status publish(std::uint64_t id);

  std::unique_ptr<pool::OpenPool> file_;
  const bool strict_;
  engine::ThreadLogs<log::Ring> rings_;  // the first one is written to
  log::RecordWriter writer_;
  std::atomic<std::uint64_t> last_{0};
  std::uint64_t checkpoint_id_ = 0;
  std::unique_ptr<engine::shadow::ReaderGate> gate_;  // null if no other process can read the pool
  bool failed_ = false;
  std::atomic<bool> stop_{false};
  std::uint64_t checkpoints_ = 0;
  std::optional<engine::StatWriter> page_;  // from begin_session() on
  Log log_{*this};
  std::unique_ptr<backup::Archive> archive_;  // before the others it ends
};

}  // namespace perdure::replication
