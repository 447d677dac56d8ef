// SPDX-License-Identifier: BSD-3-Clause
//
// Volatile: transactional memory and the heap, and nothing durable: the baseline that shows what
// durability costs (DudeTM's Volatile-STM). Stores go to a DRAM copy of the pool; closing or
// crashing leaves the data region as it was. Nothing that is acknowledged is durable.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::volatile_memory {

template <class Tm>
class Volatile {
 public:
  static constexpr const char* name = "volatile";
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shadow;
  static constexpr bool ring_records = true, keeps_data = false;

  static pool::Identity identity(const Config&) { return {}; }
  static Status supported() {
    if constexpr (tm::has_timestamps<Tm>) return Tm::supported();
    return {};
  }
  static Status recover(pool::OpenPool&, Recovery&) { return {}; }

  Volatile(pool::OpenPool& file, const Config& config, const Recovery& recovery)
      : core_(file, config, recovery), tm_(file.header().checkpoint_id) {
    core_.views_in(tm_.domain);
  }

  class Transaction : public TransactionBase<Tm> {
    using Base = TransactionBase<Tm>;
    using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::ops_, Base::row_,
        Base::shows_, Base::tm_, Base::view_;

   public:
    Transaction(Volatile& engine, int slot)
        : Base(engine.tm_, engine.core_, slot), engine_(engine), target_(view_, nullptr) {}
    void write(std::uint64_t* a, std::uint64_t v) {
      wrote_ = true;
      tm_.own(a);
      tm_.store(a, v);
    }
    void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
    }
    std::byte* alloc(std::uint64_t bytes) {
      return view_ + ops_.allocate(heap_, bytes, tm_, view_, directory_).offset;
    }
    void free(void* p) { ops_.free(heap_, this->offset_of(p), tm_); }
    std::uint64_t commit(Durability) {
      if (!wrote_ && ops_.empty()) return this->end_read_only();
      if (core_.forked()) core_.refuse();
      std::uint64_t id = 0;
      const auto apply = [&] {
        target_.alone(tm_.alone());
        this->apply_heap_ops(target_);
      };
      if constexpr (tm::has_timestamps<Tm>)
        tm_.commit(apply, [&](std::uint64_t drawn) { id = drawn; });
      else
        tm_.commit([&](std::uint64_t drawn) {
          id = drawn;
          apply();
        });
      if (!ops_.empty()) {
        ops_.reusable(heap_);
        ops_.clear();
      }
      wrote_ = inside_ = false;
      ThreadCounters::add(row_.commits);
      if (shows_.due()) EngineBase::show_stats(engine_);
      return id;
    }
    void rollback() noexcept {
      if (!inside_) return;
      inside_ = false;
      if (core_.forked()) return;
      wrote_ = false;
      this->abandon();
    }

   private:
    bool wrote_ = false;
    Volatile& engine_;
    ViewTarget target_;
  };

  [[gnu::always_inline]] Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  void wait_for_log_space(Transaction&, LogSpace) {}
  Status wait(std::uint64_t) { return core_.why(); }
  [[nodiscard]] std::uint64_t durable_id() const noexcept { return 0; }
  [[nodiscard]] static constexpr bool strict() noexcept { return false; }
  Status checkpoint() { return core_.why(); }
  /// The data region is as it was and the rings are empty: the pool is as clean as at opening.
  Status close() {
    Status s;
    if (!core_.file.read_only())
      s = core_.state() != 0 ? core_.why() : core_.publish([](pool::Header& h) { h.clean = 1; });
    core_.closed();
    return s;
  }
  Stats stats() {
    Stats s;
    core_.fill(s);
    s.last_id = tm::last_id<Tm>(tm_);
    if constexpr (tm::has_timestamps<Tm>) {
      s.aborts += tm_.unseen_aborts();
      s.without_lock = tm_.committed();
    }
    return s;
  }
  [[nodiscard]] EngineBase& core() noexcept { return core_; }

 private:
  EngineBase core_;
  typename Tm::Shared tm_;
  Transactions<Transaction> transactions_;
};

}  // namespace perdure::engine::volatile_memory
