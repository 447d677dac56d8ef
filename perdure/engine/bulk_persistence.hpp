// SPDX-License-Identifier: BSD-3-Clause
//
// Bulk persistence: home is stored to by each commit and written back by none. Before a log may
// begin again everything that was ever stored is, at once, and X says so (papers: Blurred
// Persistence, section III-B; SoftWrAP's local aliasing rests on it too). Thread safety: any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "perdure/engine/core.hpp"

namespace perdure::engine {

class BulkPersistence {
 public:
  /// `x`: what home has already.
  BulkPersistence(Core& core, std::uint64_t x) : core_(core), x_(x) {}

  /// Home has, durably, every transaction up to `id`, and X says so. `domain`: the TM's.
  /// `note_x(x)`: X, durable when it returns.
  template <class Domain, class NoteX>
  Status home_has(std::uint64_t id, const Domain& domain, NoteX&& note_x) {
    const std::lock_guard lock(mutex_);
    while (x() < id) {
      if (core_.poisoned()) return core_.why();
      // before the flush: what is stored to home later is not covered
      const std::uint64_t x = domain.quiet_id();
      if (x < id) {  // an older one's commit has not ended
        std::this_thread::yield();
        continue;
      }
      // mutant: bulk-flush-before-id
      if (Status s = core_.medium.flush_all(); !s.ok()) return s;
      // mutant: bulk-id-before-truncation
      if (Status s = note_x(x); !s.ok()) return s;
      x_.store(x, std::memory_order_relaxed);
      times_.fetch_add(1, std::memory_order_relaxed);
    }
    return {};
  }

  /// A number for statistics and for who has home_has()'s answer.
  [[nodiscard]] std::uint64_t x() const noexcept { return x_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t times() const noexcept {
    return times_.load(std::memory_order_relaxed);
  }

 private:
  Core& core_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> x_, times_{0};
};

}  // namespace perdure::engine
