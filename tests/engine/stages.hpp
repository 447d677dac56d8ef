// SPDX-License-Identifier: BSD-3-Clause
//
// Stages: a test's threads go through numbered stages, so that each is stopped where the test wants
// it, from a function that the library calls between its steps (snapshot_point).
// Thread safety: any thread may make all calls; one test at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace perdure::test {

inline std::atomic<int> stage{0};
/// How often this thread has come to such a place; the test counts.
inline thread_local int points = 0;

/// Returns when the stage is reached, or after 30 s: the test then finds what is missing.
inline void until(int wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (stage < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace perdure::test
