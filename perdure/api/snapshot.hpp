// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshot: one state of a pool that can be read for as long as it is needed, while transactions go
// on: Pool::snapshot() returns it. docs/snapshots.md says what it costs and where it ends.
// Thread safety: a value; one snapshot may be read by any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/api/leaving.hpp"
#include "perdure/api/named_tx.hpp"
#include "perdure/api/options.hpp"
#include "perdure/api/walk.hpp"
#include "perdure/engine/snapshots.hpp"

namespace perdure {

namespace detail {

/// A read of a snapshot, until its end.
class SnapshotReader {
 public:
  /// Throws error(expired, closed, poisoned).
  explicit SnapshotReader(engine::OpenSnapshot& snapshot) : snapshot_(snapshot) {
    snapshot_.enter();
  }
  ~SnapshotReader() { snapshot_.leave(); }
  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;

 private:
  engine::OpenSnapshot& snapshot_;
};

/// The data region of a snapshot's pool, while the snapshot is read.
struct SnapshotData {
  const std::byte* data;
  std::uint64_t bytes;
};
[[nodiscard]] SnapshotData data_of(engine::OpenSnapshot& snapshot);
/// The heap's part of a snapshot's check(): adds what the catalog owns to `owned`, and compares it
/// with the blocks that were allocated in the state. Throws error(expired, closed, poisoned), and
/// std::bad_alloc.
[[nodiscard]] CheckReport compare_heap(engine::OpenSnapshot& snapshot, OwnedBlocks owned);

/// Told how far a copy is: bytes that are copied, and bytes in all.
using CopyProgress = std::function<void(std::uint64_t done, std::uint64_t bytes)>;
/// Snapshot::copy_to.
void copy_to(engine::OpenSnapshot& snapshot, const std::string& path, const CopyProgress& progress);

}  // namespace detail

/// A handle of a snapshot: the state of a pool whose root is a Root, as a commit id left it. Copies
/// are handles of the same snapshot, which is closed with the last of them.
///
/// A handle may outlive its pool; its view() throws `closed` then. A thread that reads a snapshot
/// must not destroy the snapshot's pool. Thread safety: a value; any thread may call view().
template <class Root>
class Snapshot {
 public:
  /// Made by Pool::snapshot().
  Snapshot(std::shared_ptr<engine::OpenSnapshot> snapshot, const Root& root) noexcept
      : snapshot_(std::move(snapshot)), root_(&root) {}

  /// The state's id: every transaction up to it is in the state, and no other.
  [[nodiscard]] std::uint64_t id() const noexcept { return snapshot_->id(); }
  /// Whether it can't be read any more: its memory was needed, or the pool is gone. It never comes
  /// back.
  [[nodiscard]] bool expired() const noexcept { return snapshot_->expired(); }

  /// The engine's object, for the pool's own calls.
  [[nodiscard]] const std::shared_ptr<engine::OpenSnapshot>& opened() const noexcept {
    return snapshot_;
  }

  /// Runs f(tx, root) once, over the snapshot's state, and returns what f returns. `tx` is a
  /// perdure::rtx. It never runs f again, waits for no thread, and makes none wait. It may be
  /// called inside a transaction, whose changes it does not see. Throws what f throws, and
  /// perdure::error:
  /// `expired` at any read, `poisoned`, `closed`.
  template <class F>
  auto view(F&& f) const {
    static_assert(std::is_invocable_v<F&, rtx&, const Root&>,
                  "perdure: a snapshot's lambda can't be called with a perdure::rtx& (or `auto& "
                  "tx`) and the const root of the pool");
    using R = std::invoke_result_t<F&, rtx&, const Root&>;
    static_assert(detail::leaves_a_transaction<R>,
                  "perdure: a snapshot's lambda must not return a pool pointer, reference or "
                  "cursor, nor a value that holds one, out of its view: return copies of what it "
                  "names (a pointer to memory outside the pool may leave in a captured variable)");
    // A handle of its own: f may end this one.
    const std::shared_ptr<engine::OpenSnapshot> snapshot = snapshot_;
    const detail::SnapshotReader inside(*snapshot);
    rtx tx(*snapshot);
    if constexpr (std::is_void_v<R>) {
      f(tx, *root_);
      snapshot->must_be_sound();
    } else {
      R value = f(tx, *root_);
      snapshot->must_be_sound();
      return value;
    }
  }

  /// As view(f), over data that may be damaged (Pool::checked_view): no read leaves the pool.
  template <class F>
  auto checked_view(F&& f) const {
    return view([&](rtx& tx, const Root& root) {
      const detail::SnapshotData of = detail::data_of(*snapshot_);
      detail::CheckedTransaction<rtx> transaction(tx, of.data, of.bytes);
      rtx checked(transaction);
      return f(checked, root);
    });
  }

  /// Audits the heap, walks the root's containers and compares, as Pool::check(): of this state,
  /// exactly, while transactions go on. Of the heap's own structures it audits those of the moment.
  /// Transactions that need a new span of blocks, or a block of a chunk or more, may wait for some
  /// hundred structures to be read. Throws as view(), and std::bad_alloc.
  [[nodiscard]] CheckReport check() const {
    const std::shared_ptr<engine::OpenSnapshot> snapshot = snapshot_;
    const detail::SnapshotReader inside(*snapshot);
    rtx tx(*snapshot);
    const detail::SnapshotData of = detail::data_of(*snapshot);
    return detail::compare_heap(*snapshot, owned_blocks(tx, *root_, of.data, of.bytes));
  }

  /// Writes the state as a pool file of its own, while transactions go on: a backup that can be
  /// opened as it is. The file gets its name when it is whole and durable, and replaces none. It
  /// has the pool's log size, limit, engine and layout, takes disk space for the blocks that are
  /// allocated, and has a uuid of its own. It is mapped at the pool's address, so one process can't
  /// have both open at once. `progress` is called now and then; what it throws ends the copy.
  /// Memory: about 100 bytes per allocated block. Throws perdure::error: `exists` where there is a
  /// file of that name, `full`, `io`, `busy`, `corrupt` where the heap contradicts itself,
  /// `too_many_threads`, and what view() throws; and std::bad_alloc. No file is left then.
  void copy_to(const std::string& path, const detail::CopyProgress& progress = {}) const {
    const std::shared_ptr<engine::OpenSnapshot> snapshot = snapshot_;
    const detail::SnapshotReader inside(*snapshot);
    detail::copy_to(*snapshot, path, progress);
  }

 private:
  std::shared_ptr<engine::OpenSnapshot> snapshot_;
  const Root* root_;
};

}  // namespace perdure
