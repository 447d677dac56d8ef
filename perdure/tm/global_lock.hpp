// SPDX-License-Identifier: BSD-3-Clause
//
// global_lock: one writer or many readers. Reads and writes are plain; the writer keeps a volatile
// undo log for rollback.
//
// The lock scales with readers: each announces itself in its own slot (a full fence, no write to a
// shared line). A writer takes the mutex, raises its flag and waits, blocked if that takes long,
// for the readers to leave. The lock is held through before_publish. Nothing conflicts, so nothing
// restarts.
// Thread safety: a transaction belongs to its thread; transactions of one Shared may run
// concurrently.
#pragma once

#include <cstring>
#include <mutex>
#include <thread>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::tm {

struct GlobalLock {
  static constexpr const char* name = "global_lock";
  static constexpr bool isolates = true;

  struct Shared {
    explicit Shared(std::uint64_t start) : domain(start) {}
    /// Returns when no update is open, or the one that was has ended.
    void wait_for_updates() noexcept { const std::lock_guard wait(writer); }
    /// Whether no update is open. One that begins later sees what happened before the call.
    [[nodiscard]] bool no_update() const noexcept {
      heavy_fence();
      return !writing.load(std::memory_order_seq_cst);  // pairs with lock()'s exchange
    }
    Domain domain;
    alignas(128) std::atomic<bool> writing{false};
    std::mutex writer;
  };

  class Transaction {
   public:
    Transaction(Shared& shared, int slot)
        : shared_(shared), slot_(shared.domain.enter(slot)), me_(slot) {}

    void begin(bool update) {
      if (update) {
        lock();
        writer_ = true;
        return;
      }
      enter_reader();
    }
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) const noexcept { return *a; }
    template <class Load>
    [[nodiscard]] std::uint64_t read_by(const std::uint64_t*, Load&& load) const noexcept {
      return load();
    }
    void own(const std::uint64_t*) const noexcept {}
    void keep(std::uint64_t* a) { undo_.push(a, *a); }
    // A release store, for a snapshot's reader, which does not take the lock.
    void put(std::uint64_t* a, std::uint64_t v) noexcept { store_word(a, v); }
    void store(std::uint64_t* a, std::uint64_t v) {
      keep(a);
      put(a, v);
    }
    [[nodiscard]] bool direct() const noexcept { return true; }
    [[nodiscard]] bool alone() const noexcept { return true; }
    [[nodiscard]] UndoLog& undo() noexcept { return undo_; }
    template <class F>
    void commit(F&& before_publish) {
      auto& clock = shared_.domain.clock;
      // This thread holds the lock: no other thread draws an id.
      const std::uint64_t id = clock.load(std::memory_order_relaxed) + 1;
      slot_.pending.store(id, std::memory_order_release);  // pairs with low_watermark()
      clock.store(id, std::memory_order_release);          // pairs with low_watermark()
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

    void copy_begin() { enter_reader(); }
    void copy_line(void* to, const void* from) const noexcept { std::memcpy(to, from, 64); }
    void copy_end() noexcept { leave(); }

   private:
    void enter_reader() {
      for (;;) {
        // odd; pairs with lock()'s exchange
        slot_.active.exchange(++sequence_, std::memory_order_seq_cst);
        if (!shared_.writing.load(std::memory_order_seq_cst)) return;
        slot_.end(++sequence_);  // pairs with lock()
        const std::lock_guard wait(shared_.writer);
      }
    }
    void lock() {
      shared_.writer.lock();
      shared_.writing.exchange(true, std::memory_order_seq_cst);  // pairs with enter_reader()
      shared_.domain.wait_for_others(me_);                        // pairs with leave()
    }
    void leave() noexcept {
      if (writer_) {
        writer_ = false;
        shared_.writing.store(false, std::memory_order_release);  // pairs with enter_reader()
        shared_.writer.unlock();
      } else {
        slot_.end(++sequence_);  // even; pairs with lock()
      }
    }
    Shared& shared_;
    Slot& slot_;
    int me_;
    bool writer_ = false;
    std::uint64_t sequence_ = slot_.active.load(std::memory_order_relaxed);
    UndoLog undo_;
  };
};
static_assert(TransactionalMemory<GlobalLock>);

}  // namespace perdure::tm
