// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/line_masks.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace perdure::log {
namespace {

constexpr std::uint64_t mapped_from = 64 << 10;  // bytes: the masks of a data region of 32 MiB

}

LineWords make_line_words(std::uint64_t count) {
  // Large arrays are mapped, because calloc would clear all of any memory that it reuses. A small
  // array is cleared faster than it is mapped.
  const std::uint64_t bytes = count * 8;
  void* const p = bytes < mapped_from ? std::calloc(count, 8)
                                      : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == nullptr || p == MAP_FAILED) throw std::bad_alloc();
  return LineWords(static_cast<std::uint64_t*>(p), FreeLineWords{bytes});
}

void FreeLineWords::operator()(std::uint64_t* words) const noexcept {
  if (bytes < mapped_from)
    std::free(words);
  else
    ::munmap(words, bytes);
}

}  // namespace perdure::log
