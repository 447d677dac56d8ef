// SPDX-License-Identifier: BSD-3-Clause
//
// Makes the n-th call of the library to the operating system, or to the allocator, fail.
//
// CMake's perdure_interpose(<test>) redirects the calls of a test's program to interposed.cpp.
// While a fault is armed, the calls of all threads are counted. Calls that never fail are left out:
// munmap, close, futex.
// Thread safety: arm() and disarm() while no other thread runs.
#pragma once

#include <cstdint>

namespace perdure::faults::interposed {

enum class Kind : std::uint8_t {
  /// System calls, and pthread_create if no sanitizer has a wrapper of its own for it.
  call,
  thread,     ///< pthread_create alone
  allocation  ///< operator new, aligned_alloc, calloc
};

struct Fault {
  Kind kind = Kind::call;
  std::uint64_t nth = 0;   ///< counted from 1
  bool and_later = false;  ///< all later ones fail, too
};

/// From here on calls are counted, and those that `fault` selects fail.
void arm(const Fault& fault) noexcept;
/// From here on no call fails. Returns the name of the first call that failed, or null. May be
/// called twice.
const char* disarm() noexcept;

}  // namespace perdure::faults::interposed
