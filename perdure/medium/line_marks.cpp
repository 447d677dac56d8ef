// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/line_marks.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace perdure::medium {
namespace {

using Byte = std::atomic<std::uint8_t>;
static_assert(sizeof(Byte) == 1 && Byte::is_always_lock_free);

Result<Byte*> reserve_bytes(const std::string& path, std::uint64_t n) {
  void* p = ::mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return system_failure(path, "mmap of line marks", errno, "open the pool with a smaller max_size");
  return static_cast<Byte*>(p);  // zero pages are zero atomics
}

}  // namespace

LineMarks::~LineMarks() {
  if (lines_ != nullptr) ::munmap(static_cast<void*>(lines_), round_up(most_ / line_bytes, page_bytes));
  if (pages_ != nullptr) ::munmap(static_cast<void*>(pages_), round_up(most_ / page_bytes, page_bytes));
}

Status LineMarks::reserve(const std::string& path, std::uint64_t most) {
  most_ = round_up(most, page_bytes);
  auto lines = reserve_bytes(path, round_up(most_ / line_bytes, page_bytes));
  if (!lines.ok()) return lines.status();
  lines_ = *lines;
  auto pages = reserve_bytes(path, round_up(most_ / page_bytes, page_bytes));
  if (!pages.ok()) return pages.status();
  pages_ = *pages;
  return {};
}

Status LineMarks::cover(const std::string& path, std::uint64_t bytes) {
  const int both = PROT_READ | PROT_WRITE;
  if (::mprotect(static_cast<void*>(lines_), round_up(bytes / line_bytes, page_bytes), both) != 0 ||
      ::mprotect(static_cast<void*>(pages_), round_up(bytes / page_bytes, page_bytes), both) != 0) {
    return system_failure(path, "mprotect of line marks", errno);
  }
  covered_ = bytes;
  return {};
}

}  // namespace perdure::medium
