// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/overlay.hpp"

#include <algorithm>
#include <cstring>

#include "sqlite/blocks.hpp"

namespace perdure::sqlite {

std::uint64_t Overlay::read(std::uint64_t offset, void* to, std::uint64_t n) {
  const std::uint64_t there = offset >= size_ ? 0 : std::min(n, size_ - offset);
  auto* out = static_cast<std::byte*>(to);
  std::memset(out + there, 0, n - there);
  for (std::uint64_t left = there; left != 0;) {
    const std::uint64_t number = offset / block_bytes, skip = offset % block_bytes,
                        part = std::min(left, block_bytes - skip);
    if (const auto mine = overlay_.find(number); mine != overlay_.end())
      std::memcpy(out, mine->second->data() + skip, part);
    else
      load(number, skip, out, part);
    offset += part;
    out += part;
    left -= part;
  }
  return there;
}

Overlay::Bytes& Overlay::overlaid(std::uint64_t number) {
  auto& mine = overlay_[number];
  if (mine == nullptr) {
    mine = std::make_unique<Bytes>();
    load(number, 0, mine->data(), block_bytes);
    // Bytes beyond the end read as zeros, whatever the block contains there.
    const std::uint64_t end = std::min(size_, committed_), first = number * block_bytes;
    if (first + block_bytes > end)
      std::memset(mine->data() + (end > first ? end - first : 0), 0,
                  first + block_bytes - std::max(end, first));
  }
  return *mine;
}

void Overlay::write(std::uint64_t offset, const void* from, std::uint64_t n) {
  if (offset + n > max_bytes)
    throw error(failure(Code::full, path_, "a database of " + std::to_string(offset + n) + " bytes",
                        "at most " + std::to_string(max_bytes)));
  const auto* in = static_cast<const std::byte*>(from);
  const std::uint64_t end = offset + n;
  for (; offset < end;) {
    const std::uint64_t skip = offset % block_bytes,
                        part = std::min(end - offset, block_bytes - skip);
    std::memcpy(overlaid(offset / block_bytes).data() + skip, in, part);
    offset += part;
    in += part;
  }
  size_ = std::max(size_, end);
}

void Overlay::truncate(std::uint64_t bytes) {
  if (bytes < size_) {
    overlay_.erase(overlay_.lower_bound((bytes + block_bytes - 1) / block_bytes), overlay_.end());
    size_ = bytes;
    if (bytes % block_bytes != 0)
      std::memset(overlaid(bytes / block_bytes).data() + bytes % block_bytes, 0,
                  block_bytes - bytes % block_bytes);
  }
  size_ = bytes;
}

void Overlay::discard() noexcept {
  overlay_.clear();
  size_ = committed_;
}

File* Overlay::journal(bool make) {
  if (!journaled_.load(std::memory_order_relaxed)) {
    if (!make) return nullptr;
    journal_.truncate(0);
    journaled_.store(true, std::memory_order_relaxed);
  }
  return &journal_;
}

}  // namespace perdure::sqlite
