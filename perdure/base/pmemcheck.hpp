// SPDX-License-Identifier: BSD-3-Clause
//
// Annotations for pmemcheck, the valgrind tool that watches stores, flushes and fences to
// persistent memory. They are compiled in if PERDURE_PMEMCHECK is 1 (the CMake option of that
// name), which needs a header that Debian does not have; otherwise they are empty. Outside valgrind
// each annotation costs a few instructions.
// A non-temporal store is annotated as stored and flushed, as libpmem does.
// Source: the client requests of pmemcheck's manual (pmem/valgrind). Thread safety: all functions
// may be called from any thread.
#pragma once

#include <cstddef>

#ifndef PERDURE_PMEMCHECK
#define PERDURE_PMEMCHECK 0
#endif
#if PERDURE_PMEMCHECK
#include <valgrind/pmemcheck.h>
#endif

namespace perdure::base {

/// [at, at + n) is persistent memory from now on; note_unmapped() ends that.
inline void note_mapped([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_PMEMCHECK
  VALGRIND_PMC_REGISTER_PMEM_MAPPING(at, n);
#endif
}
inline void note_unmapped([[maybe_unused]] const void* at,
                          [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_PMEMCHECK
  VALGRIND_PMC_REMOVE_PMEM_MAPPING(at, n);
#endif
}
inline void note_flushed([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_PMEMCHECK
  VALGRIND_PMC_DO_FLUSH(at, n);
#endif
}
inline void note_fenced() noexcept {
#if PERDURE_PMEMCHECK
  VALGRIND_PMC_DO_FENCE;
#endif
}

}  // namespace perdure::base
