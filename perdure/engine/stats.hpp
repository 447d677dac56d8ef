// SPDX-License-Identifier: BSD-3-Clause
//
// Stats, Recovery: the counters of an open pool, and what its opening had to recover.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/medium/values.hpp"

namespace perdure::log {
struct RecoveryPlan;
}

namespace perdure::engine {

/// The result of recovery.
struct Recovery {
  /// The pool was closed in order: there was nothing to recover.
  bool was_clean = true;
  /// Records of the log, transactions in them and their bytes that were replayed (or rolled back).
  std::uint64_t records = 0, transactions = 0, bytes = 0;
  std::uint64_t rolled_back = 0;  ///< transactions undone (undo logs)
  /// The newest transaction that the pool holds.
  std::uint64_t last_id = 0;
  /// How long recovery took.
  double seconds = 0;
  /// During recovery: the plan that was asked for (engine/engine_info.hpp, recover()).
  const log::RecoveryPlan* plan = nullptr;
};

/// Counters of an open pool.
struct Stats {
  /// The name of the engine instance.
  std::string engine;
  std::uint64_t commits = 0;  ///< transactions that changed something
  std::uint64_t reads = 0;    ///< transactions that changed nothing
  std::uint64_t aborts = 0;   ///< restarts after a conflict
  /// `htm`: transactions that the hardware (or its stand-in) committed; the others ran under the
  /// lock.
  std::uint64_t without_lock = 0;
  /// The newest id, the id up to which all are durable, and the checkpoint id. Those of `htm` are
  /// commit timestamps, as in receipts, whereas the header and the log count transactions.
  std::uint64_t last_id = 0, durable_id = 0, checkpoint_id = 0;
  std::uint64_t log_bytes = 0;  ///< appended since opening
  /// Bytes of the log that hold records still needed, and bytes that it has in all.
  std::uint64_t log_used = 0, log_capacity = 0;
  /// Checkpoints since opening, and the 64-byte lines that they wrote.
  std::uint64_t checkpoints = 0, checkpoint_lines = 0;
  /// Of the checkpoints on memory: those that the pool's own thread made (ShadowOptions::helper).
  std::uint64_t helped_checkpoints = 0;
  /// Bytes in allocated blocks, and bytes that the data region has on the medium.
  std::uint64_t heap_used = 0, data_bytes = 0;
  /// Where the copy in DRAM has a limit (Options::max_resident; DudeTM, paged): pages of 4 KiB that
  /// it takes, and how many were given back since opening.
  std::uint64_t shadow_pages = 0, evictions = 0;
  /// Snapshots that are open, bytes of DRAM that saved lines take without their index, and how many
  /// snapshots have expired since opening.
  std::uint64_t snapshots = 0, snapshot_bytes = 0, snapshots_expired = 0;
  /// Writing: how often a checkpoint waited for a process that reads the pool, and how often such
  /// processes were too slow (ReaderOptions::writer_patience).
  std::uint64_t reader_waits = 0, readers_expelled = 0;
  /// Reading beside a writer: how often the state was read anew, how often because the writer was
  /// ahead, records that were read, and bytes of pages that are this process's own.
  std::uint64_t attached = 0, overtaken = 0, followed_records = 0, private_bytes = 0;
  /// DudeTM, paged: each access asks a table for its page.
  bool paged_by_software = false;
  /// DudeTM: payload bytes before combination, after it, and written to the log.
  std::uint64_t log_bytes_in = 0, log_bytes_combined = 0, log_bytes_out = 0;
  /// How often one thread was given the pool for itself, without locks, and how often another took
  /// that back.
  std::uint64_t bias_grants = 0, bias_revocations = 0;
  /// What the pool asked of its medium since it was opened.
  medium::Counters medium;
  /// What opening had to recover.
  Recovery recovery;
};

/// What a trim did (PoolBase::trim).
struct Trimmed {
  std::uint64_t bytes = 0;  ///< bytes that the file system got back
  /// Whether another call may give more back: this call has given back as much as it was asked for,
  /// or has not looked at all chunks yet, or a transaction needed the chunks.
  bool more = false;
};

}  // namespace perdure::engine
