// SPDX-License-Identifier: BSD-3-Clause
//
// What only stm and biased have: the irrevocable mode, incarnations, and the fences of Dekker's
// pattern in both variants. bias_test.cpp has the bias.
#include <chrono>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "tests/tm/other.hpp"
#include "tests/tm/suite.hpp"

namespace perdure::tm::testing {
namespace {

using namespace std::chrono_literals;

template <class M>
class Irrevocable : public ::testing::Test {
 public:
  std::unique_ptr<OrecShared> shared = std::make_unique<OrecShared>(0);
  Words memory{64};
  static void fail(typename M::Transaction& c) {
    for (std::uint32_t i = 0; i < M::irrevocable_after; ++i) {
      c.begin(true);
      c.rollback();
      c.backoff();
    }
  }
};
using Orecs = ::testing::Types<Stm, Biased>;
TYPED_TEST_SUITE(Irrevocable, Orecs);

TYPED_TEST(Irrevocable, AfterManyFailuresATransactionRunsAloneAndOnce) {
  using Transaction = typename TypeParam::Transaction;
  Transaction me(*this->shared, base::thread_slot());
  Other<TypeParam> other(*this->shared);
  other.run([&](Transaction& c) {
    atomically(c, true, [&](auto& tx) { tx.write(this->memory(0), 1); });
  });
  this->fail(me);
  me.begin(true);
  ASSERT_TRUE(me.direct());
  std::atomic<bool> in{false};
  other.start([&](Transaction& c) {
    atomically(c, true, [&](auto& tx) {
      in = true;
      tx.write(this->memory(0), tx[this->memory(0)] + 10);
    });
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(in);
  me.own(this->memory(0));
  me.store(this->memory(0), me.read(this->memory(0)) + 1);
  std::uint64_t id = 0;
  me.commit([&](std::uint64_t drawn) { id = drawn; });
  EXPECT_EQ(2U, id);
  other.wait();
  EXPECT_EQ(12U, this->memory[0]);
  me.begin(true);
  EXPECT_FALSE(me.direct()) << "it was for one transaction";
  me.end_read_only();
}

TYPED_TEST(Irrevocable, ARollbackLetsTheOthersIn) {
  using Transaction = typename TypeParam::Transaction;
  Transaction me(*this->shared, base::thread_slot());
  Other<TypeParam> other(*this->shared);
  this->fail(me);
  me.begin(true);
  ASSERT_TRUE(me.direct());
  me.own(this->memory(0));
  me.store(this->memory(0), 5);
  me.rollback();
  other.run([&](Transaction& c) {
    atomically(c, true, [&](auto& tx) { tx.write(this->memory(0), tx[this->memory(0)] + 1); });
  });
  EXPECT_EQ(1U, this->memory[0]);
}

// A transaction that failed often, ran irrevocably and found no log space makes a checkpoint: its
// copying is not a transaction.
TYPED_TEST(Irrevocable, CopyingAfterManyFailuresKeepsNobodyOut) {
  using Transaction = typename TypeParam::Transaction;
  auto me = std::make_unique<Transaction>(*this->shared, base::thread_slot());
  Other<TypeParam> other(*this->shared);
  this->fail(*me);
  me->copy_begin();
  std::uint64_t line[8];
  me->copy_line(line, this->memory(0));
  me->copy_end();
  ASSERT_TRUE(this->shared->change.try_lock())
      << "copying went on holding what keeps every other thread out";
  this->shared->change.unlock();
  other.run([&](Transaction& c) {
    atomically(c, true, [&](auto& tx) { tx.write(this->memory(0), 1); });
  });
  EXPECT_EQ(2U, atomically(*me, true, [&](auto& tx) { tx.write(this->memory(1), 1); }).id);
}

// A lambda that catches every exception itself does not make a conflicting transaction commit.
TYPED_TEST(Irrevocable, ASwallowedConflictIsThrownAgainAtTheEnd) {
  using Transaction = typename TypeParam::Transaction;
  Transaction me(*this->shared, base::thread_slot());
  Other<TypeParam> other(*this->shared);
  other.run([&](Transaction& c) {
    atomically(c, true, [&](auto& tx) { tx.write(this->memory(32), 1); });
  });
  // Not biased from here on.
  atomically(me, true, [&](auto& tx) { tx.write(this->memory(40), 1); });
  for (const bool update : {true, false}) {
    std::atomic<int> stage{0};
    other.start([&](Transaction& c) {
      c.begin(true);
      c.own(this->memory(0));
      c.store(this->memory(0), 5);
      stage = 1;
      while (stage != 2) std::this_thread::yield();
      c.rollback();
    });
    while (stage != 1) std::this_thread::yield();
    me.begin(update);
    ASSERT_FALSE(me.direct());
    EXPECT_THROW((void)me.read(this->memory(0)), Conflict);  // another thread owns it for too long
    stage = 2;
    other.wait();
    if (update) {
      EXPECT_THROW(
          {
            me.own(this->memory(8));
            me.store(this->memory(8), 1);
            me.commit([](std::uint64_t) {});
          },
          Conflict);
    } else {
      EXPECT_THROW((void)me.end_read_only(), Conflict);
    }
    me.rollback();
    EXPECT_EQ(0U, this->memory[8]);
  }
  EXPECT_EQ(3U, atomically(me, true, [&](auto& tx) { tx.write(this->memory(8), 1); }).id);
}

TEST(Incarnations, RunOutWithoutAnIdSpentOrADirtyWordSeen) {
  auto shared = std::make_unique<OrecShared>(0);
  Words memory(16);
  Stm::Transaction me(*shared, base::thread_slot());
  atomically(me, true, [&](auto& tx) { tx.write(memory(0), 7); });
  std::atomic<bool> stop{false};
  std::atomic<int> dirty{0};
  std::thread reader([&] {
    Stm::Transaction c(*shared, base::thread_slot());
    while (!stop) atomically(c, false, [&](auto& tx) { dirty += tx[memory(0)] == 7 ? 0 : 1; });
  });
  const std::uint64_t aborts = 2 * (orec::incarnations + 10);
  for (std::uint64_t i = 0; i < aborts; ++i) {
    try {
      atomically(me, true, [&](auto& tx) {
        tx.write(memory(0), 8);
        throw Cancelled();
      });
    } catch (const Cancelled&) {}
    const std::uint64_t v = shared->of(memory(0)).load();
    ASSERT_FALSE(orec::owned(v));
    ASSERT_LE(orec::version(v), shared->domain.clock.load())
        << "a version from the future would abort every reader until it comes";
  }
  stop = true;
  reader.join();
  EXPECT_EQ(0, dirty);
  EXPECT_EQ(1U, shared->domain.clock.load());
  EXPECT_EQ(2U, atomically(me, true, [&](auto& tx) { tx.write(memory(0), tx[memory(0)] + 1); }).id);
  EXPECT_EQ(8U, memory[0]);
}

// An abort in between does not make an older reader's words newer: only values count.
TEST(Incarnations, OfAnAbortedWriterDoNotAbortAReaderBeforeIt) {
  auto shared = std::make_unique<OrecShared>(0);
  Words memory(16);
  Stm::Transaction me(*shared, base::thread_slot());
  Other<Stm> other(*shared);
  me.begin(true);
  EXPECT_EQ(0U, me.read(memory(0)));
  other.run([&](Stm::Transaction& c) {
    c.begin(true);
    c.own(memory(0));
    c.store(memory(0), 9);
    c.rollback();
  });
  EXPECT_EQ(0U, me.read(memory(0)));
  me.own(memory(8));
  me.store(memory(8), 1);
  std::uint64_t id = 0;
  EXPECT_NO_THROW(me.commit([&](std::uint64_t drawn) { id = drawn; }));
  EXPECT_EQ(1U, id);
}

/// The frequent side's fence is a full one, as where membarrier(2) is missing.
struct Fallback : ::testing::Test {
  void SetUp() override {
    prepare_asymmetric_fence();
    worked_ = detail::membarrier_works.exchange(false);
  }
  void TearDown() override { detail::membarrier_works = worked_; }
  bool worked_ = false;
};

TEST_F(Fallback, BiasedIsSerialWithoutMembarrier) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    auto shared = std::make_unique<OrecShared>(0);
    detail::membarrier_works = false;  // a new domain calls it again, but it is registered once
    EXPECT_EQ("", random_history<Biased>(2, 6000 / static_cast<int>(scale), 16, 4,
                                         seed == 0 ? 0.01 : 0.5, seed, *shared));
    EXPECT_FALSE(detail::membarrier_works.load());
  }
}

TEST_F(Fallback, BiasMovesBackAndForthWithoutMembarrier) {
  auto shared = std::make_unique<OrecShared>(0);
  detail::membarrier_works = false;
  Words memory(2);
  // Long runs by each thread in turn: each gets the bias, the other one revokes it.
  const unsigned rounds = 20, run = 2500 / scale + 2000;
  in_threads(2, [&](int) {
    Biased::Transaction c(*shared, base::thread_slot());
    for (unsigned r = 0; r < rounds; ++r) {
      for (unsigned i = 0; i < run; ++i)
        atomically(c, true, [&](auto& tx) { tx.write(memory(0), tx[memory(0)] + 1); });
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_EQ(2ULL * rounds * run, memory[0]);
}

TEST_F(Fallback, NonesGateKeepsTransactionsOutOfACopy) {
  auto shared = std::make_unique<None::Shared>(0);
  detail::membarrier_works = false;
  Words memory(16);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    None::Transaction c(*shared, base::thread_slot());
    for (std::uint64_t v = 1; !stop; ++v)
      atomically(c, true, [&](auto& tx) {
        tx.write(memory(0), v);
        tx.write(memory(8), v);
      });
  });
  None::Transaction c(*shared, base::thread_slot());
  int torn = 0;
  for (unsigned i = 0; i < 3000 / scale; ++i) {
    std::uint64_t a[8], b[8];
    c.copy_begin();
    c.copy_line(a, memory(0));
    c.copy_line(b, memory(8));
    c.copy_end();
    torn += a[0] == b[0] ? 0 : 1;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(0, torn);
}

TEST(None, TransactionsOnDifferentWordsRunTogetherAndDrawDenseIds) {
  auto shared = std::make_unique<None::Shared>(0);
  Words memory(32);
  const unsigned each = 20000 / scale;
  std::vector<std::vector<std::uint64_t>> ids(4);
  in_threads(4, [&](int me) {
    None::Transaction c(*shared, base::thread_slot());
    const auto w = static_cast<std::size_t>(me);  // one line: only the words are their own
    for (unsigned i = 0; i < each; ++i)
      ids[w].push_back(
          atomically(c, true, [&](auto& tx) { tx.write(memory(w), tx[memory(w)] + 1); }).id);
  });
  std::vector<std::uint64_t> all;
  for (std::size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(each, memory[w]);
    EXPECT_TRUE(std::is_sorted(ids[w].begin(), ids[w].end()));
    all.insert(all.end(), ids[w].begin(), ids[w].end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(i + 1, all[i]);
}

}  // namespace
}  // namespace perdure::tm::testing
