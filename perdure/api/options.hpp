// SPDX-License-Identifier: BSD-3-Clause
//
// Options: what can be chosen when a pool is opened, and the reports of close() and check().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/api/migrate.hpp"
#include "perdure/backup/options.hpp"
#include "perdure/engine/durability.hpp"
#include "perdure/engine/engine_options.hpp"
#include "perdure/engine/reader_options.hpp"
#include "perdure/engine/shadow/options.hpp"
#include "perdure/engine/stats.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/medium/values.hpp"
#include "perdure/pool/scrub.hpp"
#include "perdure/replication/options.hpp"

namespace perdure {

/// How far a recovery is: RecoveryOptions::progress is given one.
using RecoveryProgress = log::RecoveryProgress;

/// Properties that a pool gets when it is created. They are ignored when an existing pool is
/// opened, except that raise_max_size applies max_size.
struct Creation {
  /// The data's upper bound in bytes; address space is reserved for it.
  std::uint64_t max_size = std::uint64_t{64} << 30;
  /// true: opening an existing pool for writing raises its limit to max_size, if that is larger.
  /// The raise is permanent, and builds without the feature `raised limit` refuse the pool from
  /// then on. Opening returns `incompatible` if the address space behind the pool's is taken.
  bool raise_max_size = false;
  /// Data bytes allocated at once; 0: the minimum. The data grows as needed.
  std::uint64_t initial_size = 0;
  /// Bytes of log, which take blocks of the disk as the log is first written; 0: 64 MiB. A
  /// transaction may log half a ring.
  std::uint64_t log_size = 0;
  /// Strict order: the number of rings. A thread takes one at its first update, until it ends; the
  /// last one is shared by the threads that find no other.
  std::uint32_t threads = 4;
  std::uint64_t base = 0;  ///< the pool's address; 0: a free one is chosen
  /// For tests that must see the same pool at every run; 0: the uuid is random.
  std::uint64_t uuid_seed = 0;
  /// false: the pool gets no catalog (docs/format.md). Then every build that knows format version 4
  /// opens it, and its layout can't change.
  bool catalog = true;
};

/// How a pool that was not closed is recovered.
struct RecoveryOptions {
  /// Called with recovery's progress: at its beginning and its end, and about every 100 ms in
  /// between where the engine reports it (shadow, dudetm). It runs in the thread that opens the
  /// pool and must not throw. Empty: it is not called.
  std::function<void(const RecoveryProgress&)> progress = {};
  unsigned threads = 0;  ///< shadow, dudetm: 1 to 8; 0: as many as pay for their start
};

/// Details of single media (docs/media.md).
struct MediumOptions {
  bool direct = true;          ///< file: O_DIRECT logs
  medium::Delays delays = {};  ///< emulated: a paper's slow memory
};

/// How a pool is opened or made. Name the members that you set; each default is a good choice.
///
///     auto pool = perdure::Pool<Root>::open("app.perdure", {.durability = perdure::group});
///
/// Thread safety: a value.
struct Options {
  bool create = true;        ///< create the pool if there is none, or in place of an empty file
  bool must_create = false;  ///< return `exists` if there is one
  /// view() only. Any number of processes may, also beside the one that writes (docs/readers.md).
  bool read_only = false;
  Migration migrate = {};  ///< how a pool of another version of the program is opened
  Creation creation = {};  ///< of a new pool

  /// The durability of an update() that names none; at creation it also decides the pool's order.
  Durability durability = Durability::durable;
  /// `caller` picks the instance of the pool's engine that does not isolate, if there is one.
  Isolation isolation = Isolation::full;
  /// An instance's name. Empty: the pool's own; at creation `shadow`, or the first of the engines
  /// that are compiled in.
  std::string engine = {};
  /// Options of single engines: a struct such as papers::RewindOptions, or several.
  EngineOptions engine_options = {};

  std::string medium = "auto";        ///< auto, file, dax, emulated (docs/media.md)
  MediumOptions medium_options = {};  ///< details of the medium
  /// Bytes of DRAM that the pages may take which transactions have stored to, 16 KiB or more, so
  /// that a pool may be larger than memory; pages that were stored to long ago are given back after
  /// a checkpoint. 0: all of them stay until the pool is closed. Transactions in flight, and pages
  /// that are stored to again and again, may exceed it. Engines without a copy of the data (undo)
  /// keep to any limit; those with one that can't give pages back refuse it.
  std::uint64_t max_resident = 0;
  /// How the pool is recovered if it was not closed in order.
  RecoveryOptions recovery = {};
  /// true: the pages have checksums from now on, by which Pool::scrub(), check() and backups find
  /// damage (docs/checksums.md); those of an existing pool get theirs as they are next written to.
  /// `unsupported` with engines that don't keep them. A pool that has them keeps them, whatever
  /// this says.
  bool checksums = false;
  /// Where the log is archived, so that each of its states can be restored (docs/backup.md).
  ArchiveOptions archive = {};
  /// The log over which the pool is replicated, so that another machine can take over
  /// (docs/replication.md).
  ReplicateOptions replicate = {};
  /// Processes that read the pool beside the one that writes it (docs/readers.md).
  ReaderOptions readers = {};
  /// The accesses of each committed transaction are recorded to this file, as addresses and sizes
  /// without contents, for `perdure advise` (docs/advise.md). Empty: to the file that the
  /// environment variable PERDURE_TRACE names, if it is set. Pools whose engines are compiled in
  /// refuse it.
  std::string trace = {};
};

/// Counters of an open pool: Pool::stats().
using Stats = engine::Stats;
/// What Pool::trim() did.
using Trimmed = engine::Trimmed;
/// What Pool::scrub() found.
using ScrubReport = pool::ScrubReport;
/// How Pool::scrub() reads.
using ScrubOptions = pool::ScrubOptions;
/// A page that is not as its checksum says: ScrubReport::damaged.
using DamagedPage = pool::DamagedPage;
/// What recovery did at opening: Stats::recovery.
using Recovery = engine::Recovery;

/// The result of close().
struct CloseReport {
  bool clean = false;  ///< the next opening has nothing to recover
  Stats stats;         ///< since opening
  double seconds = 0;  ///< the close itself
};

/// The result of check(). `problems` is empty when the pool is sound.
struct CheckReport {
  std::uint64_t blocks = 0, bytes = 0;       ///< allocated, by the heap's bitmaps
  std::uint64_t reachable = 0;               ///< blocks that the root's containers own
  std::uint64_t leaked = 0, used_twice = 0;  ///< allocated without an owner; owned twice
  std::uint64_t pages = 0;                   ///< compared with their checksums
  /// What is wrong, a sentence each.
  std::vector<std::string> problems;
  /// Whether the pool is sound.
  [[nodiscard]] bool ok() const noexcept { return problems.empty(); }
};

}  // namespace perdure
