// SPDX-License-Identifier: BSD-3-Clause
//
// The torn-bit log: its blocks bit for bit, its end, holes, abort records, generations, and which
// damage is reported.
#include "papers/blurred/torn_log.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::test {
namespace {

using papers::blurred::TornControl;
using papers::blurred::TornKind;
using papers::blurred::TornLog;
using papers::blurred::TornPlace;
using papers::blurred::TornRecord;
using papers::blurred::TornScan;

TEST(TornRecord, HasItsBitsWhereTheFiguresHaveThem) {
  const std::uint64_t value = 0x8000'0000'0000'0003, address = 0x1234'5678'9ab8;
  const TornRecord one = TornRecord::make(TornKind::word, address, value, true, 0b1000'0001);
  // Bit 63 is the torn bit, the value's own highest bit is in the metadata.
  EXPECT_EQ(0x8000'0000'0000'0003, one.data);
  EXPECT_EQ(1U | 1U << 1 | 0b1000'0001U << 2 | address << 16, one.meta);
  const TornRecord zero = TornRecord::make(TornKind::word, address, value, false);
  EXPECT_EQ(0x0000'0000'0000'0003, zero.data);
  EXPECT_EQ(1U << 1 | 0xffU << 2 | address << 16, zero.meta);
  EXPECT_EQ(0b11U << 10, TornRecord::make(TornKind::commit, 0, 7, false, 0).meta);
  EXPECT_EQ(0b01U << 10, TornRecord::make(TornKind::abort, 0, 7, false, 0).meta);
  for (const bool sense : {false, true})
    for (const TornKind kind :
         {TornKind::word, TornKind::alloc, TornKind::free, TornKind::commit, TornKind::abort}) {
      const TornRecord r = TornRecord::make(kind, address, ~value, sense, 0x55);
      EXPECT_EQ(kind, r.kind());
      EXPECT_EQ(~value, r.value());
      EXPECT_EQ(address, r.address());
      EXPECT_EQ(0x55U, r.mask());
      EXPECT_TRUE(r.written(sense));
      EXPECT_FALSE(r.written(!sense));
    }
  EXPECT_EQ(
      0xff22'3344'5566'77ff,
      TornRecord::make(TornKind::word, 0, ~0ULL, true, 0b1000'0001).over(0x1122'3344'5566'7788));
}

TEST(TornRecord, HoldsAHeapOp) {
  const pool::HeapOp op{.offset = 0x12340, .cls = pool::large_class, .chunks = 77, .set = false};
  const pool::HeapOp back = TornRecord::heap(op, true).heap_op();
  EXPECT_EQ(op.offset, back.offset);
  EXPECT_EQ(op.cls, back.cls);
  EXPECT_EQ(op.chunks, back.chunks);
  EXPECT_EQ(op.set, back.set);
}

/// A log of 1,020 records on a recording medium.
struct Rig {
  explicit Rig(std::span<const std::byte> image = {}, std::uint64_t epoch = 1) {
    medium::RecordingOptions options;
    options.log_bytes = 64 << 10;
    options.data_bytes = 64 << 10;
    medium = medium::RecordingMedium::make(options, image).value();
    place = {4096, 64 + 1020 * 16, 0x1234, epoch};
    log = std::make_unique<TornLog>(*medium, place);
    if (image.empty()) log->format(true).or_throw();
  }
  void append(std::uint64_t n, std::uint64_t value) const {
    for (std::uint64_t i = 0; i < n; ++i)
      log->append(TornRecord::make(TornKind::word, i * 8, value + i, log->sense()));
  }
  void commit(std::uint64_t n, std::uint64_t id) const {
    append(n, id * 1000);
    log->commit(id).or_throw();
  }
  void abort(std::uint64_t n) const {
    append(n, ~0ULL);
    log->abort();
  }
  [[nodiscard]] TornScan scan(std::uint64_t covered = 0) const {
    return TornLog::scan(*medium, place, covered);
  }
  std::unique_ptr<medium::RecordingMedium> medium;
  TornPlace place;
  std::unique_ptr<TornLog> log;
};

std::vector<std::uint64_t> ids(const TornScan& scan) {
  EXPECT_TRUE(scan.damage.ok()) << scan.damage.message();
  std::vector<std::uint64_t> all;
  for (const auto& t : scan.transactions) all.push_back(t.id);
  return all;
}
using Ids = std::vector<std::uint64_t>;

/// What a power cut leaves when only what was fenced is durable.
TornScan after_a_power_cut(const Rig& rig) {
  const auto image = rig.medium->durable_image();
  return Rig(image).scan();
}

TEST(TornLog, FindsWhatCommittedAndNoMore) {
  const Rig rig;
  EXPECT_EQ(Ids{}, ids(rig.scan()));
  rig.commit(3, 1);
  rig.commit(1, 2);
  rig.append(5, 9);  // in progress
  for (const TornScan& scan : {rig.scan(), after_a_power_cut(rig)}) {
    EXPECT_EQ((Ids{1, 2}), ids(scan));
    ASSERT_EQ(2U, scan.transactions.size());
    EXPECT_EQ(1U, scan.transactions[0].first);
    EXPECT_EQ(4U, scan.transactions[0].last);
    EXPECT_EQ(2002U - 2,
              TornLog::record_at(*rig.medium, rig.place, scan.transactions[1].first).value());
  }
}

TEST(TornLog, CommitsWithOneFence) {
  const Rig rig;
  rig.commit(3, 1);
  rig.abort(100);
  rig.append(20, 5);
  const auto before = rig.medium->counters();
  rig.log->commit(2).or_throw();
  const auto after = rig.medium->counters() - before;
  EXPECT_EQ(1U, after.fences);
  // 21 records, counted from the line in which they begin, and the lines of the run's two abort
  // records: one at its 64th record, one after it.
  EXPECT_EQ(106U / 4 * 4, 104U);
  EXPECT_EQ((126U + 3) / 4 - 106U / 4 + 2, after.flushed_lines);
}

// Runs of every length around 64, of whose blocks only the flushed ones reached the medium.
TEST(TornLog, FindsItsWayOverHolesOfEveryLength) {
  for (std::uint64_t length = 1; length <= 200; ++length) {
    const Rig rig;
    rig.commit(2, 1);
    rig.abort(length);
    rig.commit(2, 2);
    const auto scan = after_a_power_cut(rig);
    EXPECT_EQ((Ids{1, 2}), ids(scan)) << length;
    EXPECT_EQ(length / 64 + 1, scan.aborted) << length;
  }
}

// The same, whichever of its blocks the cache has written back: a whole block, or one of a record's
// two.
TEST(TornLog, FindsItsWayOverWhateverOfAnAbortedRunIsThere) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Rig rig;
    rig.commit(2, 1);
    const std::uint64_t from = rig.log->run().first;
    for (std::uint64_t runs = random() % 3 + 1; runs-- > 0;) rig.abort(random() % 150 + 1);
    const std::uint64_t to = rig.log->run().first;
    rig.commit(2, 2);
    rig.commit(1, 3);
    auto image = rig.medium->current_image();
    for (std::uint64_t n = from; n < to; ++n) {
      const TornRecord& r = rig.log->record(n);
      if (r.kind() == TornKind::abort) continue;
      auto* const blocks =
          reinterpret_cast<std::uint64_t*>(image.data() + rig.place.offset + 64 + n * 16);
      const std::uint64_t lost = random();
      if ((lost & 1) != 0) blocks[0] = 0;
      if ((lost & 2) != 0) blocks[1] = 0;
    }
    EXPECT_EQ((Ids{1, 2, 3}), ids(Rig(image).scan())) << round;
  }
}

TEST(TornLog, EndsWhereAnAbortWasTheLastThing) {
  for (const std::uint64_t length : {1, 63, 64, 65, 127, 128, 129}) {
    const Rig rig;
    rig.commit(2, 1);
    rig.abort(length);
    EXPECT_EQ((Ids{1}), ids(rig.scan())) << length;
    EXPECT_EQ((Ids{1}), ids(after_a_power_cut(rig))) << length;
    rig.append(3, 1);  // and a transaction in progress after it
    EXPECT_EQ((Ids{1}), ids(rig.scan())) << length;
  }
}

TEST(TornLog, StartsAGenerationWithTheOtherSense) {
  const Rig rig;
  std::uint64_t id = 0;
  std::mt19937_64 random(3);
  for (int generation = 0; generation < 9; ++generation) {
    EXPECT_EQ(generation % 2 == 0, rig.log->sense());
    Ids expected;
    while (rig.log->fits(70)) {
      EXPECT_EQ(expected, ids(after_a_power_cut(rig)));
      if (random() % 2 == 0) rig.abort(random() % 68 + 1);
      if (!rig.log->fits(70)) break;
      rig.commit(random() % 69 + 1, ++id);
      expected.push_back(id);
    }
    rig.log->note_data(id).or_throw();
    rig.log->truncate().or_throw();
    EXPECT_EQ(Ids{}, ids(after_a_power_cut(rig))) << generation;
    EXPECT_EQ(id, TornLog::control(*rig.medium, rig.place).home);
  }
}

TEST(TornLog, IsOneSessionsOnly) {
  const Rig rig;
  rig.commit(3, 1);
  EXPECT_TRUE(TornLog::control(*rig.medium, rig.place).ours);
  TornPlace next = rig.place;
  ++next.epoch;
  EXPECT_FALSE(TornLog::control(*rig.medium, next).ours);
  EXPECT_TRUE(TornLog::control(*rig.medium, next).damage.ok());
  TornLog again(*rig.medium, next);
  again.format(false).or_throw();
  EXPECT_TRUE(TornLog::control(*rig.medium, next).ours);
  EXPECT_EQ(Ids{}, ids(TornLog::scan(*rig.medium, next, 0)));
  again.wipe().or_throw();
  const auto image = rig.medium->durable_image();
  for (std::uint64_t at = 64; at < rig.place.bytes; ++at)
    ASSERT_EQ(std::byte{0}, image[rig.place.offset + at]);
  EXPECT_FALSE(TornLog::control(*rig.medium, next).ours);
}

// Nothing of an aborted run, not even its abort records; the next transaction is present, but was
// not acknowledged.
TEST(TornLog, TakesATransactionWhoseWayIsLostForNone) {
  for (const std::uint64_t length : {1, 5, 63, 64, 130}) {
    const Rig rig;
    rig.commit(2, 1);
    const std::uint64_t from = rig.log->run().first;
    rig.abort(length);
    const std::uint64_t to = rig.log->run().first;
    rig.commit(3, 2);
    auto image = rig.medium->current_image();
    std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(rig.place.offset + 64 + from * 16),
                (to - from) * 16, std::byte{0});
    EXPECT_EQ((Ids{1}), ids(Rig(image).scan())) << length;
  }
}

// LAW-10: a changed bit is reported, unless it lies in what was not acknowledged or can't be
// distinguished from that: the last transaction, and what follows it. A short generation after a
// full one: the next generation has the full one's sense, and must not find the rest of it,
// wherever the power is cut.
TEST(TornLog, FindsNothingOfAnEarlierGeneration) {
  const Rig rig;
  std::uint64_t id = 0;
  while (rig.log->fits(4)) rig.commit(3, ++id);
  rig.log->truncate().or_throw();
  rig.commit(3, ++id);
  std::vector<std::vector<std::byte>> images;
  rig.medium->set_fence_hooks(
      [&] {  // the generation's beginning may be durable before its fence, the rest not
        auto image = rig.medium->durable_image();
        const auto current = rig.medium->current_image();
        const std::uint64_t beginning = rig.place.offset + TornLog::control_bytes;
        std::memcpy(image.data() + beginning, current.data() + beginning, TornRecord::bytes);
        images.push_back(std::move(image));
      },
      {});
  rig.log->truncate().or_throw();
  rig.medium->set_fence_hooks({}, {});
  EXPECT_GE(images.size(), 1U);
  for (const auto& image : images) EXPECT_TRUE(Rig(image).scan(id).damage.ok());
  rig.commit(3, ++id);
  EXPECT_EQ(Ids{id}, ids(Rig(rig.medium->current_image()).scan()));
  EXPECT_EQ(Ids{id}, ids(after_a_power_cut(rig)));
}

// The last commit record, without its flags: the place of its checksum, ADDR, may contain what a
// data record's could.
TEST(TornLog, KnowsACommitRecordWithoutItsFlags) {
  unsigned like_data = 0;
  for (std::uint64_t id = 2; id < 66; ++id) {
    const Rig rig;
    rig.commit(3, 1);
    rig.commit(2, id);
    const std::uint64_t last = rig.log->committed().second;
    like_data += TornLog::record_at(*rig.medium, rig.place, last).address() % 8 == 0 ? 1U : 0U;
    for (const std::uint64_t flags :
         {TornRecord::flag_dc, TornRecord::flag_ca, TornRecord::flag_dc | TornRecord::flag_ca}) {
      auto flipped = rig.medium->current_image();
      std::uint64_t meta = 0;
      std::byte* const at =
          flipped.data() + rig.place.offset + TornLog::control_bytes + last * TornRecord::bytes + 8;
      std::memcpy(&meta, at, 8);
      meta ^= flags;
      std::memcpy(at, &meta, 8);
      const Rig again(flipped);
      EXPECT_FALSE(again.scan().damage.ok()) << "id " << id << ", flags " << flags;
    }
  }
  EXPECT_GT(like_data, 0U);
}

TEST(TornLog, NamesDamage) {
  const Rig rig;
  rig.commit(3, 1);
  rig.abort(5);
  rig.commit(2, 2);
  rig.commit(2, 3);
  rig.commit(2, 4);
  const auto image = rig.medium->current_image();
  const std::uint64_t last = rig.log->committed().first;
  std::uint64_t named = 0, cut = 0;
  for (std::uint64_t bit = 0; bit < (64 + last * 16) * 8; ++bit) {
    const std::uint64_t word = bit / 64;
    if (word >= 3 && word < 8) continue;  // unused words of the control's line
    auto flipped = image;
    flipped[rig.place.offset + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    const Rig again(flipped);
    const TornControl control = TornLog::control(*again.medium, again.place);
    if (!control.damage.ok()) {
      ++named;
      continue;
    }
    const TornScan scan = again.scan();
    if (!scan.damage.ok()) {
      ++named;
      continue;
    }
    // In an aborted run only one thing matters: that one of its abort records leads on.
    const std::uint64_t n = (word - 8) / 2;
    EXPECT_EQ((Ids{1, 2, 3, 4}), ids(scan)) << "bit " << bit << ", record " << n;
    EXPECT_TRUE(n >= 5 && n < 11) << "bit " << bit << ", record " << n;
    ++cut;
  }
  EXPECT_GT(named, 1000U);
  EXPECT_LE(cut, 6U * 128);
}

}  // namespace
}  // namespace perdure::test
