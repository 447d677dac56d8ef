// SPDX-License-Identifier: BSD-3-Clause
//
// RedoEngine: what engines share that run transactions on a copy of the data region in DRAM and
// make them durable as redo records (log/record.hpp). How the data region follows is the engine's
// own: by checkpoints from the copy (shadow/), or by replay of the log (papers/dudetm).
//
// A pool keeps one of two commit orders, in its header:
//   strict     One ring per writing thread. STRICT-1: the record is appended and fenced before
//              isolation ends, so whatever a transaction read or overwrote was durable before it
//              drew its id, and the set of durable transactions is closed under reads and
//              overwrites. One fence per commit. Recovery replays every valid record above the
//              checkpoint id.
//   pipelined  Isolation ends at once. Records go through volatile logs and one log writer to one
//              ring, in id order (log_writer.hpp). PIPELINED-1: what is durable is a prefix of the
//              commit order, and acknowledgements wait for the durable id. Recovery takes the
//              prefix.
// A pool's background thread makes durable what no thread waits for, and writes the data region.
// `Derived` has these members for it:
//   follow_log(nap)           does a step of writing the data region; returns whether there may be
//                             more to do at once
//   nothing_to_follow()       returns whether nothing of that remains
//   persists_in_background()  returns whether the thread makes transactions durable by itself
//   sleeps_at_once()          optional: returns whether the thread sleeps as soon as nothing
//                             remains to be done, because each notify() asks for much
//   second_thread_follows()   optional: returns whether another thread calls follow_log(); this one
//                             then persists all that it finds, and polls for it before it naps
//   stop_second_thread()      optional, with it
//   persist(nap)              optional: replaces the one below
//   wait(id)                  optional: replaces the one below
// It also has identity(), transaction(), wait_for_log_space(), checkpoint(), stats() and
// last_recorded(): the newest transaction whose commit has returned, as records count transactions.
// Its destructor calls background_.stop(). RedoEngine and RedoTransaction are its friends, where
// these members are private. instances.cpp instantiates RedoEngine<Derived, Tm, Writer> beside
// Derived.
// Thread safety: any thread, unless a call says otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "perdure/engine/background.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/followed_log.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/log/log_writer.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine {

/// E::recover of such an engine. RECOVERY-1: it writes the data region only, and only what the log
/// says, so a recovery that was cut short can be repeated.
Status recover_redo_log(pool::OpenPool& file, Recovery& report);

template <class Derived, class Tm, class Writer>
class RedoEngine {
 public:
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shadow;
  static constexpr bool ring_records = true;

  static Status recover(pool::OpenPool& file, Recovery& report) {
    return recover_redo_log(file, report);
  }

  /// Returns when every transaction with an id <= `id` is durable, or when the medium has failed.
  Status wait(std::uint64_t id);
  [[nodiscard]] std::uint64_t durable_id() const noexcept {
    // The low watermark is read first: an id is lost before its slot stops pending, which
    // low_watermark() acquires.
    const std::uint64_t watermark = strict_ ? tm_.domain.low_watermark() : 0;
    return strict_ ? std::min(watermark, core_.first_lost() - 1) : writer_.durable();
  }
  Status close();
  [[nodiscard]] EngineBase& core() noexcept { return core_; }
  [[nodiscard]] bool strict() const noexcept { return strict_; }

 protected:
  template <class, class, class>
  friend class RedoTransaction;
  // The background thread's nap after which a pool counts as idle: no commit for 3 ms.
  static constexpr std::chrono::microseconds long_nap{1600};
  // The size of one device write. Larger groups gain nothing and wait longer.
  static constexpr std::uint64_t max_group = 1 << 20;

  RedoEngine(pool::OpenPool& file, const Config& config, const Recovery& recovery)
      : RedoEngine(file, config, recovery, file.header().checkpoint_id) {}
  /// The same, where the session's ids begin above `start`.
  RedoEngine(pool::OpenPool& file, const Config& config, const Recovery& recovery,
             std::uint64_t start);
  /// Precondition: Derived has called background_.stop(), because the thread uses Derived's
  /// members.
  ~RedoEngine() = default;

  [[nodiscard]] static pool::Identity identity_of(pool::CommitOrder order, const Config& config) {
    pool::Identity who;
    who.order = order;
    who.rings =
        order == pool::CommitOrder::pipelined ? 1 : std::max<std::uint32_t>(config.threads, 1);
    return who;
  }
  /// For an asynchronous commit: the background thread makes it durable within the promised time.
  /// Where there is no such thread, the thread that commits does.
  void commit_waits_for_nobody(std::uint64_t id);
  /// ALLOC-1: allocates the next `bytes` of the log, in `ring` where the order is strict. Returns
  /// false if they were allocated already, so that something else is lacking. Throws error(full) if
  /// the disk has no block left: the transaction was rolled back, and is not run again.
  bool allocate_log(log::Ring& ring, std::uint64_t bytes);
  /// Makes committed transactions durable, with at most one record. Returns whether it wrote one.
  bool persist(std::chrono::microseconds nap);
  /// Pauses after a small record. The parameters are what had been written before it.
  void pause_after(std::uint64_t bytes_before, std::uint64_t transactions_before);
  /// Sets all of `stats` except the checkpoint id, the checkpoints and what only Derived counts.
  void fill(Stats& stats) const;

  EngineBase core_;
  typename Tm::Shared tm_;
  const bool strict_;
  ThreadLogs<log::Ring> rings_;          // strict: one per thread; pipelined: one
  std::atomic<bool> async_seen_{false};  // a commit was asynchronous
  Writer writer_;
  // Those that read the rings besides.
  class Followed final : public FollowedLog {
   public:
    explicit Followed(RedoEngine& engine) noexcept : engine_(engine) {}
    [[nodiscard]] std::uint64_t followable_id() const noexcept override {
      return engine_.durable_id();
    }
    [[nodiscard]] std::uint32_t refuses() const noexcept override { return engine_.core_.state(); }
    [[nodiscard]] log::LogCursor cursor() const override;
    void depose(const Status& why) noexcept override { engine_.core_.depose(why); }
    [[nodiscard]] StatWriter& page() noexcept override { return engine_.core_.page(); }

   private:
    RedoEngine& engine_;
  };
  Followed followed_{*this};
  Background background_{[this] { guarded([this] { work(); }); }};
  /// Runs f() on a thread of the engine's own: what it throws poisons the pool.
  template <class F>
  void guarded(F&& f) noexcept;

 private:
  [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }
  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }
  void work();
  /// Whether nothing remains that the background thread has to do. While it sleeps (BG-1), this
  /// changes only with a notify() afterwards.
  [[nodiscard]] bool nothing_to_do() const noexcept;
};

}  // namespace perdure::engine
