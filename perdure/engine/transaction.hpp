// SPDX-License-Identifier: BSD-3-Clause
//
// The part of a transaction that all engines share: what engine::run and the API see of it, up to
// the writes and the commit, which each engine implements. A thread has one object per pool, which
// is its transactions, one after another. README.md says what an engine adds.
// Thread safety: used by its thread alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/engine/engine_base.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine {

template <class Tm>
class TransactionBase {
 public:
  TransactionBase(const TransactionBase&) = delete;
  TransactionBase& operator=(const TransactionBase&) = delete;

  void begin(bool update) {
    if (__builtin_expect(core_.state() != 0, 0) &&
        (update || (core_.state() & ~EngineBase::read_only_bit) != 0))
      core_.refuse();
    tm_.begin(update);  // first: it may throw, to end another pool's transaction
    inside_ = true;
    update_ = update;
  }
  [[nodiscard]] bool inside() const noexcept {
    // Active without a transaction: in a direct view. In a forked child it may be what is left of
    // the parent's transaction, which the child can't end.
    if constexpr (tm::has_direct_views<typename Tm::Transaction>)
      return inside_ || (tm_.is_active() && !core_.forked());
    else
      return inside_;
  }
  [[nodiscard]] bool in_view() const noexcept { return !inside_ || !update_; }
  [[nodiscard]] bool direct() const noexcept { return tm_.direct(); }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) { return tm_.read(a); }
  void backoff() noexcept {
    ThreadCounters::add(row_.aborts);
    tm_.backoff();
  }
  /// Returns the retries of this thread slot that no Conflict reported: a hardware transaction that
  /// aborts returns to begin().
  [[nodiscard]] std::uint64_t unseen_retries() const noexcept {
    if constexpr (tm::has_timestamps<Tm>)
      return tm_.unseen_aborts();
    else
      return 0;
  }
  /// What a change has thrown (REFUSED-1).
  [[nodiscard]] Refusal& refusal() noexcept { return refusal_; }
  [[nodiscard]] bool mine(const tm::Conflict& c) const noexcept { return tm_.mine(c); }
  [[nodiscard]] bool mine(const LogFull& full) const noexcept { return full.whose == &tm_; }

  /// The short path of run_view: begins a view whose reads are plain, or returns false, after which
  /// begin(false) is needed. It asks neither whether the pool refuses views nor, at its end,
  /// whether what it read may be lost: a pool that refuses has taken the grants back
  /// (EngineBase::refusing), and beside a direct view no other thread commits, nor has this thread
  /// a commit that failed.
  [[nodiscard]] [[gnu::always_inline]] bool try_direct_view() noexcept {
    if constexpr (!tm::has_direct_views<typename Tm::Transaction>)
      return false;
    else
      return tm_.try_direct_view();
  }
  [[gnu::always_inline]] void leave_direct_view() noexcept {
    if constexpr (tm::has_direct_views<typename Tm::Transaction>) tm_.end_direct_view();
  }
  /// Returns the id that bounds what the view saw if `bound` is set, otherwise 0.
  [[gnu::always_inline]] std::uint64_t end_direct_view(bool bound) {
    std::uint64_t seen = 0;
    if constexpr (tm::has_direct_views<typename Tm::Transaction>)
      if (bound) seen = tm_.seen();
    leave_direct_view();
    return seen;
  }

 protected:
  TransactionBase(typename Tm::Shared& shared, EngineBase& core, int slot)
      : tm_(shared, slot),
        core_(core),
        row_(core.rows[static_cast<std::size_t>(slot)]),
        heap_(core.file.heap()),
        view_(core.file.view()),
        directory_(core.file.header()),
        shows_(core.config.fence_is_sync) {}
  ~TransactionBase() = default;

  [[nodiscard]] std::uint64_t offset_of(const void* a) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(a) - view_);
  }
  [[noreturn]] void throw_log_full(LogSpace needed) const { throw LogFull{needed, &tm_}; }
  /// Ends a transaction that changed nothing. Returns the id that bounds what it saw.
  std::uint64_t end_read_only() {
    const std::uint64_t seen = tm_.end_read_only();
    inside_ = false;
    ThreadCounters::add(row_.reads);
    if (core_.poisoned()) core_.refuse();  // what it read may be lost (EngineBase::lost)
    return seen;
  }
  /// Ends a commit that changed something, after its locks are released.
  template <class Engine>
  void committed(Engine& engine) {
    ThreadCounters::add(row_.commits);
    if (core_.poisoned()) core_.refuse();
    if (shows_.due()) EngineBase::show_stats(engine);
  }
  /// Makes a transaction durable, within the TM's commit and so before its locks are released:
  /// persist() -> Status, which throws nothing. Its failure poisons the pool and marks the id as
  /// lost before any thread sees the transaction. Where the pool is poisoned already, `poisoned` is
  /// called instead of `persist`: the transaction may not become durable without those whose stores
  /// it read or overwrote (LAW-9, EngineBase::lost). Returns false if the transaction is lost.
  template <class Persist, class Poisoned>
  [[nodiscard]] [[gnu::always_inline]] bool persist_or_lose(std::uint64_t id, Persist&& persist,
                                                            Poisoned&& poisoned) {
    if (__builtin_expect(core_.poisoned(), 0)) {
      poisoned();
      core_.lost(id, {});
      return false;
    }
    const Status s = persist();
    if (__builtin_expect(s.ok(), 1)) return true;
    core_.lost(id, s);
    return false;
  }
  /// The commit of an engine whose transactions are durable before their locks are released:
  ///   prepare()    Everything that may fail: it throws, and the transaction is rolled back.
  ///   persist(id)  Makes the transaction durable, as above: its log, then what it stores to the
  ///                data region. Each engine decides the order of the heap's bits, fences and
  ///                locks.
  ///   finish()     Ends the transaction, after its locks are released: it clears
  ///                inside_, ops_ and what the engine has gathered.
  /// Returns the id. Throws what prepare() and the TM's commit throw. Throws error(poisoned) after
  /// the end where the transaction, or one that it depends on, may be lost.
  template <class Engine, class Prepare, class Persist, class Finish>
  std::uint64_t commit_durably(Engine& engine, Prepare&& prepare, Persist&& persist,
                               Finish&& finish) {
    if (core_.forked()) core_.refuse();
    prepare();
    std::uint64_t id = 0;
    // mutant: commit-isolation-until-fence
    tm_.commit([&](std::uint64_t drawn) {
      id = drawn;
      (void)persist_or_lose(drawn, [&] { return persist(drawn); }, [] {});
    });
    if (!ops_.empty()) ops_.reusable(heap_);
    finish();
    committed(engine);
    return id;
  }
  /// Applies a commit's heap ops to the words of the data region that `target` has.
  template <class Target>
  void apply_heap_ops(Target& target) {
    for (const auto& op : ops_) {
      pool::apply_op(target, op, directory_);
      heap_.note_applied(op);
    }
  }
  /// Aborts. The frees are forgotten while the transaction is isolated, because later transactions
  /// may free the same blocks. What it allocated is released after the TM has restored the old
  /// values in it, because other transactions may have it then.
  void abandon() noexcept {
    ops_.forget_frees(heap_);
    tm_.rollback();
    ops_.release(heap_);
    refusal_.forget();  // the papers' calls roll back without run()
  }

  typename Tm::Transaction tm_;
  bool inside_ = false, update_ = false;
  EngineBase& core_;
  ThreadCounters& row_;
  pool::Heap& heap_;
  std::byte* const view_;
  const pool::Directory directory_;
  ShowTimer shows_;
  HeapOps ops_;
  Refusal refusal_;
};

}  // namespace perdure::engine
