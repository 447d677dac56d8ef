// SPDX-License-Identifier: BSD-3-Clause
//
// none: the caller isolates. Loads and stores are plain; this TM only provides ids, rollback and
// the pause that a checkpoint needs.
//
// Thread safety: several threads may run transactions that access different 8-byte words and read
// nothing that another thread is writing. A checkpoint stops new transactions for a batch of lines
// (a gate), because nothing else tells it which lines are being written.
#pragma once

#include <cstring>
#include <mutex>
#include <thread>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::tm {

struct None {
  static constexpr const char* name = "none";
  static constexpr bool isolates = false;

  struct Shared {
    explicit Shared(std::uint64_t start) : domain(start) {}
    Domain domain;
    alignas(128) std::atomic<bool> closed{false};
    std::mutex gate;
  };

  class Transaction {
   public:
    Transaction(Shared& shared, int slot)
        : shared_(shared), slot_(shared.domain.enter(slot)), me_(slot) {}

    void begin(bool) {
      for (;;) {
        slot_.active.store(++sequence_, std::memory_order_relaxed);  // odd
        // pairs with copy_begin()'s heavy fence
        light_fence();
        // The acquire pairs with the release in copy_end().
        if (__builtin_expect(!shared_.closed.load(std::memory_order_acquire), 1)) return;
        leave();
        const std::lock_guard wait(shared_.gate);
      }
    }
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) const noexcept { return *a; }
    template <class Load>
    [[nodiscard]] std::uint64_t read_by(const std::uint64_t*, Load&& load) const noexcept {
      return load();
    }
    void own(const std::uint64_t*) const noexcept {}
    void keep(std::uint64_t* a) { undo_.push(a, *a); }
    // A release store, for a late reader of a frame (engine/shadow/frames.hpp).
    void put(std::uint64_t* a, std::uint64_t v) noexcept { store_word(a, v); }
    void store(std::uint64_t* a, std::uint64_t v) {
      keep(a);
      put(a, v);
    }
    [[nodiscard]] bool direct() const noexcept { return true; }
    [[nodiscard]] bool alone() const noexcept { return false; }
    [[nodiscard]] UndoLog& undo() noexcept { return undo_; }
    template <class F>
    void commit(F&& before_publish) {
      auto& clock = shared_.domain.clock;
      // pairs with low_watermark()
      slot_.pending.store(clock.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      // pairs with low_watermark()
      const std::uint64_t id = clock.fetch_add(1, std::memory_order_acq_rel) + 1;
      before_publish(id);
      slot_.pending.store(no_id, std::memory_order_release);  // pairs with low_watermark()
      undo_.reset();
      leave();
    }
    std::uint64_t end_read_only() noexcept {
      // pairs with commit()
      const std::uint64_t seen = shared_.domain.clock.load(std::memory_order_acquire);
      undo_.reset();
      leave();
      return seen;
    }
    void recheck(bool) const noexcept {}
    void rollback() noexcept {
      undo_.rollback();
      leave();
    }
    void backoff() noexcept { std::this_thread::yield(); }
    // Nothing conflicts here.
    [[nodiscard]] static bool mine(const Conflict&) noexcept { return false; }

    void copy_begin() {
      shared_.gate.lock();
      shared_.closed.store(true, std::memory_order_relaxed);
      heavy_fence();                        // pairs with begin()'s light fence
      shared_.domain.wait_for_others(me_);  // pairs with leave()
    }
    void copy_line(void* to, const void* from) const noexcept { std::memcpy(to, from, 64); }
    void copy_end() {
      shared_.closed.store(false, std::memory_order_release);  // pairs with the acquire in begin()
      shared_.gate.unlock();
    }

   private:
    void leave() noexcept { slot_.end(++sequence_); }  // even; pairs with copy_begin()
    Shared& shared_;
    Slot& slot_;
    int me_;
    std::uint64_t sequence_ = slot_.active.load(std::memory_order_relaxed);
    UndoLog undo_;
  };
};
static_assert(TransactionalMemory<None>);

}  // namespace perdure::tm
