// SPDX-License-Identifier: BSD-3-Clause
//
// Options: what may be chosen when a pool is opened, and the reports of close() and check().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/engine/engine.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure {

/// How far a recovery is: RecoveryOptions::progress is given one.
using RecoveryProgress = log::RecoveryProgress;

/// What is fixed when a pool is made; ignored when an existing pool is opened.
struct Creation {
  /// The data's upper bound in bytes; address space is kept for it
  std::uint64_t max_size = std::uint64_t{64} << 30;
  std::uint64_t initial_size = 0;  ///< data bytes allocated at once; 0: the least. Grows as needed
  /// Bytes of log, which take blocks of the disk as the log is first written; 0: 64 MiB. A
  /// transaction may log half a ring
  std::uint64_t log_size = 0;
  /// `held` order: writers with a ring of their own; more share the last one
  std::uint32_t threads = 4;
  std::uint64_t base = 0;  ///< the view's address; 0: a free one is chosen
  /// For tests that must see the same pool at every run; 0: the uuid is random
  std::uint64_t uuid_seed = 0;
};

/// How a pool is recovered that was not closed in order.
struct RecoveryOptions {
  /// Told how far recovery is: at its beginning and its end, and about every 100 ms in between
  /// where the engine can say (shadow, dudetm). Called by the thread that opens; must not throw.
  /// Empty: nobody is told
  std::function<void(const RecoveryProgress&)> progress = {};
  unsigned threads = 0;  ///< shadow, dudetm: 1 to 8; 0: as many as are worth their start
};

/// How a pool is opened or made. Name the members that you set; each default is a good choice.
///
///     auto pool = perdure::Pool<Root>::open("app.perdure", {.durability = perdure::group});
///
/// Thread safety: a value.
struct Options {
  bool create = true;        ///< make the pool if there is none, or in the place of an empty file
  bool must_create = false;  ///< `exists` if there is one
  bool read_only = false;    ///< view() only; several processes may, while no writer has the pool
  /// Opens a pool although the fields of its root type have other names (else `incompatible`, with
  /// both lists): for a program that has renamed fields and changed no types. The pool gets the new
  /// names when it is closed in order
  bool renamed_fields = false;
  Creation creation = {};  ///< of a new pool

  /// When update() returns, unless the call says otherwise; at creation also the pool's order.
  Durability durability = Durability::durable;
  /// caller: picks the list's instance without isolation, if it has one
  Isolation isolation = Isolation::full;
  /// an instance's name, if the list has several; empty: the pool's own, at creation the first
  std::string engine = {};
  /// What is one engine's own: a struct of that engine's, as papers::RewindOptions, or several
  EngineOptions engine_options = {};

  std::string medium = "auto";  ///< auto, file, dax, emulated (docs/media.md)
  bool direct = true;           ///< file: O_DIRECT logs
  medium::Delays delays = {};   ///< emulated: a paper's slow memory
  /// How the pool is recovered if it was not closed in order.
  RecoveryOptions recovery = {};
  /// any_engine: what each committed transaction does is recorded to this file, addresses and sizes
  /// and no contents, for `perdure advise` (docs/advise.md). Empty: to the file that the
  /// environment's PERDURE_TRACE names, if it does. Other lists of engines refuse it
  std::string trace = {};
};

/// Counters of an open pool: Pool::stats().
using Stats = engine::Stats;
/// What recovery did at opening: Stats::recovery.
using Recovery = engine::Recovery;

/// What close() did.
struct CloseReport {
  bool clean = false;  ///< the next opening has nothing to recover
  Stats stats;         ///< since opening
  double seconds = 0;  ///< the close itself
};

/// What check() found. `problems` is empty when the pool is sound.
struct CheckReport {
  std::uint64_t blocks = 0, bytes = 0;       ///< allocated, by the heap's bitmaps
  std::uint64_t reachable = 0;               ///< blocks that the root's containers own
  std::uint64_t leaked = 0, used_twice = 0;  ///< allocated but owned by nobody; owned twice
  /// What is wrong, a sentence each.
  std::vector<std::string> problems;
  /// Whether the pool is sound.
  [[nodiscard]] bool ok() const noexcept { return problems.empty(); }
};

}  // namespace perdure
