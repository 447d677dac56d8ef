// SPDX-License-Identifier: BSD-3-Clause
//
// Rtm: Htm's hardware where the processor has it (base/rtm.hpp). The caches detect conflicts line
// by line; at XEND all threads see what was stored, or none does. An abort returns to start(),
// wherever the transaction was by then.
//
// A try that writes what other threads use, too, aborts itself or them: the words of the pool; the
// bitmaps of spans and the heap's lists that threads share (a refill of a thread's cache of blocks;
// growth of the pool, which ends in system calls and therefore under the lock). Counters, undo log
// and records belong to one thread. A page's first store, or first load, is a fault that no try
// survives: after five tries the lock's holder takes the fault.
// Thread safety: as Htm.
#pragma once

#include "perdure/base/rtm.hpp"
#include "perdure/tm/htm.hpp"

namespace perdure::tm {

struct Rtm {
  static constexpr const char* name = "htm";
  static constexpr bool buffers = false, returns_to_start = true;
  using Clock = StampClock;

  static Status supported() { return base::rtm::support(); }
  static void leave() noexcept { base::rtm::leave(); }
  static void point() noexcept {}

  struct Shared {
    Shared() noexcept { base::rtm::use(); }
  };

  class Try {
   public:
    Try(Shared&, const std::atomic<bool>&, int) noexcept {}

    [[gnu::always_inline]] Abort start() const noexcept {
      const unsigned status = base::rtm::begin();
      return __builtin_expect(status == base::rtm::started, 1) ? Abort::none : cause_of(status);
    }
    void show(std::atomic<std::uint64_t>& a, std::uint64_t v) const noexcept {
      a.store(v, std::memory_order_release);
    }  // pairs with the acquire in complete()
    void drain() const noexcept { drain_store_buffer(); }
    [[nodiscard]] std::uint64_t draw(const Clock& clock, int slot) const noexcept {
      return clock.draw(slot);
    }
    void abort_held() const noexcept { base::rtm::abort<base::rtm::lock_is_held>(); }
    void abort_conflict() const noexcept {}
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) const noexcept { return *a; }
    void own(const std::uint64_t*) const noexcept {}
    void keep(std::uint64_t*) const noexcept {}
    void put(std::uint64_t* a, std::uint64_t v) const noexcept { *a = v; }
    void recheck(bool) const noexcept {}
    [[nodiscard]] static constexpr bool committing() noexcept { return false; }
    // It is end(): a failure returns to start().
    void last_point_of_failure(const Clock&) const noexcept {}
    [[nodiscard]] std::uint64_t time_of_reads(const Clock& clock) const noexcept {
      return clock.now();
    }
    void end() const noexcept { base::rtm::end(); }
    void cancel() const noexcept { base::rtm::end(); }  // commits no change; the exception survives
    [[nodiscard]] static constexpr Abort take_cause() noexcept { return Abort::none; }
    void shut_out() const noexcept {}  // the lock's line was in every try's read set
    void let_in() const noexcept {}

    [[nodiscard]] static constexpr Abort cause_of(unsigned status) noexcept {
      using namespace base::rtm;
      if ((status & by_abort) != 0)
        return code_of(status) == lock_is_held ? Abort::lock_held : Abort::not_here;
      if ((status & by_capacity) != 0) return Abort::capacity;
      return (status & by_conflict) != 0 ? Abort::conflict : Abort::other;
    }
  };
};

}  // namespace perdure::tm
