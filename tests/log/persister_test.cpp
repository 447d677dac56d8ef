// SPDX-License-Identifier: BSD-3-Clause
//
// Persister: every committed transaction once, in dense order, durable before it is said to be; one
// append for all who wait; promised room is there; a medium that fails is told to everybody.
#include <atomic>
#include <barrier>
#include <latch>
#include <map>
#include <thread>

#include "papers/dudetm/persister.hpp"
#include "perdure/log/packed.hpp"
#include "perdure/pool/size_classes.hpp"
#include "testing/faulty_medium.hpp"
#include "tests/log/suite.hpp"

namespace perdure::log::testing {

using papers::dudetm::Grouping;
using papers::dudetm::Persister;

namespace {

/// What a thread commits: one `words` entry that says whose it is.
std::vector<std::uint64_t> payload(std::uint64_t id, std::uint64_t n) {
  std::vector<std::uint64_t> p{entry_key(EntryKind::words, 64 * (id % 1000), n)};
  for (std::uint64_t i = 0; i < n; ++i) p.push_back(id * 1000 + i);
  if (p.size() % 2 != 0) p.push_back(0);
  return p;
}

struct PersisterTest : ::testing::Test {
  void start(std::uint64_t ring_bytes, int logs, std::uint64_t max_group = 1 << 20,
             std::size_t unit = 64) {
    on = std::make_unique<RingOnMedium>(ring_bytes, unit);
    persister.configure(on->ring, 0, max_group, unit);
    for (int i = 0; i < logs; ++i) {
      volatile_logs.push_back(std::make_unique<VolatileLog>(1 << 16));
      persister.add(i, *volatile_logs.back());
    }
  }
  /// A commit by thread `me`, in room reserved before: draws the id while nobody else does.
  std::uint64_t commit(int me, std::uint64_t n) {
    const std::lock_guard lock(clock_mutex);
    const std::uint64_t id = ++clock;
    const auto p = payload(id, n);
    push(me, id, p);
    return id;
  }
  void push(int me, std::uint64_t id, const std::vector<std::uint64_t>& p) {
    VolatileLog& log = *volatile_logs[static_cast<std::size_t>(me)];
    while (!log.fits(p.size())) std::this_thread::yield();
    log.prepare(p.size());
    log.push(id, p.data(), p.size());
  }
  static std::uint64_t words_of(std::uint64_t n) { return payload(1, n).size(); }

  std::unique_ptr<RingOnMedium> on;
  Persister persister;
  std::vector<std::unique_ptr<VolatileLog>> volatile_logs;
  std::mutex clock_mutex;
  std::uint64_t clock = 0;
};

TEST_F(PersisterTest, WritesEveryTransactionOnceInIdOrder) {
  start(64 << 20, 4);
  const std::uint64_t each = 3000 / scale;
  std::barrier begin(4);
  std::vector<std::thread> threads;
  for (int me = 0; me < 4; ++me)
    threads.emplace_back([&, me] {
      std::mt19937_64 random(static_cast<std::uint64_t>(me));
      begin.arrive_and_wait();
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t n = 1 + random() % 30;
        ASSERT_TRUE(persister.reserve(words_of(n)));
        const std::uint64_t id = commit(me, n);
        if (random() % 4 == 0) {
          ASSERT_TRUE(persister.wait(id).ok());
          ASSERT_GE(persister.durable(), id);
        }
      }
    });
  for (auto& t : threads) t.join();
  ASSERT_TRUE(persister.wait(clock).ok());
  EXPECT_EQ(4 * each, persister.durable());
  EXPECT_EQ(0U, persister.outstanding());
  EXPECT_EQ(Persister::Outcome::nothing, persister.step());
  std::uint64_t next = 0, records = 0;
  const Scan found = scan_ring(on->map, 0, on->seed, 64, "test", [&](const RecordView& r) {
    ++records;
    std::uint64_t transactions = 0, in_record = next;
    ASSERT_TRUE(each_entry(r.words + header_words, r.payload_words(), [&](const Entry& e) {
      if (e.kind == EntryKind::end) {
        ASSERT_EQ(in_record + 1, e.values[0]) << "LOGWRITER-2: ids without a gap";
        ++in_record;
        ++transactions;
      } else {
        const std::uint64_t id = in_record + 1;
        ASSERT_EQ(64 * (id % 1000), e.offset);
        for (std::uint64_t i = 0; i < e.count; ++i) ASSERT_EQ(id * 1000 + i, e.values[i]);
      }
    }));
    ASSERT_EQ(transactions, r.transactions());
    ASSERT_EQ(in_record, r.id());
    ASSERT_EQ(transactions == 1 ? RecordKind::commit : RecordKind::group, r.kind());
    next = in_record;
  });
  EXPECT_TRUE(found.damage.ok());
  EXPECT_EQ(4 * each, next);
  EXPECT_EQ(persister.groups(), records);
  EXPECT_EQ(records, on->medium->counters().fences) << "one fence a record";
}

TEST_F(PersisterTest, AnIdThatIsNotInItsLogYetIsWaitedFor) {
  start(1 << 20, 2);
  ASSERT_TRUE(persister.reserve(words_of(1)) && persister.reserve(words_of(1)));
  push(1, 2, payload(2, 1));  // 1 is drawn, its owner is slow
  EXPECT_EQ(Persister::Outcome::nothing, persister.step());
  EXPECT_EQ(0U, persister.durable());
  std::thread waiter([&] { EXPECT_TRUE(persister.wait(2).ok()); });
  push(0, 1, payload(1, 1));
  waiter.join();
  EXPECT_EQ(2U, persister.durable());
}

// The figure that group commit is for: while one append is at the medium 16 threads commit; the
// next append is one, for all of them.
TEST_F(PersisterTest, SixteenWaitersShareOneAppend) {
  start(1 << 20, 17, 1 << 20, 4096);
  std::atomic<bool> hold{true};
  std::atomic<int> fences{0}, in_fence{0};
  on->medium->set_fence_hooks(
      [&] {
        ++in_fence;
        while (hold) std::this_thread::yield();
      },
      [&] { ++fences; });
  std::latch committed(16);
  std::vector<std::thread> threads;
  const auto one = [&](int me, bool count) {
    ASSERT_TRUE(persister.reserve(words_of(4)));
    const std::uint64_t id = commit(me, 4);
    if (count) committed.count_down();
    ASSERT_TRUE(persister.wait(id).ok());
    ASSERT_GE(persister.durable(), id);
  };
  threads.emplace_back([&] { one(16, false); });
  while (in_fence == 0) std::this_thread::yield();
  for (int me = 0; me < 16; ++me) threads.emplace_back([&, me] { one(me, true); });
  committed.wait();
  EXPECT_EQ(0, fences);
  EXPECT_EQ(0U, persister.durable());
  hold = false;
  for (auto& t : threads) t.join();
  EXPECT_EQ(17U, persister.durable());
  EXPECT_EQ(2, fences) << "one for the first, exactly one for the sixteen";
  EXPECT_EQ(2U, on->medium->counters().fences);
  EXPECT_EQ(2U, persister.groups());
  on->medium->set_fence_hooks({}, {});
}

TEST_F(PersisterTest, AGroupIsBoundedAndALargeTransactionStandsAlone) {
  start(1 << 20, 1, 2048);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(persister.reserve(words_of(20)));
    commit(0, 20);
  }
  ASSERT_TRUE(persister.reserve(words_of(3000)));
  commit(0, 3000);
  while (persister.step() == Persister::Outcome::wrote) {}
  EXPECT_EQ(41U, persister.durable());
  scan_ring(on->map, 0, on->seed, 64, "test", [&](const RecordView& r) {
    EXPECT_TRUE(r.transactions() == 1 || r.bytes(64) <= 2048);
    EXPECT_TRUE(r.id() != 41 || r.transactions() == 1);
  });
}

TEST_F(PersisterTest, TheLargestTransactionFitsWithoutItsMark) {
  start(1 << 16, 1);
  // key and n words fill half the ring
  std::uint64_t n = on->ring.max_record() / 8 - header_words - 1;
  n -= n % 2 == 0 ? 1 : 0;
  ASSERT_EQ(on->ring.max_record() / 8,
            words_of(n) + header_words + (on->ring.max_record() / 8 - header_words) % 2);
  ASSERT_TRUE(persister.reserve(words_of(n)));
  commit(0, n);
  EXPECT_EQ(Persister::Outcome::wrote, persister.step());
  EXPECT_EQ(1U, persister.durable());
  EXPECT_EQ(0U, persister.outstanding());
  EXPECT_TRUE(scan(on->map, 0, on->seed).scan.damage.ok());
}

// What a combined record's words come to, its kind and transactions.
struct CombinedRecord {
  RecordKind kind;
  std::uint64_t id, transactions;
  std::map<std::uint64_t, std::uint64_t> words;
};

std::vector<CombinedRecord> combined_records(RingOnMedium& on) {
  std::vector<CombinedRecord> all;
  std::vector<std::uint64_t> scratch;
  const Scan found = scan_ring(on.map, 0, on.seed, 64, "test", [&](const RecordView& r) {
    CombinedRecord c{r.kind(), r.id(), r.transactions(), {}};
    const Payload payload = payload_of(r, on.map.bytes / 16, scratch);
    ASSERT_NE(nullptr, payload.words);
    ASSERT_TRUE(each_entry(payload.words, payload.n, [&](const Entry& e) {
      for (std::uint64_t i = 0; i < e.count; ++i) c.words[e.offset + i * 8] = e.values[i];
    }));
    all.push_back(std::move(c));
  });
  EXPECT_TRUE(found.damage.ok());
  return all;
}

TEST_F(PersisterTest, AGroupIsCombinedAndWrittenWhenItIsFullOrSomebodyWaits) {
  for (const bool compress : {false, true}) {
    volatile_logs.clear();
    clock = 0;
    Persister combining;
    on = std::make_unique<RingOnMedium>(1 << 20);
    combining.configure(on->ring, 0, 1 << 20, 64);
    combining.configure(Grouping{10, compress, 64 << 20, {}});
    VolatileLog log(1 << 16);
    combining.add(0, log);
    const auto commit_word = [&](std::uint64_t offset, std::uint64_t value) {
      const std::vector<std::uint64_t> p{entry_key(EntryKind::words, (40 << 20) + offset, 1),
                                         value};
      ASSERT_TRUE(combining.reserve(p.size()));
      log.prepare(p.size());
      log.push(++clock, p.data(), p.size());
    };
    for (std::uint64_t i = 0; i < 9; ++i) commit_word(8 * (i % 3), i);
    EXPECT_EQ(Persister::Outcome::gathered, combining.step(true));
    EXPECT_EQ(Persister::Outcome::nothing, combining.step(true));
    EXPECT_EQ(9U, combining.waiting());
    EXPECT_EQ(0U, combining.durable());
    EXPECT_GT(combining.outstanding(), 0U);
    commit_word(80, 9);
    EXPECT_EQ(Persister::Outcome::wrote, combining.step(true)) << "it is full";
    EXPECT_EQ(10U, combining.durable());
    EXPECT_EQ(0U, combining.outstanding());
    for (std::uint64_t i = 0; i < 25; ++i) commit_word(0, 100 + i);
    ASSERT_TRUE(combining.wait(clock - 3).ok());
    EXPECT_EQ(clock, combining.durable())
        << "somebody waited: the last group is written before it is full";
    const auto records = combined_records(*on);
    ASSERT_EQ(4U, records.size());
    const std::map<std::uint64_t, std::uint64_t> first{
        {40 << 20, 6}, {(40 << 20) + 8, 7}, {(40 << 20) + 16, 8}, {(40 << 20) + 80, 9}};
    EXPECT_EQ(first, records[0].words);
    EXPECT_EQ(10U, records[0].transactions);
    EXPECT_EQ(10U, records[0].id);
    EXPECT_EQ(5U, records[3].transactions);
    EXPECT_EQ(124U, records[3].words.at(40 << 20));
    EXPECT_EQ(4U, on->medium->counters().fences) << "one a group";
    EXPECT_EQ(35U * 16, combining.bytes_in());
    EXPECT_EQ(6U * 8 + 3 * 16, combining.bytes_combined())
        << "a run of three and a word; a word a group";
  }
}

// GROUP-1: an op of a span, and a word where its bitmap lies, of another time.
TEST_F(PersisterTest, AGroupEndsBeforeWhatDoesNotCommute) {
  start(1 << 20, 1);
  constexpr std::uint64_t data = 64 << 20, span = 48 << 20;
  persister.configure(Grouping{50, false, data, {}});
  const std::vector<std::uint64_t> word{entry_key(EntryKind::words, span, 1), 5},
      op{entry_key(EntryKind::alloc, span + pool::classes[0].first, 0), 0};
  for (const auto* p : {&word, &op, &op, &word}) {
    ASSERT_TRUE(persister.reserve(p->size()));
    push(0, ++clock, *p);
  }
  ASSERT_TRUE(persister.wait(4).ok());
  EXPECT_EQ(3U, persister.groups()) << "the word; the ops; the word";
}

TEST_F(PersisterTest, CompressesWhatIsWorthIt) {
  start(1 << 20, 1);
  persister.configure(Grouping{50, true, 64 << 20, {}});
  std::vector<std::uint64_t> p{entry_key(EntryKind::words, 40 << 20, 99)};
  p.resize(100);
  ASSERT_TRUE(persister.reserve(p.size()));
  push(0, ++clock, p);
  ASSERT_TRUE(persister.wait(1).ok());
  const std::uint64_t packed = persister.bytes_written();
  EXPECT_LT(packed, 100U);
  std::mt19937_64 random(4);
  for (std::size_t i = 1; i < p.size(); ++i) p[i] = random();
  ASSERT_TRUE(persister.reserve(p.size()));
  push(0, ++clock, p);
  ASSERT_TRUE(persister.wait(2).ok());
  EXPECT_EQ(packed + 800, persister.bytes_written());
  const auto records = combined_records(*on);
  ASSERT_EQ(2U, records.size());
  EXPECT_EQ(RecordKind::packed, records[0].kind);
  EXPECT_EQ(RecordKind::combined, records[1].kind);
  EXPECT_EQ(p[5], records[1].words.at((40 << 20) + 32));
  EXPECT_TRUE(persister.kept().take(0).size() == 100)
      << "what it says is kept for whoever applies it";
  EXPECT_TRUE(persister.kept().take(0).empty()) << "once";
}

// DudeTM-Inf: nobody promises room, the step that lacks it makes it.
TEST_F(PersisterTest, WithoutPromisesAStepWaitsForItsLogSpace) {
  start(16384, 1);
  std::uint64_t calls = 0;
  persister.configure(Grouping{0, false, 0, [&] {
                                 ++calls;
                                 on->ring.release(on->ring.tail());
                                 return Status();
                               }});
  ASSERT_FALSE(persister.promises());
  for (std::uint64_t i = 0; i < 2000; ++i) commit(0, 5);
  ASSERT_TRUE(persister.wait(2000).ok());
  EXPECT_GT(calls, 5U);
  EXPECT_EQ(0U, persister.outstanding());
}

TEST_F(PersisterTest, PromisedLogSpaceIsThereAndNoMoreIsPromised) {
  for (const std::size_t unit : {64UL, 4096UL}) {
    const std::uint64_t ring = unit == 64 ? 16384 : 1 << 20;
    volatile_logs.clear();
    clock = 0;
    Persister fresh;
    on = std::make_unique<RingOnMedium>(ring, unit);
    fresh.configure(on->ring, 0, 1 << 20, unit);
    VolatileLog log(1 << 16);
    fresh.add(0, log);
    std::mt19937_64 random(2);
    for (unsigned round = 0; round < 200 / scale + 5; ++round) {
      std::uint64_t promised = 0;
      for (;;) {  // until it says no
        const std::uint64_t n = 1 + random() % 60;
        if (!fresh.reserve(words_of(n))) break;
        ++promised;
        const auto p = payload(++clock, n);
        log.prepare(p.size());
        log.push(clock, p.data(), p.size());
      }
      EXPECT_GT(promised, 0U);
      EXPECT_GT(on->ring.used() + fresh.outstanding() + (62 + 5) * 8 + unit, ring)
          << "it said no with room to spare";
      while (fresh.step() == Persister::Outcome::wrote) ASSERT_LE(on->ring.used(), ring);
      EXPECT_EQ(clock, fresh.durable());
      EXPECT_EQ(0U, fresh.outstanding());
      const Found found = scan(on->map, on->ring.head(), on->seed, unit);
      ASSERT_TRUE(found.scan.damage.ok());
      ASSERT_EQ(clock, found.ids.back());
      on->ring.release(on->ring.tail());
    }
    EXPECT_TRUE(fresh.reserve(10));
    fresh.unreserve(10);
    EXPECT_EQ(0U, fresh.outstanding());
  }
}

TEST_F(PersisterTest, AFullRingNeverOverflowsUnderThreads) {
  start(32768, 3);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> worst{0};
  std::thread recycler([&] {  // what a checkpoint does
    while (!stop) {
      on->ring.release(on->ring.tail());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (int me = 0; me < 3; ++me)
    threads.emplace_back([&, me] {
      std::mt19937_64 random(static_cast<std::uint64_t>(me));
      for (unsigned i = 0; i < 4000 / scale; ++i) {
        const std::uint64_t n = 1 + random() % 400;
        while (!persister.reserve(words_of(n))) (void)persister.step();
        const std::uint64_t id = commit(me, n);
        if (i % 8 == 0) {
          ASSERT_TRUE(persister.wait(id).ok());
        }
        // head first: used is not overstated
        const std::uint64_t head = on->ring.head(), tail = on->ring.tail();
        if (tail > head)
          worst =
              std::max(worst.load(),
                       tail - head > on->ring.bytes() && on->ring.head() == head ? tail - head : 0);
      }
    });
  for (auto& t : threads) t.join();
  stop = true;
  recycler.join();
  ASSERT_TRUE(persister.wait(clock).ok());
  EXPECT_EQ(0U, worst);
  EXPECT_EQ(0U, persister.outstanding());
}

TEST_F(PersisterTest, AMediumThatFailsIsToldToEverybodyAndNothingMoreIsDurable) {
  RingOnMedium plain(1 << 16);
  auto faulty = std::make_unique<medium::FaultyMedium>(std::move(plain.medium));
  Ring ring;
  ring.configure(*faulty, faulty->map_ring(0, 1 << 16).value(), plain.seed);
  persister.configure(ring, 0, 1 << 20, 64);
  for (int i = 0; i < 4; ++i) {
    volatile_logs.push_back(std::make_unique<VolatileLog>(1 << 12));
    persister.add(i, *volatile_logs.back());
  }
  ASSERT_TRUE(persister.reserve(words_of(1)));
  ASSERT_TRUE(persister.wait(commit(0, 1)).ok());
  faulty->fail(medium::FaultyMedium::Call::fence, 1, EIO);
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int me = 0; me < 4; ++me)
    threads.emplace_back([&, me] {
      ASSERT_TRUE(persister.reserve(words_of(1)));
      const Status s = persister.wait(commit(me, 1));
      told += s.code() == Code::io ? 1 : 0;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(4, told);
  EXPECT_EQ(1U, persister.durable()) << "what was acknowledged stays, nothing more is";
  EXPECT_TRUE(persister.wait(1).ok());
  EXPECT_EQ(Persister::Outcome::nothing, persister.step());
  EXPECT_EQ(Code::io, persister.status().code());
}

}  // namespace
}  // namespace perdure::log::testing
