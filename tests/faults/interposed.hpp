// SPDX-License-Identifier: BSD-3-Clause
//
// Makes the n-th call fail that the library makes of the operating system, or of the allocator.
//
// CMake's perdure_interpose(<test>) sends the calls of a test's program through interposed.cpp.
// While a fault is armed, the calls of all threads are counted. What never fails is left out:
// munmap, close, futex.
// Thread safety: arm() and disarm() when no other thread runs.
#pragma once

#include <cstdint>

namespace perdure::faults::interposed {

enum class Kind : std::uint8_t {
  /// system calls, and pthread_create where no sanitizer has a wrapper of its own for it
  call,
  thread,     ///< pthread_create alone
  allocation  ///< operator new, aligned_alloc, calloc
};

struct Fault {
  Kind kind = Kind::call;
  std::uint64_t nth = 0;   ///< counted from 1
  bool and_later = false;  ///< all later ones fail, too
};

/// From here on calls are counted, and those that `fault` names fail.
void arm(const Fault& fault) noexcept;
/// No call fails any more. Returns the name of the first one that did, or null. May be called
/// twice.
const char* disarm() noexcept;

}  // namespace perdure::faults::interposed
