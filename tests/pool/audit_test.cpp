// SPDX-License-Identifier: BSD-3-Clause
//
// The audit: a sound heap has no problems and exact counts; every kind of planted damage is found,
// and its chunk is named.
#include <map>

#include "pool_test.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

class AuditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenFile how = small(scratch.path());
    how.max_bytes = 8 * MiB;
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    HeapUser user(**pool);
    blocks[(*pool)->header().root_offset] = 48;
    for (const std::uint64_t n :
         {16ULL, 64ULL, 64ULL, 64ULL, 1000ULL, 9000ULL, 30000ULL, 70000ULL, 200000ULL, 65536ULL}) {
      const auto b = user.allocate(n);
      ASSERT_TRUE(b.ok()) << b.status().message();
      blocks[*b] = *(*pool)->heap().block_bytes(*b);
    }
    large = *user.allocate(3 * chunk_bytes);
    blocks[large] = 3 * chunk_bytes;
    user.close();
    header = (*pool)->header();
    image.assign((*pool)->medium().data(), (*pool)->medium().data() + (*pool)->data_bytes());
  }
  [[nodiscard]] HeapAudit audit() const { return audit_heap(image.data(), header); }
  std::uint64_t& word(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(image.data() + offset);
  }
  void finds(std::uint64_t chunk, const std::string& words) {
    const auto a = audit();
    ASSERT_FALSE(a.problems.empty()) << words;
    const std::string name = "chunk " + std::to_string(chunk) + ":";
    bool found = false;
    for (const std::string& p : a.problems)
      found = found || (p.find(name) == 0 && p.find(words) != std::string::npos);
    EXPECT_TRUE(found) << words << " not in: " << a.problems.front();
  }

  Scratch scratch;
  Header header;
  std::vector<std::byte> image;
  std::map<std::uint64_t, std::uint64_t> blocks;
  std::uint64_t large = 0;
};

TEST_F(AuditTest, SoundHeap) {
  std::map<std::uint64_t, std::uint64_t> found;
  const auto a = audit_heap(image.data(), header, [&](std::uint64_t offset, std::uint64_t bytes) {
    found[offset] = bytes;
  });
  EXPECT_TRUE(a.problems.empty()) << a.problems.front();
  EXPECT_EQ(found, blocks);
  EXPECT_EQ(a.blocks, blocks.size());
  EXPECT_EQ(a.bytes, header.heap_used);
  EXPECT_EQ(a.chunks_free + a.chunks_small + a.chunks_large, image.size() / chunk_bytes - 1);
  EXPECT_EQ(a.chunks_large, 2U + 4U + 3U);
}

TEST_F(AuditTest, DamagedDirectory) {
  const std::uint64_t c = large / chunk_bytes;
  const auto with = [&](std::uint64_t chunk, ChunkWord w, const std::string& words,
                        std::uint64_t named) {
    const auto before = image;
    word(Directory(header).word(chunk)) = w.bits;
    finds(named, words);
    image = before;
  };
  with(c, {7}, "a word of kind 7", c);
  with(c, {0}, "the rest of a span or object 1 chunks back", c + 1);
  with(c, {0x100}, "a free chunk's word", c);
  with(c + 1, {0}, "part of the large object that begins at chunk " + std::to_string(c), c + 1);
  with(c + 2, ChunkWord::make(ChunkWord::rest, 0, 1), "part of the large object", c + 2);
  with(c, ChunkWord::make(ChunkWord::large, 0, 2), "the rest of a span or object 2 chunks back",
       c + 2);
  with(c, ChunkWord::make(ChunkWord::large, 0, 0), "found large object of 0 chunks", c);
  with(c, ChunkWord::make(ChunkWord::large, 0, 1000), "found large object of 1000 chunks", c);
  with(c, ChunkWord::make(ChunkWord::large, 5, 3), "a large object of size class 5", c);
  with(c, ChunkWord::make(ChunkWord::small, 99, 1), "size class 99", c);
  with(1, ChunkWord::make(ChunkWord::small, 2, 3), "a span of 3 chunks", 1);
  with(0, {1}, "a chunk of the directory", 0);
  with(image.size() / chunk_bytes, ChunkWord::make(ChunkWord::large, 0, 1),
       "beyond the data region's end", image.size() / chunk_bytes);
  const std::uint64_t last = image.size() / chunk_bytes - 1;
  with(last, ChunkWord::make(ChunkWord::small, size_class(9000), 4), "a span of 4 chunks", last);
}

TEST_F(AuditTest, DamagedBitmap) {
  word(chunk_bytes + classes[size_class(48)].first - 8) = 1ULL << 63;
  finds(1, "beyond the last block");
}

TEST_F(AuditTest, RootGone) {
  word(chunk_bytes) = 0;
  const auto a = audit();
  ASSERT_FALSE(a.problems.empty());
  EXPECT_EQ(a.problems.front().find("root: no allocated block of 48 bytes"), 0U)
      << a.problems.front();
}

TEST_F(AuditTest, CountIsHeldAgainstACleanHeader) {
  header.heap_used += 16;
  EXPECT_EQ(audit().problems.size(), 1U);
  header.heap_exact = 0;
  EXPECT_TRUE(audit().problems.empty());
}

// Any one flip in the directory of a sound heap is found (the program determines the meaning of the
// bitmaps: they are compared with the containers).
TEST_F(AuditTest, EveryFlippedBitOfTheDirectory) {
  const std::uint64_t n = header.max_data_bytes / chunk_bytes;
  for (std::uint64_t chunk = 0; chunk < n; ++chunk) {
    for (int b = 0; b < 64; ++b) {
      word(Directory(header).word(chunk)) ^= 1ULL << b;
      EXPECT_FALSE(audit().problems.empty()) << "chunk " << chunk << " bit " << b;
      word(Directory(header).word(chunk)) ^= 1ULL << b;
    }
  }
}

}  // namespace
}  // namespace perdure::pool
