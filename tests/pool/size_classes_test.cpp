// SPDX-License-Identifier: BSD-3-Clause
//
// The size classes, exactly: they are part of the format.
#include "perdure/pool/size_classes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace perdure::pool {
namespace {

TEST(SizeClasses, TableIsTheFormats) {
  const std::vector<std::uint64_t> sizes = {
      16,    32,    48,    64,    80,    96,    112,   128,   160,   192,   224,
      256,   320,   384,   448,   512,   640,   768,   896,   1024,  1280,  1536,
      1792,  2048,  2560,  3072,  3584,  4096,  5120,  6144,  7168,  8192,  10240,
      12288, 14336, 16384, 20480, 24576, 28672, 32768, 40960, 49152, 57344, 65536};
  ASSERT_EQ(sizes.size(), small_classes);
  for (std::uint32_t c = 0; c < small_classes; ++c) {
    EXPECT_EQ(class_bytes(c), sizes[c]);
    EXPECT_EQ(size_class(sizes[c]), c);
    EXPECT_EQ(size_class(sizes[c] + 1), c + 1 < small_classes ? c + 1 : large_class);
    const std::uint32_t chunks = sizes[c] <= 4096    ? 1
                                 : sizes[c] <= 8192  ? 2
                                 : sizes[c] <= 16384 ? 4
                                 : sizes[c] <= 32768 ? 8
                                                     : 16;
    EXPECT_EQ(span_chunks(c), chunks);
  }
  EXPECT_EQ(size_class(0), 0U);
  EXPECT_EQ(size_class(~0ULL), large_class);
  EXPECT_EQ(class_bytes(large_class), 0U);
  // The blocks of a span: as many as fit together with their bitmap.
  EXPECT_EQ(classes[0].blocks, 4064U);
  EXPECT_EQ(classes[0].first, 512U);
  EXPECT_EQ(classes[3].blocks, 1022U);
  EXPECT_EQ(classes[3].first, 128U);
  EXPECT_EQ(classes[27].blocks, 15U);
  EXPECT_EQ(classes[43].blocks, 15U);
}

TEST(SizeClasses, EverySizeFitsItsClassAndNoSmallerOne) {
  for (std::uint64_t n = 1; n <= max_small; ++n) {
    const std::uint32_t c = size_class(n);
    ASSERT_GE(class_bytes(c), n);
    if (c > 0) {
      ASSERT_LT(class_bytes(c - 1), n);
    }
    ASSERT_LE(class_bytes(c) - n, n <= 128 ? 15 : n / 4);
  }
}

TEST(SizeClasses, AlignmentOfAnyTypeOfThatSize) {
  for (std::uint32_t c = 0; c < small_classes; ++c) {
    const ClassInfo& info = classes[c];
    EXPECT_EQ(info.first % 64, 0U);
    EXPECT_LE(info.first + std::uint64_t{info.blocks} * info.bytes, info.chunks * chunk_bytes);
    EXPECT_GT(info.first + (std::uint64_t{info.blocks} + 1) * info.bytes + 64,
              info.chunks * chunk_bytes);
    EXPECT_GE(info.first * 8, info.blocks);
  }
  for (std::uint64_t align = 16; align <= 64; align *= 2) {
    for (std::uint64_t n = align; n <= max_small; n += align)
      ASSERT_EQ(class_bytes(size_class(n)) % align, 0U) << n;  // sizeof is a multiple of alignof
  }
}

TEST(SizeClasses, BlockIndexIsExact) {
  for (std::uint32_t c = 0; c < small_classes; ++c) {
    const ClassInfo& info = classes[c];
    const std::uint64_t span = info.chunks * chunk_bytes;
    for (std::uint64_t at = 0; at < span; ++at) {
      const bool starts = at >= info.first && (at - info.first) % info.bytes == 0 &&
                          (at - info.first) / info.bytes < info.blocks;
      const std::uint32_t index = block_index(info, at);
      ASSERT_EQ(index < info.blocks, starts) << c << " " << at;
      if (starts) {
        ASSERT_EQ(index, (at - info.first) / info.bytes);
      }
    }
    ASSERT_GE(block_index(info, span + info.first), info.blocks);
    ASSERT_GE(block_index(info, ~0ULL), info.blocks);
  }
}

}  // namespace
}  // namespace perdure::pool
