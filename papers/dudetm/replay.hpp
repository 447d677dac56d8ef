// SPDX-License-Identifier: BSD-3-Clause
//
// Replay: DudeTM's Reproduce (section 3.4). It reads the pool's rings as far as they are durable,
// applies the records to the data region in id order, and truncates the log by checkpoints. It
// needs one order only: the data region is durable, then the checkpoint id X and the heads are
// durable, then the rings are reused. Lines are written back by a checkpoint, when 3/8 of a ring
// have been applied. So a line that was stored to many times is written to the medium once, as in
// Blurred Persistence's bulk persistence. A checkpoint is cut into slices, with further records
// applied between them: what these store may be durable early, which does no harm (REDO-3).
//
//   pipelined  One ring, in id order: all that lies below its tail.
//   strict     One ring per thread (DudeTM-Sync): the rings' records up to the low watermark,
//              merged by id. Every transaction up to it has returned from its fence, so its record
//              lies below its ring's tail. Later ones that are durable already wait for the next
//              round.
// Thread safety: any thread may call anything; functions that apply or checkpoint take a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "papers/dudetm/kept.hpp"
#include "papers/names.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/log/log_cursor.hpp"
#include "perdure/log/packed.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::papers::dudetm {

class Replay {
 public:
  /// `low_watermark` returns the low watermark; it is null in the pipelined order. `kept` has the
  /// cached payloads of packed records.
  Replay(EngineBase& core, ThreadLogs<log::Ring>& rings,
         std::function<std::uint64_t()> low_watermark, Kept& kept, std::uint64_t checkpoint_id);

  /// Applies what is durable, about `most` bytes of it, so that the data region shows it. Returns
  /// false if there was nothing to do. After a failure of the medium the core is poisoned. Unpacked
  /// payloads are bounded, so there may be more to do when it returns.
  bool apply(std::uint64_t most);
  /// Applies all that is durable, as apply() does, makes the data region durable and truncates the
  /// log.
  bool checkpoint();
  /// Does a slice of a checkpoint of what has been applied. Begins one if `begin` is true and
  /// something has been applied. Returns false if there was nothing to do.
  bool checkpoint_slice(bool begin);
  /// Returns the bytes that are applied and not yet truncated, in the ring that has the most.
  [[nodiscard]] std::uint64_t applied_bytes() const noexcept {
    return applied_bytes_.load(std::memory_order_relaxed);
  }
  /// Returns the checkpoint id X: the data region durably holds every transaction up to it.
  [[nodiscard]] std::uint64_t checkpoint_id() const noexcept {
    return checkpoint_id_.load(std::memory_order_relaxed);
  }
  /// Returns the id up to which the data region shows every transaction to a thread that reads it.
  /// A page that is dropped from the shadow relies on it (PAGING-2).
  // pairs with apply
  [[nodiscard]] std::uint64_t reproduced() const noexcept {
    return reproduced_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t rounds() const noexcept {
    return rounds_.load(std::memory_order_relaxed);
  }

 private:
  bool add(const log::RecordView& record);
  void clear() noexcept;
  bool apply_locked(std::uint64_t most);
  void note_applied() noexcept;
  void begin_checkpoint();
  bool slice_locked(std::uint64_t max_lines);

  EngineBase& core_;
  ThreadLogs<log::Ring>& rings_;
  const std::size_t count_;
  const std::function<std::uint64_t()> low_watermark_;
  Kept& kept_;
  std::mutex mutex_;
  log::LogCursor applied_to_, next_;  // the data region shows what lies below; one round's
  // The values of applied_to_ when the checkpoint in progress began.
  std::vector<std::uint64_t> checkpoint_to_;
  std::uint64_t next_checkpoint_id_ = 0;
  // Memory ran out: the data region has a part of what is applied next.
  bool applied_in_part_ = false;
  bool checkpointing_ = false;
  // The lines to be written back; one, because one thread applies.
  std::vector<log::LineMasks> masks_;
  std::vector<log::Payload> payloads_;                // one round's
  std::vector<std::vector<std::uint64_t>> unpacked_;  // those of them that are not in a ring
  std::uint64_t own_bytes_ = 0;                       // the size of unpacked payloads
  std::atomic<std::uint64_t> checkpoint_id_, reproduced_, rounds_{0}, applied_bytes_{0};
};

}  // namespace perdure::papers::dudetm
