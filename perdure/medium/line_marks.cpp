// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/line_marks.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace perdure::medium {
namespace {

// Rounds up to whole pages.
std::uint64_t room(std::uint64_t bytes) { return round_up(bytes, page_bytes); }

template <class Mark>
using Marks = std::atomic<Mark>*;

// Reserves address space for n marks; zero pages are zero atomics.
template <class Mark>
Result<Marks<Mark>> reserve_marks(const std::string& path, std::uint64_t n) {
  static_assert(sizeof(std::atomic<Mark>) == sizeof(Mark) &&
                std::atomic<Mark>::is_always_lock_free);
  void* p = ::mmap(nullptr, room(n * sizeof(Mark)), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return system_failure(path, "mmap of line marks", errno,
                          "raise `ulimit -v`, or make the pool with a smaller max_size");
  return static_cast<Marks<Mark>>(p);
}

}  // namespace

LineMarks::~LineMarks() {
  if (lines_ != nullptr)
    ::munmap(static_cast<void*>(lines_), room(most_ / line_bytes * sizeof(Mark)));
  if (pages_ != nullptr) ::munmap(static_cast<void*>(pages_), room(most_ / page_bytes));
}

Status LineMarks::reserve(const std::string& path, std::uint64_t most) {
  most_ = round_up(most, page_bytes);
  auto lines = reserve_marks<Mark>(path, most_ / line_bytes);
  if (!lines.ok()) return lines.status();
  lines_ = *lines;
  auto pages = reserve_marks<std::uint8_t>(path, most_ / page_bytes);
  if (!pages.ok()) return pages.status();
  pages_ = *pages;
  return {};
}

Status LineMarks::cover(const std::string& path, std::uint64_t bytes) {
  const int both = PROT_READ | PROT_WRITE;
  if (::mprotect(static_cast<void*>(lines_), room(bytes / line_bytes * sizeof(Mark)), both) != 0 ||
      ::mprotect(static_cast<void*>(pages_), room(bytes / page_bytes), both) != 0) {
    return system_failure(path, "mprotect of line marks", errno);
  }
  covered_.store(bytes, std::memory_order_release);  // pairs with the acquire in take_all()
  return {};
}

}  // namespace perdure::medium
