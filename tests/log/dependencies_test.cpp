// SPDX-License-Identifier: BSD-3-Clause
//
// Which dependent records recovery keeps, and in which order it applies them (DEPEND-1 to DEPEND-3,
// perdure/log/dependencies.hpp): three rings are written record by record, a record of each is
// torn, and what recovery leaves in the data region is compared.
#include "perdure/log/dependencies.hpp"

#include <cerrno>
#include <map>
#include <utility>

#include "perdure/log/redo.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/format.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/log/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::log::testing {
namespace {

constexpr std::uint64_t ring_bytes = 16384, rings = 3, words = 8;
// Below this every timestamp has the id of the pool's checkpoint.
constexpr std::uint64_t base = std::uint64_t{5} << timestamp_bits;

using Names = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // ring, timestamp

struct Rings {
  /// Without a path, on a recording medium; with one, on a new file of which the log is allocated
  /// and the data region is not.
  explicit Rings(const std::string& path = "") {
    std::memcpy(header.uuid, uuid, sizeof uuid);
    header.version = 4;
    header.epoch = 3;
    header.ring_count = rings;
    header.ring_bytes = ring_bytes;
    header.append_unit = 64;
    header.log_bytes = pool::first_ring + rings * ring_bytes;
    header.data_bytes = header.max_data_bytes = 8 * pool::chunk_bytes;
    header.checkpoint_id = 4;
    pool::set_feature(header, pool::Feature::dependent_records);
    if (path.empty()) {
      medium::RecordingOptions options;
      options.log_bytes = header.log_bytes;
      options.data_bytes = header.data_bytes;
      medium = medium::RecordingMedium::make(options).value();
    } else {
      medium::OpenMedium how;
      how.path = path;
      how.kind = "emulated";
      how.create = how.sparse = true;
      how.log_bytes = header.log_bytes;
      how.data_bytes = header.data_bytes;
      medium = std::make_unique<medium::FaultyMedium>(medium::open_medium(how).value());
      EXPECT_TRUE(medium->allocate(0, header.log_bytes).ok());
    }
    for (std::uint32_t i = 0; i < rings; ++i) {
      const auto map = medium->map_ring(pool::ring_offset(header, i), ring_bytes).value();
      const std::uint64_t seed = ring_seed(uuid, header.epoch, i);
      ring[i].configure(*medium, map, seed);
      writer.configure(seed, ring[i].max_record(), 64);
    }
  }
  /// Appends a record that stores `timestamp` to a word.
  void append(std::uint32_t i, std::uint64_t timestamp, std::uint64_t word, const Names& names,
              RecordKind kind = RecordKind::dependent) {
    writer.reset();
    writer.bind(ring[i].seed());
    writer.word(at(word), timestamp);
    for (const auto& [other, named] : names) {
      writer.room(2);
      writer.after(other, named);
    }
    begins[timestamp] = pool::ring_offset(header, i) + ring[i].tail();
    ASSERT_TRUE(ring[i]
                    .append_fence(writer, kind, id_of_timestamp(timestamp),
                                  static_cast<std::uint32_t>(timestamp & 0xffff))
                    .ok());
  }
  /// Tears the record with this timestamp.
  void tear(std::uint64_t timestamp) {
    const std::uint64_t nothing = 0;
    medium->store(begins.at(timestamp) + 8, &nothing, 8);
  }
  Result<RedoRecovery> recover() { return recover_redo(*medium, header); }
  [[nodiscard]] std::uint64_t word(std::uint64_t n) const {
    std::uint64_t value;
    std::memcpy(&value, medium->at(header.log_bytes + at(n)), 8);
    return value;
  }
  static std::uint64_t at(std::uint64_t word) { return 2 * pool::chunk_bytes + word * 64; }

  pool::Header header{};
  std::unique_ptr<medium::Medium> medium;
  Ring ring[rings];
  RecordWriter writer;
  std::map<std::uint64_t, std::uint64_t> begins;
};

// DEPEND-2. The ids are equal, and the higher timestamps are in the lower rings.
TEST(Dependencies, RecordsOfOneIdAreAppliedInTheOrderOfTheirTimestamps) {
  for (const std::uint32_t last : {0U, 1U, 2U}) {
    Rings r;
    for (std::uint32_t i = 0; i < rings; ++i) r.append(i, base + (i == last ? 9 : 7 - i), 1, {});
    const auto done = r.recover();
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_EQ(base + 9, r.word(1)) << "ring " << last << " has the last one";
    EXPECT_EQ(3U, done->records);
    EXPECT_EQ(3U, done->transactions) << "a record's upper half of word 2 is no count";
    EXPECT_EQ(5U, done->last_id);
  }
}

// DEPEND-1, with the missing record in each ring.
TEST(Dependencies, ARecordIsKeptOnlyWithWhatItNames) {
  for (std::uint32_t torn = 0; torn < rings; ++torn)
    for (std::uint32_t names = 0; names < rings; ++names) {
      if (names == torn) continue;
      const std::uint32_t other = 3 - torn - names;
      Rings r;
      r.append(torn, base + 1, 1, {});  // kept
      r.append(torn, base + 10, 1, {});
      r.append(names, base + 20, 2, {{torn, base + 10}});
      r.append(other, base + 30, 3, {{torn, base + 1}});
      r.tear(base + 10);
      const auto done = r.recover();
      ASSERT_TRUE(done.ok()) << done.status().message();
      EXPECT_EQ(base + 1, r.word(1));
      EXPECT_EQ(0U, r.word(2)) << "it had seen what is lost";
      EXPECT_EQ(base + 30, r.word(3));
      EXPECT_EQ(2U, done->records);
    }
}

TEST(Dependencies, WhatNamesADroppedRecordIsDropped) {
  for (const bool torn : {false, true}) {
    Rings r;
    r.append(2, base + 1, 1, {});
    r.append(0, base + 2, 2, {{2, base + 1}});
    r.append(1, base + 3, 3, {{0, base + 2}});  // it does not name what is missing
    if (torn) r.tear(base + 1);
    const auto done = r.recover();
    ASSERT_TRUE(done.ok()) << done.status().message();
    for (const std::uint64_t w : {1U, 2U, 3U}) EXPECT_EQ(torn ? 0 : base + w, r.word(w));
    EXPECT_EQ(torn ? 4U : 5U, done->last_id) << "the checkpoint id, where nothing is kept";
  }
}

TEST(Dependencies, WhatTheDataRegionHoldsNeedNoRecord) {
  Rings r;
  r.append(0, base + 2, 2, {{1, base - 1}});
  EXPECT_TRUE(r.recover().ok());
  EXPECT_EQ(base + 2, r.word(2));
}

// DEPEND-3: a ring's writer starts a record when the one before was acknowledged.
TEST(Dependencies, ARecordBehindOneThatIsNotKeptIsDamage) {
  Rings r;
  r.append(0, base + 1, 1, {});
  r.append(1, base + 2, 2, {{0, base + 1}});
  r.append(1, base + 3, 3, {});
  r.tear(base + 1);
  const Status s = r.recover().status();
  EXPECT_EQ(Code::corrupt, s.code());
  EXPECT_NE(std::string::npos, s.message().find("log ring 1")) << s.message();
  EXPECT_NE(std::string::npos, s.message().find("in ring 0, which is missing")) << s.message();
  for (const std::uint64_t w : {1U, 2U, 3U}) EXPECT_EQ(0U, r.word(w)) << "nothing is changed";
}

// No transaction names a higher timestamp, so there is no cycle; only damage makes one.
TEST(Dependencies, NamesThatNoTransactionWritesAreDamage) {
  const struct {
    const char* what;
    Names first, second;
  } cases[] = {{"a cycle", {{1, base + 2}}, {{0, base + 1}}},
               {"a higher timestamp", {{1, base + 2}}, {}},
               {"itself", {{0, base + 1}}, {}},
               {"its own ring", {}, {{1, base + 1}}},
               {"a ring that the pool does not have", {}, {{rings, base + 1}}}};
  for (const auto& c : cases) {
    Rings r;
    r.append(0, base + 1, 1, c.first);
    r.append(1, base + 2, 2, c.second);
    EXPECT_EQ(Code::corrupt, r.recover().status().code()) << c.what;
    EXPECT_EQ(0U, r.word(1) + r.word(2)) << c.what;
  }
}

// A pool that has the feature may have been killed under another instance of its family.
TEST(Dependencies, RecordsOfTheStrictOrderNameNothing) {
  Rings r;
  for (std::uint32_t i = 0; i < rings; ++i) {
    r.writer.reset();
    r.writer.bind(r.ring[i].seed());
    r.writer.word(Rings::at(1), 10 - i);
    ASSERT_TRUE(r.ring[i].append_fence(r.writer, RecordKind::commit, 10 - i, 1).ok());
  }
  const auto done = r.recover();
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(10U, r.word(1));
  EXPECT_EQ(3U, done->records);
  EXPECT_EQ(10U, done->last_id);
}

// ALLOC-1, where the disk has no block left but those that the kept records need.
TEST(Dependencies, ADroppedRecordNeedsNoBlocks) {
  constexpr std::uint64_t far = 3 * pool::chunk_bytes / 64;  // a word three chunks behind word 0
  for (const bool torn : {false, true}) {
    const medium::testing::Scratch scratch;
    Rings r(scratch.path());
    r.append(0, base + 1, 1, {});
    r.append(1, base + 2, 2, {});
    r.append(2, base + 3, far, {{1, base + 2}});
    if (torn) r.tear(base + 2);
    static_cast<medium::FaultyMedium&>(*r.medium).fail(medium::FaultyMedium::Call::allocate, 2,
                                                       ENOSPC, true);
    const auto done = r.recover();
    EXPECT_FALSE(r.medium->allocated(r.header.log_bytes + Rings::at(far), 8));
    if (torn) {
      ASSERT_TRUE(done.ok()) << done.status().message();
      EXPECT_EQ(1U, done->records);
      EXPECT_EQ(base + 1, r.word(1));
    } else {
      EXPECT_EQ(Code::full, done.status().code()) << done.status().message();
      EXPECT_EQ(0U, r.word(1)) << "nothing is stored where a block is missing";
    }
  }
}

// What recovery decides, it decides again when it was cut short behind any of its stores.
TEST(Dependencies, RecoveryComesToTheSameAgain) {
  Rings r;
  r.append(0, base + 1, 1, {});
  r.append(1, base + 2, 1, {{0, base + 1}});
  r.append(2, base + 3, 1, {});
  r.append(0, base + 4, 2, {{2, base + 3}, {1, base + 2}});
  r.tear(base + 3);
  for (int again = 0; again < 3; ++again) {
    const auto done = r.recover();
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_EQ(base + 2, r.word(1));
    EXPECT_EQ(0U, r.word(2));
  }
}

}  // namespace
}  // namespace perdure::log::testing
