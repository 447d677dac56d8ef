// SPDX-License-Identifier: BSD-3-Clause
//
// StatPage: the live counters of an open pool, where `perdure stat` finds them:
// /dev/shm/perdure-<uuid>, or, of a further copy of the pool on this machine (same uuid),
// /dev/shm/perdure-<uuid>-<inode>. They are not in the pool.
//
// The process that has the pool open for writing owns the page: it creates it, stores counters in
// it and unlinks it at close. Other processes map it read-only. A killed owner leaves its page
// behind. `alive` detects that (by pid and the process's start time, so that a reused pid is not
// taken for the owner), and the next owner replaces the page; pages left an hour ago or more are
// removed by any process that opens a pool. The page is never required: where there is no /dev/shm,
// the owner gets private memory and everything else works.
// Thread safety: counters are atomics, stored and read relaxed: each is right by itself, but they
// are not read at one moment.
// Crash invariants: none; recovery reads nothing here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::engine {

using StatCounter = std::atomic<std::uint64_t>;

/// The head of the page; sections follow, one after the other. The first 88 bytes were the same in
/// version 1, which had no sections.
struct StatHead {
  static constexpr std::uint64_t magic_value = 0x3154415453445250ULL;  // "PRDSTAT1", little-endian
  static constexpr std::uint32_t current_version = 2;

  /// Stored last, with release: a reader that sees it (acquire) sees the rest of the head.
  std::atomic<std::uint64_t> magic{0};
  std::uint32_t version = 0;
  std::uint32_t pid = 0;
  /// The owner's start time (field 22 of /proc/PID/stat, clock ticks since boot).
  std::uint64_t pid_start = 0;
  std::uint8_t uuid[16] = {};
  std::uint64_t device = 0, inode = 0;  ///< of the pool file: tells a pool from a byte copy of it
  char engine[32] = {};
  std::uint64_t bytes = 0;     ///< of the page: the head and all sections
  std::uint64_t sections = 0;  ///< the number that follow
  StatCounter updated_ns{0};   ///< CLOCK_MONOTONIC of the last publication; 0: none yet
};

/// The head of a section. A reader skips tags that it does not know, so a later build can add a
/// section without a new version. A section never changes its counters: further counters form a
/// section of their own.
struct StatSection {
  std::uint32_t tag = 0;       ///< never used again for anything else
  std::uint32_t reserved = 0;  ///< 0
  std::uint64_t bytes = 0;     ///< with this head, a multiple of 8
};

struct TransactionCounters {
  static constexpr std::uint32_t tag = 1;
  StatSection section{tag, 0, sizeof(TransactionCounters)};
  StatCounter commits{0}, aborts{0};
  StatCounter last_id{0};        ///< the newest id drawn
  StatCounter durable_id{0};     ///< every transaction with id <= it is durable
  StatCounter checkpoint_id{0};  ///< checkpoint id: the data region holds all up to it
};
struct LogCounters {
  static constexpr std::uint32_t tag = 2;
  StatSection section{tag, 0, sizeof(LogCounters)};
  StatCounter used_bytes{0}, capacity_bytes{0}, checkpoints{0};
};
struct HeapCounters {
  static constexpr std::uint32_t tag = 3;
  StatSection section{tag, 0, sizeof(HeapCounters)};
  StatCounter used_bytes{0};
  StatCounter data_bytes{0};  ///< length of the data region
};
struct MediumCounters {
  static constexpr std::uint32_t tag = 4;
  StatSection section{tag, 0, sizeof(MediumCounters)};
  StatCounter fences{0}, syncs{0}, written_bytes{0};
};

/// What a copy of a replicated pool does (docs/replication.md).
enum class ReplicationRole : std::uint64_t {
  none,     ///< the pool is not replicated, or not by this program
  primary,  ///< its changes count
  deposed,  ///< it was the primary, and another copy has taken over
  standby,  ///< it applies what the log gets
  ended     ///< a standby that can't follow any more
};
struct ReplicationCounters {
  static constexpr std::uint32_t tag = 5;
  StatSection section{tag, 0, sizeof(ReplicationCounters)};
  StatCounter role{0};      ///< a ReplicationRole
  StatCounter term{0};      ///< the number of changes of the primary
  StatCounter sequence{0};  ///< of the log's last message that this copy knows
  /// Of a primary: every transaction up to it is in the log. Of a standby: in this copy, durable.
  StatCounter id{0};
  /// CLOCK_MONOTONIC. Of a primary: since when the oldest transaction waits that is not in the log;
  /// 0: none does. Of a standby: when it had all that the log had.
  StatCounter behind_since_ns{0};
  StatCounter behind_bytes{0};  ///< of a primary: of its log that are not in the replicated one
  StatCounter messages{0}, bytes{0};  ///< appended, or applied, since opening
  StatCounter append_us{0};           ///< all appends that were answered took so long together
  StatCounter last_append_us{0};      ///< the last one of them
  StatCounter unanswered{0};          ///< appends without an answer
  StatCounter waits{0};               ///< commits that waited for the log
};

/// The shared page as this build writes it. A reader may be another build: it finds sections by
/// their tags (StatReader::section).
struct StatPage {
  StatHead head;
  TransactionCounters transactions;
  LogCounters log;
  HeapCounters heap;
  MediumCounters medium;
  ReplicationCounters replication;
  static constexpr std::uint64_t sections = 5;
};
static_assert(StatCounter::is_always_lock_free && sizeof(StatHead) == 112 &&
              offsetof(StatHead, engine) == 56);
static_assert(sizeof(StatPage) ==
              sizeof(StatHead) + 5 * sizeof(StatSection) + 25 * sizeof(StatCounter));

/// CLOCK_MONOTONIC, as the page states times: what std::chrono::steady_clock reads.
[[nodiscard]] inline std::uint64_t monotonic_ns(
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now()) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}

/// The owner's side. The destructor unlinks the page (but not in a forked child, which shares it).
class StatWriter {
 public:
  /// Never fails: see above. `pool_path` is empty for a pool without a file, or open for reading
  /// only: then the page is private memory.
  StatWriter(const std::uint8_t (&uuid)[16], const std::string& pool_path,
             const std::string& engine);
  ~StatWriter();
  StatWriter(const StatWriter&) = delete;
  StatWriter& operator=(const StatWriter&) = delete;

  [[nodiscard]] StatPage& page() noexcept { return *page_; }
  /// Returns false when the page is private memory; `why()` says why.
  [[nodiscard]] bool shared() const noexcept { return page_ != &private_page_; }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Call after storing counters.
  void touch() noexcept;

 private:
  void share(const std::uint8_t (&uuid)[16], std::uint64_t device, std::uint64_t inode);
  StatPage* page_;
  std::string name_, why_;
  std::uint32_t owner_pid_;
  StatPage private_page_;
};

/// The reader's side.
class StatReader {
 public:
  /// Maps the page of the pool with this uuid in the file `pool_path`. Returns `not_found` when
  /// there is none (no program has the pool open), `incompatible` when it is no page of this
  /// version.
  static Result<StatReader> open(const std::uint8_t (&uuid)[16], const std::string& pool_path);
  /// The same of whichever copy of the pool was opened first.
  static Result<StatReader> open(const std::uint8_t (&uuid)[16]);
  ~StatReader();
  StatReader(StatReader&& other) noexcept;
  StatReader& operator=(StatReader&&) = delete;

  [[nodiscard]] const StatHead& head() const noexcept { return *head_; }
  /// Returns the section of that kind, or null where the owner's build writes none.
  template <class Section>
  [[nodiscard]] const Section* section() const noexcept {
    return static_cast<const Section*>(find(Section::tag, sizeof(Section)));
  }
  /// Returns whether the owner still runs. False for a page that a killed process left behind.
  [[nodiscard]] bool alive() const;
  /// Returns whether this is the page of this file, not of a byte copy.
  [[nodiscard]] bool belongs_to(const std::string& pool_path) const;

 private:
  StatReader(const StatHead* head, std::size_t mapped) noexcept : head_(head), mapped_(mapped) {}
  static Result<StatReader> open_page(const std::string& name);
  [[nodiscard]] const void* find(std::uint32_t tag, std::size_t bytes) const noexcept;
  const StatHead* head_;
  std::size_t mapped_;  // bytes
};

/// Returns "/perdure-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", the name for shm_open; the file lies in
/// /dev/shm. With an inode, the name for a further copy: the same, "-" and the inode in hex.
[[nodiscard]] std::string stat_page_name(const std::uint8_t (&uuid)[16], std::uint64_t inode = 0);

}  // namespace perdure::engine
