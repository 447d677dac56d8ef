// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshots: the states of a pool that are kept readable while transactions go on, as the API sees
// them. An engine that has them gives an object of this type from snapshots(); shadow's is
// shadow/open_snapshots.hpp, where the protocol is. docs/snapshots.md is the overview.
// Thread safety: any thread may make all calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "perdure/base/status.hpp"
#include "perdure/engine/any_engine.hpp"

namespace perdure::pool {
class OpenPool;
struct HeapAudit;
struct HeapOp;
}  // namespace perdure::pool

namespace perdure::engine {

/// One state of a pool: that of a commit id. It reads the state at every call, whatever the calling
/// thread is doing, and is closed by its destructor. A read throws error(expired) once the
/// snapshot's memory was needed, or the pool is closed.
class OpenSnapshot : public DynamicReads {
 public:
  virtual ~OpenSnapshot() = default;
  /// Every transaction up to this id is in the state, and no other.
  [[nodiscard]] virtual std::uint64_t id() const noexcept = 0;
  /// Whether it can't be read any more.
  [[nodiscard]] virtual bool expired() const noexcept = 0;
  /// Begins a read of any length by this thread. Throws error(expired, closed, poisoned); nothing
  /// has begun then.
  virtual void enter() = 0;
  /// Ends it.
  virtual void leave() noexcept = 0;
  /// Audits the heap beside transactions (pool::audit_heap_beside), and calls each_block(op) for
  /// each block that was allocated in the state, with an op that allocates it; the audit counts
  /// these. Called between enter() and leave(). Throws error(expired) and std::bad_alloc.
  [[nodiscard]] virtual pool::HeapAudit audit(
      const std::function<void(const pool::HeapOp&)>& each_block) = 0;
  /// The pool's file, to be used between enter() and leave().
  [[nodiscard]] virtual pool::OpenPool& file() noexcept = 0;
  /// Called at the end of a read that has seen what it wanted: throws error(poisoned) where the
  /// medium has failed.
  virtual void must_be_sound() const = 0;
};

/// The open snapshots of a pool.
class Snapshots {
 public:
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;
  /// Opens a snapshot of the newest state. Waits for the updates of other threads that are open at
  /// the call, and stops none. REQUIRES: the caller is in no transaction on the
  /// pool. Errors: `expired` where a snapshot's memory does not last for the opening, and why the
  /// pool refuses work. Throws std::bad_alloc.
  [[nodiscard]] virtual Result<std::shared_ptr<OpenSnapshot>> open() = 0;
  /// Whether any is open, or being opened, and has not expired.
  [[nodiscard]] virtual bool any() const noexcept = 0;
  /// Expires all, for ever, and returns when no thread reads one. Afterwards nothing of the engine
  /// is used. A second call does nothing.
  virtual void end() noexcept = 0;

 protected:
  Snapshots() = default;
  virtual ~Snapshots() = default;
};

/// An engine's snapshots; null where it has none.
template <class E>
[[nodiscard]] Snapshots* snapshots_of(E& engine) noexcept {
  if constexpr (requires { engine.snapshots(); })
    return engine.snapshots();
  else
    return nullptr;
}

}  // namespace perdure::engine
