// SPDX-License-Identifier: BSD-3-Clause
//
// Saver: saves what a transaction's lines held before its first store to them, while a snapshot is
// open. Where none is, a transaction asks one word whether it is 0.
//
//   SNAP-3 A transaction that began while a snapshot was open, or being opened, saves a line that
//          it owns before its first store to it, unless the line's newest entry is the
//          transaction's own, or has a stamp above 2 * S of the newest snapshot: then that entry,
//          or an older one, holds what every snapshot needs. While a snapshot is being opened, its
//          S is not known, and only the first exception holds. A line may have been left out for a
//          newest entry that is used again when all snapshots are gone that were open at the
//          transaction's begin. By then the line may hold the transaction's own stores, which are
//          nobody's state. So where a line's head leads to an entry that was used again, and none
//          of those snapshots is left, the transaction saves nothing more. A snapshot that is being
//          opened waits for it (SNAP-5), and needs none of its entries.
//   SNAP-4 The entries get their stamp before their lines' ownership ends, and before the
//          transaction stops pending. A rollback restores the words first: a stamp that a snapshot
//          may ignore says that the line itself is clean.
// Heap ops are saved by their transaction's commit, before it applies them (SNAP-7).
// No call throws, and none waits for another thread except for the lock under which chunks are
// given out: where memory is lacking, snapshots expire (SNAP-6).
// Thread safety: a Saver belongs to its transaction's thread.
#pragma once

#include <cstdint>

#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/shadow/open_snapshots.hpp"
#include "perdure/engine/shadow/versions.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::engine::shadow {

class Saver {
 public:
  explicit Saver(OpenSnapshots& snapshots) noexcept : snapshots_(snapshots) {}

  /// Called when the transaction has begun, after the TM's own begin: that has announced the
  /// transaction, so an opening that this call does not see waits for it (SNAP-5).
  [[gnu::always_inline]] void begin() noexcept { mode_ = snapshots_.mode(); }
  /// Whether the transaction has to save. It does not change before the transaction's end.
  [[nodiscard]] [[gnu::always_inline]] bool saving() const noexcept {
    return __builtin_expect(mode_ != 0, 0);
  }
  /// Saves the lines of `bytes` bytes, which the transaction owns and is about to store to.
  [[gnu::noinline, gnu::cold]] void save(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Called at the end of a transaction that saves, while it owns its lines (SNAP-4), and before it
  /// applies its heap ops.
  [[gnu::noinline, gnu::cold]] void committed(std::uint64_t id, const HeapOps& ops,
                                              const pool::Directory& directory) noexcept;
  void rolled_back(std::uint64_t clock) noexcept { stamp(Versions::rolled_back(clock)); }

 private:
  [[nodiscard]] bool needs(std::uint64_t stamp) const noexcept;
  void use_versions() noexcept;
  void save_line(std::uint64_t line) noexcept;
  [[nodiscard]] bool has_next() noexcept;
  [[nodiscard]] bool next_chunk() noexcept;
  [[nodiscard]] std::uint32_t next_index() const noexcept {
    return chunk_ * Versions::chunk_entries + next_ + 1;
  }
  [[gnu::noinline, gnu::cold]] void stamp(std::uint64_t stamp) noexcept;

  OpenSnapshots& snapshots_;
  std::uint64_t mode_ = 0;
  bool given_up_ = false;  // no snapshot is left to save for (SNAP-3), until the transaction's end
  Versions* versions_ = nullptr;
  std::uint64_t generation_ = 0;  // of versions_
  std::uint32_t chunk_ = Versions::no_chunk;
  std::uint32_t next_ = Versions::chunk_entries;  // the chunk's next free entry
  std::uint64_t pushed_ = 0;                      // by this transaction
  std::uint64_t last_stamp_ = 0;
};

}  // namespace perdure::engine::shadow
