// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of fork(): a small pool of any engine, and whether a child of a process with
// threads can continue in this build.
#pragma once

#include <cstdint>

#include "perdure/perdure.hpp"

namespace perdure::test {

struct ForkRoot {
  p<std::uint64_t> count;
  vector<std::uint64_t> numbers;
};
using ForkPool = Pool<ForkRoot, engines<any_engine>>;

/// Why a process with threads can't be forked in this build with a child that continues; nullptr:
/// it can.
#if defined(__SANITIZE_THREAD__)
inline constexpr const char* no_fork_beside_threads =
    "ThreadSanitizer allows no new threads after a fork of a process that has several";
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr const char* no_fork_beside_threads =
    "another thread may hold a lock of AddressSanitizer's allocator when the child is forked";
#else
inline constexpr const char* no_fork_beside_threads = nullptr;
#endif

}  // namespace perdure::test
