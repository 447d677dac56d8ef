// SPDX-License-Identifier: BSD-3-Clause
//
// Annotations for pmemcheck, the valgrind tool that watches stores, flushes and fences to persistent memory: emitted where its header is
// there at build time (it is not in Debian), else nothing. Not run under valgrind they cost a few instructions each.
// A non-temporal store is annotated as stored and flushed, as libpmem does.
// Source: the client requests of pmemcheck's manual (pmem/valgrind). Thread safety: any thread.
#pragma once

#include <cstddef>

#if __has_include(<valgrind/pmemcheck.h>)
#include <valgrind/pmemcheck.h>
#define PERDURE_HAS_PMEMCHECK 1
#else
#define PERDURE_HAS_PMEMCHECK 0
#endif

namespace perdure::base {

/// [at, at + n) is persistent memory from now on; no more.
inline void note_mapped([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_HAS_PMEMCHECK
  VALGRIND_PMC_REGISTER_PMEM_MAPPING(at, n);
#endif
}
inline void note_unmapped([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_HAS_PMEMCHECK
  VALGRIND_PMC_REMOVE_PMEM_MAPPING(at, n);
#endif
}
inline void note_flushed([[maybe_unused]] const void* at, [[maybe_unused]] std::size_t n) noexcept {
#if PERDURE_HAS_PMEMCHECK
  VALGRIND_PMC_DO_FLUSH(at, n);
#endif
}
inline void note_fenced() noexcept {
#if PERDURE_HAS_PMEMCHECK
  VALGRIND_PMC_DO_FENCE;
#endif
}

}  // namespace perdure::base
