// SPDX-License-Identifier: BSD-3-Clause
//
// Waits in a test for what another thread does.
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <thread>

namespace perdure::test {

/// Returns whether done() becomes true within `at_most`, which is less than a test's limit. What
/// may fail at once is tried for a time, not a number of times: a busy machine takes them all
/// before another process has run.
template <class Done>
bool comes(Done&& done, std::chrono::seconds at_most = std::chrono::seconds(50)) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace perdure::test
