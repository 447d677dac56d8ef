// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshot: one state of a pool that can be read for as long as it is needed, while transactions go
// on: Pool::snapshot() returns it. docs/snapshots.md says what it costs and where it ends.
// Thread safety: a value; one snapshot may be read by any number of threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "perdure/api/leaving.hpp"
#include "perdure/api/named_tx.hpp"
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

 private:
  std::shared_ptr<engine::OpenSnapshot> snapshot_;
  const Root* root_;
};

}  // namespace perdure
