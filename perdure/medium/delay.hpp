// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' models of slow memory, charged by spinning on the time-stamp counter (its rate is
// measured once, when first needed). REWIND 5 (set-up): a busy loop after every non-temporal store
// or line flush, "but group consecutive writes to the same cacheline into a single NVM write";
// every one of its stores is fenced, so a fence does not end a group (Delays::merge_over_fences).
// Its Figure 10 sweeps what a fence takes by itself: fence_ns, which may be added to any of these
// models.
//   Blurred Persistence V-A: "adding extra latency in each memory flush operation"; nothing for
//   evictions. A line flushed again with no other line and no fence between is one operation here.
//     How its wbinvd is charged the paper does not say: as one operation
//     (Delays::flush_all_is_one), or here each line that is written.
//   DudeTM 5.1: a persist waits max(latency, total write size / bandwidth), spinning on RDTSC; size
//   is that thread's since its last fence. SoftWrAP V-B: a queue of 8 lines, a line leaves it every
//   Tw; a writer waits for room, a line that is still queued absorbs another write to it, pcommit
//   (our fence) waits for the last entry. Whether threads share it the paper does not say: one for
//   the whole memory here, or one each (Delays::buffer_each). The paper brackets its loop with
//   CPUID; that traps in virtual machines, so lfence orders the clock reads here.
// Thread safety: written() and fenced() by any thread. Delays never change what is durable when.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "perdure/medium/medium.hpp"

namespace perdure::medium {

/// Time-stamp counter ticks in a nanosecond; measured at the first call (5 ms).
double ticks_per_ns();

/// No delay at all, and no code either.
struct NoDelay {
  static constexpr bool active = false;
  explicit NoDelay(const Delays&) {}
  void written(std::uint64_t, std::uint64_t) noexcept {}
  void fenced() noexcept {}
  static constexpr bool flush_all_is_one() noexcept { return false; }
};

class ModelDelay {
 public:
  static constexpr bool active = true;
  explicit ModelDelay(const Delays& delays);

  /// `lines` lines from line number `first` were flushed or streamed by the calling thread.
  void written(std::uint64_t first, std::uint64_t lines) noexcept;
  /// The calling thread fenced.
  void fenced() noexcept;
  /// Whether flush_all reports one line, as of one operation, in place of all that it writes.
  [[nodiscard]] bool flush_all_is_one() const noexcept { return flush_all_is_one_; }
  /// How many ticks the calling thread was made to wait so far (SoftWrAP's queue apart: what it
  /// costs depends on the clock).
  [[nodiscard]] std::uint64_t charged() const noexcept {
    return rows_[static_cast<std::size_t>(base::thread_slot())].charged;
  }

 private:
  static constexpr std::uint64_t no_line = ~0ULL;
  static constexpr std::size_t queue_lines = 8;  // SoftWrAP V-B
  struct alignas(128) Row {
    std::uint64_t last_line = no_line;
    std::uint64_t bytes = 0;  // since this thread's last fence
    std::uint64_t charged = 0;
  };
  /// SoftWrAP's, guarded by `lock`: when each of the last 8 lines has left it.
  struct alignas(128) Queue {
    Queue() { line.fill(no_line); }
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    std::array<std::uint64_t, queue_lines> line{}, until{};
    std::size_t oldest = 0;
    std::uint64_t drained_at = 0;
  };
  [[nodiscard]] Queue& queue() noexcept {
    return queues_[buffer_each_ ? static_cast<std::size_t>(base::thread_slot()) : 0];
  }
  void enqueue(Queue& q, std::uint64_t line) noexcept;

  std::uint64_t write_ticks_ = 0, latency_ticks_ = 0, drain_ticks_ = 0, fence_ticks_ = 0;
  double ticks_per_byte_ = 0;
  bool merge_over_fences_ = false, flush_all_is_one_ = false, buffer_each_ = false;
  std::unique_ptr<Row[]> rows_;
  std::unique_ptr<Queue[]> queues_;  // one, or one a thread slot
};

}  // namespace perdure::medium
