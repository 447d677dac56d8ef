// SPDX-License-Identifier: BSD-3-Clause
//
// Waits in a test for what another thread does.
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <thread>

namespace perdure::test {

/// Returns whether done() becomes true within 50 seconds, less than a test's limit.
template <class Done>
bool comes(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace perdure::test
