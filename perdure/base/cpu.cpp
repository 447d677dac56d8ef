// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/cpu.hpp"

#include <cpuid.h>
#include <immintrin.h>

namespace perdure::base {
namespace {

CpuFeatures detect() noexcept {
  CpuFeatures f;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    f.clflushopt = (b & (1U << 23)) != 0;
    f.clwb = (b & (1U << 24)) != 0;
    f.rtm = (b & (1U << 11)) != 0;
    f.rtm_always_aborts = (d & (1U << 11)) != 0;
  }
  if (__get_cpuid(0x80000007U, &a, &b, &c, &d) != 0) f.invariant_tsc = (d & (1U << 8)) != 0;
  // These two checks include the operating system, which must save the wide registers.
  __builtin_cpu_init();
  f.avx2 = __builtin_cpu_supports("avx2") != 0;
  f.avx512f = __builtin_cpu_supports("avx512f") != 0;
  return f;
}

const char* line_of(const void* p) noexcept {
  return static_cast<const char*>(p) - reinterpret_cast<std::uintptr_t>(p) % cache_line;
}

void flush_none(const void* /*first*/, std::size_t /*lines*/) noexcept {}

void flush_clflush(const void* first, std::size_t lines) noexcept {
  for (const char* p = line_of(first); lines != 0; --lines, p += cache_line) _mm_clflush(p);
}

__attribute__((target("clflushopt"))) void flush_clflushopt(const void* first,
                                                            std::size_t lines) noexcept {
  for (const char* p = line_of(first); lines != 0; --lines, p += cache_line)
    _mm_clflushopt(const_cast<char*>(p));
}

__attribute__((target("clwb"))) void flush_clwb(const void* first, std::size_t lines) noexcept {
  for (const char* p = line_of(first); lines != 0; --lines, p += cache_line)
    _mm_clwb(const_cast<char*>(p));
}

void stream_sse2(void* to, const void* from, std::size_t bytes) noexcept {
  auto* d = static_cast<__m128i*>(to);
  const auto* s = static_cast<const __m128i*>(from);
  for (; bytes >= cache_line; bytes -= cache_line, d += 4, s += 4) {
    const __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1), c = _mm_loadu_si128(s + 2),
                  e = _mm_loadu_si128(s + 3);
    _mm_stream_si128(d, a);
    _mm_stream_si128(d + 1, b);
    _mm_stream_si128(d + 2, c);
    _mm_stream_si128(d + 3, e);
  }
}

__attribute__((target("avx2"))) void stream_avx2(void* to, const void* from,
                                                 std::size_t bytes) noexcept {
  auto* d = static_cast<__m256i*>(to);
  const auto* s = static_cast<const __m256i*>(from);
  for (; bytes >= cache_line; bytes -= cache_line, d += 2, s += 2) {
    const __m256i a = _mm256_loadu_si256(s), b = _mm256_loadu_si256(s + 1);
    _mm256_stream_si256(d, a);
    _mm256_stream_si256(d + 1, b);
  }
}

__attribute__((target("avx512f"))) void stream_avx512(void* to, const void* from,
                                                      std::size_t bytes) noexcept {
  auto* d = static_cast<char*>(to);
  const auto* s = static_cast<const char*>(from);
  for (; bytes >= cache_line; bytes -= cache_line, d += cache_line, s += cache_line) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d), _mm512_loadu_si512(s));
  }
}

}  // namespace

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures found = detect();
  return found;
}
namespace {
// Detected at load: a child forked during the detection would wait for ever for the other thread.
[[maybe_unused]] const CpuFeatures& at_load = cpu_features();
}  // namespace

std::string_view name(FlushInstruction i) noexcept {
  switch (i) {
    case FlushInstruction::none: return "none";
    case FlushInstruction::clflush: return "clflush";
    case FlushInstruction::clflushopt: return "clflushopt";
    case FlushInstruction::clwb: return "clwb";
  }
  return "unknown";
}

std::string_view name(StreamInstruction i) noexcept {
  switch (i) {
    case StreamInstruction::sse2: return "movntdq 16";
    case StreamInstruction::avx2: return "movntdq 32";
    case StreamInstruction::avx512: return "movntdq 64";
  }
  return "unknown";
}

bool supported(FlushInstruction i) noexcept {
  const CpuFeatures& f = cpu_features();
  if (i == FlushInstruction::clwb) return f.clwb;
  if (i == FlushInstruction::clflushopt) return f.clflushopt;
  return true;  // every x86-64 processor has clflush
}

bool supported(StreamInstruction i) noexcept {
  const CpuFeatures& f = cpu_features();
  if (i == StreamInstruction::avx512) return f.avx512f;
  if (i == StreamInstruction::avx2) return f.avx2;
  return true;  // every x86-64 processor has sse2
}

FlushInstruction best_flush() noexcept {
  if (supported(FlushInstruction::clwb)) return FlushInstruction::clwb;
  if (supported(FlushInstruction::clflushopt)) return FlushInstruction::clflushopt;
  return FlushInstruction::clflush;
}

StreamInstruction best_stream() noexcept {
  if (supported(StreamInstruction::avx512)) return StreamInstruction::avx512;
  if (supported(StreamInstruction::avx2)) return StreamInstruction::avx2;
  return StreamInstruction::sse2;
}

FlushLines flush_lines(FlushInstruction i) noexcept {
  switch (i) {
    case FlushInstruction::none: return flush_none;
    case FlushInstruction::clflush: return flush_clflush;
    case FlushInstruction::clflushopt: return flush_clflushopt;
    case FlushInstruction::clwb: return flush_clwb;
  }
  return flush_clflush;
}

StreamLines stream_lines(StreamInstruction i) noexcept {
  switch (i) {
    case StreamInstruction::sse2: return stream_sse2;
    case StreamInstruction::avx2: return stream_avx2;
    case StreamInstruction::avx512: return stream_avx512;
  }
  return stream_sse2;
}

}  // namespace perdure::base
