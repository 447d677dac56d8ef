// SPDX-License-Identifier: BSD-3-Clause
//
// Rings: generations, what a scan finds after every way in which a last append can be torn, what it
// refuses, and how far truncation may move the head.
#include <atomic>
#include <deque>
#include <thread>

#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

TEST(Ring, ManyGenerationsOfRecordsOfAllSizesAreFoundWholeAndInOrder) {
  RingOnMedium r(16384);
  std::mt19937_64 random(1);
  struct Live {
    std::uint64_t id, position, words;
  };
  std::deque<Live> live;
  std::uint64_t id = 0;
  for (unsigned step = 0; step < 4000 / scale; ++step) {
    const std::uint64_t n = 1 + random() % (step % 7 == 0 ? 900 : 40);
    const std::uint64_t bytes = r.record_bytes(n);
    while (!r.ring.fits(bytes)) {  // release the oldest few
      for (std::uint64_t k = 1 + random() % 3; k > 0 && !live.empty(); --k) live.pop_front();
      r.ring.release(live.empty() ? r.ring.tail() : live.front().position);
    }
    id += 1 + random() % 3;  // order held: gaps
    live.push_back({id, r.ring.tail(), n});
    r.append(id, n);
    ASSERT_LE(r.ring.used(), r.ring.bytes());
    ASSERT_EQ(r.ring.used(), r.ring.tail() - r.ring.head());
    if (step % 10 != 0) continue;
    const Found found = scan(r.map, r.ring.head(), r.seed);
    ASSERT_TRUE(found.scan.damage.ok()) << found.scan.damage.message();
    std::vector<std::uint64_t> expected;
    for (const Live& l : live) expected.push_back(l.id);
    ASSERT_EQ(expected, found.ids) << "step " << step;
    ASSERT_EQ(r.ring.tail(), found.scan.end);
    ASSERT_EQ(live.size(), found.scan.records);
    ASSERT_EQ(r.ring.used(), found.scan.bytes);
    // Each at its position, with its words.
    for (const Live& l : live) {
      const RecordView view = r.ring.at(l.position);
      ASSERT_TRUE(each_entry(view.words + header_words, view.payload_words(), [&](const Entry& e) {
        ASSERT_EQ(l.words, e.count);
        for (std::uint64_t i = 0; i < l.words; ++i) ASSERT_EQ(l.id * 1000003 + i, e.values[i]);
      }));
    }
  }
  EXPECT_GT(r.ring.tail(), 10 * r.ring.bytes());
}

// A record may contain anything, including bytes that would be a record if one began there. A
// thread that reads only the ring's second half takes them for one.
TEST(Ring, WhatLooksLikeARecordInsideOneIsNone) {
  for (const unsigned behind : {0U, 3U}) {
    RingOnMedium r(8192);
    r.append(1, 1);
    RecordWriter inner;
    inner.configure(r.seed, 4096, 64);
    inner.word(64, 7);
    std::vector<std::uint64_t> values(507, 5);
    std::memcpy(&values[500], inner.seal(RecordKind::commit, 2, 1, 4096), 7 * 8);
    r.writer.reset();
    r.writer.words(64, values.data(), values.size());
    ASSERT_EQ(4096U, r.writer.bytes());  // from 64 on: its last line is the section's first
    ASSERT_TRUE(r.ring.append_fence(r.writer, RecordKind::commit, 9, 1).ok());
    ASSERT_TRUE(r.ring.at(4096).checks(r.seed));
    for (unsigned i = 0; i < behind; ++i) r.append(10 + i, 20);
    const Scan found = scan_and_flush_ring(*r.medium, r.map, 0, r.seed, 64, "test: ring 0", 1, 2,
                                           [](std::uint64_t) {});
    EXPECT_TRUE(found.damage.ok()) << found.damage.message();
    EXPECT_EQ(2 + behind, found.records);
    EXPECT_EQ(r.ring.tail(), found.end);
    ASSERT_EQ(1 + behind, found.records_above) << "those above 1";
    EXPECT_EQ(9U, r.ring.at(found.above).id());
  }
}

// What a killed process left visible only is durable when the scan's caller has fenced, whichever
// thread found it.
TEST(Ring, WhatAScanFindsIsDurableAfterTheCallersFence) {
  for (const unsigned parts : {1U, 2U, 4U}) {
    RingOnMedium r(16384);
    std::uint64_t position = 0, id = 0;
    while (position + 256 <= r.map.bytes) {
      r.writer.reset();
      const std::uint64_t values[20] = {++id};
      r.writer.words(64, values, 20);
      const std::uint64_t n = r.writer.bytes();
      r.medium->store(position, r.writer.seal(RecordKind::commit, id, 1, position), n);
      position += n;
    }
    ASSERT_FALSE(r.medium->is_durable(0, position));
    const Scan found = scan_and_flush_ring(*r.medium, r.map, 0, r.seed, 64, "test: ring 0", 0,
                                           parts, [](std::uint64_t) {});
    ASSERT_EQ(position, found.end);
    ASSERT_TRUE(r.medium->fence().ok());
    EXPECT_TRUE(r.medium->is_durable(0, position)) << parts;
  }
}

TEST(Ring, AFullRingIsScannedToItsLastByte) {
  RingOnMedium r(8192);
  std::uint64_t id = 0;
  const std::uint64_t bytes = r.record_bytes(1);
  EXPECT_EQ(64U, bytes);
  while (r.ring.fits(bytes)) r.append(++id, 1);
  EXPECT_EQ(8192 / 64, id);
  const Found found = scan(r.map, 0, r.seed);
  EXPECT_EQ(from_to(1, id), found.ids);
  EXPECT_TRUE(found.scan.damage.ok());
  EXPECT_EQ(8192U, found.scan.end);
}

// The last append is torn: a prefix of it of any length is present, followed by what was there
// before.
TEST(Ring, ATornTailIsCutAtEveryByte) {
  for (const std::size_t unit : {64UL, 4096UL}) {
    RingOnMedium r(unit == 64 ? 8192 : 65536, unit);
    std::uint64_t id = 0;
    // What lies beyond the tail is of an earlier generation, and passes the checks there.
    for (int lap = 0; lap < 2; ++lap)
      while (r.ring.tail() <
             (static_cast<std::uint64_t>(lap) + 1) * r.ring.bytes() - r.ring.bytes() / 4) {
        if (!r.ring.fits(r.record_bytes(12))) r.ring.release(r.ring.tail() - r.ring.bytes() / 4);
        r.append(++id, 12);
      }
    // The head lies on a record: all have one size.
    const std::uint64_t size = r.record_bytes(12),
                        head = r.ring.tail() - r.ring.bytes() / 4 / size * size;
    const std::uint64_t first = id - (r.ring.tail() - head) / size + 1;
    Image before(r.map);
    const std::uint64_t at = r.ring.tail(), n = r.record_bytes(40);
    r.append(id + 1, 40);
    Image after(r.map);
    // Header, key, words, a zero; padding follows.
    const std::uint64_t meant = (40 + 2 + 3) * 8;
    for (std::uint64_t cut = 0; cut <= n; ++cut) {
      Image torn = before;
      for (std::uint64_t i = 0; i < cut; ++i) torn.set(at + i, after.get(at + i));
      const Found found = scan(torn.map(), head, r.seed, unit);
      ASSERT_TRUE(found.scan.damage.ok())
          << "cut at byte " << cut << ": " << found.scan.damage.message();
      // It is whole as soon as its last byte that differs from the old contents is present.
      const bool whole =
          std::equal(torn.data() + at % r.ring.bytes(), torn.data() + at % r.ring.bytes() + meant,
                     after.data() + at % r.ring.bytes());
      ASSERT_EQ(whole ? from_to(first, id + 1) : from_to(first, id), found.ids)
          << "cut at byte " << cut;
      ASSERT_TRUE(whole || cut < meant);
    }
  }
}

// ... or any of its 8-byte words are present, in no order (MEDIUM-4, MEDIUM-5).
TEST(Ring, ATailTornIntoWordsIsCutToo) {
  RingOnMedium r(8192);
  for (std::uint64_t id = 1; id <= 20; ++id) r.append(id, 5);
  Image before(r.map);
  const std::uint64_t at = r.ring.tail(), n = r.record_bytes(40);
  r.append(21, 40);
  Image after(r.map);
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    Image torn = before;
    bool all = true;
    for (std::uint64_t w = 0; w < n / 8; ++w) {
      if (random() % 8 == 0 && w < 45) {
        all = false;
        continue;
      }
      for (std::uint64_t i = 0; i < 8; ++i) torn.set(at + w * 8 + i, after.get(at + w * 8 + i));
    }
    const Found found = scan(torn.map(), 0, r.seed);
    ASSERT_TRUE(found.scan.damage.ok());
    ASSERT_EQ(from_to(1, all ? 21 : 20), found.ids);
  }
}

TEST(Ring, DamageBelowAWholeRecordIsNamedNeverSkipped) {
  for (const std::size_t unit : {64UL, 4096UL}) {
    RingOnMedium r(65536, unit);
    std::vector<std::uint64_t> at;
    for (std::uint64_t id = 1; id <= 6; ++id) {
      at.push_back(r.ring.tail());
      r.append(id, 9);
    }
    const std::uint64_t meant = (3 + 1 + 9) * 8;
    for (std::size_t victim = 0; victim < 6; ++victim) {
      for (std::uint64_t bit = 0; bit < meant * 8; bit += victim == 2 ? 1 : 7) {
        Image damaged(r.map);
        damaged.flip(at[victim] + bit / 8, static_cast<int>(bit % 8));
        const Found found = scan(damaged.map(), 0, r.seed, unit);
        if (victim == 5) {  // the last record: damage can't be distinguished from a torn append
          ASSERT_TRUE(found.scan.damage.ok());
          ASSERT_EQ(from_to(1, 5), found.ids);
          continue;
        }
        ASSERT_EQ(Code::corrupt, found.scan.damage.code())
            << "record " << victim + 1 << " bit " << bit;
        const std::string text = found.scan.damage.message();
        ASSERT_NE(std::string::npos, text.find("position " + std::to_string(at[victim]))) << text;
        ASSERT_EQ(from_to(1, victim), found.ids);
      }
    }
    Image damaged(r.map);  // two in a row, and zeros instead of a record
    for (std::uint64_t i = at[1]; i < at[3]; ++i) damaged.set(i, std::byte{0});
    EXPECT_EQ(Code::corrupt, scan(damaged.map(), 0, r.seed, unit).scan.damage.code());
  }
}

TEST(Ring, WhatEarlierGenerationsOpeningsRingsAndPoolsLeftIsNotFound) {
  RingOnMedium r(8192);
  for (std::uint64_t id = 1; id <= 40; ++id) {
    if (!r.ring.fits(r.record_bytes(20))) r.ring.release(r.ring.tail());
    r.append(id, 20);
  }
  std::uint8_t other[16] = {};
  for (const std::uint64_t seed : {ring_seed(uuid, 4, 0), ring_seed(uuid, 3, 1),
                                   ring_seed(uuid, 2, 0), ring_seed(other, 3, 0)}) {
    for (std::uint64_t head = 0; head < 8192; head += 64) {
      const Found found = scan(r.map, head, seed);
      ASSERT_TRUE(found.ids.empty() && found.scan.damage.ok());
      ASSERT_EQ(head, found.scan.end);
    }
  }
  // Earlier generations of this opening: the head is where the header says; one generation or more
  // behind it there is nothing.
  EXPECT_TRUE(scan(r.map, r.ring.tail(), r.seed).ids.empty());
  EXPECT_TRUE(scan(r.map, r.ring.tail() + 8192, r.seed).scan.damage.ok());
}

TEST(Ring, WhatAScanFoundIsFlushedOnBothSidesOfTheEnd) {
  RingOnMedium r(4096);
  const std::vector<std::uint64_t> stored(512, 7);  // visible, as if a killed process had left them
  for (const auto& [head, end] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 640}, {4096 - 128, 4096 + 192}, {8192 + 64, 8192 + 64 + 4096}, {64, 64}}) {
    r.medium->store(0, stored.data(), 4096);
    r.medium->forget_events();
    flush_scanned(*r.medium, 0, 4096, head, end);
    std::uint64_t flushed = 0;
    for (const auto& e : r.medium->events())
      flushed += e.kind == medium::Event::Kind::flush ? e.bytes : 0;
    EXPECT_EQ(end - head, flushed);
    ASSERT_TRUE(r.medium->fence().ok());
    for (std::uint64_t at = head; at < end; at += 64)
      EXPECT_TRUE(r.medium->is_durable(at % 4096, 64)) << at;
  }
}

TEST(Ring, PositionAfterAnIdIsItsNextRecordsExactly) {
  RingOnMedium r(32768);
  std::mt19937_64 random(5);
  std::deque<std::pair<std::uint64_t, std::uint64_t>> live;  // id, position
  std::uint64_t id = 0;
  EXPECT_EQ(0U, r.ring.position_after(0));
  for (unsigned step = 0; step < 3000 / scale; ++step) {
    const std::uint64_t n = 1 + random() % (step % 11 == 0 ? 1500 : 30);
    while (!r.ring.fits(r.record_bytes(n))) {
      for (int k = 0; k < 20 && !live.empty(); ++k) live.pop_front();
      r.ring.release(live.empty() ? r.ring.tail() : live.front().second);
    }
    id += random() % 3;  // equal ids are those of one transaction (undo records)
    if (id == 0) id = 1;
    live.emplace_back(id, r.ring.tail());
    r.append(id, n);
    if (step % 5 != 0) continue;
    const auto expected = [&](std::uint64_t x) {
      for (const auto& [i, p] : live)
        if (i > x) return p;
      return r.ring.tail();
    };
    for (std::uint64_t x = live.front().first > 2 ? live.front().first - 2 : 0; x <= id + 2; ++x)
      ASSERT_EQ(expected(x), r.ring.position_after(x)) << "id " << x << " step " << step;
  }
}

TEST(Ring, PositionAfterIsExactBesideTheAppender) {
  RingOnMedium r(1 << 20);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0}, asked{0};
  std::thread asker([&] {
    std::mt19937_64 random(9);
    std::uint64_t before = 0;
    while (!stop) {
      const std::uint64_t tail = r.ring.tail(), head = r.ring.head();
      if (tail == head) continue;
      // Every record is 64 bytes and has one id: id k lies at 64 * (k - 1).
      const std::uint64_t x = head / 64 + random() % ((tail - head) / 64 + 1);
      const std::uint64_t at = r.ring.position_after(x);
      if (at != x * 64) ++wrong;
      if (random() % 16 == 0 && x * 64 >= before) r.ring.release(before = x * 64);
      ++asked;
    }
  });
  for (std::uint64_t id = 1; id <= 100000 / scale; ++id) {
    while (!r.ring.fits(64)) std::this_thread::yield();
    r.append(id, 1);
  }
  stop = true;
  asker.join();
  EXPECT_EQ(0U, wrong) << "of " << asked;
}

// Tail and head move beside a thread that asks for their difference: it is that of one instant, so
// neither below zero nor above the ring's size.
TEST(Ring, UsedIsOfOneInstantBesideAppendsAndReleases) {
  constexpr std::uint64_t bytes = 4096;
  RingOnMedium r(bytes);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> asked{0};
  std::uint64_t wrong = 0, example = 0;
  std::thread asker([&] {
    for (; !stop; ++asked) {
      const std::uint64_t used = r.ring.used();
      if (used > bytes) ++wrong, example = used;
    }
  });
  while (asked == 0) std::this_thread::yield();
  for (std::uint64_t id = 1; id <= 200000 / scale; ++id) {
    r.append(id, 1);
    r.ring.release(r.ring.tail());
  }
  stop = true;
  asker.join();
  EXPECT_EQ(0U, wrong) << "of " << asked.load() << ", such as " << example << " of " << bytes
                       << " bytes";
}

TEST(Ring, AFailedAppendMovesNothing) {
  class Failing final : public medium::Medium {  // only the calls that a ring makes
   public:
    explicit Failing(medium::Medium& inner) : inner_(inner) {}
    std::string_view kind() const noexcept override { return "failing"; }
    std::string describe() const override { return ""; }
    void store(std::uint64_t, const void*, std::size_t) noexcept override {}
    void stream(std::uint64_t, const void*, std::size_t) noexcept override {}
    void flush(std::uint64_t, std::size_t) noexcept override {}
    Status fence() noexcept override { return system_failure("test", "fence", EIO); }
    Status flush_all() noexcept override { return {}; }
    Result<medium::RingMap> map_ring(std::uint64_t o, std::uint64_t n) override {
      return inner_.map_ring(o, n);
    }
    void append(const medium::RingMap&, std::uint64_t, const void*, std::size_t) noexcept override {
    }
    Status allocate(std::uint64_t, std::uint64_t) override { return {}; }
    Status grow(std::uint64_t) override { return {}; }
    Status map_view(std::byte*, std::uint64_t, std::uint64_t, medium::ViewKind) override {
      return {};
    }

   private:
    medium::Medium& inner_;
  };
  RingOnMedium r(8192);
  r.append(1, 1);
  Failing failing(*r.medium);
  Ring ring;
  ring.configure(failing, r.map, r.seed);
  r.writer.reset();
  r.writer.word(8, 1);
  EXPECT_EQ(Code::io, ring.append_fence(r.writer, RecordKind::commit, 1, 1).code());
  EXPECT_EQ(0U, ring.tail());
}

}  // namespace
}  // namespace perdure::log::testing
