// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/page_map.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace perdure::medium {

PageMap::~PageMap() {
  if (words_ != nullptr) ::munmap(words_, bytes_);
}

Status PageMap::reserve(const std::string& path, std::uint64_t bytes) {
  bytes_ = (bytes / page_bytes / 64 + 1) * 8;
  // Only what is used becomes memory: 4 KiB for each 128 MiB of the file.
  void* const p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    bytes_ = 0;
    return failure(Code::out_of_memory, path, "no address space for the map of allocated pages", {},
                   "raise `ulimit -v`, or make the pool with a smaller max_size");
  }
  words_ = static_cast<std::uint64_t*>(p);
  return {};
}

void PageMap::change(std::uint64_t page, std::uint64_t end, bool value) noexcept {
  while (page < end) {
    const std::uint64_t in_word = std::min(end - page, 64 - page % 64);
    const std::uint64_t mask =
        (in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1) << page % 64;
    const std::atomic_ref<std::uint64_t> word(words_[page / 64]);
    // One thread at a time changes bits; the release pairs with the acquire in word().
    const std::uint64_t old = word.load(std::memory_order_relaxed);
    word.store(value ? old | mask : old & ~mask, std::memory_order_release);
    page += in_word;
  }
}

}  // namespace perdure::medium
