// SPDX-License-Identifier: BSD-3-Clause
//
// Combiner and packed records: of each word the last value, every heap op in its order, no op in
// one group with a word in its span's bitmap; a payload packed is the payload again, and a damaged
// one is refused.
#include "papers/dudetm/combiner.hpp"

#include <map>
#include <utility>

#include "perdure/log/packed.hpp"
#include "perdure/pool/size_classes.hpp"
#include "tests/log/suite.hpp"

namespace perdure::papers::dudetm::testing {
namespace {

using log::testing::scale;

constexpr std::uint64_t max_data = 64 << 20;
constexpr std::uint64_t chunk = pool::chunk_bytes;

/// What records come to: words by offset, ops in order.
struct Effect {
  std::map<std::uint64_t, std::uint64_t> words;
  std::vector<std::pair<std::uint64_t, bool>> ops;  // offset, set
  friend bool operator==(const Effect&, const Effect&) = default;
  void add(const std::uint64_t* payload, std::uint64_t n) {
    ASSERT_TRUE(each_entry(payload, n, [&](const Entry& e) {
      if (e.kind == EntryKind::words)
        for (std::uint64_t i = 0; i < e.count; ++i) words[e.offset + i * 8] = e.values[i];
      else if (e.kind != EntryKind::end)
        ops.emplace_back(e.offset, e.kind == EntryKind::alloc);
    }));
  }
};

struct CombinerTest : ::testing::Test {
  CombinerTest() {
    combiner.configure(max_data);
    transaction.configure(1, 1 << 24, 64);
    record.configure(1, 1 << 24, 64);
  }
  void add() {
    ASSERT_TRUE(combiner.commutes(transaction.payload(), transaction.payload_words()));
    combiner.add(transaction.payload(), transaction.payload_words());
    transaction.reset();
  }
  bool commutes() {
    const bool yes = combiner.commutes(transaction.payload(), transaction.payload_words());
    transaction.reset();
    return yes;
  }
  std::mt19937_64 random{5};
  Combiner combiner;
  RecordWriter transaction, record;
};

pool::HeapOp small_op(std::uint64_t span, std::uint32_t cls, std::uint32_t block, bool set = true) {
  const pool::ClassInfo& info = pool::classes[cls];
  return {span + info.first + block * info.bytes, cls, 0, set};
}

TEST_F(CombinerTest, KeepsTheLastValueOfEachWordAndEveryOp) {
  const std::uint64_t first = pool::first_chunk(max_data) * chunk;
  for (unsigned round = 0; round < 300 / scale; ++round) {
    Effect want;
    std::uint64_t words_in = 0;
    const std::uint64_t words = 1 + random() % (round % 10 == 0 ? 20000 : 300);
    for (std::uint64_t t = 0; t < 1 + round % 40; ++t) {
      for (std::uint64_t i = random() % 6; i > 0; --i) {
        std::vector<std::uint64_t> values(1 + (random() % 4 == 0 ? random() % 40 : 0));
        for (auto& v : values) v = random();
        transaction.words(first + chunk + 4096 + random() % words * 8, values.data(),
                          values.size());
      }
      // class 3's blocks of other chunks than the words': they commute
      if (random() % 3 == 0)
        transaction.heap_op(small_op(
            first + 100 * chunk, 3, static_cast<std::uint32_t>(random() % 100), random() % 2 == 0));
      if (random() % 9 == 0) transaction.heap_op({first + 200 * chunk, pool::large_class, 3, true});
      transaction.end_of(t + 1);
      want.add(transaction.payload(), transaction.payload_words());
      words_in += transaction.payload_words();
      add();
    }
    ASSERT_EQ(words_in, combiner.words_in());
    record.reset();
    const std::uint64_t bound = combiner.bound();
    combiner.write(record);
    ASSERT_LE(record.payload_words(), bound);
    Effect got;
    got.add(record.payload(), record.payload_words());
    ASSERT_EQ(want, got) << round;
    combiner.clear();
    ASSERT_TRUE(combiner.empty());
  }
}

TEST_F(CombinerTest, NeverTakesMoreThanWhatCame) {
  // Worst of all for lines: words two and two. And a record of the largest size, which must fit
  // again.
  const std::uint64_t values[2] = {1, 2};
  RecordWriter full;
  full.configure(1, 8192, 64);
  for (std::uint64_t at = 1 << 20;; at += 24) try {
      transaction.words(at, values, 2);
      full.words(at, values, 2);
    } catch (const error& e) {
      EXPECT_EQ(Code::too_big, e.code());
      break;
    }
  combiner.add(full.payload(), full.payload_words());
  const std::uint64_t words_in = full.payload_words();
  full.reset();
  EXPECT_NO_THROW(combiner.write(full));
  EXPECT_EQ(words_in, full.payload_words());
}

// GROUP-1, both ways round, and what is near it but no conflict.
TEST_F(CombinerTest, AnOpAndAWordInItsSpansBitmapAreNotCombined) {
  const std::uint64_t span = (pool::first_chunk(max_data) + 32) * chunk;
  const std::uint32_t cls = 0;  // the smallest blocks: the longest bitmap
  const std::uint64_t last = pool::classes[cls].first - 8, after = pool::classes[cls].first;
  transaction.heap_op(small_op(span, cls, 7));
  add();
  transaction.word(span + last, 1);
  EXPECT_FALSE(commutes());
  transaction.word(span + after, 1);
  EXPECT_TRUE(commutes());
  transaction.heap_op(small_op(span + chunk, 12, 0));
  add();
  transaction.word(span + chunk + pool::classes[12].first, 1);
  EXPECT_TRUE(commutes()) << "a class with a shorter bitmap";
  transaction.word(span + chunk + pool::classes[12].first - 8, 1);
  EXPECT_FALSE(commutes());
  transaction.word(span - 8, 1);
  EXPECT_TRUE(commutes());
  std::vector<std::uint64_t> long_run(64);
  transaction.words(span - 256, long_run.data(), long_run.size());
  EXPECT_FALSE(commutes()) << "a run that goes into it";
  combiner.clear();

  transaction.word(span + last, 1);
  add();
  transaction.heap_op(small_op(span, cls, 7));
  EXPECT_FALSE(commutes());
  transaction.heap_op({span, pool::large_class, 1, true});
  EXPECT_TRUE(commutes()) << "a large block has no bitmap";
  transaction.heap_op(small_op(span + chunk, cls, 7));
  EXPECT_TRUE(commutes());
  combiner.clear();
  transaction.heap_op(small_op(span, cls, 7));
  EXPECT_TRUE(commutes()) << "the next group";
}

// What combination leaves: keys in the order of addresses, values that are alike. The bytes in
// which they differ are six of sixteen.
TEST(Packed, NeighboursAreAlike) {
  std::mt19937_64 random(8);
  std::vector<std::uint64_t> payload, packed;
  for (std::uint64_t n = 0, offset = 0; n < 10000; ++n) {
    offset += 8 * (1 + random() % 64);
    payload.push_back(offset / 8 << 24 | 1 << 4 | 1);
    payload.push_back((random() % 10000) << 32 | random() % 200);
  }
  ASSERT_TRUE(pack(payload.data(), payload.size(), packed));
  EXPECT_LT(packed.size() * 3, payload.size());
}

TEST(Packed, IsThePayloadAgain) {
  std::mt19937_64 random(6);
  std::vector<std::uint64_t> packed, scratch;
  for (std::uint64_t n = 4; n < 20000; n = n * 5 / 2 & ~1ULL) {
    std::vector<std::uint64_t> payload(n);
    for (auto& w : payload) w = random() % 50;
    if (!pack(payload.data(), n, packed)) {
      EXPECT_LT(n, 16U);
      continue;
    }
    EXPECT_EQ(0U, packed.size() % 2);
    EXPECT_LT(packed.size(), n);
    std::vector<std::uint64_t> record(header_words);
    record[0] = 7 | static_cast<std::uint64_t>(RecordKind::packed) << 48;
    record[2] = packed.size();
    record.insert(record.end(), packed.begin(), packed.end());
    const Payload got = payload_of({record.data(), 0}, n, scratch);
    ASSERT_NE(nullptr, got.words);
    ASSERT_EQ(payload, std::vector<std::uint64_t>(got.words, got.words + got.n));
    EXPECT_EQ(nullptr, payload_of({record.data(), 0}, n - 1, scratch).words)
        << "longer than a record may be";
    for (int i = 0; i < 200; ++i) {
      // a checksum has said that it is whole: none of this may do harm all the same
      auto damaged = record;
      damaged[header_words + random() % packed.size()] ^= std::uint64_t{1} << random() % 64;
      const Payload p = payload_of({damaged.data(), 0}, n, scratch);
      ASSERT_TRUE(p.words == nullptr || p.n == n || p.n <= n);
    }
  }
  std::vector<std::uint64_t> noise(1000);
  for (auto& w : noise) w = random();
  EXPECT_FALSE(pack(noise.data(), noise.size(), packed)) << "nothing to be won";
}

}  // namespace
}  // namespace perdure::papers::dudetm::testing
