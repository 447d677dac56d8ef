// SPDX-License-Identifier: BSD-3-Clause
//
// How recovery is to be done, and its progress for a user that waits: first the bytes of log that
// are read and checked, then the bytes that are applied.
//
// Thread safety: a Progress belongs to the thread that opens the pool; that thread alone calls the
// callback.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace perdure::log {

/// `done` out of `total` bytes of log. `read`: the whole log is scanned, whether it holds records
/// or not. `apply`: its records are stored to the data region. Within a stage `done` does not fall
/// and `total` stays.
struct RecoveryProgress {
  /// What recovery is doing: reading the log, or applying what it held.
  enum class Stage : std::uint8_t { read, apply };
  /// The stage that `done` and `total` belong to.
  Stage stage = Stage::read;
  /// Bytes of log.
  std::uint64_t done = 0, total = 0;
};

struct RecoveryPlan {
  /// Number of threads that read and apply the log, 1 to 8. 0: as many as pay for their start.
  unsigned threads = 0;
  std::function<void(const RecoveryProgress&)> progress;  ///< may be empty; does not throw
};

/// Reports an engine's progress between recovery's beginning and its end (engine::recover reports
/// those two), at most every 100 ms.
class Progress {
 public:
  static constexpr std::uint64_t step = 1 << 20;  ///< bytes between two looks at the clock
  explicit Progress(const RecoveryPlan* plan = nullptr)
      : told_(plan != nullptr && plan->progress ? &plan->progress : nullptr), last_(Clock::now()) {}

  void begin(RecoveryProgress::Stage stage, std::uint64_t total) {
    at_ = {stage, 0, total};
    next_ = step;
  }
  void to(std::uint64_t done) {
    if (done < next_) return;
    at_.done = done < at_.total ? done : at_.total;
    next_ = done + step;
    if (told_ == nullptr || Clock::now() - last_ < std::chrono::milliseconds(100)) return;
    (*told_)(at_);
    last_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::function<void(const RecoveryProgress&)>* told_;
  RecoveryProgress at_;
  std::uint64_t next_ = 0;
  Clock::time_point last_;
};

}  // namespace perdure::log
