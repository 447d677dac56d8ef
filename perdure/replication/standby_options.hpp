// SPDX-License-Identifier: BSD-3-Clause
//
// StandbyOptions: how a further copy of a replicated pool follows it. StandbyStatus: how far it is.
// Thread safety: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "perdure/backup/options.hpp"
#include "perdure/base/status.hpp"
#include "perdure/engine/reader_options.hpp"
#include "perdure/replication/options.hpp"

namespace perdure {

/// A standby: a further copy of a replicated pool (docs/replication.md).
struct StandbyOptions {
  /// The log over which the pool is replicated, this copy's name, and how long opening and a
  /// promotion wait for the log.
  ReplicateOptions replicate = {};
  /// Where the pool's backups are: a folder, or KIND://... of a kind that the program has enabled.
  /// If the pool file does not exist, it is made of one of them and the log. Empty: it must exist.
  std::string backups = {};
  /// As Options::medium.
  std::string medium = "auto";
  /// How this copy is read; writer_patience is this process's.
  ReaderOptions readers = {};
  /// If the log answers and has had nothing new for this long, this copy takes over by itself: it
  /// claims a term with everything that the log has. Only from a primary that says how often it
  /// gives a sign (ReplicateOptions::beat_every), of which three must be missing. Several standbys
  /// wait a little longer each, at random; one is first, and the others follow it. 0: never. A
  /// false alarm costs a change of the primary, and what only the old one has (Ack::local).
  std::chrono::milliseconds take_over_after{0};
  /// What is applied is archived by this copy, too, as Options::archive says.
  ArchiveOptions archive = {};
};

/// What is known of a standby.
struct StandbyStatus {
  bool follows = false;        ///< it applies what the log gets; otherwise `end` says why not
  Status end;                  ///< why it has ended; ok while it follows
  std::uint64_t id = 0;        ///< every transaction up to it is durable in this copy
  std::uint64_t term = 0;      ///< of the log's last message that was applied
  std::uint64_t sequence = 0;  ///< of the same
  /// The copy whose term it is, NAME:PATH; empty until a term begins while this copy is open.
  std::string primary = {};
  std::uint64_t messages = 0;       ///< applied since opening
  std::uint64_t bytes = 0;          ///< of these
  std::uint64_t checkpoint_id = 0;  ///< the data region has every transaction up to it
  bool caught_up = false;  ///< since opening it has had all that the log had, at least once
  /// How long ago that was, or, before the first time, the opening. It rises while the log does not
  /// answer, and while there is more than can be applied.
  std::chrono::milliseconds behind{0};
  /// It has taken over by itself (StandbyOptions::take_over_after), and follows no more: open the
  /// pool for writing (Standby::promote). If that takes long, another standby takes over in turn.
  bool took_over = false;
  std::string problem = {};  ///< why the last attempt failed; empty: it did not
};

}  // namespace perdure
