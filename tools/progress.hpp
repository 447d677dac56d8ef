// SPDX-License-Identifier: BSD-3-Clause
//
// Progress: reports on standard error how far a load is. A bar that is redrawn (terminal), one line
// every few seconds (plain), one JSON object per report (json, for programs that watch), or
// nothing. Single-threaded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "perdure/api/options.hpp"
#include "tools/json.hpp"

namespace perdure::tool {

class Progress {
 public:
  /// `kind`: auto (a bar on a terminal, otherwise plain for loads that last), bar, plain, json,
  /// none. `unit`: what is counted, for the reader and as the number's name in JSON.
  Progress(const std::string& kind, std::uint64_t total_bytes, std::string unit = "rows");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The first `rows` rows, up to `position` of the file, are durable. Cheap: it draws only as
  /// often as is useful.
  void durable(std::uint64_t rows, std::uint64_t position);
  /// Writes one line, for kind json only: {"event": name, ...details, "time": CLOCK_MONOTONIC
  /// seconds}.
  void event(const std::string& name, Json details);
  /// Where the load began, so that the rate is the rate of this run.
  void start(std::uint64_t rows, std::uint64_t position);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::uint64_t rows, std::uint64_t position);
  enum class Kind { none, bar, plain, json } kind_;
  std::string unit_;
  std::uint64_t total_, start_rows_ = 0, start_position_ = 0;
  Clock::time_point begun_ = Clock::now(), last_ = Clock::now();
  bool drawn_ = false;
};

/// Shows how far the recovery of a pool is, for Options::recovery: nothing for a recovery of less
/// than a second; then on a terminal a line that is redrawn and finally erased, otherwise one line
/// every five seconds.
[[nodiscard]] std::function<void(const RecoveryProgress&)> show_recovery(std::string path);

}  // namespace perdure::tool
