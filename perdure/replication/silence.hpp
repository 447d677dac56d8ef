// SPDX-License-Identifier: BSD-3-Clause
//
// Silence: when a standby takes over by itself (StandbyOptions::take_over_after): where the log
// answers, and its writer, which says how often it gives a sign, has given none for long. No clock
// of another machine is asked, and a mistake costs a change of the primary, never what the log has
// acknowledged (STREAM-3).
// Thread safety: an object belongs to one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace perdure::replication {

class Silence {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  /// `limit`: how long; 0: it is never over. `spread`, from 0 to 1: how much of a quarter of that
  /// is added, so that of several standbys one is first.
  Silence(milliseconds limit, double spread, Time now)
      : limit_(limit + milliseconds(static_cast<std::int64_t>(static_cast<double>(limit.count()) /
                                                              4 * spread))),
        wanted_(limit.count() > 0),
        since_(now) {}

  /// The log was read to its end. `news`: it had a frame that counts; `beat_ms`: what its last one
  /// says of its writer's signs.
  void heard(bool news, std::uint16_t beat_ms, Time now) noexcept {
    if (news) since_ = now;
    beat_ = milliseconds(beat_ms);
  }
  /// The log did not answer: the primary may not reach it, either, and gets the time to come back.
  void no_answer(Time now) noexcept {
    // mutant: silence-of-the-log
    since_ = now;
  }
  [[nodiscard]] bool over(Time now) const noexcept {
    // mutant: silence-needs-beats
    if (!wanted_ || beat_.count() == 0) return false;
    return now - since_ > std::max(limit_, signs_missing * beat_);
  }

 private:
  static constexpr int signs_missing = 3;
  const milliseconds limit_;
  const bool wanted_;
  milliseconds beat_{0};
  Time since_;
};

}  // namespace perdure::replication
