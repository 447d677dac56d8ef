// SPDX-License-Identifier: BSD-3-Clause
//
// Hardware transactions and their stand-in: serializable in the order of the timestamps, opaque,
// exclusive under the lock, which five failed attempts lead to; what an exception leaves; what
// complete() may report. The same tests run on RTM if the processor has it, and are otherwise
// skipped with the reason.
#include <cpuid.h>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/rtm.hpp"
#include "tests/tm/stamped.hpp"

namespace perdure::tm::testing {
namespace {

constexpr RtmStandIn::Limits often{64, 24, 40}, never{1 << 20, 1 << 20, 0};

template <class Hardware>
class Htms : public ::testing::Test {
 public:
  using M = Htm<Hardware>;
  void SetUp() override {
    if (const Status s = M::supported(); !s.ok()) GTEST_SKIP() << s.message();
    shared = std::make_unique<typename M::Shared>(100);
  }
  /// Transactions of the hardware tests must have run on the hardware: a suite that passes under
  /// the lock alone proves nothing about it.
  void TearDown() override {
    if (shared == nullptr) return;
    const std::uint64_t committed = elsewhere + shared->committed();
    std::printf("[          ] %s: %llu transactions committed without the lock\n", Hardware::name,
                static_cast<unsigned long long>(committed));
    EXPECT_GT(committed, 0U) << Hardware::name << ": every transaction ran under the lock";
  }
  std::unique_ptr<typename M::Shared> shared;
  std::uint64_t elsewhere = 0;  ///< committed by what a case made in addition to `shared`
};
using Both = ::testing::Types<Rtm, RtmStandIn>;
TYPED_TEST_SUITE(Htms, Both);

// Reads-from, overwrites and overwritten reads alike: when the history is replayed in the order of
// the timestamps, every read sees what it saw. A view has a place in it, too.
TYPED_TEST(Htms, HistoriesAreSerialInTheOrderOfTheTimestamps) {
  struct Shape {
    int threads, transactions;
    std::size_t words, most;
    double share;
  };
  for (const auto& limits : {RtmStandIn::Limits(), often, never}) {
    const WithLimits with(limits);
    for (const Shape& s : {Shape{2, 20000, 16, 6, 0.5}, Shape{4, 10000, 16, 4, 0.9},
                           Shape{3, 12000, 256, 12, 0.1}, Shape{4, 10000, 1024, 40, 0.5}}) {
      typename TestFixture::M::Shared fresh(100);
      EXPECT_EQ("", stamped_history<typename TestFixture::M>(
                        fresh, s.threads, s.transactions / static_cast<int>(scale) / 2, s.words,
                        s.most, s.share))
          << s.threads << " threads, " << s.words << " words";
      EXPECT_LE(fresh.last(), fresh.complete()) << "nobody is committing";
      this->elsewhere += fresh.committed();
    }
  }
}

TYPED_TEST(Htms, EveryRunningTransactionSeesOneState) {
  const WithLimits with(often);
  constexpr std::size_t n = 48;
  Words cells(n);
  for (std::size_t i = 0; i < n; ++i) cells[i] = i + 1;
  std::atomic<int> torn{0};
  in_threads(4, [&](int me) {
    typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me));
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      const std::size_t a = random() % n, b = random() % n;
      if (me < 2)
        atomically(transaction, true, [&](auto& tx) {
          const std::uint64_t x = tx[cells(a)], y = tx[cells(b)];
          if (a != b && x == y) ++torn;  // by a run that may yet abort: not even that is allowed
          tx.write(cells(a), y);
          tx.write(cells(b), x);
        });
      else
        atomically(transaction, me == 3, [&](auto& tx) {
          std::uint64_t seen = 0;
          for (std::size_t k = 0; k < n; ++k) seen += tx[cells(k)];
          if (seen != n * (n + 1) / 2) ++torn;
        });
    }
  });
  EXPECT_EQ(0, torn);
}

TYPED_TEST(Htms, AnExceptionPutsEveryWordBackAndDrawsNoTimestamp) {
  typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
  Words memory(64);
  for (std::size_t i = 0; i < 64; ++i) memory[i] = i;
  for (int round = 0; round < 20; ++round) {
    std::string said;
    try {
      atomically(transaction, true, [&](auto& tx) {
        for (std::size_t i = 0; i < 64; ++i) tx.write(memory(i), 7);
        throw std::runtime_error("made inside, and read outside of it");
      });
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    EXPECT_EQ("made inside, and read outside of it", said);
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(i, memory[i]);
    EXPECT_EQ(100U, this->shared->last());
  }
  const std::uint64_t id =
      atomically(transaction, true, [&](auto& tx) { tx.write(memory(0), 1); }).id;
  EXPECT_GT(id, 100U);
  EXPECT_EQ(id, this->shared->last());
  EXPECT_GT(atomically(transaction, false, [&](auto& tx) { EXPECT_EQ(1U, tx[memory(0)]); }).id, id)
      << "it bounds what was read";
  EXPECT_GT(
      atomically(transaction, true, [&](auto& tx) { tx.write(memory(0), tx[memory(0)] + 1); }).id,
      id);
  EXPECT_EQ(2U, memory[0]);
}

// A delayed thread keeps complete() below the timestamp that it will draw, from before the draw to
// the end of before_publish; also under the lock.
TYPED_TEST(Htms, CompleteStaysBelowACommitThatHasNotReturned) {
  for (const RtmStandIn::Limits& limits : {never, RtmStandIn::Limits{1 << 20, 0, 0}}) {
    const WithLimits with(limits);
    Words far(64);
    std::atomic<int> stage{0};
    std::atomic<std::uint64_t> timestamp{0};
    std::thread slow([&] {
      typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
      store_one(transaction, far(0), [&](std::uint64_t id) {
        timestamp = id;
        stage = 1;
        while (stage != 2) std::this_thread::yield();
      });
    });
    while (stage != 1) std::this_thread::yield();
    typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
    const std::uint64_t later =
        atomically(transaction, true, [&](auto& tx) { tx.write(far(0), tx[far(0)] + 1); }).id;
    EXPECT_EQ(2U, far[0]) << "isolation has ended";
    EXPECT_GT(later, timestamp);
    EXPECT_LT(this->shared->complete(), timestamp);
    EXPECT_EQ(later, this->shared->last());
    stage = 2;
    slow.join();
    EXPECT_GE(this->shared->complete(), later);
  }
}

TYPED_TEST(Htms, CompleteNeverPassesWhatIsStillToCome) {
  for (const RtmStandIn::Limits& limits : {never, often, RtmStandIn::Limits{1 << 20, 0, 0}}) {
    const WithLimits with(limits);
    Words cells(4 * 8);
    std::atomic<bool> stop{false};
    std::atomic<int> early{0};
    std::atomic<std::uint64_t> said{0};
    in_threads(4, [&](int me) {
      if (me == 3) {
        // And until the hardware has committed enough: beside other programs its transactions may
        // abort for as long as this thread runs alone.
        const unsigned enough = 200000 / scale;
        for (unsigned i = 0; i < enough || (i < 1000 * enough && this->shared->committed() < 1000);
             ++i)
          said = std::max(said.load(), this->shared->complete());
        stop = true;
        return;
      }
      typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
      while (!stop)
        store_one(transaction, cells(static_cast<std::size_t>(me) * 8), [&](std::uint64_t id) {
          if (said >= id) ++early;  // it is in no log yet
        });
    });
    EXPECT_EQ(0, early);
    EXPECT_GT(said, 100U);
  }
}

// TIMESTAMP-1: a reader that saw an old value has a time below the timestamp of the transaction
// that overwrote it. The writer stores to lines that the reader has just taken from it, so its
// stores wait in the store buffer when it draws its timestamp.
TYPED_TEST(Htms, AReaderOfAnOldValueIsBeforeTheTimestampThatOverwroteIt) {
  const WithLimits with(never);
  constexpr std::size_t lines = 8;
  const std::uint64_t rounds = 300000 / scale;
  struct Seen {
    std::uint64_t value, id;
  };
  Words cells(lines * 16);
  std::vector<Seen> wrote, read;
  wrote.reserve(rounds + 1);
  read.reserve(rounds);
  wrote.push_back({0, 0});
  std::atomic<bool> done{false};
  in_threads(2, [&](int me) {
    typename TestFixture::M::Transaction transaction(*this->shared, base::thread_slot());
    for (std::uint64_t i = 1; me == 0 && i <= rounds; ++i)
      wrote.push_back({i, atomically(transaction, true, [&](auto& tx) {
                            for (std::size_t line = lines; line-- > 0;)
                              tx.write(cells(line * 16), i);
                          }).id});
    if (me == 0) done = true;
    while (me == 1 && !done && read.size() < rounds) {
      std::uint64_t value = 0;
      const std::uint64_t id =
          atomically(transaction, false, [&](auto& tx) { value = tx[cells(0)]; }).id;
      read.push_back({value, id});
    }
  });
  std::uint64_t late = 0, early = 0;
  for (const Seen& r : read) {
    if (r.id < wrote[r.value].id) ++early;
    if (r.value + 1 < wrote.size() && r.id >= wrote[r.value + 1].id) ++late;
  }
  EXPECT_EQ(0U, late) << "read what was overwritten by a lower timestamp; of " << read.size();
  EXPECT_EQ(0U, early) << "read what a higher timestamp wrote";
  EXPECT_GT(read.size(), 0U);
}

/// A counter that seldom advances.
struct Slow {
  std::uint64_t operator()() const { return ++calls / 100; }
  static inline std::uint64_t calls = 0;
};

// TIMESTAMP-2: a thread that sees the end of a commit draws a later tick, although its slot is
// lower; also if the counter is coarse.
template <class Counter>
void timestamps_rise() {
  const StampClockOf<Counter> clock(7);
  std::uint64_t last = 7;
  for (unsigned i = 0; i < 100000 / scale; ++i) {
    const std::uint64_t id = clock.draw(i % 2 == 0 ? base::max_threads - 1 : 0);
    ASSERT_GT(id, last);
    last = id;
    ASSERT_GE(clock.now(), id);
  }
}
TEST(Timestamps, AreBelowTheTimeWhenTheyAreReturned) {
  timestamps_rise<Ticks>();
  timestamps_rise<Slow>();
}

// --- tries and the lock, on the stand-in, where aborts can be had on demand ----------------------

class StandIn : public ::testing::Test {
 public:
  using M = Htm<RtmStandIn>;
  M::Shared shared{0};
};

TEST_F(StandIn, FiveTriesThatDoNotFitLeadToTheLock) {
  const WithLimits with({16, 4, 0});
  M::Transaction transaction(shared, base::thread_slot());
  Words memory(256);
  Outcome done = atomically(transaction, true, [&](auto& tx) {
    for (std::size_t line = 0; line < 5; ++line) tx.write(memory(line * 8), line);
  });
  EXPECT_EQ(6, done.runs) << "five tries, then the lock";
  EXPECT_EQ(5U, shared.aborts(Abort::capacity));
  EXPECT_EQ(1U, shared.locked());
  done = atomically(transaction, true, [&](auto& tx) {
    for (std::size_t word = 0; word < 32; ++word) tx.write(memory(word), word);  // four lines
  });
  EXPECT_EQ(1, done.runs);
  done = atomically(transaction, false, [&](auto& tx) {
    for (std::size_t line = 0; line < 17; ++line) (void)tx[memory(line * 8)];
  });
  EXPECT_EQ(6, done.runs);
  EXPECT_EQ(2U, shared.locked());
}

TEST_F(StandIn, AbortsAtRandomAreTriedAgain) {
  const WithLimits with({1 << 20, 1 << 20, 10});
  M::Transaction transaction(shared, base::thread_slot());
  Words memory(8);
  for (int i = 0; i < 500; ++i)
    atomically(transaction, true, [&](auto& tx) {
      for (std::size_t k = 0; k < 4; ++k) tx.write(memory(k), tx[memory(k)] + 1);
    });
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(500U, memory[k]);
  EXPECT_GT(shared.aborts(Abort::other), 200U);
  EXPECT_GT(shared.locked(), 5U);
  EXPECT_LT(shared.locked(), 250U);
}

// The lock is in every hardware transaction's read set: a thread that takes it aborts them, and
// what they see meanwhile is none of its stores. This is not a failed attempt.
TEST_F(StandIn, WhoTakesTheLockAbortsTries) {
  const WithLimits with({64, 1, 0});
  Words memory(64);
  M::Transaction transaction(shared, base::thread_slot());
  for (unsigned round = 1; round <= M::max_tries + 1; ++round) {
    std::atomic<int> stage{0};
    transaction.begin(true);
    EXPECT_EQ(round - 1, transaction.read(memory(0)));
    ASSERT_FALSE(transaction.direct()) << round;
    std::thread holder([&] {
      M::Transaction other(shared, base::thread_slot());
      atomically(other, true, [&](auto& tx) {
        tx.write(memory(0), round);
        // Too much for a hardware transaction.
        if (!tx.transaction().direct()) return tx.write(memory(8), round);
        stage = 1;
        while (stage != 2) std::this_thread::yield();
        tx.write(memory(8), round);
      });
    });
    while (stage != 1) std::this_thread::yield();
    EXPECT_THROW((void)transaction.read(memory(8)), Conflict);
    transaction.rollback();
    EXPECT_EQ(round, shared.aborts(Abort::lock_held));
    stage = 2;
    holder.join();
  }
  EXPECT_EQ(1, atomically(transaction, true, [&](auto& tx) {
                 EXPECT_EQ(tx[memory(0)], tx[memory(8)]);
               }).runs);
}

TEST_F(StandIn, WhoSwallowsAConflictIsToldAgain) {
  const WithLimits with({2, 4, 0});
  M::Transaction transaction(shared, base::thread_slot());
  Words memory(64);
  const auto fail = [&] {
    transaction.begin(true);
    for (std::size_t line = 0; line < 2; ++line) EXPECT_EQ(0U, transaction.read(memory(line * 8)));
    EXPECT_THROW((void)transaction.read(memory(16)), Conflict);
  };
  fail();
  EXPECT_THROW((void)transaction.read(memory(0)), Conflict);
  EXPECT_THROW(transaction.commit([](std::uint64_t) { FAIL(); }), Conflict);
  transaction.rollback();
  fail();
  EXPECT_THROW(transaction.end_read_only(), Conflict);
  transaction.rollback();
  EXPECT_EQ(0U, shared.last());
}

TEST_F(StandIn, AHolderThatThrowsPutsBackAndLetsGo) {
  const WithLimits with({64, 1, 0});
  Words memory(64);
  M::Transaction transaction(shared, base::thread_slot());
  EXPECT_THROW(atomically(transaction, true,
                          [&](auto& tx) {
                            tx.write(memory(0), 1);
                            tx.write(memory(8), 1);
                            EXPECT_EQ(1U, memory[8]) << "under the lock stores go to memory";
                            throw Cancelled();
                          }),
               Cancelled);
  EXPECT_EQ(0U, memory[0] + memory[8]);
  EXPECT_EQ(1U, shared.locked());
  EXPECT_FALSE(shared.held);
  atomically(transaction, true, [&](auto& tx) {
    EXPECT_FALSE(tx.transaction().direct()) << "the next one has its tries";
    tx.write(memory(0), 1);
  });
}

// --- the hardware --------------------------------------------------------------------------------

TEST(RtmHere, IsWhatCpuidSays) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool leaf7 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
  const bool rtm = leaf7 && (b >> 11 & 1) != 0, aborts = leaf7 && (d >> 11 & 1) != 0;
  const bool tsc = __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
  const Status s = base::rtm::support();
  if (!rtm || aborts || !tsc) {
    EXPECT_EQ(Code::unsupported, s.code());
  }
  if (rtm && !aborts && tsc && !under_thread_sanitizer) {
    EXPECT_TRUE(s.ok()) << "the processor says that it has RTM: " << s.message();
  }
  if (!rtm) {
    EXPECT_NE(std::string::npos, s.message().find("without RTM")) << s.message();
  }
  EXPECT_EQ(s.ok(), Htm<Rtm>::supported().ok());
  EXPECT_TRUE(Htm<RtmStandIn>::supported().ok());
}

TEST(RtmHere, CausesOfAborts) {
  using base::rtm::by_abort, base::rtm::by_capacity, base::rtm::by_conflict, base::rtm::may_succeed;
  EXPECT_EQ(Abort::lock_held, Rtm::Try::cause_of(by_abort | may_succeed | 1U << 24));
  EXPECT_EQ(Abort::not_here, Rtm::Try::cause_of(by_abort | 2U << 24));
  EXPECT_EQ(Abort::capacity, Rtm::Try::cause_of(by_capacity));
  EXPECT_EQ(Abort::conflict, Rtm::Try::cause_of(by_conflict | may_succeed));
  EXPECT_EQ(Abort::other, Rtm::Try::cause_of(0));
}

// What no abort can undo ends the hardware transaction, and the transaction runs under the lock.
TEST(RtmHere, AFenceIsNeverSpeculative) {
  if (const Status s = base::rtm::support(); !s.ok()) GTEST_SKIP() << s.message();
  auto shared = std::make_unique<Htm<Rtm>::Shared>(0);
  Htm<Rtm>::Transaction transaction(*shared, base::thread_slot());
  Words memory(8);
  atomically(transaction, true, [&](auto& tx) {
    tx.write(memory(0), 1);
    base::store_fence();
    EXPECT_FALSE(base::rtm::inside());
  });
  EXPECT_EQ(1U, memory[0]);
  EXPECT_EQ(1U, shared->locked());
  EXPECT_EQ(1U, shared->aborts(Abort::not_here));
}

}  // namespace
}  // namespace perdure::tm::testing
