// SPDX-License-Identifier: BSD-3-Clause
//
// OpenSnapshots: the snapshots of a shadow, and what its transactions have to save for them
// (saver.hpp, versions.hpp).
//
//   SNAP-5 The cut. An opening says that everything is to be saved, issues a heavy fence, and waits
//          for the end of each update that was open. So every update that begins later, and every
//          one that has an id above S, saves. Then S is the clock. The opening waits once more for
//          the end of each update that is open: the stamps of all transactions up to S are set
//          then, and whatever is in flight later gets a stamp above 2 * S, also where it is rolled
//          back. So no entry that a reader finds in flight becomes one that its snapshot does not
//          need (SNAP-1). Updates begin and commit all the while.
//   SNAP-6 A snapshot is marked as expired before the first store that is not saved for it, and
//          before memory that it needs is used again. A read looks at the mark after it has loaded
//          its word.
// A snapshot never enters the TM: it is in no read set, revokes no bias and waits for no writer.
// It holds up neither a checkpoint nor the truncation of the log, because it is in DRAM alone.
// Heap words (bitmaps, directory) are not saved as lines: a snapshot reads none of them. Which
// blocks it has follows from heap ops that are saved (SNAP-7). But a new span's bitmap lies on
// memory that was data, so its lines are saved as if they were stored to (shadow.hpp). Pages that
// are given back (resident.hpp) hold the same words before and after. trim() refuses while a
// snapshot is open: its holes would be zeros in place of what the snapshot may read. Thread safety:
// any thread may make all calls; claim() is made by the threads that save.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/shadow/versions.hpp"
#include "perdure/engine/snapshots.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::shadow {

class OpenSnapshots final : public Snapshots, public std::enable_shared_from_this<OpenSnapshots> {
 public:
  /// mode(): every line is saved at each transaction's first store, because a snapshot is being
  /// opened. Otherwise mode() is S + 1 of the newest snapshot, or 0: nothing is saved.
  static constexpr std::uint64_t always = ~std::uint64_t{0};

  /// What depends on the TM.
  struct Waits {
    /// Waits for the end of each update that is open, behind a heavy fence.
    std::function<void()> for_updates;
    /// Returns whether no update is open, behind a heavy fence, without waiting.
    std::function<bool()> no_update;
  };
  OpenSnapshots(EngineBase& core, tm::Domain& domain, std::uint64_t memory, Waits waits);
  ~OpenSnapshots() override;

  Result<std::shared_ptr<OpenSnapshot>> open() override;
  bool any() const noexcept override;
  void end() noexcept override;
  void fill(Stats& stats) const noexcept;

  // For the threads that save.

  [[nodiscard]] [[gnu::always_inline]] std::uint64_t mode() const noexcept {
    // Pairs with the release in set_mode(): a transaction that saves sees versions().
    return mode_.load(std::memory_order_acquire);
  }
  /// Where lines are saved. It is another one when generation() has changed. Both are constant
  /// while a transaction is open that saves.
  [[nodiscard]] Versions* versions() const noexcept { return versions_.get(); }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  /// Whether a snapshot is open that was so, or was being opened, when a transaction began that saw
  /// this mode and is still open.
  [[nodiscard]] bool serves(std::uint64_t mode) const noexcept;
  /// Returns a chunk, for which the oldest snapshots expire where they must; Versions::no_chunk
  /// when none is left to save for.
  [[nodiscard]] std::uint32_t claim() noexcept;

 private:
  class One;
  void close(One& one) noexcept;
  void give_memory_back() noexcept;
  [[nodiscard]] One* oldest() const noexcept;  // that has not expired; null: none
  void expire(One& one) noexcept;
  void set_mode() noexcept;
  bool enter() noexcept;
  void leave() noexcept;

  EngineBase& core_;
  tm::Domain& domain_;
  const std::uint64_t memory_;
  const Waits waits_;
  const pid_t process_;  // a forked child's copy of a snapshot closes nothing
  alignas(128) std::atomic<std::uint64_t> mode_{0};
  std::unique_ptr<Versions> versions_;  // null before the first snapshot and after the last one
  std::uint64_t generation_ = 0;
  alignas(128) std::mutex opening_;  // one opening at a time, and no release of the memory
  mutable std::mutex mutex_;         // guards what follows
  std::vector<One*> all_;
  One* being_opened_ = nullptr;
  std::uint64_t expirations_ = 0;
  alignas(128) std::atomic<std::uint32_t> readers_{0};  // threads between enter() and leave()
  std::atomic<bool> ended_{false};
};

}  // namespace perdure::engine::shadow
