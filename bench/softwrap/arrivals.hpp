// SPDX-License-Identifier: BSD-3-Clause
//
// Open-loop arrivals: wraps are due at fixed intervals whether or not the previous one has ended,
// and a wrap's response time counts from when it was due (papers: SoftWrAP, MSST '15, section
// V-C.1). With a rate of 0 each wrap follows the previous one, and its response time is its service
// time.
// Thread safety: one Schedule and one Times per thread.
#pragma once

#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "perdure/medium/delay.hpp"

namespace bench::softwrap {

/// Ticks of the time-stamp counter, read after all earlier instructions and before all later ones.
inline std::uint64_t ticks() noexcept {
  _mm_lfence();
  const std::uint64_t t = __rdtsc();
  _mm_lfence();
  return t;
}
inline double nanoseconds(std::uint64_t n) {
  return static_cast<double>(n) / perdure::medium::ticks_per_ns();
}

class Schedule {
 public:
  /// `rate`: arrivals per second; the first one is at once.
  explicit Schedule(double rate)
      : interval_(rate > 0 ? 1e9 / rate * perdure::medium::ticks_per_ns() : 0), start_(ticks()) {}
  /// Waits until number `n` is due, and returns the time at which it was due.
  [[nodiscard]] std::uint64_t wait(std::uint64_t n) const noexcept {
    if (interval_ <= 0) return ticks();
    const std::uint64_t due =
        start_ + static_cast<std::uint64_t>(interval_ * static_cast<double>(n));
    while (ticks() < due) {}
    return due;
  }
  [[nodiscard]] std::uint64_t start() const noexcept { return start_; }

 private:
  double interval_;
  std::uint64_t start_;
};

/// The times of many wraps.
class Times {
 public:
  explicit Times(std::uint64_t expected) { ns_.reserve(expected); }
  void add(std::uint64_t taken) { ns_.push_back(nanoseconds(taken)); }
  void add(const Times& other) { ns_.insert(ns_.end(), other.ns_.begin(), other.ns_.end()); }
  [[nodiscard]] const std::vector<double>& ns() const noexcept { return ns_; }
  /// In ns: mean, median, 99th percentile, maximum; `typical` is the median of the means of twenty
  /// consecutive slices: what happens regularly, such as the alias tables' switches, is in each
  /// slice; a moment in which the machine did something else is in few.
  [[nodiscard]] nlohmann::ordered_json summary() const {
    if (ns_.empty()) return {};
    std::vector<double> sorted = ns_;
    std::sort(sorted.begin(), sorted.end());
    double sum = 0;
    for (const double t : sorted) sum += t;
    const std::size_t slices = std::min<std::size_t>(20, ns_.size());
    std::vector<double> means;
    for (std::size_t s = 0; s < slices; ++s) {
      const auto first = ns_.begin() + static_cast<std::ptrdiff_t>(ns_.size() * s / slices);
      const auto end = ns_.begin() + static_cast<std::ptrdiff_t>(ns_.size() * (s + 1) / slices);
      means.push_back(std::accumulate(first, end, 0.0) / static_cast<double>(end - first));
    }
    std::sort(means.begin(), means.end());
    return {{"typical", means[slices / 2]},
            {"mean", sum / static_cast<double>(sorted.size())},
            {"p50", sorted[sorted.size() / 2]},
            {"p99", sorted[sorted.size() * 99 / 100]},
            {"max", sorted.back()}};
  }

 private:
  std::vector<double> ns_;
};

}  // namespace bench::softwrap
