// SPDX-License-Identifier: BSD-3-Clause
//
// Whom a record of the log writer waits for: the threads that shared the last records, and no
// thread where each record had one thread's transactions.
#include <atomic>
#include <thread>

#include "perdure/log/log_writer.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

struct Cohort : ::testing::Test {
  static constexpr std::uint64_t minutes = 600'000'000'000;  // in nanoseconds

  Cohort() {
    medium::RecordingOptions options;
    options.log_bytes = 1 << 20;
    options.data_bytes = 4096;
    medium = std::make_unique<medium::FaultyMedium>(medium::RecordingMedium::make(options).value());
    ring.configure(*medium, medium->map_ring(0, 1 << 20).value(), ring_seed(uuid, 3, 0));
    writer.configure(ring, 0, 1 << 20, 64);
    for (int i = 0; i < 2; ++i) writer.add(i, logs[i]);
  }
  std::uint64_t commit(int me) {
    EXPECT_TRUE(writer.reserve(2));
    const std::uint64_t id = ++clock, payload[] = {entry_key(EntryKind::words, 64, 1), id};
    logs[me].prepare(2);
    logs[me].push(id, payload, 2);
    return id;
  }
  void write_together() {
    commit(0);
    ASSERT_TRUE(writer.wait(commit(1)).ok());
  }

  std::unique_ptr<medium::FaultyMedium> medium;
  Ring ring;
  LogWriter writer;
  VolatileLog logs[2];
  std::uint64_t clock = 0;
};

// The second commit comes only when the first thread waits. If that wrote at once, there would be
// one more record.
TEST_F(Cohort, ARecordWaitsForTheThreadsThatSharedTheLastOnes) {
  write_together();
  medium->set_sync_ns(minutes);
  const std::uint64_t before = writer.groups(), bytes = writer.outstanding();
  ASSERT_EQ(0U, bytes);
  const std::uint64_t first = commit(0);
  std::atomic<bool> ended{false};
  std::thread waits([&] {
    EXPECT_TRUE(writer.wait(first).ok());
    ended = true;
  });
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(ended) << "it had company, and waits for it";
    std::this_thread::yield();
  }
  commit(1);
  waits.join();
  EXPECT_EQ(before + 1, writer.groups());
  EXPECT_EQ(clock, writer.durable());
}

// Each of these would take minutes.
TEST_F(Cohort, AThreadThatWritesAloneWaitsForNobody) {
  medium->set_sync_ns(minutes);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(writer.wait(commit(0)).ok());
  for (int i = 0; i < 3; ++i) commit(0);
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  EXPECT_EQ(6U, writer.groups());
}

TEST_F(Cohort, AThreadWhoseCompanyHasGoneWaitsForTwoRecordsAtMost) {
  write_together();
  medium->set_sync_ns(3000);
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  medium->set_sync_ns(minutes);
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  EXPECT_EQ(clock, writer.durable());
}

TEST_F(Cohort, NobodyWaitsWhereAFenceIsNoSync) {
  write_together();
  ASSERT_TRUE(writer.wait(commit(0)).ok());
  EXPECT_EQ(2U, writer.groups());
}

}  // namespace
}  // namespace perdure::log::testing
