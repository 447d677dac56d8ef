// SPDX-License-Identifier: BSD-3-Clause
//
// Replay: DudeTM's Reproduce (section 3.4). Reads the pool's rings as far as they are durable,
// applies the records to home in id order, and recycles what it has applied. The only order it
// needs: home durable, then X and the heads durable, then the rings reused. Lines are written back
// when much has been applied (a settlement): one that was stored to again and again goes to the
// medium once, as in Blurred Persistence's bulk persistence. A settlement is cut into slices, with
// further records applied between them: what they store may be durable early, which harms nothing
// (REDO-3).
//
//   prefix  One ring, in id order: all that lies below its tail.
//   held    A ring a thread (DudeTM-Sync): the rings' records up to X = quiet_id, merged by id.
//           Every transaction up to X has returned from its
//           fence, so its record lies below its ring's tail; later ones that are durable already
//           wait for the next round.
// Thread safety: any thread may call anything; what applies or settles takes its own lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "papers/dudetm/kept.hpp"
#include "perdure/engine/core.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/log/packed.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::engine::dudetm {

class Replay {
 public:
  /// `quiet`: held; null under prefix. `kept`: payloads of packed records, if any are kept.
  Replay(Core& core, ThreadLogs<log::Ring>& rings, std::function<std::uint64_t()> quiet,
         log::Kept& kept, std::uint64_t applied);

  /// Applies what is durable, about `most` bytes of it: home shows it. False: there was nothing to
  /// do. After a medium's failure the core is poisoned. Unpacked payloads are bounded: there may be
  /// more to do when it returns.
  bool apply(std::uint64_t most);
  /// Applies all that is durable, as apply() does, makes home durable and recycles the records.
  bool settle();
  /// A slice of settling what has been applied, if a settlement has begun, or `begin` and there is
  /// something. False: there was nothing to do.
  bool settle_slice(bool begin);
  /// Bytes that are applied and not yet recycled, of the ring that has most of them.
  [[nodiscard]] std::uint64_t unsettled() const noexcept {
    return unsettled_.load(std::memory_order_relaxed);
  }
  /// Home holds every transaction up to it, durably: X.
  [[nodiscard]] std::uint64_t applied() const noexcept {
    return applied_.load(std::memory_order_relaxed);
  }
  /// Home shows every transaction up to it to whoever reads home: what a page that is dropped from
  /// the shadow must have (paging.hpp).
  // pairs with apply
  [[nodiscard]] std::uint64_t reproduced() const noexcept {
    return reproduced_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t rounds() const noexcept {
    return rounds_.load(std::memory_order_relaxed);
  }

 private:
  struct Cursor {
    std::uint64_t at = 0, end = 0;
  };
  bool add(const log::RecordView& record);
  void clear() noexcept;
  bool apply_locked(std::uint64_t most);
  void note_unsettled() noexcept;
  void begin_settlement();
  bool slice_locked(std::uint64_t most_lines);

  Core& core_;
  ThreadLogs<log::Ring>& rings_;
  const std::size_t count_;
  const std::function<std::uint64_t()> quiet_;
  log::Kept& kept_;
  std::mutex mutex_;
  std::vector<std::uint64_t> applied_to_;  // of each ring: home shows what lies below
  // where that was when the settlement began, if there is one
  std::vector<std::uint64_t> settling_to_;
  std::uint64_t settling_id_ = 0;
  bool applied_in_part_ = false;  // somebody ran out of memory: home has a part of what comes next
  bool settling_ = false;
  std::vector<Cursor> cursors_;  // a step's
  // of each thread that applies: lines to be written back
  std::vector<log::LineMasks> masks_;
  std::vector<log::Payload> payloads_;                // a round's
  std::vector<std::vector<std::uint64_t>> unpacked_;  // those of them that do not lie in a ring
  std::uint64_t own_bytes_ = 0;                       // of these
  std::atomic<std::uint64_t> applied_, reproduced_, rounds_{0}, unsettled_{0};
};

}  // namespace perdure::engine::dudetm
