// SPDX-License-Identifier: BSD-3-Clause
//
// Bias: how a thread gets it and loses it, and the grants of direct views (GRANT-1).
#include <chrono>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "tests/tm/other.hpp"
#include "tests/tm/suite.hpp"

namespace perdure::tm::testing {
namespace {

using namespace std::chrono_literals;

struct BiasTest : ::testing::Test {
  using Transaction = Biased::Transaction;
  std::unique_ptr<OrecShared> shared = std::make_unique<OrecShared>(0);
  Words memory{64};
  std::uint64_t mine() const { return static_cast<std::uint64_t>(base::thread_slot()) + 1; }
  void write(Transaction& c, std::size_t w) {
    atomically(c, true, [&](auto& tx) { tx.write(memory(w), tx[memory(w)] + 1); });
  }
  std::uint64_t read(Transaction& c, std::size_t w) {
    std::uint64_t v = 0;
    atomically(c, false, [&](auto& tx) { v = tx[memory(w)]; });
    return v;
  }
  bool direct(Transaction& c, bool update) {
    c.begin(update);
    const bool was = c.direct();
    c.end_read_only();
    return was;
  }
};

TEST_F(BiasTest, TheFirstThreadHasItFromTheStart) {
  Transaction me(*shared, base::thread_slot());
  EXPECT_EQ(mine(), shared->bias);
  EXPECT_TRUE(direct(me, true));
  EXPECT_TRUE(direct(me, false));
}

struct GrantTest : BiasTest {
  void SetUp() override {
    if (!asymmetric_fence_works() && !under_thread_sanitizer)
      GTEST_SKIP() << "no membarrier: no view is direct";
  }
};

// Whether a direct view begins; ends it.
bool views_directly(Biased::Transaction& c) {
  if (!c.try_direct_view()) return false;
  EXPECT_TRUE(c.direct() && c.is_active());
  EXPECT_FALSE(c.try_direct_view()) << "a view within it is one with it";
  c.end_direct_view();
  EXPECT_FALSE(c.is_active());
  return true;
}

// GRANT-1.
TEST_F(GrantTest, ADirectViewNeedsOne) {
  Transaction me(*shared, base::thread_slot());
  EXPECT_TRUE(views_directly(me)) << "it has the bias";
  Other<Biased> other(*shared);
  other.run([](Transaction& c) { EXPECT_FALSE(views_directly(c)); });
  shared->set_bias(base::thread_slot(), OrecShared::bias_none);
  EXPECT_FALSE(views_directly(me)) << "the change took its grant back";
  shared->set_bias(base::thread_slot(), OrecShared::bias_shared);
  EXPECT_TRUE(views_directly(me));
  other.run([&](Transaction& c) {
    EXPECT_TRUE(views_directly(c));
    EXPECT_TRUE(direct(c, false));
  });
  Other<Biased> late(*shared);
  late.run([&](Transaction& c) {
    EXPECT_FALSE(views_directly(c)) << "it had no slot when the bias was given";
    EXPECT_TRUE(direct(c, false)) << "its first view asks for a grant";
    EXPECT_TRUE(views_directly(c));
  });
  EXPECT_EQ(4U, shared->domain.direct_views());
  // An update by another thread ends all of them, an irrevocable one too.
  other.run([&](Transaction& c) { write(c, 0); });
  EXPECT_FALSE(views_directly(me));
  late.run([](Transaction& c) { EXPECT_FALSE(views_directly(c)); });
}

TEST_F(GrantTest, APoolThatRefusesGivesNone) {
  Transaction me(*shared, base::thread_slot());
  EXPECT_TRUE(views_directly(me));
  shared->domain.refuse_grants();
  EXPECT_FALSE(views_directly(me));
  shared->set_bias(base::thread_slot(), OrecShared::bias_shared);
  EXPECT_FALSE(views_directly(me));
  EXPECT_TRUE(direct(me, false)) << "a transaction begins as before";
  Other<Biased> late(*shared);
  late.run([&](Transaction& c) {
    EXPECT_TRUE(direct(c, false));
    EXPECT_FALSE(views_directly(c));
  });
}

TEST_F(BiasTest, AnUpdateByASecondThreadRevokesIt) {
  Transaction me(*shared, base::thread_slot());
  write(me, 0);
  Other<Biased> other(*shared);
  EXPECT_EQ(mine(), shared->bias) << "a transaction alone revokes nothing";
  other.run([&](Transaction& c) {
    write(c, 0);
    EXPECT_FALSE(direct(c, true));
  });
  EXPECT_EQ(OrecShared::bias_none, shared->bias);
  EXPECT_EQ(1U, shared->revocations);
  EXPECT_FALSE(direct(me, true));
  EXPECT_EQ(2U, read(me, 0));
}

TEST_F(BiasTest, AViewByASecondThreadRevokesItToo) {
  Transaction me(*shared, base::thread_slot());
  write(me, 0);
  Other<Biased> other(*shared);
  other.run([&](Transaction& c) { EXPECT_EQ(1U, read(c, 0)); });
  EXPECT_EQ(OrecShared::bias_none, shared->bias);
}

TEST_F(BiasTest, ARevokerWaitsForTheTransactionInProgress) {
  Transaction me(*shared, base::thread_slot());
  write(me, 1);
  Other<Biased> other(*shared);
  me.begin(true);
  ASSERT_TRUE(me.direct());
  me.own(memory(0));
  me.store(memory(0), 5);
  std::atomic<std::uint64_t> seen{99};
  other.start([&](Transaction& c) { seen = read(c, 0); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(99U, seen) << "a plain store was there to be seen before its transaction ended";
  me.rollback();
  other.wait();
  EXPECT_EQ(0U, seen);
}

TEST_F(BiasTest, AThreadAloneForAWhileGetsItBack) {
  Transaction me(*shared, base::thread_slot());
  {
    Other<Biased> other(*shared);
    other.run([&](Transaction& c) { write(c, 0); });
    for (int i = 0; i < 4000; ++i) write(me, 1);
    EXPECT_EQ(mine(), shared->bias);
    EXPECT_TRUE(direct(me, true));
    other.run([&](Transaction& c) { EXPECT_EQ(4000U, read(c, 1)); });
    EXPECT_EQ(OrecShared::bias_none, shared->bias);
  }
  EXPECT_EQ(2U, shared->revocations);
}

// What is stored under bias gets no version, so an update that begins at its thread's last id does
// not notice that it is newer. Its result must not be acknowledged before that is durable.
TEST_F(BiasTest, AnUpdateThatOnlyReadsIsBoundedByWhatWasStoredUnderBias) {
  Transaction me(*shared, base::thread_slot());
  Other<Biased> other(*shared), revoker(*shared);
  other.run([&](Transaction& c) { write(c, 1); });
  shared->set_bias(base::thread_slot(), mine());
  write(me, 0);
  ASSERT_TRUE(direct(me, true));
  const std::uint64_t stored = shared->domain.clock;
  revoker.run([&](Transaction& c) { EXPECT_FALSE(direct(c, true)); });
  other.run([&](Transaction& c) {
    c.begin(true);
    EXPECT_EQ(1U, c.read(memory(0)));
    EXPECT_LE(stored, c.end_read_only());
  });
}

// A thread that ends a transaction may hold a lock, such as a ring's, for which another one waits
// inside its transaction: an end that waited for `change`, or for others to end, could wait for
// ever.
TEST_F(BiasTest, AnEndWaitsForNobody) {
  Transaction me(*shared, base::thread_slot());
  Other<Biased> other(*shared);
  other.run([&](Transaction& c) { write(c, 0); });
  bool waited = false;
  for (int i = 0; i < 2500 && !waited; ++i) {
    std::atomic<int> stage{0};
    me.begin(true);
    if (me.direct()) break;
    me.own(memory(1));
    me.store(memory(1), 1);
    me.commit([&](std::uint64_t) {
      other.start([&](Transaction&) {
        const std::lock_guard lock(shared->change);
        stage = 1;
        const auto start = std::chrono::steady_clock::now();
        while (stage != 2 && !waited) {
          std::this_thread::yield();
          waited = std::chrono::steady_clock::now() - start > 5s;
        }
      });
      while (stage != 1) std::this_thread::yield();
    });
    stage = 2;
    other.wait();
  }
  EXPECT_FALSE(waited);
  EXPECT_EQ(mine(), shared->bias) << "the bias came back at a begin";
}

TEST_F(BiasTest, ReadersShareItUntilAWriterComes) {
  Transaction me(*shared, base::thread_slot());
  Other<Biased> other(*shared);
  other.run([&](Transaction& c) { write(c, 0); });
  for (int i = 0; i < 4000; ++i) {
    read(me, 0);
    if (i % 100 == 0) other.run([&](Transaction& c) { EXPECT_EQ(1U, read(c, 0)); });
  }
  EXPECT_EQ(OrecShared::bias_shared, shared->bias);
  EXPECT_TRUE(direct(me, false));
  other.run([&](Transaction& c) { EXPECT_TRUE(direct(c, false)); });
  EXPECT_EQ(OrecShared::bias_shared, shared->bias);

  me.begin(false);  // a writer waits for the readers that are inside
  ASSERT_TRUE(me.direct());
  EXPECT_EQ(1U, me.read(memory(0)));
  other.start([&](Transaction& c) { write(c, 0); });
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(other.busy());
  EXPECT_EQ(1U, me.read(memory(0)));
  EXPECT_EQ(1U, me.end_read_only());
  other.wait();
  EXPECT_EQ(OrecShared::bias_none, shared->bias);
  EXPECT_EQ(2U, read(me, 0));
}

}  // namespace
}  // namespace perdure::tm::testing
