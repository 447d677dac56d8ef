// SPDX-License-Identifier: BSD-3-Clause
//
// A thread that waits for another one's transaction is blocked in the kernel until that transaction
// has ended, whatever isolates them and whichever of the two is an update: the test sees it
// blocked, and not running at all, while the other transaction is held open. And every such thread
// is woken.
#include <sys/syscall.h>

#include "perdure/tm/asymmetric.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "tests/support/asleep.hpp"
#include "tests/tm/other.hpp"
#include "tests/tm/stamped.hpp"

namespace perdure::tm::testing {
namespace {

template <class T>
class Waiting : public ::testing::Test {
 public:
  using M = T;
  using Transaction = typename M::Transaction;
  void SetUp() override {
    if constexpr (has_timestamps<M>) {
      if (const Status s = M::supported(); !s.ok()) GTEST_SKIP() << s.message();
    }
    shared = std::make_unique<typename M::Shared>(100);
  }

  /// Runs f() while a transaction of `c` is open for which others may have to wait. No hardware
  /// transaction survives a system call, nor does one of the stand-in survive a read within
  /// `no_lines`: such a transaction holds the lock here.
  template <class F>
  void hold(Transaction& c, bool update, F&& f) {
    atomically(c, update, [&](auto& tx) {
      ::syscall(SYS_getppid);
      const std::uint64_t was = tx[memory(0)];
      if (update) tx.write(memory(0), was + 1);
      f();
    });
  }
  /// An update that waits for every open transaction. With `none` the caller isolates, and only a
  /// copy waits.
  void update(Transaction& c) {
    if constexpr (!M::isolates) return copy(c);
    if constexpr (std::is_same_v<M, Stm>) {
      // From then on it runs exclusively.
      for (std::uint32_t i = 0; i < M::irrevocable_after; ++i) {
        c.begin(true);
        c.rollback();
        c.backoff();
      }
    }
    atomically(c, true, [&](auto& tx) { tx.write(memory(8), tx[memory(8)] + 1); });
  }
  void view(Transaction& c) {
    atomically(c, false, [&](auto& tx) { (void)tx[memory(0)]; });
  }
  void copy(Transaction& c) {
    std::uint64_t line[8];
    c.copy_begin();
    c.copy_line(line, memory(0));
    c.copy_end();
  }
  static bool sleeps(const Other<M>& other) {
    return test::falls_asleep(other.id(), [&] { return !other.busy(); });
  }

  const WithLimits no_lines{{.lines_read = 0, .lines_written = 0, .abort_one_in = 0}};
  std::unique_ptr<typename M::Shared> shared;
  Words memory{64};
};
using All = ::testing::Types<Stm, Biased, GlobalLock, None, Htm<RtmStandIn>, Htm<Rtm>>;
TYPED_TEST_SUITE(Waiting, All);

TYPED_TEST(Waiting, AnUpdateBehindALongViewAndAViewBehindBothSleep) {
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  Other<TypeParam> writer(*this->shared), reader(*this->shared);
  this->hold(me, false, [&] {
    writer.start([&](auto& c) { this->update(c); });
    ASSERT_TRUE(this->sleeps(writer)) << "the update ran on, or waited without being blocked";
    reader.start([&](auto& c) { this->view(c); });
    ASSERT_TRUE(this->sleeps(reader)) << "the view ran on, or waited without being blocked";
    ASSERT_TRUE(this->sleeps(writer)) << "the view behind it woke the update";
  });
  writer.wait();
  reader.wait();
}

TYPED_TEST(Waiting, AnUpdateAndAViewBehindALongUpdateSleep) {
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  Other<TypeParam> writer(*this->shared), reader(*this->shared);
  this->hold(me, true, [&] {
    writer.start([&](auto& c) { this->update(c); });
    ASSERT_TRUE(this->sleeps(writer)) << "the update ran on, or waited without being blocked";
    reader.start([&](auto& c) { this->view(c); });
    ASSERT_TRUE(this->sleeps(reader)) << "the view ran on, or waited without being blocked";
  });
  writer.wait();
  reader.wait();
  EXPECT_EQ(1U, this->memory[0]);
}

TYPED_TEST(Waiting, AViewThatMeetsWhatALongUpdateStoredSleeps) {
  if constexpr (!TypeParam::isolates) GTEST_SKIP() << "the caller isolates";
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  Other<TypeParam> reader(*this->shared);
  this->hold(me, true, [&] {
    reader.start([&](auto& c) { this->view(c); });
    ASSERT_TRUE(this->sleeps(reader)) << "the view ran on, or waited without being blocked";
  });
  reader.wait();
}

// What a checkpoint does.
TYPED_TEST(Waiting, ACopyOfWhatALongUpdateStoredSleeps) {
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  Other<TypeParam> copier(*this->shared);
  this->hold(me, true, [&] {
    copier.start([&](auto& c) { this->copy(c); });
    ASSERT_TRUE(this->sleeps(copier)) << "the copy ran on, or waited without being blocked";
  });
  copier.wait();
}

TYPED_TEST(Waiting, AllThatWaitForOneAreWoken) {
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  std::vector<std::unique_ptr<Other<TypeParam>>> others;
  for (int i = 0; i < 4; ++i) others.push_back(std::make_unique<Other<TypeParam>>(*this->shared));
  for (int round = 0; round < 3; ++round) {
    this->hold(me, round % 2 == 0, [&] {
      for (std::size_t i = 0; i < others.size(); ++i)
        others[i]->start([&, i](auto& c) { i == 0 ? this->copy(c) : this->update(c); });
      if (round % 2 == 0) {
        ASSERT_TRUE(this->sleeps(*others[0]));
      }
    });
    for (auto& other : others) other->wait();
  }
}

/// Transactions of a few to a few thousand turns: they end while others are about to wait, and
/// while these sleep. Every lost wake-up leaves a thread asleep for ever, which the case's limit
/// finds.
template <class Test, class M = typename Test::M>
void no_wake_up_is_lost(Test& test) {
  std::atomic<std::uint64_t> sum{0};
  in_threads(3, [&](int me) {
    typename M::Transaction c(*test.shared, base::thread_slot());
    std::mt19937_64 random(static_cast<std::uint64_t>(me) + 3);
    for (unsigned i = 0; i < 3000 / scale; ++i) {
      const std::uint64_t turns = 1ULL << random() % 14;
      std::uint64_t seen = 0;
      const auto run = [&](auto& tx) {
        seen = tx[test.memory(0)];
        for (std::uint64_t k = 0; k < turns; ++k) __builtin_ia32_pause();
      };
      if (me == 0)
        test.update(c);
      else
        atomically(c, me == 1 && M::isolates, run);
      sum += seen;
    }
  });
}

TYPED_TEST(Waiting, NoWakeUpIsLost) { no_wake_up_is_lost(*this); }

/// As where membarrier(2) is missing.
template <class T>
class WaitingWithoutMembarrier : public Waiting<T> {
 public:
  void SetUp() override {
    Waiting<T>::SetUp();
    worked_ = detail::membarrier_works.exchange(false);
  }
  void TearDown() override { detail::membarrier_works = worked_; }

 private:
  bool worked_ = false;
};
using Fenced = ::testing::Types<Stm, Biased, GlobalLock, None>;
TYPED_TEST_SUITE(WaitingWithoutMembarrier, Fenced);

TYPED_TEST(WaitingWithoutMembarrier, NoWakeUpIsLost) { no_wake_up_is_lost(*this); }

TYPED_TEST(WaitingWithoutMembarrier, AnUpdateBehindALongViewSleeps) {
  typename TypeParam::Transaction me(*this->shared, base::thread_slot());
  this->view(me);  // the first view: in a biased TM this thread gets the bias
  Other<TypeParam> writer(*this->shared);
  this->hold(me, false, [&] {
    writer.start([&](auto& c) { this->update(c); });
    ASSERT_TRUE(this->sleeps(writer)) << "the update ran on, or waited without being blocked";
  });
  writer.wait();
}

}  // namespace
}  // namespace perdure::tm::testing
