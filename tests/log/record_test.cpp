// SPDX-License-Identifier: BSD-3-Clause
//
// Records: what was written is read back, and nothing else passes the checks: no flipped bit, no
// other position, opening, ring or pool.
#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

struct RecordTest : ::testing::Test {
  RecordTest() { writer.configure(seed, 64 << 20, 64); }
  RecordView sealed(std::uint64_t id = 9, std::uint64_t position = 640,
                    RecordKind kind = RecordKind::commit, std::uint32_t transactions = 1) {
    return {writer.seal(kind, id, transactions, position), position};
  }
  static std::vector<Entry> entries(const RecordView& r) {
    std::vector<Entry> all;
    EXPECT_TRUE(each_entry(r.words + header_words, r.payload_words(),
                           [&](const Entry& e) { all.push_back(e); }));
    return all;
  }
  std::uint64_t seed = ring_seed(uuid, 5, 2);
  RecordWriter writer;
};

TEST_F(RecordTest, RunsOfEveryLengthComeBack) {
  std::vector<std::uint64_t> values(100);
  for (std::uint64_t i = 0; i < 100; ++i) values[i] = base::mix(i + 1);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    writer.reset();
    EXPECT_TRUE(writer.empty());
    writer.words(8 * n, values.data(), n);
    writer.word(1 << 20, n);  // something after it: with a wrong length its place would be lost
    const RecordView r = sealed();
    ASSERT_TRUE(r.plausible(64 << 20));
    ASSERT_TRUE(r.checks(seed));
    const auto all = entries(r);
    ASSERT_EQ(2U, all.size()) << n;
    EXPECT_EQ(EntryKind::words, all[0].kind);
    EXPECT_EQ(8 * n, all[0].offset);
    ASSERT_EQ(n, all[0].count);
    EXPECT_EQ(0, std::memcmp(all[0].values, values.data(), n * 8));
    EXPECT_EQ(n, all[1].values[0]);
    EXPECT_EQ((n + 2) / 2 * 2 + 2, r.payload_words())
        << "a key, n words, and one of zero where that is odd";
    EXPECT_EQ(((r.payload_words() + 3) * 8 + 63) / 64 * 64, r.bytes(64));
    EXPECT_EQ(r.bytes(64), writer.bytes());
  }
}

TEST_F(RecordTest, EveryKindOfEntryComesBackInOrder) {
  const std::uint64_t far = pool::max_data_limit - 8;
  const std::uint64_t old[2] = {71, 72};
  writer.word(far, ~0ULL);
  writer.heap_op({65536 + 64, 12, 0, true});
  writer.heap_op({pool::max_data_limit - 65536, pool::large_class, 70000, true});
  writer.heap_op({65536 + 128, 43, 0, false});
  writer.end_of(41);
  writer.words(64, old, 2, EntryKind::before);
  const std::uint64_t raw[4] = {entry_key(EntryKind::words, 128, 1), 5,
                                entry_key(EntryKind::end, 0, 0), 42};
  writer.entries(raw, 4);
  const RecordView r = sealed((1ULL << 48) - 1, 64, RecordKind::group, 2);
  EXPECT_EQ((1ULL << 48) - 1, r.id());
  EXPECT_EQ(RecordKind::group, r.kind());
  EXPECT_EQ(2U, r.transactions());
  const auto all = entries(r);
  ASSERT_EQ(8U, all.size());
  EXPECT_EQ(far, all[0].offset);
  EXPECT_EQ(~0ULL, all[0].values[0]);
  const pool::HeapOp small = all[1].heap_op(), large = all[2].heap_op(), freed = all[3].heap_op();
  EXPECT_TRUE(small.set && small.offset == 65536 + 64 && small.cls == 12 && small.chunks == 0);
  EXPECT_TRUE(large.set && large.offset == pool::max_data_limit - 65536 &&
              large.cls == pool::large_class && large.chunks == 70000);
  EXPECT_TRUE(!freed.set && freed.offset == 65536 + 128 && freed.cls == 43);
  EXPECT_TRUE(all[4].kind == EntryKind::end && all[4].values[0] == 41);
  EXPECT_TRUE(all[5].kind == EntryKind::before && all[5].count == 2 && all[5].values[1] == 72);
  EXPECT_TRUE(all[6].offset == 128 && all[6].values[0] == 5);
  EXPECT_TRUE(all[7].kind == EntryKind::end && all[7].values[0] == 42);
}

TEST_F(RecordTest, ARunLongerThanAKeyCanSayIsTwoEntries) {
  std::vector<std::uint64_t> values(max_count + 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
  writer.words(4096, values.data(), values.size());
  const RecordView r = sealed();
  const auto all = entries(r);
  ASSERT_EQ(2U, all.size());
  EXPECT_EQ(max_count, all[0].count);
  EXPECT_EQ(7U, all[1].count);
  EXPECT_EQ(4096 + max_count * 8, all[1].offset);
  EXPECT_EQ(max_count, all[1].values[0]);
  EXPECT_TRUE(r.checks(seed));
}

TEST_F(RecordTest, NoFlippedBitOfHeaderOrEntriesGoesUnseen) {
  std::vector<std::uint64_t> values(21, 0);
  writer.word(8, 0);
  // Zeros: the weakest content for a checksum of products.
  writer.words(256, values.data(), values.size());
  writer.heap_op({1 << 16, 3, 0, true});
  const RecordView whole = sealed();
  std::vector<std::uint64_t> copy(whole.words, whole.words + whole.bytes(64) / 8);
  const RecordView r{copy.data(), whole.position};
  ASSERT_TRUE(r.checks(seed));
  for (std::size_t bit = 0; bit < (whole.payload_words() + header_words) * 64; ++bit) {
    copy[bit / 64] ^= 1ULL << bit % 64;
    // A count that points beyond what a ring may hold is refused before it is summed.
    EXPECT_FALSE(r.plausible(copy.size() * 8) && r.checks(seed))
        << "word " << bit / 64 << " bit " << bit % 64;
    copy[bit / 64] ^= 1ULL << bit % 64;
  }
  EXPECT_TRUE(r.checks(seed));
}

TEST_F(RecordTest, IsBoundToItsPlaceRingOpeningAndPool) {
  writer.word(8, 1);
  const RecordView r = sealed();
  EXPECT_TRUE(r.checks(seed));
  EXPECT_FALSE((RecordView{r.words, r.position + 8192}.checks(seed))) << "another lap";
  EXPECT_FALSE((RecordView{r.words, r.position + 64}.checks(seed)));
  EXPECT_FALSE(r.checks(ring_seed(uuid, 6, 2))) << "another opening";
  EXPECT_FALSE(r.checks(ring_seed(uuid, 5, 3))) << "another ring";
  EXPECT_FALSE(r.checks(ring_seed(uuid, 4, 2 + 127))) << "an earlier opening's ring";
  std::uint8_t other[16];
  std::memcpy(other, uuid, 16);
  other[15] ^= 1;
  EXPECT_FALSE(r.checks(ring_seed(other, 5, 2))) << "another pool";
}

TEST_F(RecordTest, ATransactionThatCantFitIsRefusedAndWhatWasGatheredStays) {
  RecordWriter small;
  small.configure(seed, 1024, 64);
  for (std::uint64_t i = 0; i < 62; ++i) small.word(8 * i, i);  // 3 + 124 of 128 words
  EXPECT_EQ(1024U, small.bytes());
  try {
    small.word(0, 0);
    FAIL() << "a record of more than its bound";
  } catch (const error& e) {
    EXPECT_EQ(Code::too_big, e.code());
    EXPECT_NE(std::string::npos, std::string(e.what()).find("1024")) << e.what();
  }
  EXPECT_THROW(small.heap_op({}), error);
  EXPECT_EQ(124U, small.payload_words());
  const RecordView r{small.seal(RecordKind::commit, 1, 1, 0), 0};
  EXPECT_TRUE(r.plausible(1024) && r.checks(seed));
  small.reset();
  EXPECT_TRUE(small.empty());
}

TEST_F(RecordTest, OldValuesComeBackNewestFirst) {
  RecordWriter w;
  w.configure(seed, 64 << 20, 64, true);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> added;  // in order
  std::mt19937_64 random(3);
  for (unsigned i = 0; i < 2000; ++i) {  // it grows several times
    const std::uint64_t offset = random() % 512 * 8, n = random() % 9;
    if (n == 0) {
      w.heap_op({65536 + 64 * i, 12, 0, i % 2 == 0});
    } else if (n == 1) {
      w.word(offset, i, i + 7);
      added.emplace_back(offset, i + 7);
    } else {
      std::vector<std::uint64_t> now(n, i), old(n);
      for (std::uint64_t k = 0; k < n; ++k) added.emplace_back(offset + k * 8, old[k] = random());
      w.words_over(offset, now.data(), n, old.data());
    }
  }
  const RecordView r{w.seal(RecordKind::commit, 1, 1, 0), 0};
  EXPECT_TRUE(r.checks(seed)) << "old values are no part of the record";
  std::size_t words = 0;
  for (const Entry& e : entries(r)) words += e.kind == EntryKind::words ? e.count : 0;
  EXPECT_EQ(added.size(), words);
  w.each_old([&](std::uint64_t offset, std::uint64_t old) {
    ASSERT_FALSE(added.empty());
    ASSERT_EQ(added.back(), std::pair(offset, old)) << added.size();
    added.pop_back();
  });
  EXPECT_TRUE(added.empty());
  w.reset();
  w.each_old([](std::uint64_t, std::uint64_t) { FAIL() << "of an empty record"; });
}

TEST_F(RecordTest, AnEntryThatOverrunsItsRecordIsDamage) {
  std::uint64_t words[4] = {entry_key(EntryKind::words, 64, 3), 1, 2, 3};
  const auto count = [&](std::uint64_t n) {
    int seen = 0;
    const bool good = each_entry(words, n, [&](const Entry&) { ++seen; });
    return good ? seen : -1;
  };
  EXPECT_EQ(1, count(4));
  EXPECT_EQ(-1, count(2));
  words[0] = entry_key(EntryKind::words, 64, max_count);
  EXPECT_EQ(-1, count(4));
}

TEST_F(RecordTest, RecordsAreSealedInPlaceAndPaddedWithZeros) {
  for (const std::size_t unit : {64UL, 4096UL}) {
    RecordWriter w;
    w.configure(seed, 1 << 20, unit);
    w.word(8, 1);
    const std::uint64_t* words = w.seal(RecordKind::commit, 3, 1, 0);
    EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(words) % 64);
    EXPECT_EQ(unit, w.bytes());
    for (std::size_t i = 5; i < unit / 8; ++i) ASSERT_EQ(0U, words[i]);
  }
}

}  // namespace
}  // namespace perdure::log::testing
