// SPDX-License-Identifier: BSD-3-Clause
//
// Rtm: Htm's hardware where the processor has it (base/rtm.hpp). Conflicts are found by the caches,
// line by line; what was stored is seen by all at XEND or by nobody. An abort comes back to
// start(), wherever the transaction was by then.
//
// What a try writes that is other threads' too aborts it or them: the words of the pool; the
// bitmaps of spans and the heap's lists that threads share (a refill of a thread's cache of blocks;
// growth of the pool, which ends in system calls and so under the lock). Counters, undo and records
// are a thread's own. A page's first store, or first load, is a fault that no try gets past: after
// five the lock's holder takes it.
// Thread safety: as Htm.
#pragma once

#include "perdure/base/rtm.hpp"
#include "perdure/tm/htm.hpp"

namespace perdure::tm {

struct Rtm {
  static constexpr const char* name = "htm";
  static constexpr bool buffers = false, returns_to_start = true;

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
    }  // pairs with complete
    void drain() const noexcept { drain_store_buffer(); }
    [[nodiscard]] std::uint64_t draw(const StampClock& clock, int slot) const noexcept {
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
    // it is end(): a failure comes back to start()
    void last_point_of_failure(const StampClock&) const noexcept {}
    [[nodiscard]] std::uint64_t time_of_reads(const StampClock& clock) const noexcept {
      return clock.now();
    }
    void end() const noexcept { base::rtm::end(); }
    void cancel() const noexcept { base::rtm::end(); }  // all is undone; what was thrown stays
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
