// SPDX-License-Identifier: BSD-3-Clause
//
// StatPage: the live counters of an open pool, where `perdure stat` finds them: /dev/shm/perdure-<uuid>. They are not in the pool.
//
// The process that has the pool open for writing owns the page: it creates it, stores counters in it and unlinks it at close. Others map
// it read-only. A killed owner leaves its page behind: `alive` tells (pid and the process's start time, so that a reused pid does
// not pass for the owner), and the next owner replaces it; pages left an hour ago or more are removed by whoever opens a pool. A page is
// a help, never a duty: where there is no /dev/shm, or a byte copy of the pool (same uuid) is open elsewhere, the owner gets private
// memory and everything else works.
// Thread safety: counters are atomics, stored and read relaxed: each is right on its own, together they are a moment's blur.
// Crash invariants: none; nothing here is read by recovery.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure::engine {

/// What lies in the shared page. Fixed layout: the reader may be another build.
struct StatPage {
  static constexpr std::uint64_t magic_value = 0x3154415453445250ULL;  // "PRDSTAT1", little-endian
  static constexpr std::uint32_t current_version = 1;

  std::atomic<std::uint64_t> magic{0};  ///< stored last, with release: a reader that sees it (acquire) sees the rest of the head
  std::uint32_t version = 0;
  std::uint32_t pid = 0;
  std::uint64_t pid_start = 0;  ///< the owner's start time (field 22 of /proc/PID/stat, clock ticks since boot)
  std::uint8_t uuid[16] = {};
  std::uint64_t device = 0, inode = 0;  ///< of the pool file: tells a pool from a byte copy of it
  char engine[32] = {};

  using Counter = std::atomic<std::uint64_t>;
  Counter commits{0}, aborts{0};
  Counter last_id{0};     ///< the newest id drawn
  Counter durable_id{0};  ///< every transaction with id <= it is durable
  Counter applied_id{0};  ///< X: home holds every transaction with id <= it
  Counter log_used_bytes{0}, log_capacity_bytes{0};
  Counter checkpoints{0};
  Counter heap_used{0}, home_bytes{0};
  Counter fences{0}, syncs{0}, written_bytes{0};  ///< the medium's
  Counter updated_ns{0};                          ///< CLOCK_MONOTONIC of the last publication; 0: none yet
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(StatPage) == 88 + 8 * 14);

/// The owner's side. Movable; the destructor unlinks the page (not in a forked child, which shares it).
class StatWriter {
 public:
  /// Never fails: see above. `pool_path` is empty for a pool without a file, or open for reading only: then the page is private memory.
  StatWriter(const std::uint8_t (&uuid)[16], const std::string& pool_path, const std::string& engine);
  ~StatWriter();
  StatWriter(const StatWriter&) = delete;
  StatWriter& operator=(const StatWriter&) = delete;

  [[nodiscard]] StatPage& page() noexcept { return *page_; }
  /// False when the page is private memory; `why()` says why.
  [[nodiscard]] bool shared() const noexcept { return page_ != &private_page_; }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Call after storing counters.
  void touch() noexcept;

 private:
  void share(const std::uint8_t (&uuid)[16]);
  StatPage* page_;
  std::string name_, why_;
  std::uint32_t owner_pid_;
  StatPage private_page_;
};

/// The reader's side: maps the page of the pool with this uuid. `not_found` when there is none (no program has the pool open),
/// `incompatible` when it is no page of this version.
class StatReader {
 public:
  static Result<StatReader> open(const std::uint8_t (&uuid)[16]);
  ~StatReader();
  StatReader(StatReader&& other) noexcept;
  StatReader& operator=(StatReader&&) = delete;

  [[nodiscard]] const StatPage& page() const noexcept { return *page_; }
  /// Does the owner still run? False for a page that a killed process left behind.
  [[nodiscard]] bool alive() const;
  /// Is it this file's page, not that of a byte copy?
  [[nodiscard]] bool belongs_to(const std::string& pool_path) const;

 private:
  explicit StatReader(const StatPage* page) noexcept : page_(page) {}
  const StatPage* page_;
};

/// "/perdure-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx": the name for shm_open; the file lies in /dev/shm.
[[nodiscard]] std::string stat_page_name(const std::uint8_t (&uuid)[16]);

}  // namespace perdure::engine
