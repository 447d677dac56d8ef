// SPDX-License-Identifier: BSD-3-Clause
//
// Persister, where ids are timestamps: transactions are merged by timestamp as far as the TM says
// that all are there, records count in numbers without a gap, and durable() is a timestamp, which
// rises where nothing had to be written too (PERSIST-2).
#include <atomic>
#include <barrier>
#include <mutex>
#include <random>
#include <thread>

#include "papers/dudetm/persister.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/log/suite.hpp"

namespace perdure::papers::dudetm::testing {
namespace {

using log::testing::RingOnMedium;
using log::testing::scale;

struct TimestampedPersister : ::testing::Test {
  static constexpr std::uint64_t start = 40;
  void open(std::size_t logs, std::uint64_t ring_bytes = 1 << 20,
            std::uint64_t max_group = 1 << 20) {
    on = std::make_unique<RingOnMedium>(ring_bytes, 64);
    persister.configure(on->ring, start, max_group, 64);
    persister.configure([this] { return complete.load(); });
    persister.configure(Grouping{0, false, 0, [this] {
                                   on->ring.release(on->ring.tail());
                                   return Status();
                                 }});
    for (std::size_t i = 0; i < logs; ++i) {
      volatile_logs.push_back(std::make_unique<VolatileLog>(1 << 12));
      persister.add(static_cast<int>(i), *volatile_logs.back());
    }
  }
  void push(std::size_t log, std::uint64_t timestamp) {
    const std::uint64_t p[] = {entry_key(EntryKind::words, 64, 1), timestamp};
    while (!volatile_logs[log]->fits(2)) std::this_thread::yield();
    volatile_logs[log]->prepare(2);
    volatile_logs[log]->push(timestamp, p, 2);
  }
  /// The timestamps that the records say, in their order; and that they are numbered without a gap.
  std::vector<std::uint64_t> recorded_stamps(std::uint64_t from = 0) {
    std::vector<std::uint64_t> timestamps;
    std::uint64_t number = start;
    const Scan found = scan_ring(on->map, from, on->seed, 64, "test", [&](const RecordView& r) {
      ASSERT_TRUE(each_entry(r.words + header_words, r.payload_words(), [&](const Entry& e) {
        if (e.kind == EntryKind::end) {
          ASSERT_EQ(++number, e.values[0]);
        } else {
          timestamps.push_back(e.values[0]);
        }
      }));
      ASSERT_EQ(number, r.id());
    });
    EXPECT_TRUE(found.damage.ok());
    return timestamps;
  }

  std::unique_ptr<RingOnMedium> on;
  std::atomic<std::uint64_t> complete{start};
  Persister persister;
  std::vector<std::unique_ptr<VolatileLog>> volatile_logs;
};

using Stamps = std::vector<std::uint64_t>;

TEST_F(TimestampedPersister, MergesByTimestampAndNumbersInARow) {
  open(3);
  for (const std::uint64_t s : {100, 500, 900}) push(0, s);
  for (const std::uint64_t s : {200, 300, 1000}) push(2, s);
  for (const std::uint64_t s : {50, 600}) push(1, s);
  complete = 2000;
  EXPECT_EQ(Persister::Outcome::wrote, persister.step());
  EXPECT_EQ((Stamps{50, 100, 200, 300, 500, 600, 900, 1000}), recorded_stamps());
  EXPECT_EQ(2000U, persister.durable()) << "a timestamp";
  EXPECT_EQ(start + 8, persister.recorded()) << "a number";
}

TEST_F(TimestampedPersister, TakesNothingThatMayHaveAnOlderOneToCome) {
  open(2);
  push(0, 100);
  push(0, 300);
  complete = 199;  // a thread pends since 200
  EXPECT_EQ(Persister::Outcome::wrote, persister.step());
  EXPECT_EQ((Stamps{100}), recorded_stamps());
  EXPECT_EQ(199U, persister.durable());
  EXPECT_EQ(Persister::Outcome::nothing, persister.step());
  complete = 150;  // a thread has said for a moment that it pends; what was said before still holds
  EXPECT_EQ(Persister::Outcome::nothing, persister.step());
  EXPECT_EQ(199U, persister.durable());
  push(1, 200);
  complete = 400;
  EXPECT_TRUE(persister.wait(300).ok());
  EXPECT_EQ((Stamps{100, 200, 300}), recorded_stamps());
  EXPECT_EQ(400U, persister.durable());
}

TEST_F(TimestampedPersister, DurableRisesWhereNothingHadToBeWritten) {
  open(1);
  EXPECT_EQ(start, persister.durable());
  complete = 5000;
  EXPECT_TRUE(persister.wait(4000).ok()) << "who only read may wait too";
  EXPECT_EQ(5000U, persister.durable());
  EXPECT_EQ(start, persister.recorded());
  EXPECT_EQ(0U, persister.groups());
  EXPECT_EQ(0U, on->medium->counters().fences);
}

// A record that can take no more ends below F: durable() may say only what is in it.
TEST_F(TimestampedPersister, AFullRecordIsDurableToItsLastTimestamp) {
  open(1, 1 << 20, 512);
  for (std::uint64_t i = 1; i <= 60; ++i) push(0, i * 100);
  complete = 10000;
  EXPECT_EQ(Persister::Outcome::wrote, persister.step());
  const std::uint64_t in_it = persister.recorded() - start;
  EXPECT_LT(in_it, 60U);
  EXPECT_EQ(in_it * 100, persister.durable());
  EXPECT_TRUE(persister.wait(10000).ok());
  EXPECT_EQ(60U, recorded_stamps().size());
}

TEST_F(TimestampedPersister, AGroupThatIsNotWrittenIsNotDurable) {
  open(1);
  persister.configure(Grouping{10, false, 64 << 20, [] { return Status(); }});
  push(0, 100);
  complete = 1000;
  EXPECT_EQ(Persister::Outcome::gathered, persister.step(true));
  EXPECT_EQ(start, persister.durable());
  complete = 2000;
  EXPECT_EQ(Persister::Outcome::nothing, persister.step(true));
  EXPECT_EQ(start, persister.durable()) << "nothing came, but something is gathered";
  EXPECT_TRUE(persister.wait(100).ok());
  EXPECT_EQ(2000U, persister.durable());
  EXPECT_EQ(1U, persister.groups());
}

TEST_F(TimestampedPersister, AMediumThatFailsLetsNothingRise) {
  RingOnMedium plain(1 << 16);
  auto faulty = std::make_unique<medium::FaultyMedium>(std::move(plain.medium));
  Ring ring;
  ring.configure(*faulty, faulty->map_ring(0, 1 << 16).value(), plain.seed);
  persister.configure(ring, start, 1 << 20, 64);
  persister.configure([this] { return complete.load(); });
  volatile_logs.push_back(std::make_unique<VolatileLog>(1 << 12));
  persister.add(0, *volatile_logs.back());
  faulty->fail(medium::FaultyMedium::Call::fence, 1, EIO);
  push(0, 100);
  complete = 1000;
  EXPECT_EQ(Code::io, persister.wait(100).code());
  complete = 2000;
  EXPECT_EQ(Code::io, persister.wait(2000).code());
  EXPECT_EQ(start, persister.durable());
}

// Threads draw rising timestamps as a TM's do: each shows a lower bound before it draws, and its
// log has the transaction before it shows none.
TEST_F(TimestampedPersister, WritesEveryTransactionOnceInTimestampOrderUnderThreads) {
  constexpr std::size_t n = 3;
  open(n, 1 << 22);
  std::atomic<std::uint64_t> time{start};
  std::array<std::atomic<std::uint64_t>, n> pending;
  for (auto& p : pending) p = ~std::uint64_t{0};
  persister.configure([&] {
    std::uint64_t all = time.load();
    for (const auto& p : pending) all = std::min(all, p.load() - 1);
    return all;
  });
  const std::uint64_t each = 4000 / scale;
  std::barrier begin(n);
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < n; ++me)
    threads.emplace_back([&, me] {
      std::mt19937_64 random(me);
      begin.arrive_and_wait();
      for (std::uint64_t i = 0; i < each; ++i) {
        pending[me] = time.load() + 1;
        if (random() % 64 == 0) std::this_thread::yield();
        const std::uint64_t timestamp = time.fetch_add(1 + random() % 7) + 1;
        push(me, timestamp);
        pending[me] = ~std::uint64_t{0};
        if (random() % 4 == 0) {
          ASSERT_TRUE(persister.wait(timestamp).ok());
          ASSERT_GE(persister.durable(), timestamp);
        }
      }
    });
  for (auto& t : threads) t.join();
  ASSERT_TRUE(persister.wait(time.load()).ok());
  EXPECT_EQ(start + n * each, persister.recorded());
  const Stamps all = recorded_stamps(on->ring.head());
  EXPECT_EQ(n * each, all.size());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

}  // namespace
}  // namespace perdure::papers::dudetm::testing
