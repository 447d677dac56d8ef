// SPDX-License-Identifier: BSD-3-Clause
//
// LineMasks: what a write-back in slices does to the recorded pages. Each is read once and none is
// moved, however many slices there are: moving the remaining ones at each slice would make a
// checkpoint of a million pages move gigabytes.
#include "perdure/log/line_masks.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

/// A page's number that counts the operations on it.
struct Counted {
  static inline std::uint64_t reads = 0, moves = 0;
  std::uint64_t number;

  explicit Counted(std::uint64_t n) : number(n) {}
  Counted(const Counted& other) : number(other.number) { ++moves; }
  Counted& operator=(const Counted& other) {
    number = other.number;
    ++moves;
    return *this;
  }
  ~Counted() = default;
  operator std::uint64_t() const {
    ++reads;
    return number;
  }
};

class LineMasksTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t page_bytes = 4096;

  void make(std::uint64_t pages) {
    medium::RecordingOptions options;
    options.log_bytes = 4096;
    options.data_bytes =
        (pages * page_bytes + pool::chunk_bytes - 1) / pool::chunk_bytes * pool::chunk_bytes;
    m = medium::RecordingMedium::make(options).value();
    masks.fit(options.data_bytes);
  }
  std::unique_ptr<medium::RecordingMedium> m;
  LineMasksOf<Counted> masks;
};

TEST_F(LineMasksTest, EachPageIsReadOnceAndNoneIsMoved) {
  constexpr std::uint64_t pages = 20000 / scale;
  for (const std::uint64_t most : {1U, 7U, 64U, 1U << 30}) {
    make(pages);
    for (std::uint64_t p = 0; p < pages; ++p) masks.note((p * 7919 % pages) * 64 + p % 64);
    masks.begin();
    Counted::reads = Counted::moves = 0;
    std::uint64_t slices = 1;
    while (!masks.write_back(*m, most)) ++slices;
    EXPECT_EQ((pages + most - 1) / most, slices);
    EXPECT_EQ(pages, Counted::reads) << most;
    EXPECT_EQ(0U, Counted::moves) << most;
    EXPECT_TRUE(masks.empty());
  }
}

// The data region grows, and further lines are recorded, during a write-back: the rest is written
// back, and the new lines remain.
TEST_F(LineMasksTest, GrowthInTheMidstOfAWriteBack) {
  make(64);
  for (std::uint64_t p = 0; p < 64; ++p) masks.note(p * 64);
  masks.begin();
  EXPECT_FALSE(masks.write_back(*m, 10));
  masks.note(3 * 64 + 1);   // its page has been written back
  masks.note(50 * 64 + 1);  // its page has not been written back: both lines go with it
  masks.fit(4096 * page_bytes);
  masks.note(1000 * 64);
  EXPECT_FALSE(masks.write_back(*m, 10));
  masks.fit(65536 * page_bytes);
  EXPECT_TRUE(masks.write_back(*m));
  EXPECT_FALSE(masks.empty());
  std::multiset<std::uint64_t> rest;
  masks.take_all(true, [&](const std::vector<std::uint64_t>& lines) {
    rest.insert(lines.begin(), lines.end());
  });
  EXPECT_EQ((std::multiset<std::uint64_t>{3 * 64 + 1, 1000 * 64}), rest);
  EXPECT_TRUE(masks.empty());
}

}  // namespace
}  // namespace perdure::log::testing
