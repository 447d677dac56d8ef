// SPDX-License-Identifier: BSD-3-Clause
//
// What this processor can do, detected once at run time, and the three operations that Perdure asks
// of it directly: write lines back, store lines past the cache, and wait for both.
//
// The instructions are chosen with target attributes, never with -march: one binary runs everywhere
// and uses the best instructions that it finds.
// Thread safety: all calls may be made from any thread; the answers never change. Durability is
// medium/'s business, not this file's: a written-back or streamed line is on its way, and only
// store_fence() of the same thread waits for it (Intel SDM vol. 2, CLWB, MOVNTDQ, SFENCE).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#if !defined(__x86_64__)
#error "Perdure runs on x86-64 (its log writer uses non-temporal stores and cache line write-back)"
#endif

#include <emmintrin.h>

#include "perdure/base/rtm.hpp"

namespace perdure::base {

inline constexpr std::size_t cache_line = 64;

struct CpuFeatures {
  bool clflushopt = false, clwb = false, avx2 = false, avx512f = false;
  bool rtm = false;                ///< restricted transactional memory (Intel TSX)
  bool rtm_always_aborts = false;  ///< microcode has disabled it
  bool invariant_tsc = false;      ///< the time-stamp counter runs at one rate in every power state
};
[[nodiscard]] const CpuFeatures& cpu_features() noexcept;

enum class FlushInstruction : std::uint8_t { none, clflush, clflushopt, clwb };
enum class StreamInstruction : std::uint8_t { sse2, avx2, avx512 };

[[nodiscard]] std::string_view name(FlushInstruction) noexcept;  // "none", "clflush", ...
// "movntdq 16", "movntdq 32", "movntdq 64"
[[nodiscard]] std::string_view name(StreamInstruction) noexcept;
[[nodiscard]] bool supported(FlushInstruction) noexcept;
[[nodiscard]] bool supported(StreamInstruction) noexcept;
[[nodiscard]] FlushInstruction best_flush() noexcept;  // clwb, else clflushopt, else clflush
// The widest one: one 64-byte store fills a whole line.
[[nodiscard]] StreamInstruction best_stream() noexcept;

/// Starts the write-back of `lines` lines, beginning with the line that contains `first`.
using FlushLines = void (*)(const void* first, std::size_t lines) noexcept;
/// Stores `bytes` bytes (a multiple of 64) past the cache. `to` is 64-byte aligned, `from` need not
/// be.
using StreamLines = void (*)(void* to, const void* from, std::size_t bytes) noexcept;

/// Stores an aligned word past the cache.
inline void stream_word(void* to, std::uint64_t value) noexcept {
  _mm_stream_si64(static_cast<long long*>(to), static_cast<long long>(value));
}

/// REQUIRES: supported(instruction). `none` yields a function that does nothing.
[[nodiscard]] FlushLines flush_lines(FlushInstruction instruction) noexcept;
[[nodiscard]] StreamLines stream_lines(StreamInstruction instruction) noexcept;

/// Waits until the memory has accepted this thread's earlier write-backs and streamed lines. It
/// aborts a hardware transaction: the transaction may abort later, and its stores reach no memory
/// before it has ended, so a fence inside it would promise what is not true.
inline void store_fence() noexcept {
  rtm::leave();
  _mm_sfence();
}

}  // namespace perdure::base
