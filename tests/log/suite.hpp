// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of the logs: a ring on a recording medium, and its bytes as a power cut would
// leave them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "perdure/log/record.hpp"
#include "perdure/log/record_merge.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/log/ring.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::log::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned scale = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned scale = 4;
#else
inline constexpr unsigned scale = 1;
#endif

inline constexpr std::uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/// A ring of `bytes` at offset 0 of a recording medium.
struct RingOnMedium {
  explicit RingOnMedium(std::uint64_t bytes, std::size_t unit = 64, std::uint64_t epoch = 3) {
    medium::RecordingOptions options;
    options.log_bytes = (bytes + 4095) / 4096 * 4096;
    options.data_bytes = 4096;
    options.append_unit = unit;
    medium = medium::RecordingMedium::make(options).value();
    map = medium->map_ring(0, bytes).value();
    seed = ring_seed(uuid, epoch, 0);
    ring.configure(*medium, map, seed);
    writer.configure(seed, ring.max_record(), unit);
  }
  /// Appends a record of n words that identify their record.
  void append(std::uint64_t id, std::uint64_t n) {
    writer.reset();
    std::vector<std::uint64_t> values(n);
    for (std::uint64_t i = 0; i < n; ++i) values[i] = id * 1000003 + i;
    writer.words(64, values.data(), n);
    ASSERT_TRUE(ring.append_fence(writer, RecordKind::commit, id, 1).ok());
  }
  std::uint64_t record_bytes(std::uint64_t n) {
    writer.reset();
    const std::vector<std::uint64_t> values(n);
    writer.words(64, values.data(), n);
    return writer.bytes();
  }

  std::unique_ptr<medium::RecordingMedium> medium;
  medium::RingMap map;
  std::uint64_t seed = 0;
  Ring ring;
  RecordWriter writer;
};

/// A ring's bytes outside any medium, mapped twice as a medium maps them.
class Image {
 public:
  explicit Image(const medium::RingMap& from) : bytes_(from.bytes), copy_(2 * from.bytes / 8) {
    std::memcpy(data(), from.base, 2 * from.bytes);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(copy_.data()); }
  /// Sets byte `position` of the ring (of any generation), in both mappings.
  void set(std::uint64_t position, std::byte value) {
    data()[position % bytes_] = value;
    data()[position % bytes_ + bytes_] = value;
  }
  std::byte get(std::uint64_t position) { return data()[position % bytes_]; }
  void flip(std::uint64_t position, int bit) {
    set(position, get(position) ^ (std::byte{1} << bit));
  }
  medium::RingMap map() { return {data(), 0, bytes_}; }

 private:
  std::uint64_t bytes_;
  std::vector<std::uint64_t> copy_;
};

struct Found {
  std::vector<std::uint64_t> ids;
  Scan scan;
};
inline Found scan(const medium::RingMap& map, std::uint64_t head, std::uint64_t seed,
                  std::size_t unit = 64) {
  Found found;
  found.scan = scan_ring(map, head, seed, unit, "test: ring 0",
                         [&](const RecordView& r) { found.ids.push_back(r.id()); });
  // Several threads, each with a part of the ring, must find the same.
  static const auto any = [] {
    medium::RecordingOptions options;
    options.log_bytes = 1 << 20;
    options.data_bytes = 4096;
    return medium::RecordingMedium::make(options).value();
  }();
  for (const unsigned parts : {1U, 3U}) {
    const Scan parted = scan_and_flush_ring(*any, map, head, seed, unit, "test: ring 0", 0, parts,
                                            [](std::uint64_t) {});
    std::vector<std::uint64_t> ids;
    RecordMerge records(unit);
    records.add(map, parted.above, parted.end);
    for (RecordView r; records.next(r);) ids.push_back(r.id());
    EXPECT_EQ(found.ids.size(), parted.records_above) << parts;
    EXPECT_EQ(found.ids, ids) << parts;
    EXPECT_EQ(found.scan.end, parted.end) << parts;
    EXPECT_EQ(found.scan.records, parted.records) << parts;
    EXPECT_EQ(found.scan.bytes, parted.bytes) << parts;
    EXPECT_EQ(found.scan.bytes, parted.bytes_above) << parts;
    EXPECT_EQ(found.scan.damage.ok(), parted.damage.ok()) << parts;
    EXPECT_EQ(found.scan.damage.message(), parted.damage.message()) << parts;
  }
  return found;
}

inline std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = first; i <= last; ++i) ids.push_back(i);
  return ids;
}

}  // namespace perdure::log::testing
