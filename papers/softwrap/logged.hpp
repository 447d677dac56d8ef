// SPDX-License-Identifier: BSD-3-Clause
//
// The part that both variants of SoftWrAP share: one log per thread (papers/softwrap/wrap_log.hpp),
// and a wrap's part in it.
// Invariants SOFTWRAP-1 to SOFTWRAP-4: softwrap.hpp.
// Thread safety: any thread may call the engine; a transaction belongs to its thread.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "papers/names.hpp"
#include "papers/softwrap/wrap_log.hpp"
#include "perdure/engine/data_at_commit.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/engine/thread_logs.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::papers::softwrap {

inline constexpr const char* global_family = "softwrap";
inline constexpr const char* local_family = "softwrap-local";

/// Returns where a pool's log `ring` lies.
[[nodiscard]] WrapPlace place_of(const pool::Header& header, std::uint32_t ring) noexcept;
/// Section IV-C, for both variants: replays the closed wraps of all logs in the order of their ids;
/// stale ones, which never closed, are bypassed.
Status recover(pool::OpenPool& file, Recovery& report);
/// The same for the logs of a pool that is open and idle: when it returns, the data region durably
/// holds what was closed above X (section IV-B).
Status replay_closed(medium::Medium& medium, const pool::Header& header, Recovery& report);

/// The logs, which both variants have.
template <class Tm>
class Logged : public DataAtCommit<Tm> {
  using Base = DataAtCommit<Tm>;

 public:
  static constexpr bool ring_records = false;
  static pool::Identity identity(const Config& config) {
    pool::Identity who = Base::a_log_each(config);
    who.min_ring = 16384;
    return who;
  }
  static Status recover(pool::OpenPool& file, Recovery& report) {
    return softwrap::recover(file, report);
  }

 protected:
  Logged(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~Logged() = default;
  /// The common part of close(), after a checkpoint.
  Status close_logs(Status s);
  void fill(Stats& stats) const;
  ThreadLogs<WrapLog> logs_;  // a turn is held while a wrap has the log open
};

/// A wrap's log, as the transactions of both variants have it.
template <class Tm>
class WrapTransaction : public TransactionBase<Tm> {
  using Base = TransactionBase<Tm>;

 protected:
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::tm_, Base::view_;
  WrapTransaction(typename Tm::Shared& shared, EngineBase& core, int slot,
                  ThreadLogs<WrapLog>& logs)
      : Base(shared, core, slot), use_(logs, slot), data_writer_(core.medium, directory_) {}
  ~WrapTransaction() = default;

  [[nodiscard]] WrapLog& log() noexcept { return use_.log(); }
  /// Checks that `bytes` more of entries fit; the first call opens the log. Throws LogFull,
  /// error(too_big).
  template <class Bucket>
  void room(std::uint64_t bytes, Bucket&& bucket) {
    if (__builtin_expect(!open_, 0)) {
      (void)use_.begin();
      log().open(bucket());
      open_ = true;
    }
    if (__builtin_expect(!log().fits(bytes) || core_.state() != 0, 0)) no_log_space(bytes);
  }
  void no_log_space(std::uint64_t bytes);
  /// SOFTWRAP-4: streams an object to the start of a block that this transaction has allocated, and
  /// logs that it lies there, without its bytes. room(run_bytes(0)) comes first.
  void stream_object(std::uint64_t offset, const void* object, std::uint64_t bytes) noexcept;
  /// SOFTWRAP-4: objects that were streamed are durable before the close of the wrap is streamed.
  Status objects_durable() noexcept {
    // mutant: softwrap-objects-before-close
    return std::exchange(streamed_, false) ? core_.medium.fence() : Status();
  }
  /// Stores words of the wrap to the data region, after its log is durable (SOFTWRAP-1).
  void store_home(std::span<const medium::WordStore> words) noexcept {
    core_.medium.store_words(core_.medium.log_bytes(), words);
  }
  /// The same past the cache, durably. No other thread's fence covers what this one has streamed.
  Status stream_home(std::span<const medium::WordStore> words) noexcept {
    core_.medium.stream_words(core_.medium.log_bytes(), words);
    // mutant: softwrap-streamed-home-durable
    return core_.medium.fence();  // the words, before their log's bucket may begin again
  }
  /// From this many words on, words that are written at once share one log entry: separate entries
  /// of 12 bytes each would take no less.
  static constexpr std::uint64_t min_run = 4;
  // Includes an entry for the segment before it.
  static constexpr std::uint64_t word_bytes = 2 * WrapRecord::entry_bytes;
  static constexpr std::uint64_t run_bytes(std::uint64_t n) {
    return WrapRecord::entry_bytes * (1 + n / WrapRecord::max_in_run) + n * 8;
  }
  void end_log() noexcept {
    open_ = streamed_ = false;
    needed_ = 0;
    ops_.clear();
    inside_ = false;
    use_.end();
  }

  typename ThreadLogs<WrapLog>::Use use_;
  bool open_ = false;      // the log, for this wrap
  bool streamed_ = false;  // objects, since the last fence
  // It has thrown LogFull with this many bytes: if a caller swallowed that, commit throws it
  // again.
  std::uint64_t needed_ = 0;
  log::DataWriter data_writer_;
};

}  // namespace perdure::papers::softwrap
