// SPDX-License-Identifier: BSD-3-Clause
//
// Bulk persistence: each commit stores to the data region and writes nothing back. Before a log may
// be truncated, everything that was ever stored is written back at once, and the checkpoint id says
// so (papers: Blurred Persistence, section III-B; SoftWrAP's local aliasing uses it too).
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "perdure/engine/engine_base.hpp"

namespace perdure::engine {

class BulkPersistence {
 public:
  /// `x`: the checkpoint id at the start: the data region holds every transaction up to it.
  BulkPersistence(EngineBase& core, std::uint64_t x) : core_(core), x_(x) {}

  /// Takes a checkpoint: when it returns ok, the data region durably holds every transaction up to
  /// `id`, and the checkpoint id says so. `domain` is the TM's. `note_checkpoint_id(x)` makes the
  /// checkpoint id x durable before it returns. `flushes`: false where each commit has made the data
  /// region durable before it ended.
  template <class Domain, class NoteX>
  Status checkpoint_up_to(std::uint64_t id, const Domain& domain, NoteX&& note_checkpoint_id,
                          bool flushes = true) {
    const std::lock_guard lock(mutex_);
    while (checkpoint_id() < id) {
      if (core_.poisoned()) return core_.why();
      // Read before the flush: what is stored to the data region later is not covered.
      const std::uint64_t x = domain.low_watermark();
      if (x < id) {  // the commit of an older transaction has not ended
        std::this_thread::yield();
        continue;
      }
      if (flushes) {
        // mutant: bulk-flush-before-id
        if (Status s = core_.medium.flush_all(); !s.ok()) return s;
      }
      // mutant: bulk-id-before-truncation
      if (Status s = note_checkpoint_id(x); !s.ok()) return s;
      x_.store(x, std::memory_order_relaxed);
      times_.fetch_add(1, std::memory_order_relaxed);
    }
    return {};
  }

  /// Returns the checkpoint id: for statistics, and after checkpoint_up_to() returned ok.
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept {
    return x_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t times() const noexcept {
    return times_.load(std::memory_order_relaxed);
  }

 private:
  EngineBase& core_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> x_, times_{0};
};

}  // namespace perdure::engine
