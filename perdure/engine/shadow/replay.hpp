// SPDX-License-Identifier: BSD-3-Clause
//
// Replay: DudeTM's Reproduce (section 3.4). Reads the pool's ring up to the durable id, applies the records to home in id order, and
// recycles what it has applied. The only order it needs: home durable, then X and the head durable, then the ring reused.
// Thread safety: step() takes its own lock; any thread may run one.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "perdure/engine/core.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::engine::shadow {

class Replay {
 public:
  Replay(Core& core, log::Ring& ring) : core_(core), ring_(ring), home_(core.medium, core.file.header().max_home_bytes) {}

  /// Applies everything appended so far. Returns the bytes recycled. After a medium's failure the core is poisoned.
  std::uint64_t step();
  [[nodiscard]] std::uint64_t applied() const noexcept { return applied_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

 private:
  Core& core_;
  log::Ring& ring_;
  std::mutex mutex_;
  log::HomeWriter home_;
  std::atomic<std::uint64_t> applied_{0}, rounds_{0};
};

}  // namespace perdure::engine::shadow
