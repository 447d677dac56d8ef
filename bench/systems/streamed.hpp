// SPDX-License-Identifier: BSD-3-Clause
//
// Memory on tmpfs, as the emulated medium's, and non-temporal copies into it: what the systems that
// show the hardware's bounds (ceiling, bound) are made of.
// Thread safety: a Mapped may be written to by several threads, in different lines.
#pragma once

#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

namespace bench {

/// A new file of zeros, mapped whole, its pages present.
class Mapped {
 public:
  Mapped(const std::string& path, std::size_t bytes) : bytes_(bytes) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
    void* p =
        ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0
            ? MAP_FAILED
            : ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (p == MAP_FAILED) throw std::system_error(error, std::generic_category(), path);
    base_ = static_cast<std::byte*>(p);
    std::memset(base_, 0, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { ::munmap(base_, bytes_); }
  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return base_ + offset; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

/// Whether the processor streams a whole line with one instruction.
inline bool streams_lines() noexcept { return __builtin_cpu_supports("avx512f") != 0; }

inline void stream_sse2(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
}
__attribute__((target("avx512f"))) inline void stream_avx512(std::byte* to, const std::byte* from,
                                                             std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
}
/// Copies n bytes, whole lines, by non-temporal stores. `wide` is streams_lines().
inline void stream(std::byte* to, const std::byte* from, std::size_t n, bool wide) noexcept {
  if (wide)
    stream_avx512(to, from, n);
  else
    stream_sse2(to, from, n);
}

}  // namespace bench
