// SPDX-License-Identifier: BSD-3-Clause
//
// The time until a transaction's thread knows that it is durable (DudeTM, ASPLOS '17, section 5.3):
// an application performs a transaction, asks up to which id everything is durable, acknowledges
// what that covers, and continues. If a system's update returns when it is durable, the latency is
// the update's time.
// Thread safety: a Latencies belongs to one thread; its results are collected after the thread has
// ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace bench {

class Latencies {
 public:
  using Clock = std::chrono::steady_clock;

  /// A transaction that began at `began` has the id `id`; every id up to `durable` is durable.
  void performed(Clock::time_point began, std::uint64_t id, std::uint64_t durable) {
    if (last_ != 0) {
      ++followed_;
      in_time_ += durable >= last_ ? 1 : 0;
    }
    last_ = id;
    waiting_.push_back({id, began});
    acknowledge(durable);
  }
  void acknowledge(std::uint64_t durable) {
    if (waiting_.empty() || waiting_.front().id > durable) return;
    const auto now = Clock::now();
    for (; !waiting_.empty() && waiting_.front().id <= durable; waiting_.pop_front())
      microseconds_.push_back(
          std::chrono::duration<double, std::micro>(now - waiting_.front().began).count());
  }
  /// The percentiles over several threads: {"latency_p50_us", ...}; and the share of transactions
  /// that were durable when their thread's next one had been performed, "durable_by_next".
  static std::map<std::string, double> percentiles(std::vector<Latencies>& threads) {
    std::vector<double> all;
    for (auto& t : threads) all.insert(all.end(), t.microseconds_.begin(), t.microseconds_.end());
    if (all.empty()) return {};
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
      return all[std::min(all.size() - 1,
                          static_cast<std::size_t>(share * static_cast<double>(all.size())))];
    };
    std::uint64_t followed = 0, in_time = 0;
    for (const auto& t : threads) followed += t.followed_, in_time += t.in_time_;
    std::map<std::string, double> found{
        {"latency_p50_us", at(0.5)},    {"latency_p90_us", at(0.9)},
        {"latency_p99_us", at(0.99)},   {"latency_p999_us", at(0.999)},
        {"latency_max_us", all.back()}, {"latency_samples", static_cast<double>(all.size())}};
    if (followed != 0)
      found["durable_by_next"] = static_cast<double>(in_time) / static_cast<double>(followed);
    return found;
  }

 private:
  struct Waiting {
    std::uint64_t id;
    Clock::time_point began;
  };
  std::uint64_t last_ = 0;                    // the id of the newest; 0: none, or none is known
  std::uint64_t followed_ = 0, in_time_ = 0;  // transactions that another one followed
  std::deque<Waiting> waiting_;
  std::vector<double> microseconds_;
};

}  // namespace bench
