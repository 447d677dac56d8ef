// SPDX-License-Identifier: BSD-3-Clause
//
// Volatile: transactional memory and the heap, and nothing durable: the baseline that says what durability costs (DudeTM's
// Volatile-STM). Stores go to a DRAM copy of the pool; closing or crashing leaves home as it was. Nothing acknowledged is durable.
// Thread safety: as Shadow.
#pragma once

#include "perdure/engine/core.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::volatile_memory {

template <class Tm>
class Volatile {
 public:
  static constexpr const char* name = "volatile";
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shadow;

  static pool::Identity identity(const Config&) {
    pool::Identity who;
    who.engine = name;
    return who;
  }
  static Status recover(pool::PoolFile& file, Recovery& report) {
    report.was_clean = file.header().clean != 0;
    report.last_id = file.header().applied;
    return {};
  }

  Volatile(pool::PoolFile& file, const Config& config, const Recovery& recovery)
      : core_(file, config, recovery), tm_(file.header().applied) {}

  /// Heap ops go to the view alone.
  class Target final : public pool::HeapTarget {
   public:
    explicit Target(std::byte* view) : view_(view) {}
    [[nodiscard]] std::uint64_t load(std::uint64_t o) const override { return __atomic_load_n(at(o), __ATOMIC_ACQUIRE); }  // pairs with store
    void store(std::uint64_t o, std::uint64_t v) override { __atomic_store_n(at(o), v, __ATOMIC_RELEASE); }
    void set_bits(std::uint64_t o, std::uint64_t m) override { __atomic_fetch_or(at(o), m, __ATOMIC_ACQ_REL); }
    void clear_bits(std::uint64_t o, std::uint64_t m) override { __atomic_fetch_and(at(o), ~m, __ATOMIC_ACQ_REL); }

   private:
    [[nodiscard]] std::uint64_t* at(std::uint64_t o) const noexcept { return reinterpret_cast<std::uint64_t*>(view_ + o); }
    std::byte* view_;
  };

  class Context {
   public:
    Context(Volatile& engine, int slot)
        : tm_(engine.tm_, slot),
          engine_(engine),
          core_(engine.core_),
          view_(core_.file.view()),
          heap_(core_.file.heap()),
          row_(core_.rows[static_cast<std::size_t>(slot)]),
          target_(view_),
          shows_(core_.config.fence_is_sync) {}
    void begin(bool update) {
      if (__builtin_expect(core_.state() != 0, 0) && (update || (core_.state() & ~Core::read_only_bit) != 0)) core_.refuse();
      inside_ = true;
      update_ = update;
      wrote_ = false;
      tm_.begin(update);
    }
    /// engine::run_view's fast path.
    [[nodiscard]] [[gnu::always_inline]] bool try_direct_view() noexcept {
      if (__builtin_expect(inside_ || core_.state() != 0, 0)) return false;
      if constexpr (!tm::has_direct_views<typename Tm::Context>)
        return false;
      else if (!tm_.try_direct_view())
        return false;
      inside_ = true;
      update_ = false;
      return true;
    }
    [[gnu::always_inline]] void leave_direct_view() noexcept {
      inside_ = false;
      if constexpr (tm::has_direct_views<typename Tm::Context>) tm_.end_direct_view();
    }
    [[gnu::always_inline]] std::uint64_t end_direct_view(bool bound) {
      std::uint64_t seen = 0;
      if constexpr (tm::has_direct_views<typename Tm::Context>)
        if (bound) seen = tm_.seen();
      leave_direct_view();
      Row::add(row_.reads);
      if (core_.poisoned()) core_.refuse();  // what it read may be lost (Core::lost)
      return seen;
    }
    [[nodiscard]] bool inside() const noexcept { return inside_; }
    [[nodiscard]] bool in_view() const noexcept { return !update_; }
    [[nodiscard]] bool direct() const noexcept { return tm_.direct(); }
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) { return tm_.read(a); }
    void write(std::uint64_t* a, std::uint64_t v) {
      wrote_ = true;
      tm_.own(a);
      tm_.store(a, v);
    }
    void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
    }
    std::byte* alloc(std::uint64_t bytes) { return view_ + ops_.allocate(heap_, bytes, tm_, view_, core_.file.header().max_home_bytes).offset; }
    void free(void* p) { ops_.free(heap_, static_cast<std::uint64_t>(static_cast<std::byte*>(p) - view_), tm_); }
    std::uint64_t commit(Durability) {
      std::uint64_t id = 0;
      if (!wrote_ && ops_.empty()) {
        id = tm_.end_read_only();
        Row::add(row_.reads);
      } else {
        if (core_.forked()) core_.refuse();
        tm_.commit([&](std::uint64_t drawn) {
          id = drawn;
          for (const auto& op : ops_) {
            pool::apply(target_, op, core_.file.header().max_home_bytes);
            heap_.note_applied(op);
          }
        });
        if (!ops_.empty()) {
          ops_.reusable(heap_);
          ops_.clear();
        }
        Row::add(row_.commits);
        if (shows_.due()) Core::show_stats(engine_);
      }
      inside_ = false;
      return id;
    }
    void rollback() noexcept {
      if (!inside_) return;
      inside_ = false;
      if (core_.forked()) return;
      ops_.release(heap_);
      tm_.rollback();
    }
    void backoff() noexcept {
      Row::add(row_.aborts);
      tm_.backoff();
    }
    [[nodiscard]] bool mine(const tm::Conflict& c) const noexcept { return tm_.mine(c); }

   private:
    typename Tm::Context tm_;
    bool inside_ = false, update_ = false, wrote_ = false;
    Volatile& engine_;
    Core& core_;
    std::byte* const view_;
    pool::Heap& heap_;
    Row& row_;
    Target target_;
    HeapOps ops_;
    ShowTimer shows_;
  };

  [[gnu::always_inline]] Context& context() {
    return contexts_.get([this](int slot) { return std::make_unique<Context>(*this, slot); });
  }
  void make_room(Context&, std::uint64_t) {}
  Status wait(std::uint64_t) { return core_.why(); }
  [[nodiscard]] std::uint64_t durable_id() const noexcept { return 0; }
  [[nodiscard]] static constexpr bool held() noexcept { return false; }
  Status checkpoint() { return core_.why(); }
  /// Home is as it was and the rings are empty: the pool is as clean as at opening.
  Status close() {
    Status s;
    if (!core_.file.read_only()) s = core_.state() != 0 ? core_.why() : core_.publish([](pool::Header& h) { h.clean = 1; });
    core_.closed();
    return s;
  }
  Stats stats() {
    Stats s;
    core_.fill(s);
    s.last_id = tm_.domain.clock.load(std::memory_order_relaxed);
    return s;
  }
  [[nodiscard]] Core& core() noexcept { return core_; }

 private:
  Core core_;
  typename Tm::Shared tm_;
  Contexts<Context> contexts_;
};

}  // namespace perdure::engine::volatile_memory
