// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's limit is raised when it is opened: the places of the directory's words (Directory), the
// openings that raise the limit, the header's fields, every image that a power cut during a raise
// can leave (RAISE-1), and the heap beyond the old limit.
#include <map>
#include <random>

#include "heap_fixture.hpp"
#include "perdure/pool/features.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

// By brute force: each chunk has a word of its own, within a chunk for words, at or before the
// chunk itself.
TEST(DirectoryPlaces, EachChunkHasAWordOfItsOwnBeforeItsEnd) {
  for (const std::uint64_t first : {2, 3, 5, 16, 64, 100, 8191, 8192, 8193, 20000}) {
    const std::uint64_t limit = first * 11 + 3;
    const Directory d(first * chunk_bytes, limit * chunk_bytes), never(first * chunk_bytes);
    std::map<std::uint64_t, std::uint64_t> chunk_of_word;
    std::uint64_t words = 0;
    for (std::uint64_t c = 0; c < limit; ++c) {
      const std::uint64_t at = d.word(c);
      ASSERT_TRUE(chunk_of_word.emplace(at, c).second) << first << ": chunk " << c;
      ASSERT_TRUE(d.holds_words(at / chunk_bytes)) << first << ": chunk " << c;
      ASSERT_LE(at + 8, (c + 1) * chunk_bytes);
      ASSERT_LE(d.first_object(c), d.section_end(c) < limit ? d.section_end(c) : ~0ULL);
      words += d.holds_words(c) ? 1 : 0;
      if (c >= first) continue;
      ASSERT_EQ(at, never.word(c));  // a raise moves no word
      ASSERT_EQ(d.holds_words(c), never.holds_words(c));
    }
    EXPECT_EQ(d.first_chunk(), never.first_chunk());
    std::uint64_t in_runs = 0, last = 0;
    d.each_run_of_words(limit * chunk_bytes, [&](std::uint64_t from, std::uint64_t to) {
      ASSERT_GE(from, last);
      for (std::uint64_t c = from; c < to; ++c) in_runs += d.holds_words(c) ? 1 : 0;
      last = to;
    });
    EXPECT_EQ(in_runs, words);
  }
}

TEST(DirectoryPlaces, LengthWithMoreChunksSkipsWords) {
  const Directory d(64 * chunk_bytes, 256 * chunk_bytes);
  EXPECT_EQ(d.length_with(60 * chunk_bytes, 4), 64 * chunk_bytes);
  EXPECT_EQ(d.length_with(60 * chunk_bytes, 5), 70 * chunk_bytes);  // chunk 64 holds words
  EXPECT_EQ(d.length_with(64 * chunk_bytes, 1), 66 * chunk_bytes);
  EXPECT_EQ(d.length_with(65 * chunk_bytes, 1), 66 * chunk_bytes);
  EXPECT_EQ(d.length_with(60 * chunk_bytes, 100), 229 * chunk_bytes);  // nor 128, a section's first
  // More than there can be, though the bytes would do: no growth may come of it.
  EXPECT_GT(d.length_with(250 * chunk_bytes, 9), d.max_data_bytes());
  EXPECT_GT(d.length_with(60 * chunk_bytes, 140), d.max_data_bytes());
  EXPECT_GT(Directory(64 * chunk_bytes).length_with(60 * chunk_bytes, 5), 64 * chunk_bytes);
}

class Raise : public HeapTest {
 protected:
  void open_raised(std::uint64_t max) {
    how = small(scratch.path());
    how.max_bytes = max;
    how.raise_max = true;
    auto r = OpenPool::open(how, tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
    pool = std::move(*r);
    ASSERT_TRUE(pool->start_session(ViewPolicy::shadow).ok());
    user = std::make_unique<HeapUser>(*pool);
  }
  std::uint64_t& word(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(pool->view() + offset);
  }
  /// Allocates until the pool is full, and marks each block with its offset.
  void fill(std::uint64_t bytes) {
    for (;;) {
      const auto b = user->allocate(bytes);
      if (!b.ok()) {
        ASSERT_EQ(b.code(), Code::full) << b.status().message();
        return;
      }
      for (std::uint64_t at = 0; at < bytes; at += 8) word(*b + at) = *b + at + 1;
      ASSERT_TRUE(held.emplace(*b, bytes).second);
    }
  }
  void free_every(int n) {
    int i = 0;
    for (auto it = held.begin(); it != held.end();) {
      if (++i % n != 0) {
        ++it;
        continue;
      }
      ASSERT_TRUE(user->free(it->first).ok());
      it = held.erase(it);
    }
  }
  void expect_held() {
    for (const auto& [offset, bytes] : held)
      for (std::uint64_t at = 0; at < bytes; at += 8)
        ASSERT_EQ(word(offset + at), offset + at + 1) << "block " << offset;
    std::set<std::uint64_t> all = blocks();
    for (const auto& [offset, bytes] : held) ASSERT_EQ(all.erase(offset), 1U);
    ASSERT_LE(all.size(), 1U);  // the root object
  }
  [[nodiscard]] std::uint64_t held_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [offset, bytes] : held) sum += bytes;
    return sum;
  }
  std::map<std::uint64_t, std::uint64_t> held;
};

TEST_F(Raise, TheHeapUsesWhatIsBeyondTheOldLimitAgainAndAgain) {
  open(4 * MiB);
  fill(1000);
  EXPECT_EQ(pool->data_bytes(), 4 * MiB);
  close();
  std::uint64_t limit = 4 * MiB;
  static constexpr std::uint64_t sizes[] = {1000, 200 * KiB, 30000, 65536, 24, 300 * KiB};
  for (const std::uint64_t bytes : sizes) {
    limit = limit * 3 / 2 / MiB * MiB;
    SCOPED_TRACE("limit " + std::to_string(limit));
    open_raised(limit);
    if (HasFatalFailure()) return;
    expect_held();
    const std::uint64_t before = held_bytes();
    fill(bytes);
    EXPECT_EQ(pool->data_bytes(), limit);
    EXPECT_GT(held_bytes(), before + limit / 6);  // it grew by a third, less what does not fit
    expect_held();
    free_every(7);
    if (HasFatalFailure()) return;
    close();
  }
  // No block has the address of a directory word.
  open(4 * MiB);
  expect_held();
  for (const std::uint64_t at : {4 * MiB, 8 * MiB, 16 * MiB, 4 * MiB + 64})
    EXPECT_EQ(pool->heap().prepare_free(at).code(), Code::invalid);
  free_every(1);
  fill(1 * MiB);
  EXPECT_GT(held_bytes(), limit / 2);
  expect_held();
  close();
}

// A block that does not fit before the next words makes the pool grow into a section that holds it.
TEST_F(Raise, LargeBlocksSkipToASectionThatHoldsThem) {
  open(4 * MiB);
  close();
  open_raised(64 * MiB);
  const auto block = user->allocate(6 * MiB);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(*block, 8 * MiB + chunk_bytes);
  const auto next = user->allocate(6 * MiB);  // and one in the section after that
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(*next, 16 * MiB + chunk_bytes);
  close();
}

TEST_F(Raise, TrimLeavesTheDirectoryAndThePoolGrowsAgain) {
  open(4 * MiB);
  close();
  open_raised(32 * MiB);
  fill(200 * KiB);
  free_every(3);
  close();
  how.raise_max = false;
  for (const int n : {2, 1}) {
    const auto length = std::filesystem::file_size(scratch.path());
    {
      auto opened = OpenPool::open(how, tester());
      ASSERT_TRUE(opened.ok());
      const auto report = (*opened)->trim();
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_GT(report->given_back, 1 * MiB);
    }
    for (const std::uint64_t at : {header_a, header_b})
      EXPECT_EQ(judge(header_of(scratch.path(), at)), CopyState::valid);
    open(4 * MiB);
    if (HasFatalFailure()) return;
    expect_held();
    if (n == 1) {
      EXPECT_LT(std::filesystem::file_size(scratch.path()), length);
      EXPECT_LT(header_of(scratch.path()).data_bytes, 4 * MiB);
      EXPECT_EQ(header_of(scratch.path()).max_data_bytes, 4 * MiB);
      fill(200 * KiB);
      EXPECT_EQ(pool->data_bytes(), 32 * MiB);
      expect_held();
    } else {
      free_every(1);
    }
    close();
  }
}

TEST_F(Raise, OnlyWhoAsksRaisesAndNobodyLowers) {
  open(4 * MiB);
  close();
  open(16 * MiB);  // a larger max_bytes alone raises nothing
  EXPECT_EQ(Directory(pool->header()).max_data_bytes(), 4 * MiB);
  EXPECT_FALSE(pool->has_feature(Feature::raised_limit));
  close();
  for (const bool read_only : {false, true}) {  // no session, or none that writes
    OpenFile file = small(scratch.path());
    file.max_bytes = 16 * MiB;
    file.raise_max = true;
    file.read_only = read_only;
    auto opened = OpenPool::open(file, tester());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (read_only) {
      EXPECT_TRUE((*opened)->start_session(ViewPolicy::shadow).ok());
    }
    EXPECT_EQ(header_of(scratch.path()).raised_max_bytes, 0U);
  }
  open_raised(16 * MiB - 5);  // whole chunks
  EXPECT_EQ(Directory(pool->header()).max_data_bytes(), 16 * MiB);
  close();
  for (const std::uint64_t less : {16 * MiB, 4 * MiB, 8 * MiB}) {
    open_raised(less);
    EXPECT_EQ(Directory(pool->header()).max_data_bytes(), 16 * MiB);
    EXPECT_EQ(Directory(pool->header()).word(64), 4 * MiB);
    close();
  }
  OpenFile file = small(scratch.path());
  file.raise_max = true;
  file.max_bytes = max_data_limit + 1;
  EXPECT_EQ(OpenPool::open(file, tester()).code(), Code::invalid);
}

TEST_F(Raise, AddressSpaceThatIsTakenIsNamedAndNothingIsWritten) {
  open(4 * MiB);
  const std::uint64_t behind = pool->header().base + 8 * MiB;
  close();
  const std::string before = read_all(scratch.path());
  const auto other = AddressRange::reserve(behind, 64 * KiB, "another");
  ASSERT_TRUE(other.ok()) << other.status().message();
  OpenFile file = small(scratch.path());
  file.max_bytes = 16 * MiB;
  file.raise_max = true;
  auto opened = OpenPool::open(file, tester());
  EXPECT_EQ(opened.code(), Code::incompatible);
  EXPECT_NE(opened.status().message().find("raise of max_size to 16777216"), std::string::npos)
      << opened.status().message();
  EXPECT_EQ(read_all(scratch.path()), before);
  file.max_bytes = 8 * MiB;
  EXPECT_TRUE(OpenPool::open(file, tester()).ok());
}

// FEATURE-1: a build that does not know the feature compares data_bytes with max_data_bytes, and
// with a directory for max_data_bytes, before it looks at the features. It must find no fault.
TEST_F(Raise, BuildsWithoutTheFeatureRefuseItForTheFeature) {
  open(4 * MiB);
  close();
  const auto judged = [&] {
    for (const std::uint64_t at : {header_a, header_b}) {
      const Header h = header_of(scratch.path(), at);
      EXPECT_TRUE(has_feature(h, Feature::raised_limit));
      EXPECT_EQ(h.features_read >> 8 & 1, 1U);
      EXPECT_EQ(h.max_data_bytes % chunk_bytes, 0U);
      EXPECT_LE(h.data_bytes, h.max_data_bytes);
      EXPECT_GE(h.data_bytes, first_chunk(Directory(h.max_data_bytes)) * chunk_bytes);
      EXPECT_EQ(h.first_max_bytes, 4 * MiB);
    }
  };
  open_raised(1024 * MiB);
  judged();
  close();
  judged();
  open_raised(4096 * MiB);  // a directory of 512 KiB, if it were one from the beginning
  ASSERT_TRUE(pool->grow(40 * MiB).ok());
  judged();
  close();
  judged();
}

TEST_F(Raise, TheAuditFindsWordsOfTheDirectoryAndWhatLiesOverThem) {
  open(4 * MiB);
  close();
  open_raised(16 * MiB);
  fill(100 * KiB);
  close();
  const Header h = header_of(scratch.path());
  const Directory d(h);
  const auto problems = [&](std::uint64_t chunk, ChunkWord w) {
    poke(scratch.path(), h.log_bytes + d.word(chunk), &w.bits, 8);
    auto opened = OpenPool::open(small(scratch.path()), tester());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    const auto audit = audit_heap((*opened)->medium().data(), (*opened)->header());
    EXPECT_EQ((*opened)->trim().code(), Code::corrupt);
    std::string text;
    for (const std::string& p : audit.problems) text += p + "\n";
    return text;
  };
  EXPECT_NE(problems(64, ChunkWord::make(ChunkWord::large, 0, 1)).find("chunk 64: found a word"),
            std::string::npos);
  poke(scratch.path(), h.log_bytes + d.word(64), "\0\0\0\0\0\0\0\0", 8);
  const std::string over = problems(62, ChunkWord::make(ChunkWord::large, 0, 4));
  EXPECT_NE(over.find("before the next words of the directory"), std::string::npos) << over;
}

TEST(RaiseOps, OpsOnTheDirectoryOrAcrossSectionsAreImpossible) {
  const Directory d(64 * chunk_bytes, 256 * chunk_bytes);
  const std::uint64_t data = 200 * chunk_bytes;
  const std::uint32_t c48 = size_class(48), c20k = size_class(20000);
  const auto small_at = [&](std::uint64_t chunk, std::uint32_t cls) {
    return possible({chunk * chunk_bytes + classes[cls].first, cls, 0, true}, data, d);
  };
  EXPECT_TRUE(small_at(63, c48) && small_at(65, c48) && small_at(127, c48));
  EXPECT_FALSE(small_at(64, c48));
  EXPECT_FALSE(small_at(128, c48));
  EXPECT_TRUE(small_at(49, c20k));   // chunks 49 to 56
  EXPECT_FALSE(small_at(57, c20k));  // chunks 57 to 64: over words
  EXPECT_TRUE(small_at(65, c20k));
  const auto large_at = [&](std::uint64_t chunk, std::uint32_t n) {
    return possible({chunk * chunk_bytes, large_class, n, true}, data, d);
  };
  EXPECT_TRUE(large_at(60, 4) && large_at(65, 63) && large_at(129, 71));
  EXPECT_FALSE(large_at(60, 5));
  EXPECT_FALSE(large_at(64, 1));
  EXPECT_FALSE(large_at(65, 64));
  EXPECT_FALSE(large_at(129, 72));
}

// RAISE-1: at every fence of an opening that raises, each word that is not durable is the old one
// or the new one, in any mixture: the pool has the old limit or the new one, and opens.
TEST(RaiseCrash, EveryImageHasTheOldLimitOrTheNewOne) {
  constexpr std::uint64_t log = 2 * MiB, old_limit = 1 * MiB, new_limit = 4 * MiB;
  medium::RecordingOptions options;
  options.log_bytes = log;
  options.data_bytes = old_limit;
  options.max_data_bytes = new_limit;
  options.sparse = true;
  OpenFile how = small("p");
  how.max_bytes = old_limit;
  std::vector<std::byte> image;
  {
    auto m = medium::RecordingMedium::make(options);
    ASSERT_TRUE(m.ok());
    medium::RecordingMedium* const on = m->get();
    auto pool = OpenPool::open_on(std::move(*m), true, how, tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->close_clean(0).ok());
    image = on->durable_image();
  }
  struct Cut {
    std::vector<std::byte> durable, now;
  };
  std::vector<Cut> cuts;
  how.max_bytes = new_limit;
  how.raise_max = true;
  {
    auto m = medium::RecordingMedium::make(options, image);
    ASSERT_TRUE(m.ok());
    medium::RecordingMedium* const on = m->get();
    on->set_fence_hooks([&] { cuts.push_back({on->durable_image(), on->current_image()}); }, {});
    auto pool = OpenPool::open_on(std::move(*m), false, how, tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    EXPECT_EQ(cuts.size(), 3U);  // HEADER-3, and the session's header: a raise costs no fence
    HeapUser user(**pool);
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) last = *user.allocate(256 * KiB);
    EXPECT_GE(last, old_limit);
    user.close();
    cuts.push_back({on->durable_image(), on->current_image()});
    on->set_fence_hooks({}, {});
  }
  ASSERT_GE(cuts.size(), 8U);
  int old_limits = 0, new_limits = 0;
  std::mt19937_64 random(11);
  for (std::size_t point = 0; point < cuts.size(); ++point)
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE("point " + std::to_string(point) + ", round " + std::to_string(round));
      std::vector<std::byte> mixed = cuts[point].durable;
      const std::vector<std::byte>& now = cuts[point].now;
      ASSERT_LE(mixed.size(), now.size());
      for (std::size_t at = 0; round != 0 && at < mixed.size(); at += 8)
        if (round == 1 || random() % 2 == 0) std::memcpy(&mixed[at], &now[at], 8);
      options.data_bytes = mixed.size() - log;
      auto m = medium::RecordingMedium::make(options, mixed);
      ASSERT_TRUE(m.ok());
      auto again = OpenPool::open_on(std::move(*m), false, how, tester());
      ASSERT_TRUE(again.ok()) << again.status().message();
      const std::uint64_t limit = Directory((*again)->header()).max_data_bytes();
      ASSERT_TRUE(limit == old_limit || limit == new_limit) << limit;
      ++(limit == old_limit ? old_limits : new_limits);
      if ((*again)->header().data_bytes > old_limit) {
        ASSERT_EQ(limit, new_limit);
      }
      ASSERT_TRUE((*again)->start_session(ViewPolicy::shadow).ok());
      ASSERT_TRUE((*again)->grow(new_limit).ok());
    }
  EXPECT_GE(old_limits, 6);
  EXPECT_GE(new_limits, 6);
}

}  // namespace
}  // namespace perdure::pool
