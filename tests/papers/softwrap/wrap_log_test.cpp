// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's log: the cost of a wrap, line by line; what a scan finds of whole, torn and discarded
// wraps; which damage is reported.
#include "papers/softwrap/wrap_log.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "testing/recording_medium.hpp"

namespace perdure::test {
namespace {

using papers::softwrap::WrapControl;
using papers::softwrap::WrapLog;
using papers::softwrap::WrapPlace;
using papers::softwrap::WrapScan;

/// A log of three buckets on a recording medium.
struct Rig {
  explicit Rig(std::span<const std::byte> image = {}, std::uint64_t bucket_lines = 100,
               std::uint64_t base = 0, std::uint64_t epoch = 1) {
    medium::RecordingOptions options;
    place = {4096, 64 + 3 * bucket_lines * 64, 0x1234, epoch, 3};
    options.log_bytes = 8192 + place.bytes / 4096 * 4096;
    options.data_bytes = 64 << 10;
    medium = medium::RecordingMedium::make(options, image).value();
    log = std::make_unique<WrapLog>(*medium, place);
    if (image.empty()) log->format(base).or_throw();
  }
  /// A closed wrap of n words: word i has id * 1000 + i.
  void wrap(std::uint64_t n, std::uint64_t id, unsigned bucket = 0) const {
    open(n, id, bucket);
    log->close(id).or_throw();
  }
  void open(std::uint64_t n, std::uint64_t id, unsigned bucket = 0) const {
    log->open(bucket);
    for (std::uint64_t i = 0; i < n; ++i) log->word(i * 8, id * 1000 + i);
  }
  [[nodiscard]] WrapScan scan(unsigned bucket = 0, std::uint64_t covered = 0) const {
    const WrapControl c = WrapLog::control(*medium, place);
    EXPECT_TRUE(c.ours);
    EXPECT_TRUE(c.damage.ok()) << c.damage.message();
    return WrapLog::scan(*medium, place, bucket, c.base[bucket], covered);
  }
  /// The log that a power cut now would leave.
  [[nodiscard]] Rig cut() const {
    return Rig(medium->durable_image(), place.lines(), 0, place.epoch);
  }
  std::unique_ptr<medium::RecordingMedium> medium;
  WrapPlace place;
  std::unique_ptr<WrapLog> log;
};

using Words = std::map<std::uint64_t, std::uint64_t>;
Words words_of(const Rig& rig, const papers::softwrap::WrapFound& wrap) {
  Words words;
  EXPECT_GE(WrapLog::entries(
                *rig.medium, rig.place, wrap,
                [&](std::uint64_t offset, std::uint64_t value) { words[offset] = value; },
                [](const pool::HeapOp&) { FAIL(); }, [](std::uint64_t, std::uint64_t) { FAIL(); }),
            0);
  return words;
}

std::vector<std::uint64_t> ids(const WrapScan& scan) {
  EXPECT_TRUE(scan.damage.ok()) << scan.damage.message();
  std::vector<std::uint64_t> all;
  for (const auto& w : scan.wraps) all.push_back(w.id);
  return all;
}
using Ids = std::vector<std::uint64_t>;

// The paper's Table I: 12 bytes per word, 8 for the close, in whole lines; one fence.
TEST(WrapLog, AWrapOfNWordsIsItsBytesInWholeLinesAndOneFence) {
  const Rig rig({}, 2000);
  std::uint64_t id = 0;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    const auto before = rig.medium->counters();
    rig.wrap(n, ++id);
    const auto cost = rig.medium->counters() - before;
    EXPECT_EQ((12 * n + 8 + 63) / 64, cost.streamed_lines) << n;
    EXPECT_EQ(cost.streamed_lines, rig.log->lines());
    EXPECT_EQ(0U, cost.stores + cost.flushed_lines);
    EXPECT_EQ(1U, cost.fences) << n;
    const Rig after = rig.cut();
    ASSERT_EQ(id, ids(after.scan()).size()) << n;
    const Words words = words_of(after, after.scan().wraps.back());
    EXPECT_EQ(n, words.size());
    for (const auto& [offset, value] : words) EXPECT_EQ(id * 1000 + offset / 8, value);
  }
}

TEST(WrapLog, EntriesComeBackAsTheyWere) {
  std::mt19937_64 random(5);
  const Rig rig({}, 20000);
  struct Op {
    std::uint64_t offset, value, kind;  // kind 0: a word, 1: a heap op
  };
  std::vector<std::vector<Op>> all;
  for (std::uint64_t id = 1; id <= 40; ++id) {
    std::vector<Op> ops;
    rig.log->open(1);
    for (unsigned i = 0; i < 1 + random() % 60; ++i) {
      switch (random() % 5) {
        case 0:
        case 1: {
          // Near, and in any segment of 2^31 words.
          const Op op{(random() >> (random() % 2 == 0 ? 20 : 50)) * 8, random(), 0};
          ops.push_back(op);
          rig.log->word(op.offset, op.value);
          break;
        }
        case 2: {
          std::vector<std::uint64_t> values(4 + random() % 40);
          const std::uint64_t first = (random() >> 27) * 8;  // 40 bits of words
          for (std::size_t k = 0; k < values.size(); ++k)
            ops.push_back({first + k * 8, values[k] = random(), 0});
          rig.log->run(first, values.data(), values.size());
          break;
        }
        case 3: {
          const pool::HeapOp op{.offset = (random() >> 40) * 16,
                                .cls = static_cast<std::uint32_t>(random() % 20),
                                .chunks = 0,
                                .set = random() % 2 == 0};
          ops.push_back({op.offset, op.cls + (op.set ? 1000U : 0U), 1});
          rig.log->heap(op);
          break;
        }
        default: {
          const pool::HeapOp op{.offset = (random() >> 40) * pool::chunk_bytes,
                                .cls = pool::large_class,
                                .chunks = static_cast<std::uint32_t>(1 + random() % 100000),
                                .set = random() % 2 == 0};
          ops.push_back({op.offset, op.chunks * 10000ULL + op.cls + (op.set ? 1000U : 0U), 1});
          rig.log->heap(op);
        }
      }
    }
    rig.log->close(id).or_throw();
    all.push_back(ops);
  }
  const Rig after = rig.cut();
  const WrapScan scan = after.scan(1);
  ASSERT_EQ(all.size(), ids(scan).size());
  for (std::size_t w = 0; w < all.size(); ++w) {
    std::size_t i = 0;
    const auto next = [&](std::uint64_t offset, std::uint64_t value, std::uint64_t kind) {
      ASSERT_LT(i, all[w].size());
      EXPECT_EQ(all[w][i].offset, offset) << i;
      EXPECT_EQ(all[w][i].value, value) << i;
      EXPECT_EQ(all[w][i].kind, kind) << i;
      ++i;
    };
    EXPECT_GE(WrapLog::entries(
                  *after.medium, after.place, scan.wraps[w],
                  [&](std::uint64_t offset, std::uint64_t value) { next(offset, value, 0); },
                  [&](const pool::HeapOp& op) {
                    next(op.offset, op.chunks * 10000ULL + op.cls + (op.set ? 1000U : 0U), 1);
                  },
                  [&](std::uint64_t offset, std::uint64_t words) { next(offset, words, 2); }),
              0);
    EXPECT_EQ(all[w].size(), i);
  }
}

// From 4,096 lines on, and from 2^20 ids above its base on, a wrap's close is 20 bytes.
TEST(WrapLog, ClosesOfLongWrapsAndOfHighIds) {
  const Rig rig({}, 16000);
  const std::uint64_t limit = std::uint64_t{1} << 20;
  std::uint64_t id = 0;
  const auto closed = [&](std::uint64_t n) {
    const auto before = rig.medium->counters();
    rig.wrap(n, id);
    const Rig after = rig.cut();
    const WrapScan scan = after.scan();
    EXPECT_EQ(id, ids(scan).back());
    EXPECT_EQ(n, words_of(after, scan.wraps.back()).size());
    return (rig.medium->counters() - before).streamed_lines;
  };
  id = limit - 1;
  EXPECT_EQ(1U, closed(4));
  id = limit;
  EXPECT_EQ(2U, closed(4));
  id = limit + 1;
  EXPECT_EQ(1U, closed(3));
  const std::uint64_t words = 4095 * 64 / 12;  // of 4,095 lines, without 8 bytes left over
  id = std::uint64_t{1} << 40;
  EXPECT_EQ(4096U, closed(words));
  ++id;
  EXPECT_EQ(4096U, closed(words - 1));
}

TEST(WrapLog, OneThatNeverClosedIsBypassed) {
  const Rig rig;
  rig.wrap(20, 1);
  rig.open(30, 2);  // a part of its lines is streamed
  EXPECT_EQ(Ids{1}, ids(Rig(rig.medium->current_image()).scan()));
  rig.wrap(3, 3);  // begins where that one began
  EXPECT_EQ((Ids{1, 3}), ids(rig.cut().scan()));
  EXPECT_EQ(5U, rig.cut().scan().end);
}

// If any of the last wrap's lines is missing, it is not a wrap, and everything before it is
// present.
TEST(WrapLog, OneWithoutALineIsBypassed) {
  const Rig rig;
  rig.wrap(20, 1);
  const std::vector<std::byte> before = rig.medium->durable_image();
  rig.wrap(40, 2);
  const std::vector<std::byte> whole = rig.medium->durable_image();
  ASSERT_EQ((Ids{1, 2}), ids(rig.cut().scan()));
  for (unsigned missing = 1; missing < 256; ++missing) {
    std::vector<std::byte> image = whole;
    for (std::size_t line = 0; line < 8; ++line)
      if ((missing >> line & 1) != 0) {
        const std::size_t at = rig.place.bucket_at(0) + (4 + line) * 64;
        std::memcpy(&image[at], &before[at], 64);
      }
    ASSERT_EQ(Ids{1}, ids(Rig(image).scan())) << missing;
  }
}

// WRAPLOG-2: a bucket that begins again has none of its old wraps, although the lines are still
// there.
TEST(WrapLog, ABucketBeginsAgain) {
  const Rig rig;
  for (std::uint64_t id = 1; id <= 6; ++id) rig.wrap(id * 3, id, id % 2 == 0 ? 2 : 0);
  EXPECT_EQ((Ids{1, 3, 5}), ids(rig.cut().scan(0)));
  EXPECT_EQ(Ids{}, ids(rig.cut().scan(1)));
  EXPECT_EQ((Ids{2, 4, 6}), ids(rig.cut().scan(2)));
  const std::uint64_t used = rig.log->used();
  rig.log->note_checkpoint_id(5).or_throw();
  rig.log->begin_bucket(0, 6);
  rig.medium->fence().or_throw();
  EXPECT_EQ(used - 1 - 2 - 3, rig.log->used());
  EXPECT_EQ(Ids{}, ids(rig.cut().scan(0)));
  EXPECT_EQ((Ids{2, 4, 6}), ids(rig.cut().scan(2)));
  EXPECT_EQ(5U, WrapLog::control(*rig.cut().medium, rig.place).x);
  rig.wrap(3, 7);  // one line: what follows it is old
  EXPECT_EQ(Ids{7}, ids(rig.cut().scan(0)));
  EXPECT_EQ(7U, rig.log->last_id());
}

// WRAPLOG-2, WRAPLOG-3: what relies on these may belong to another thread, whose fence does not
// cover them.
TEST(WrapLog, ItsControlIsDurableWhenItSaysSo) {
  const Rig rig;
  EXPECT_TRUE(WrapLog::control(*rig.cut().medium, rig.place).ours);
  rig.wrap(3, 1);
  rig.log->note_checkpoint_id(1).or_throw();
  EXPECT_EQ(1U, WrapLog::control(*rig.cut().medium, rig.place).x);
}

TEST(WrapLog, TakesWhatFitsAndNoMore) {
  const Rig rig;
  rig.log->open(0);
  std::uint64_t n = 0;
  while (rig.log->fits(papers::softwrap::WrapRecord::entry_bytes)) rig.log->word(8 * n, n), ++n;
  EXPECT_LE(rig.log->capacity() - rig.log->bytes(), 128U);
  rig.log->close(1).or_throw();
  EXPECT_LE(rig.log->lines(), 100U);
  EXPECT_GE(rig.log->lines(), 98U);
  EXPECT_EQ(n, words_of(rig.cut(), rig.cut().scan().wraps.at(0)).size());
  rig.log->open(0);
  EXPECT_FALSE(rig.log->fits(papers::softwrap::WrapRecord::entry_bytes));
  rig.log->open(1);
  EXPECT_TRUE(rig.log->fits(papers::softwrap::WrapRecord::entry_bytes));
}

// LAW-10: what no crash can have made is reported, not read.
TEST(WrapLog, DamageIsNamed) {
  const Rig rig;
  for (std::uint64_t id = 1; id <= 4; ++id) rig.wrap(12, id);
  const std::vector<std::byte> whole = rig.medium->durable_image();
  const auto with = [&](std::uint64_t at, unsigned bit) {
    std::vector<std::byte> image = whole;
    image[at] ^= static_cast<std::byte>(1U << bit);
    return image;
  };
  for (std::uint64_t wrap = 0; wrap < 3; ++wrap)  // each byte of a wrap that others follow
    for (std::uint64_t byte = 0; byte < 192; ++byte) {
      const Rig damaged(
          with(rig.place.bucket_at(0) + wrap * 192 + byte, static_cast<unsigned>(byte % 8)));
      EXPECT_EQ(Code::corrupt, damaged.scan().damage.code()) << wrap << ": " << byte;
      EXPECT_TRUE(damaged.scan(0, 4).damage.ok()) << "home has it all";
    }
  const Rig younger_first;  // no crash reverses the ids of a bucket
  for (const std::uint64_t id : {1, 3, 2}) younger_first.wrap(3, id);
  EXPECT_EQ(Code::corrupt, younger_first.scan().damage.code());
  for (std::uint64_t byte = 0; byte < 40; ++byte) {
    const Rig damaged(with(rig.place.offset + byte, static_cast<unsigned>(byte % 8)));
    EXPECT_EQ(Code::corrupt, WrapLog::control(*damaged.medium, damaged.place).damage.code())
        << byte;
  }
}

/// Makes line n of bucket 0 the last line of a wrap of `lines` lines, as far as its sum says: one
/// line of 2^32 is such a line by chance. `free`: bytes between entries and close. `check`: its
/// check agrees, too.
void make_close(const Rig& rig, std::vector<std::byte>& image, std::uint64_t n, std::uint64_t lines,
                std::uint64_t id, std::size_t free, bool check) {
  const auto line = [&](std::uint64_t i) { return &image[rig.place.bucket_at(0) + i * 64]; };
  std::uint32_t units[16] = {};
  for (std::uint32_t at = static_cast<std::uint32_t>((56 - free) / 4 % 3);
       at + 3 <= (56 - free) / 4; at += 3)
    units[at] = at + 1;
  std::uint64_t word = papers::softwrap::WrapClose{lines, id}.bits();
  std::memcpy(&units[14], &word, 8);
  std::memcpy(line(n), units, 64);
  papers::softwrap::WrapSum sum(rig.place.seed(0, 0), n + 1 - lines);
  for (std::uint64_t i = n + 1 - lines; i < n; ++i) sum.add(line(i));
  if (free != 0) {
    const std::uint64_t right = sum.check(line(n), 56 - free, free) ^ (check ? 0 : 1);
    std::memcpy(line(n) + 56 - free, &right, free);
  }
  word |= std::uint64_t{sum.close(line(n))} << 32;
  std::memcpy(line(n) + 56, &word, 8);
}

// WRAP-1. What a crash leaves after the end may agree with 32 bits of a sum: a log of 16 MiB has
// 2^18 lines.
TEST(WrapLog, ALineThatLooksLikeAWrapIsNoDamage) {
  const Rig rig;
  for (std::uint64_t id = 1; id <= 3; ++id) rig.wrap(12, id);
  const std::vector<std::byte> whole = rig.medium->durable_image();
  const std::uint64_t n = rig.scan().end + 5;
  const auto scanned = [&](const std::vector<std::byte>& image) { return Rig(image).scan(); };
  for (const std::size_t free : {0U, 4U, 8U}) {
    std::vector<std::byte> image = whole;
    make_close(rig, image, n, 1, 7, free, false);
    EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(image))) << free;
    make_close(rig, image, n, 3, 7, free, false);
    EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(image))) << free;
  }
  std::vector<std::byte> one = whole, two = whole, apart = whole, overlapping = whole,
                         around = whole, falling = whole;
  make_close(rig, one, n, 1, 7, 8, true);  // 96 bits
  EXPECT_EQ(Code::corrupt, scanned(one).damage.code());
  make_close(rig, two, n, 1, 7, 0, false);  // 32, 64, 96
  make_close(rig, two, n + 2, 2, 8, 0, false);
  EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(two)));
  make_close(rig, two, n + 3, 1, 9, 0, false);
  EXPECT_EQ(Code::corrupt, scanned(two).damage.code());
  EXPECT_TRUE(Rig(two).scan(0, 9).damage.ok()) << "home has it all";
  for (const std::uint64_t i : {0, 2, 4}) make_close(rig, apart, n + i, 1, 7 + i, 0, false);
  EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(apart)));
  for (const std::uint64_t i : {0, 1, 2})
    make_close(rig, overlapping, n + i, 1 + i, 7 + i, 0, false);
  EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(overlapping)));
  make_close(rig, around, n, 1, 7, 0, false);  // within the next one, so not of its run
  make_close(rig, around, n + 2, 3, 8, 0, false);
  make_close(rig, around, n + 3, 1, 9, 0, false);
  EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(around)));
  for (const std::uint64_t i : {0, 1, 2}) make_close(rig, falling, n + i, 1, 9 - i, 0, false);
  EXPECT_EQ((Ids{1, 2, 3}), ids(scanned(falling)));
}

// Damage before a last wrap without space for a check of 64 bits is not noticed, before other wraps
// it is.
TEST(WrapLog, WhatFollowsDamageMustAgreeIn96Bits) {
  for (const std::uint64_t words : {4, 10, 15}) {  // 8 bytes left, none, 4
    for (std::uint64_t behind = 1; behind <= 3; ++behind) {
      const Rig rig;
      for (std::uint64_t id = 1; id <= 1 + behind; ++id) rig.wrap(words, id);
      std::vector<std::byte> image = rig.medium->durable_image();
      image[rig.place.bucket_at(0) + 9] ^= std::byte{4};
      const std::uint64_t bits = behind * (words == 4 ? 96 : words == 10 ? 32 : 64);
      EXPECT_EQ(bits >= 96 ? Code::corrupt : Code::ok, Rig(image).scan().damage.code())
          << words << ", " << behind;
    }
  }
}

// A scan sums each line once, and again as a last line and for its check, whatever its contents.
TEST(WrapLog, AScanIsLinear) {
  const std::uint64_t lines = 4096;
  const Rig rig({}, lines);
  EXPECT_EQ(0U, rig.scan().summed);
  std::uint64_t closed = 0;
  for (; rig.log->used() + 8 < lines; ++closed) rig.wrap(1 + closed % 30, closed + 1);
  const WrapScan full = rig.cut().scan();
  EXPECT_EQ(closed, full.wraps.size());
  // Of 10 and 26 words.
  const std::uint64_t unchecked = (closed + 30 - 10) / 30 + (closed + 30 - 26) / 30;
  EXPECT_EQ(rig.log->used() + closed - unchecked, full.summed);
  std::vector<std::byte> image = rig.medium->durable_image();
  // Each line is the last one of the longest possible wrap.
  for (std::uint64_t n = 0; n < lines; ++n) {
    const std::uint64_t word = papers::softwrap::WrapClose{4095, 7}.bits();
    std::memcpy(&image[rig.place.bucket_at(0) + n * 64 + 56], &word, 8);
  }
  const WrapScan hostile = Rig(image, lines).scan();
  EXPECT_TRUE(hostile.damage.ok());
  EXPECT_EQ(lines + 1, hostile.summed)
      << "only one line can close the first wrap, and one a wrap behind it";
}

/// Wraps of n words each as in logs of the first format: sums of their own, no checks.
std::vector<std::byte> first_form(WrapPlace& place, std::uint64_t wraps, std::uint64_t n) {
  const Rig rig;
  std::vector<std::byte> image = rig.medium->durable_image();
  place = rig.place;
  place.form = log::LogForm::first;
  for (const auto& [word, value] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {8, 0}, {16, 0}, {24, 0}, {32, 0}}) {
    const std::uint64_t whole =
        log::ControlWord::make(place.identity, word, value, log::LogForm::first);
    std::memcpy(&image[place.offset + word], &whole, 8);
  }
  std::uint64_t at = 0;
  for (std::uint64_t id = 1; id <= wraps; ++id) {
    const std::uint64_t lines = (12 * n + 8 + 63) / 64;
    std::byte* const wrap = &image[place.bucket_at(0) + at * 64];
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto tag = static_cast<std::uint32_t>(i + 1);
      const std::uint64_t value = id * 1000 + i;
      std::memcpy(wrap + i * 12, &tag, 4);
      std::memcpy(wrap + i * 12 + 4, &value, 8);
    }
    std::uint64_t word = papers::softwrap::WrapClose{lines, id}.bits();
    std::memcpy(wrap + lines * 64 - 8, &word, 8);
    papers::softwrap::FirstWrapSum sum(place.seed(0, 0), at);
    for (std::uint64_t i = 0; i + 1 < lines; ++i) sum.add(wrap + i * 64);
    word |= std::uint64_t{sum.close(wrap + (lines - 1) * 64)} << 32;
    std::memcpy(wrap + lines * 64 - 8, &word, 8);
    at += lines;
  }
  return image;
}

// Pools of an earlier build.
TEST(WrapLog, LogsOfTheFirstFormAreRead) {
  WrapPlace place;
  std::vector<std::byte> image = first_form(place, 5, 12);
  const auto scan = [&] {
    const Rig rig(image);
    const WrapControl control = WrapLog::control(*rig.medium, rig.place);
    EXPECT_TRUE(control.ours && control.damage.ok());
    EXPECT_EQ(log::LogForm::first, control.form);
    return WrapLog::scan(*rig.medium, place, 0, 0, 0);
  };
  const WrapScan whole = scan();
  EXPECT_EQ((Ids{1, 2, 3, 4, 5}), ids(whole));
  const Rig rig(image);
  for (const auto& wrap : whole.wraps) {
    const Words words = words_of(rig, wrap);
    EXPECT_EQ(12U, words.size());
    for (const auto& [offset, value] : words) EXPECT_EQ(wrap.id * 1000 + offset / 8, value);
  }
  for (std::uint64_t wrap = 0; wrap < 5; ++wrap) {  // damage is reported if three wraps follow
    image[place.bucket_at(0) + wrap * 192 + 20] ^= std::byte{1};
    const WrapScan damaged = scan();
    EXPECT_EQ(wrap < 2 ? Code::corrupt : Code::ok, damaged.damage.code()) << wrap;
    EXPECT_EQ(wrap, damaged.wraps.size());
    image[place.bucket_at(0) + wrap * 192 + 20] ^= std::byte{1};
  }
}

// Wherever the power is cut while such a log is made anew, it is empty, or the new session's.
TEST(WrapLog, ALogChangesItsForm) {
  WrapPlace place;
  const std::vector<std::byte> old = first_form(place, 5, 12);
  const Rig rig(old, 100, 0, 2);
  std::vector<std::vector<std::byte>> cuts;
  rig.medium->set_fence_hooks(
      [&] {
        cuts.push_back(rig.medium->durable_image());
        cuts.push_back(rig.medium->current_image());
      },
      [&] { cuts.push_back(rig.medium->durable_image()); });
  rig.log->format(5).or_throw();
  rig.medium->set_fence_hooks({}, {});
  ASSERT_EQ(9U, cuts.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Rig cut(cuts[i], 100, 0, 2);
    const WrapControl c = WrapLog::control(*cut.medium, cut.place);
    EXPECT_TRUE(c.damage.ok()) << i << ": " << c.damage.message();
    EXPECT_EQ(i >= 7, c.ours) << i;
  }
}

// If each line looks like the last one of a very long wrap, the search ends, without an alarm.
TEST(WrapLog, AScanOfTheFirstFormHasABudget) {
  WrapPlace place{4096, 64 + std::uint64_t{8192} * 64, 0x1234, 1, 1, log::LogForm::first};
  medium::RecordingOptions options;
  options.log_bytes = 1 << 20;
  std::vector<std::byte> image(options.log_bytes);
  for (std::uint64_t n = 0; n < place.lines(); ++n) {
    const std::uint64_t word = papers::softwrap::WrapClose{4095, 7}.bits();
    std::memcpy(&image[place.bucket_at(0) + n * 64 + 56], &word, 8);
  }
  const auto medium = medium::RecordingMedium::make(options, image).value();
  const WrapScan s = WrapLog::scan(*medium, place, 0, 0, 0);
  EXPECT_TRUE(s.damage.ok());
  EXPECT_GT(s.summed, place.lines() * 256);
  EXPECT_LT(s.summed, place.lines() * 300);
}

TEST(WrapLog, OfAnotherSessionIsNone) {
  const Rig rig;
  rig.wrap(3, 1);
  const Rig later(rig.medium->durable_image(), 100, 0, 2);
  const WrapControl c = WrapLog::control(*later.medium, later.place);
  EXPECT_TRUE(c.damage.ok());
  EXPECT_FALSE(c.ours);
  later.log->format(1).or_throw();
  EXPECT_EQ(Ids{}, ids(Rig(later.medium->durable_image(), 100, 0, 2).scan()));
  // No crash can have made an epoch of the future.
  const WrapPlace before = {rig.place.offset, rig.place.bytes, rig.place.identity, 0, 3};
  EXPECT_EQ(Code::corrupt, WrapLog::control(*rig.medium, before).damage.code());
}

}  // namespace
}  // namespace perdure::test
