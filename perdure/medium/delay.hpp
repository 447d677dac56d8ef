// SPDX-License-Identifier: BSD-3-Clause
//
// The papers' models of slow memory, charged by spinning on the time-stamp counter (its rate is
// measured once, when first needed).
//   REWIND 5 (set-up): a busy loop after every non-temporal store or line flush, "but group
//   consecutive writes to the same cacheline into a single NVM write". Every one of its stores is
//   fenced, so a fence does not end a group (Delays::merge_over_fences). Its Figure 10 varies the
//   time that a fence takes by itself: fence_ns, which may be added to any of these models.
//   Blurred Persistence V-A: "adding extra latency in each memory flush operation"; nothing for
//   evictions. A line flushed again with no other line and no fence in between is one operation
//   here. The paper does not say how its wbinvd is charged: either as one operation
//   (Delays::flush_all_is_one), or for each line that it writes back, the default here.
//   DudeTM 5.1: a persist waits max(latency, total write size / bandwidth), spinning on RDTSC; the
//   size is what that thread has written since its last fence.
//   SoftWrAP V-B: a queue of 8 lines that one line leaves every Tw. A writer waits for space, a
//   line that is still queued absorbs another write to it, and pcommit (our fence) waits for the
//   last entry. A thread's lines enter the queue together, each as of the time at which it was
//   written (as of now, where another thread's have entered since): at a fence, and where one of
//   them must wait. The locked instruction that guards the queue waits for all of the thread's
//   write-backs: taken for each line, it made memory seem no faster than 600 ns a line. The paper
//   does not say whether threads share the queue: here there is one for the whole memory, or one
//   per thread (Delays::buffer_each). The paper brackets its loop with CPUID; that traps in virtual
//   machines, so lfence orders the clock reads here.
// Thread safety: any thread may call written() and fenced(). Delays never change what is durable
// when.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "perdure/medium/medium.hpp"

namespace perdure::medium {

/// Time-stamp counter ticks per nanosecond; the first call measures them (5 ms).
double ticks_per_ns();

/// No delay at all, and no code for one.
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

  /// The calling thread flushed or streamed `lines` lines, beginning with line number `first`.
  void written(std::uint64_t first, std::uint64_t lines) noexcept;
  /// The calling thread fenced.
  void fenced() noexcept;
  /// True if flush_all reports one line, as for one operation, instead of all the lines it writes
  /// back.
  [[nodiscard]] bool flush_all_is_one() const noexcept { return flush_all_is_one_; }
  /// The number of ticks that the calling thread was made to wait so far. It excludes SoftWrAP's
  /// queue, whose cost depends on the clock.
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
    /// Lines that are not in SoftWrAP's queue yet, and when each was written.
    std::array<std::uint64_t, queue_lines> line{}, at{};
    std::size_t waiting = 0;
    std::uint64_t entered = 0;  // Queue::entered when the first of them was written
  };
  /// SoftWrAP's queue, changed under `lock`: until[i] is when line[i], one of the last 8, leaves
  /// it.
  struct alignas(128) Queue {
    Queue() { line.fill(no_line); }
    /// Whether one more line would have to wait now, if `before` others enter first. Without the
    /// lock: it may be wrong by what other threads do at this moment.
    [[nodiscard]] bool full(std::size_t before, std::uint64_t now) const noexcept {
      // Relaxed: it pairs with nothing; enqueue() looks again.
      const std::size_t first = oldest.load(std::memory_order_relaxed);
      return until[(first + before) % queue_lines].load(std::memory_order_relaxed) > now;
    }
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    std::array<std::uint64_t, queue_lines> line{};
    std::array<std::atomic<std::uint64_t>, queue_lines> until{};
    std::atomic<std::size_t> oldest{0};
    std::atomic<std::uint64_t> entered{0};  // lines, ever
    std::uint64_t drained_at = 0;
  };
  [[nodiscard]] Queue& queue() noexcept {
    return queues_[buffer_each_ ? static_cast<std::size_t>(base::thread_slot()) : 0];
  }
  void enqueue(Row& r) noexcept;

  std::uint64_t write_ticks_ = 0, latency_ticks_ = 0, drain_ticks_ = 0, fence_ticks_ = 0;
  double ticks_per_byte_ = 0;
  bool merge_over_fences_ = false, flush_all_is_one_ = false, buffer_each_ = false;
  std::unique_ptr<Row[]> rows_;
  std::unique_ptr<Queue[]> queues_;  // one, or one per thread slot
};

}  // namespace perdure::medium
