// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool::trim: what it gives back, what it must leave alone (TRIM-1, TRIM-2), what it refuses,
// and every image that a power cut in the middle of it can leave.
#include <map>
#include <random>

#include "heap_fixture.hpp"
#include "perdure/pool/features.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

std::uint64_t blocks_of(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_blocks) * 512 : 0;
}

class Trim : public HeapTest {
 protected:
  /// Stores a pattern in each word of a block of the data region's mapping.
  void mark(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += 8) word(offset + at) = offset + at + 1;
  }
  std::uint64_t& word(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(pool->view() + offset);
  }
  void expect_marked(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += 8)
      ASSERT_EQ(word(offset + at), offset + at + 1) << "block " << offset;
  }
  std::string medium = "emulated";  ///< on which trim() opens the pool
  /// Trims the closed pool.
  TrimReport trim(bool dry_run = false) {
    OpenFile file = how;
    file.read_only = dry_run;
    file.medium = medium;
    auto opened = OpenPool::open(file, tester());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened.ok()) return {};
    auto report = (*opened)->trim(dry_run);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : TrimReport();
  }
};

TEST_F(Trim, GivesBackFreeChunksAndLeavesBlocksAlone) {
  constexpr std::uint64_t large = 256 * KiB;
  open(32 * MiB);
  std::vector<std::uint64_t> big, little;
  for (int i = 0; i < 40; ++i) big.push_back(*user->allocate(large));
  for (int i = 0; i < 2000; ++i) little.push_back(*user->allocate(1000));
  for (const std::uint64_t b : big) mark(b, large);
  for (const std::uint64_t b : little) mark(b, 1000);
  // Every second large block, the last ones, and 1,800 neighbours among the small ones.
  for (std::size_t i = 0; i < big.size(); ++i) {
    if (i % 2 == 0 && i <= 30) continue;
    ASSERT_TRUE(user->free(big[i]).ok());
  }
  for (std::size_t i = 200; i < little.size(); ++i) ASSERT_TRUE(user->free(little[i]).ok());
  close();

  const std::uint64_t before = blocks_of(scratch.path());
  const auto length = std::filesystem::file_size(scratch.path());
  const TrimReport dry = trim(true);
  EXPECT_EQ(before, blocks_of(scratch.path()));
  EXPECT_GE(dry.allocated, 24 * large);
  EXPECT_EQ(dry.given_back, 0U);

  const TrimReport did = trim();
  EXPECT_TRUE(did.refusal.ok()) << did.refusal.message();
  EXPECT_EQ(did.given_back, dry.allocated);
  EXPECT_EQ(did.data_bytes_after, dry.data_bytes_after);
  EXPECT_LE(blocks_of(scratch.path()), before - did.given_back);
  EXPECT_EQ(std::filesystem::file_size(scratch.path()),
            length - (did.data_bytes_before - did.data_bytes_after));
  EXPECT_LT(did.data_bytes_after, did.data_bytes_before);

  // A second trim finds nothing: opening for writing has not allocated the holes again.
  EXPECT_EQ(trim().given_back, 0U);

  ASSERT_FALSE(HasFailure());
  open(32 * MiB);
  for (std::size_t i = 0; i < big.size(); ++i)
    if (i % 2 == 0 && i <= 30) expect_marked(big[i], large);
  for (std::size_t i = 0; i < 200; ++i) expect_marked(little[i], 1000);
  // The holes are used again, and the data region grows again.
  std::vector<std::uint64_t> again;
  for (int i = 0; i < 60; ++i) {
    again.push_back(*user->allocate(large));
    mark(again.back(), large);
  }
  close();
  open(32 * MiB);
  for (const std::uint64_t b : again) expect_marked(b, large);
  for (std::size_t i = 0; i < 200; ++i) expect_marked(little[i], 1000);
  close();
}

TEST_F(Trim, TheFileMediumGivesBackToo) {
  open(32 * MiB);
  const auto kept = user->allocate(200 * KiB), freed = user->allocate(3 * MiB);
  const auto last = user->allocate(100 * KiB);
  ASSERT_TRUE(kept.ok() && freed.ok() && last.ok());
  mark(*kept, 200 * KiB);
  mark(*last, 100 * KiB);
  ASSERT_TRUE(user->free(*freed).ok());
  close();
  const std::uint64_t before = blocks_of(scratch.path());
  medium = "file";
  const TrimReport did = trim();
  EXPECT_TRUE(did.refusal.ok()) << did.refusal.message();
  EXPECT_GE(did.given_back, 3 * MiB);
  EXPECT_LE(blocks_of(scratch.path()), before - did.given_back);
  open(32 * MiB);
  expect_marked(*kept, 200 * KiB);
  expect_marked(*last, 100 * KiB);
  close();
}

TEST_F(Trim, SpansOfSeveralChunksStay) {
  open(32 * MiB);
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20; ++i) all.push_back(*user->allocate(8000));  // spans of 2 chunks
  for (const std::uint64_t b : all) ASSERT_TRUE(user->free(b).ok());
  close();
  EXPECT_GE(trim().kept_empty, 2 * chunk_bytes);
  open(32 * MiB);
  EXPECT_TRUE(user->allocate(8000).ok());
  close();
}

TEST_F(Trim, RefusesASessionAndAPoolThatIsNotClean) {
  open();
  EXPECT_EQ((*pool).trim().code(), Code::invalid);
  close();
  OpenFile file = how;
  file.read_only = true;
  auto opened = OpenPool::open(file, tester());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->trim().code(), Code::read_only);
  EXPECT_TRUE((*opened)->trim(true).ok());
}

// FEATURE-1: a program that stores to holes must not open the pool any more.
TEST_F(Trim, ThePoolHasTheFeatureOfHoles) {
  open();
  const auto b = user->allocate(128 * KiB);
  ASSERT_TRUE(user->free(*b).ok());
  close();
  // A pool of a program that allocated all of it.
  for (const std::uint64_t at : {header_a, header_b}) {
    Header h = header_of(scratch.path(), at);
    h.features_write = 0;
    h.checksum = header_checksum(h);
    poke(scratch.path(), at, &h, sizeof h);
  }
  EXPECT_GT(trim().free_bytes, 0U);
  for (const std::uint64_t at : {header_a, header_b})
    EXPECT_TRUE(has_feature(header_of(scratch.path(), at), Feature::small_logs));
}

TEST_F(Trim, ADamagedHeapIsLeftAlone) {
  open();
  const auto b = user->allocate(128 * KiB);
  ASSERT_TRUE(b.ok());
  close();
  const std::uint64_t wrong = ChunkWord::make(ChunkWord::rest, 0, 1).bits;
  const Header h = header_of(scratch.path());
  poke(scratch.path(), h.log_bytes + Directory(h).word(*b / chunk_bytes), &wrong, sizeof wrong);
  auto opened = OpenPool::open(how, tester());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->trim().code(), Code::corrupt);
}

struct Cut {
  std::vector<std::byte> durable, now;
};

std::unique_ptr<medium::RecordingMedium> recorder(std::uint64_t log, std::uint64_t data,
                                                  const std::vector<std::byte>& image = {}) {
  medium::RecordingOptions options;
  options.log_bytes = log;
  options.data_bytes = data;
  options.max_data_bytes = 16 * MiB;
  options.sparse = true;
  auto m = medium::RecordingMedium::make(options, image);
  EXPECT_TRUE(m.ok()) << m.status().message();
  return std::move(*m);
}

/// Each block and its bytes; a pool that a power cut left must have the same.
struct Contents {
  std::map<std::uint64_t, std::string> blocks;
  bool sound = false;
  friend bool operator==(const Contents&, const Contents&) = default;
};
Contents contents_of(const medium::Medium& m, const Header& header) {
  Contents all;
  const auto audit = audit_heap(
      m.data(), header,
      [&](std::uint64_t offset, std::uint64_t bytes) {
        all.blocks[offset].assign(reinterpret_cast<const char*>(m.data() + offset), bytes);
      },
      &m);
  for (const std::string& problem : audit.problems) ADD_FAILURE() << problem;
  all.sound = audit.problems.empty();
  return all;
}

// TRIM-1, TRIM-2: at every fence of a trim each word that is not durable is the old one or the new
// one, in any mixture.
TEST(TrimCrash, EveryImageIsACleanPoolWithTheSameBlocks) {
  constexpr std::uint64_t log = 2 * MiB;
  OpenFile how = small("p");
  how.max_bytes = 16 * MiB;
  auto raw = recorder(log, 2 * MiB);
  std::vector<std::byte> image;
  {
    medium::RecordingMedium* const kept = raw.get();
    auto pool = OpenPool::open_on(std::move(raw), true, how, tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    HeapUser user(**pool);
    std::vector<std::uint64_t> freed;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t bytes = i % 3 == 0 ? 100 * KiB : i % 3 == 1 ? 4000 : 8000;
      for (int n = i % 3 == 0 ? 1 : 12; n > 0; --n) {
        const auto b = user.allocate(bytes);
        ASSERT_TRUE(b.ok()) << b.status().message();
        std::memset((*pool)->view() + *b, 0x40 + i, bytes);
        if (i > 3 && i % 5 != 0) freed.push_back(*b);
      }
    }
    for (const std::uint64_t b : freed) ASSERT_TRUE(user.free(b).ok());
    user.close();
    image = kept->durable_image();
  }

  auto m = recorder(log, image.size() - log, image);
  medium::RecordingMedium* const on = m.get();
  auto pool = OpenPool::open_on(std::move(m), false, how, tester());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  const Contents before = contents_of((*pool)->medium(), (*pool)->header());
  ASSERT_GT(before.blocks.size(), 20U);
  std::vector<Cut> cuts;
  on->set_fence_hooks([&] { cuts.push_back({on->durable_image(), on->current_image()}); }, {});
  const auto counted = on->counters();
  const auto report = (*pool)->trim();
  const auto cost = on->counters() - counted;
  on->set_fence_hooks({}, {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->given_back, 10 * chunk_bytes);
  EXPECT_LT(report->data_bytes_after, report->data_bytes_before);
  EXPECT_EQ(cost.fences, 5U);  // two headers in two copies each, and the words
  EXPECT_EQ(contents_of((*pool)->medium(), (*pool)->header()), before);
  cuts.push_back({on->durable_image(), on->current_image()});
  *pool = nullptr;  // its address is for the next ones

  std::mt19937_64 random(7);
  for (std::size_t point = 0; point < cuts.size(); ++point)
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE("point " + std::to_string(point) + ", round " + std::to_string(round));
      std::vector<std::byte> mixed = cuts[point].durable;
      const std::vector<std::byte>& now = cuts[point].now;
      const std::size_t both = std::min(mixed.size(), now.size());
      for (std::size_t at = 0; round != 0 && at < both; at += 8)
        if (round == 1 || random() % 2 == 0) std::memcpy(&mixed[at], &now[at], 8);
      mixed.resize(both);  // the file's end may be cut off already
      const std::uint64_t data = mixed.size() - log;
      auto left = recorder(log, data, mixed);
      medium::RecordingMedium* const at = left.get();
      auto again = OpenPool::open_on(std::move(left), false, how, tester());
      ASSERT_TRUE(again.ok()) << again.status().message();
      ASSERT_EQ((*again)->header().clean, 1U);
      ASSERT_LE((*again)->header().data_bytes, data);  // TRIM-2
      ASSERT_EQ(contents_of(*at, (*again)->header()), before);
      // What is a hole is named by no word (TRIM-1), so another trim, or a session, goes on.
      const auto second = (*again)->trim();
      ASSERT_TRUE(second.ok()) << second.status().message();
      ASSERT_EQ(contents_of(*at, (*again)->header()), before);
    }
}

}  // namespace
}  // namespace perdure::pool
