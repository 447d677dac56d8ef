// SPDX-License-Identifier: BSD-3-Clause
//
// ReplicateOptions: the log over which a pool is replicated. Ack: how far a transaction has got.
// ReplicationStats: what is known of both.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure {

namespace replication {
class LogService;
}

/// How far a transaction has got in a pool that is replicated (docs/replication.md).
enum class Ack : std::uint8_t {
  local,    ///< it is durable in this copy: lost with this machine's disk
  shipped,  ///< and the log has it: it outlives this machine, if the log's servers keep their word
  /// and three of the log's servers or more have it, a majority of them on disk: it outlives the
  /// loss of any one of three, and a power cut of all
  quorum
  // Those behind it are standby(n).
};
/// Ack::local, for `receipt.wait(perdure::local)`.
inline constexpr Ack local = Ack::local;
/// Ack::shipped, for `pool.update(perdure::shipped, f)`.
inline constexpr Ack shipped = Ack::shipped;
/// Ack::quorum, likewise.
inline constexpr Ack quorum = Ack::quorum;
/// For `pool.update(perdure::standby(1), f)`: the log has the transaction, and n standbys have it
/// on their disks, which say so. It outlives the loss of this machine and of all of the log's
/// servers. n: 1 to most_standbys; with another one, what waits is refused (`invalid`).
[[nodiscard]] constexpr Ack standby(unsigned n) noexcept {
  constexpr unsigned before = static_cast<unsigned>(Ack::quorum), most = 255 - before;
  return static_cast<Ack>(before + (n - 1 < most ? n : most));
}
/// How many standbys a level waits for; 0: it is none of standby(n).
[[nodiscard]] constexpr unsigned standbys_of(Ack level) noexcept {
  return level > Ack::quorum ? static_cast<unsigned>(level) - static_cast<unsigned>(Ack::quorum)
                             : 0;
}
/// The most standbys that a level can wait for.
inline constexpr unsigned most_standbys = 16;

/// The log over which a pool is replicated (docs/replication.md). Everything that transactions log
/// is appended to it by a thread of its own, once it is durable here; other copies of the pool
/// apply it, and one of them can take over. Thread safety: a value.
struct ReplicateOptions {
  /// The log: a folder, which copies on one machine share; or KIND://... of a kind that the program
  /// has enabled, such as nats://HOST:PORT/STREAM after perdure::nats::enable(). Empty: none. A
  /// pool that is replicated opens for writing only with its log.
  std::string log = {};
  /// Another log than those (perdure/replication/log_service.hpp).
  std::shared_ptr<replication::LogService> service = {};
  /// This copy's name, for messages to people. Empty: the machine's.
  std::string name = {};
  /// How long opening, and a wait for a level above `local`, wait for the log. Then opening fails
  /// with `unavailable`, and a wait with `in_doubt`.
  std::chrono::milliseconds patience{10'000};
  /// How long close() waits until the log has everything. Then it fails with `unavailable`, and the
  /// next opening appends the rest.
  std::chrono::milliseconds close_patience{10'000};
  /// A primary that has appended nothing for this long appends a message without transactions, so
  /// that standbys see that it is there (StandbyOptions::take_over_after). 0: it does not, and no
  /// standby takes over by itself. At most 60 s.
  std::chrono::milliseconds beat_every{0};

  /// Whether the pool is to be replicated.
  [[nodiscard]] bool wanted() const noexcept { return !log.empty() || service != nullptr; }
  /// Returns ok, or `invalid`.
  [[nodiscard]] Status check(const std::string& path) const {
    if (!log.empty() && service != nullptr)
      return failure(Code::invalid, path, "Options::replicate with a log's name and a service",
                     "one of them", "leave one empty");
    if (patience.count() <= 0 || close_patience.count() < 0)
      return failure(Code::invalid, path, "Options::replicate with no patience", "above 0 ms",
                     "leave it as it is");
    if (beat_every.count() < 0 || beat_every > std::chrono::seconds(60))
      return failure(
          Code::invalid, path,
          "Options::replicate with a beat every " + std::to_string(beat_every.count()) + " ms",
          "0 to 60000 ms");
    return {};
  }
};

/// What is known of a pool's replication: PoolBase::replication().
struct ReplicationStats {
  bool on = false;               ///< the pool was opened with Options::replicate
  bool primary = false;          ///< its changes count: no other copy has taken over
  std::uint64_t term = 0;        ///< the number of changes of the primary
  std::uint64_t sequence = 0;    ///< of the log's last message that is known to be this copy's
  std::uint64_t shipped_id = 0;  ///< every transaction up to it is in the log
  std::uint64_t messages = 0, bytes = 0;  ///< appended since opening
  std::uint64_t unanswered = 0;           ///< appends that had no answer
  std::uint64_t waits = 0;  ///< how often a commit had to wait for the log: its own was full
  /// How long the oldest transaction that was read from the pool's log has waited to be in the
  /// replicated one.
  std::chrono::milliseconds behind{0};
  std::uint64_t behind_bytes = 0;  ///< bytes of the pool's log that are not in the replicated one
  std::chrono::microseconds last_append{0};  ///< how long the last append took that was answered
  std::chrono::microseconds appends{0};      ///< how long all these took together
  /// How far standbys have it on their disks that have said so, the farthest first: every
  /// transaction up to the id. Empty before a level standby(n) was asked for.
  std::vector<std::uint64_t> standby_ids = {};
  std::string problem = {};  ///< why the last attempt failed; empty: it did not
};

}  // namespace perdure
