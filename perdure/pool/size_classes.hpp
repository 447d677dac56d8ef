// SPDX-License-Identifier: BSD-3-Clause
//
// Size classes of small blocks, and where a block lies in its span. This is pure arithmetic and
// part of the format: changing a number here is a new feature (features.hpp).
//
// Sizes: steps of 16 bytes to 128, then four sizes per doubling to 64 KiB: 44 classes, in which at
// most 25 % of a block is padding (16 bytes below 128). A span is 64 KiB for blocks to 4 KiB, and
// above that 16 of the largest blocks of its doubling. Its bitmap (1 bit per block, padded to 64
// bytes) takes the space of at most one block. A block is aligned to the largest power of two, up
// to 64, that divides its size: enough for any C++ type of that size whose alignment is 64 or less.
// Thread safety: constants.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "perdure/pool/format.hpp"

namespace perdure::pool {

inline constexpr std::uint32_t small_classes = 44;
inline constexpr std::uint32_t large_class = 255;  ///< whole chunks, in HeapOp::cls
inline constexpr std::uint64_t max_small = 64 << 10;

/// The class of the smallest block that holds `bytes`; large_class if bytes > max_small.
[[nodiscard]] constexpr std::uint32_t size_class(std::uint64_t bytes) noexcept {
  if (bytes <= 128) return bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes - 1) >> 4);
  if (bytes > max_small) return large_class;
  const auto log2 = static_cast<std::uint32_t>(std::bit_width(bytes - 1) - 1);  // 7 for 129..256
  return 8 + (log2 - 7) * 4 + static_cast<std::uint32_t>((bytes - 1) >> (log2 - 2) & 3);
}

struct ClassInfo {
  std::uint32_t bytes = 0;       ///< of a block
  std::uint32_t chunks = 0;      ///< of a span
  std::uint32_t blocks = 0;      ///< in a span
  std::uint32_t first = 0;       ///< offset in the span of block 0: the padded bitmap's size
  std::uint64_t reciprocal = 0;  ///< x / bytes == x * reciprocal >> 42 for x < 2^20
};

namespace detail {
constexpr std::array<ClassInfo, small_classes> make_classes() noexcept {
  std::array<ClassInfo, small_classes> all{};
  for (std::uint32_t c = 0; c < small_classes; ++c) {
    ClassInfo& info = all[c];
    const std::uint32_t log2 = 7 + (c - 8) / 4;
    info.bytes = c < 8 ? 16 * (c + 1) : (1U << log2) + ((c - 8) % 4 + 1) * (1U << (log2 - 2));
    info.chunks = info.bytes <= 4096 ? 1 : std::bit_ceil(info.bytes) / 4096;
    const std::uint32_t span = info.chunks * static_cast<std::uint32_t>(chunk_bytes);
    info.blocks = span / info.bytes;
    for (;; --info.blocks) {
      info.first = (info.blocks + 511) / 512 * 64;
      if (info.first + info.blocks * info.bytes <= span) break;
    }
    info.reciprocal = ((std::uint64_t{1} << 42) + info.bytes - 1) / info.bytes;
  }
  return all;
}
}  // namespace detail

inline constexpr std::array<ClassInfo, small_classes> classes = detail::make_classes();
static_assert(classes[small_classes - 1].bytes == max_small &&
              classes[small_classes - 1].chunks * chunk_bytes <= 1 << 20);

/// The size in bytes of the largest bitmap of a span. It lies at the start of the span's first
/// chunk.
inline constexpr std::uint64_t max_bitmap_bytes = classes[0].first;
static_assert([] {
  for (const ClassInfo& info : classes)
    if ((info.blocks + 7) / 8 > max_bitmap_bytes) return false;
  return true;
}());

[[nodiscard]] constexpr std::uint64_t class_bytes(std::uint32_t cls) noexcept {
  return cls < small_classes ? classes[cls].bytes : 0;
}
[[nodiscard]] constexpr std::uint32_t span_chunks(std::uint32_t cls) noexcept {
  return cls < small_classes ? classes[cls].chunks : 0;
}

/// The number of the block that begins `in_span` bytes after the start of a span of class `cls`; a
/// number of at least `blocks` if none begins there.
[[nodiscard]] constexpr std::uint32_t block_index(const ClassInfo& info,
                                                  std::uint64_t in_span) noexcept {
  const std::uint64_t at = in_span - info.first;
  if (at >= std::uint64_t{1} << 20) return ~0U;  // in the bitmap, or not in the span
  const std::uint64_t index = at * info.reciprocal >> 42;
  return index * info.bytes == at ? static_cast<std::uint32_t>(index) : ~0U;
}

/// The chunk where the span with the block at data region offset `offset` begins.
[[nodiscard]] constexpr std::uint64_t span_chunk_of(std::uint64_t offset, std::uint32_t chunks,
                                                    std::uint64_t first) noexcept {
  const std::uint64_t chunk = offset / chunk_bytes;
  return first + ((chunk - first) & ~(std::uint64_t{chunks} - 1));
}

}  // namespace perdure::pool
