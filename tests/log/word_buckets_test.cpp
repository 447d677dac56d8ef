// SPDX-License-Identifier: BSD-3-Clause
//
// WordBuckets: what is drained is what was gathered, in the order of each page. RecordMerge: the
// records of several rings in the order of their ids.
#include "perdure/log/word_buckets.hpp"

#include <map>

#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

using Image = std::map<std::uint64_t, std::uint64_t>;  // words by offset

struct Drained {
  Image image;
  std::uint64_t calls = 0, stores = 0;
};

void drain(WordBuckets& buckets, Drained& drained) {
  std::uint64_t last = 0;
  const auto put = [&](std::uint64_t offset, std::uint64_t value) {
    drained.image[offset] = value;
    EXPECT_LE(last >> 21, offset >> 21) << "one bucket after the other";
    last = offset;
  };
  buckets.drain(
      [&](std::span<const medium::WordStore> words) {
        EXPECT_FALSE(words.empty());
        ++drained.calls;
        drained.stores += words.size();
        for (const auto& w : words) put(w.offset, w.value);
      },
      [&](std::uint64_t offset, std::uint64_t n, const std::uint64_t* values) {
        ++drained.calls;
        ++drained.stores;
        for (std::uint64_t i = 0; i < n; ++i) put(offset + i * 8, values[i]);
      });
}

// Many words, few of them distinct, so that their order shows; runs up to a page; stores that are
// another thread's; and too little memory for all of them. No block at all is one: the share of a
// thread of very many.
TEST(WordBuckets, DrainWhatWasGatheredInTheOrderOfEachPage) {
  constexpr std::uint64_t data_bytes = 16 << 20;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> values(512);
  for (const std::uint64_t most : {0U, 1U, 2U, 20U, 100000U})
    for (const unsigned run_in : {2U, 1000U}) {
      WordBuckets buckets(data_bytes, 20'000, most);
      Image expected;
      Drained drained;
      // A run's words stay until they are drained.
      std::vector<std::vector<std::uint64_t>> runs;
      std::uint64_t stores = 0;
      for (std::uint64_t i = 0; i < 20'000 / scale; ++i) {
        const std::uint64_t page = random() % (data_bytes / 4096) / 64 * 64;
        const std::uint64_t n = random() % run_in == 0 ? 2 + random() % 511 : 1,
                            at = random() % (513 - n) / 16 * 16;
        std::vector<std::uint64_t> run(n);
        for (auto& v : run) v = random();
        if (!buckets.has_space()) {
          drain(buckets, drained);
          runs.clear();
        }
        const bool mine = random() % 4 != 0;
        runs.push_back(std::move(run));
        buckets.add(page * 4096 + at * 8, n, runs.back().data(), mine);
        if (!mine) continue;
        ++stores;
        for (std::uint64_t k = 0; k < n; ++k) expected[page * 4096 + (at + k) * 8] = runs.back()[k];
      }
      drain(buckets, drained);
      EXPECT_EQ(expected, drained.image) << most;
      EXPECT_EQ(stores, drained.stores);
      const std::uint64_t calls = drained.calls;
      drain(buckets, drained);
      EXPECT_EQ(calls, drained.calls) << "nothing is gathered after drain()";
    }
}

// At the ends of blocks, and of a bucket's last block.
TEST(WordBuckets, HoldAnyNumberOfStores) {
  const std::uint64_t block = WordBuckets::in_block;
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, block - 1, block, block + 1,
                                2 * block, 2 * block + 1}) {
    WordBuckets buckets(4 << 20, n);
    for (std::uint64_t i = 0; i < n; ++i) {
      ASSERT_TRUE(buckets.has_space()) << n;
      buckets.add(i * 8, 1, &i);
    }
    Drained drained;
    drain(buckets, drained);
    EXPECT_EQ(n, drained.image.size());
    for (const auto& [offset, value] : drained.image) EXPECT_EQ(offset, value * 8);
  }
}

TEST(WordBuckets, AreSoMuchLargerWhereTheDataRegionIs) {
  const std::uint64_t last = (std::uint64_t{1} << 42) - 8;  // of 4 TiB
  WordBuckets buckets(last + 8, 100'000);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(buckets.has_space());
    buckets.add(last - i * 8 * 4097, 1, &i);
  }
  std::uint64_t stores = 0;
  buckets.drain(
      [&](std::span<const medium::WordStore> words) {
        stores += words.size();
        for (const auto& w : words) ASSERT_EQ(last - w.value * 8 * 4097, w.offset);
      },
      [](std::uint64_t, std::uint64_t, const std::uint64_t*) { FAIL(); });
  EXPECT_EQ(100'000U, stores);
}

// Rings of several lengths, of which some are empty, one has a single record, and records cross the
// end of a ring.
TEST(RecordMerge, GivesTheRecordsOfSeveralRingsInTheOrderOfTheirIds) {
  std::mt19937_64 random(5);
  for (std::size_t count : {1U, 2U, 3U, 7U}) {
    std::vector<std::unique_ptr<RingOnMedium>> rings;
    for (std::size_t i = 0; i < count; ++i)
      rings.push_back(std::make_unique<RingOnMedium>(8192 + 4096 * (i % 3)));
    std::uint64_t id = 0;
    const auto append = [&](RingOnMedium& r, std::uint64_t n) {
      while (!r.ring.fits(r.record_bytes(n)))
        r.ring.release(r.ring.head() + r.ring.at(r.ring.head()).bytes(64));
      r.append(++id, n);
    };
    for (int i = 0; i < 2000; ++i)
      append(*rings[std::min<std::size_t>(random() % count, random() % count)], 1 + random() % 40);
    rings.push_back(std::make_unique<RingOnMedium>(8192));  // empty
    rings.push_back(std::make_unique<RingOnMedium>(8192));
    append(*rings.back(), 3);
    RecordMerge merge(64);
    std::map<std::uint64_t, std::uint64_t> expected;  // position by id
    for (const auto& r : rings) {
      merge.add(r->map, r->ring.head(), r->ring.tail());
      for (std::uint64_t at = r->ring.head(); at < r->ring.tail(); at += r->ring.at(at).bytes(64))
        expected[r->ring.at(at).id()] = at;
    }
    std::map<std::uint64_t, std::uint64_t> found;
    RecordView r;
    std::uint64_t last = 0;
    for (RecordMerge copy = merge; copy.next(r); last = r.id()) {
      EXPECT_LT(last, r.id());
      found[r.id()] = r.position;
    }
    EXPECT_EQ(expected, found);
    ASSERT_TRUE(merge.next(r));
    EXPECT_EQ(expected.begin()->first, r.id()) << "a copy leaves the original where it is";
  }
}

// A page of a ring that was never allocated is not read. What lies above it is found all the same.
TEST(Ring, AScanPassesOverHoles) {
  constexpr std::uint64_t bytes = 64 << 10;
  for (const std::size_t unit : {64UL, 4096UL}) {
    RingOnMedium full(bytes, unit);
    for (std::uint64_t id = 1; id <= 3; ++id) full.append(id, 20);
    const std::uint64_t end = full.ring.tail();
    // A whole record far above the end, where a scan must see damage.
    RingOnMedium far(bytes, unit);
    far.append(9, 20);
    const std::uint64_t above = 12 * 4096, n = far.ring.at(0).bytes(unit);
    far.writer.reset();
    const std::uint64_t value = 5;
    far.writer.words(64, &value, 1);
    const std::uint64_t* const sealed = far.writer.seal(RecordKind::commit, 9, 1, above);
    for (const bool damaged : {false, true}) {
      std::vector<std::byte> image(bytes + 4096);
      std::memcpy(image.data(), full.map.base, bytes);
      if (damaged) std::memcpy(image.data() + above, sealed, std::min<std::uint64_t>(n, 64));
      medium::RecordingOptions options;
      options.log_bytes = bytes;
      options.data_bytes = 4096;
      options.append_unit = unit;
      options.sparse = true;
      const auto m = medium::RecordingMedium::make(options, image).value();
      const medium::RingMap map = m->map_ring(0, bytes).value();
      EXPECT_FALSE(map.hole(0));
      EXPECT_FALSE(map.hole(bytes)) << "the next generation";
      EXPECT_TRUE(map.hole(11 * 4096));
      EXPECT_EQ(!damaged, map.hole(above));
      const Found found = scan(map, 0, full.seed, unit);
      EXPECT_EQ(from_to(1, 3), found.ids);
      EXPECT_EQ(end, found.scan.end);
      EXPECT_EQ(!damaged, found.scan.damage.ok()) << found.scan.damage.message();
    }
  }
}

}  // namespace
}  // namespace perdure::log::testing
