// SPDX-License-Identifier: BSD-3-Clause
//
// LogCursor: the records of several rings, in id order, up to an id.
#include "perdure/log/log_cursor.hpp"

#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

TEST(LogCursor, TakesTheLowestIdOfAllRingsUpToTheLimit) {
  RingOnMedium first(1 << 16), second(1 << 16), third(1 << 16);
  RingOnMedium* const rings[] = {&first, &second, &third};
  LogCursor cursor;
  for (const RingOnMedium* r : rings) cursor.add(r->ring, r->ring.tail());
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> written, read;
  std::uint64_t id = 0, seen = 0;
  RecordView record;
  EXPECT_FALSE(cursor.next(~std::uint64_t{0}, record));
  for (unsigned step = 0; step < 150; ++step) {
    id += 1 + random() % 3;
    rings[random() % 3]->append(id, 1 + random() % 8);
    written.push_back(id);
    if (random() % 2 == 0) {
      cursor.look();
      seen = id;
    }
    // What was appended since the last look() is not there, and nothing above the limit is.
    const std::uint64_t limit = id - std::min(id, random() % 6);
    while (cursor.next(limit, record)) {
      ASSERT_LE(record.id(), std::min(limit, seen));
      read.push_back(record.id());
    }
    std::size_t expected = 0;
    while (expected < written.size() && written[expected] <= std::min(limit, seen)) ++expected;
    ASSERT_GE(read.size(), expected) << "step " << step;
  }
  cursor.look();
  LogCursor copy = cursor;  // begins where the original is
  const std::size_t before = read.size();
  while (cursor.next(~std::uint64_t{0}, record)) read.push_back(record.id());
  EXPECT_EQ(written, read);
  std::size_t again = 0;
  while (copy.next(~std::uint64_t{0}, record)) ++again;
  EXPECT_EQ(read.size() - before, again);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rings[i]->ring.tail(), cursor.position(i));
}

}  // namespace
}  // namespace perdure::log::testing
