// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryUndo: what a block has stored over outside of the pool, in locals, globals and memory of
// malloc, so that it can be stored back: when the block is run again, and when it is rolled back.
// The stores themselves are plain: this memory is atomic, not isolated from other threads.
// Thread safety: an object belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace perdure::plain {

/// Addresses from `from` to below `to`.
struct Range {
  std::uintptr_t from = 0, to = 0;
  [[nodiscard]] bool has(std::uintptr_t at) const noexcept { return at >= from && at < to; }
};

class MemoryUndo {
 public:
  /// Saves n bytes that are about to be stored over. Throws std::bad_alloc.
  void save(const void* at, std::size_t n) {
    const auto* from = static_cast<const std::byte*>(at);
    while (n != 0) {
      Saved piece{reinterpret_cast<std::uintptr_t>(from), std::min<std::size_t>(n, 8), 0};
      std::memcpy(&piece.bytes, from, piece.n);
      saved_.push_back(piece);
      from += piece.n;
      n -= piece.n;
    }
  }
  /// Stores all of it back, the newest first, except what lies in `dead`: the stack of functions
  /// that were left.
  void restore(Range dead) noexcept {
    for (std::size_t i = saved_.size(); i-- > 0;)
      if (const Saved& piece = saved_[i]; !dead.has(piece.at))
        std::memcpy(reinterpret_cast<void*>(piece.at), &piece.bytes, piece.n);
    forget();
  }
  void forget() noexcept { saved_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return saved_.empty(); }

 private:
  struct Saved {
    std::uintptr_t at;
    std::size_t n;  // 1 to 8
    std::uint64_t bytes;
  };
  std::vector<Saved> saved_;
};

}  // namespace perdure::plain
