// SPDX-License-Identifier: BSD-3-Clause
//
// tm::copy: a checkpoint's copies beside a thread with the exclusive bias, which it keeps (BESIDE-1
// to 3), and under ownership records where there is none.
#include <array>
#include <chrono>
#include <optional>

#include "perdure/tm/orec_tm.hpp"
#include "tests/tm/other.hpp"
#include "tests/tm/suite.hpp"

namespace perdure::tm::testing {
namespace {

using namespace std::chrono_literals;

/// A line's mark, and the copies of the line.
struct CopyTest : ::testing::Test {
  using Transaction = Biased::Transaction;
  std::unique_ptr<OrecShared> shared = std::make_unique<OrecShared>(0);
  Words memory{16};
  Transaction me{*shared, base::thread_slot()};
  // Made when `me` has run a transaction: otherwise the bias would go to the newer one.
  std::optional<Other<Biased>> other;
  std::atomic<std::uint64_t> mark{0};
  std::atomic<int> taken{0}, reached{0}, copied{0};  // `reached`: it may copy
  std::array<std::uint64_t, 8> line{};

  void SetUp() override {
    commit(8, 0);
    mark = 0;
    other.emplace(*shared);
  }
  // As an engine's store: its mark first.
  void store(Transaction& c, std::size_t w, std::uint64_t v) {
    c.own(memory(w));
    mark.store(mark.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
    c.store(memory(w), v);
  }
  void commit(std::size_t w, std::uint64_t v) {
    me.begin(true);
    store(me, w, v);
    me.commit([](std::uint64_t) {});
  }
  // What the other thread does; `before` and `after` run before and after the line is copied.
  template <class F, class G>
  void copy(Transaction& c, F&& before, G&& after) {
    tm::copy(
        c, [&] { mark.exchange(0), ++taken; },
        [&](auto&& copy_line) {
          ++reached;
          before();
          copy_line(line.data(), reinterpret_cast<const std::byte*>(memory(0)));
          ++copied;
          after();
        });
  }
  void copy(Transaction& c) {
    copy(c, [] {}, [] {});
  }
  [[nodiscard]] bool bias_is_mine() const {
    return shared->bias == static_cast<std::uint64_t>(base::thread_slot()) + 1;
  }
};

TEST_F(CopyTest, ABiasStays) {
  commit(0, 7);
  other->run([&](Transaction& c) { copy(c); });
  EXPECT_TRUE(bias_is_mine());
  EXPECT_EQ(0U, shared->revocations);
  EXPECT_EQ(7U, line[0]);
  EXPECT_EQ(1, taken);
  EXPECT_EQ(1, copied);
}

TEST_F(CopyTest, TheThreadWithTheBiasCopiesByItself) {
  commit(0, 7);
  copy(me);
  EXPECT_TRUE(bias_is_mine());
  EXPECT_EQ(7U, line[0]);
}

TEST_F(CopyTest, WithoutABiasALineIsCopiedWhenItsOwnerHasEnded) {
  shared->set_bias(base::thread_slot(), OrecShared::bias_none);
  me.begin(true);
  ASSERT_FALSE(me.direct());
  store(me, 0, 7);
  other->start([&](Transaction& c) { copy(c); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(0, copied);
  me.commit([](std::uint64_t) {});
  other->wait();
  EXPECT_EQ(7U, line[0]);
}

// BESIDE-1.
TEST_F(CopyTest, NothingIsCopiedBeforeTheTransactionThatMayHaveSeenTheMarkEnds) {
  me.begin(true);
  ASSERT_TRUE(me.direct());
  store(me, 0, 7);
  other->start([&](Transaction& c) { copy(c); });
  while (taken == 0) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(0, copied);
  // The store that found the mark set before it was taken.
  me.store(memory(1), 8);
  me.commit([](std::uint64_t) {});
  other->wait();
  EXPECT_EQ(1, copied);
  EXPECT_EQ(7U, line[0]);
  EXPECT_EQ(8U, line[1]);
  EXPECT_TRUE(bias_is_mine());
}

// BESIDE-2.
TEST_F(CopyTest, ACopyWaitsForTheEndOfWhatItMayHold) {
  std::atomic<bool> open{false};
  std::atomic<bool> ended{false}, ended_before{false};
  other->start([&](Transaction& c) {
    copy(
        c,
        [&] {
          while (!open) std::this_thread::yield();
        },
        [] {});
    ended_before = ended.load();
  });
  while (reached == 0) std::this_thread::yield();
  me.begin(true);
  ASSERT_TRUE(me.direct());
  store(me, 0, 7);
  open = true;
  while (copied == 0) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(other->busy());
  ended = true;
  me.commit([](std::uint64_t) {});
  other->wait();
  EXPECT_TRUE(ended_before);
  EXPECT_EQ(1, copied);
  EXPECT_EQ(7U, line[0]);
  EXPECT_EQ(1U, mark) << "the store marked the line for the next checkpoint";
}

// BESIDE-3.
TEST_F(CopyTest, WhatWasRolledBackIsCopiedAgain) {
  commit(0, 1);
  std::atomic<bool> open{false};
  std::uint64_t first = 0;
  other->start([&](Transaction& c) {
    copy(
        c,
        [&] {
          while (!open) std::this_thread::yield();
        },
        [&] {
          if (copied == 1) first = line[0];
        });
  });
  while (reached == 0) std::this_thread::yield();
  me.begin(true);
  store(me, 0, 7);
  open = true;
  while (copied == 0) std::this_thread::yield();
  me.rollback();
  other->wait();
  EXPECT_EQ(7U, first);
  EXPECT_EQ(2, copied);
  EXPECT_EQ(1U, line[0]);
  EXPECT_TRUE(bias_is_mine());
}

TEST_F(CopyTest, ABiasWhoseTransactionsKeepFailingIsRevoked) {
  commit(0, 1);
  std::atomic<int> open{0};
  other->start([&](Transaction& c) {
    copy(
        c,
        [&] {
          while (open == copied && shared->revocations == 0) std::this_thread::yield();
        },
        [] {});
  });
  int failed = 0;
  for (; shared->revocations == 0 && other->busy() && failed < 100; ++failed) {
    // Beside an open transaction it would not get here; without a bias it needs none.
    while (reached <= failed && shared->revocations == 0 && other->busy())
      std::this_thread::yield();
    me.begin(true);
    store(me, 0, 7);
    open = failed + 1;
    while (copied <= failed && shared->revocations == 0 && other->busy()) std::this_thread::yield();
    me.rollback();
  }
  other->wait();
  EXPECT_EQ(1U, shared->revocations);
  EXPECT_EQ(1, taken);
  EXPECT_GE(copied, 3) << "it was tried beside the bias, more than once";
  EXPECT_EQ(1U, line[0]);
}

TEST_F(CopyTest, AnIrrevocableTransactionIsWaitedFor) {
  commit(0, 1);
  me.begin(true);
  store(me, 0, 2);
  for (std::uint32_t i = 0; i < Biased::irrevocable_after; ++i) {
    me.rollback();
    me.backoff();
    me.begin(true);
    store(me, 0, 3);
  }
  ASSERT_EQ(OrecShared::bias_changing, shared->bias);
  other->start([&](Transaction& c) { copy(c); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(0, copied);
  me.commit([](std::uint64_t) {});
  other->wait();
  EXPECT_EQ(3U, line[0]);
}

// Two words of a line are equal after each commit. Their copy may be of two transactions, but of
// none that was rolled back; and it is the newest where the mark is still clear.
TEST_F(CopyTest, BesideRunningTransactions) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> begun{0};
  std::uint64_t copies = 0, wrong = 0;
  constexpr std::uint64_t n = 200'000 / scale, failed = std::uint64_t{1} << 63;
  other->start([&](Transaction& c) {
    do {
      const std::uint64_t from = begun.load();
      copy(c);
      ++copies;
      for (int w = 0; w < 2; ++w)
        if ((line[w] & failed) != 0 || line[w] + 1 < from || line[w] > begun.load()) ++wrong;
    } while (!stop);
  });
  while (taken == 0) std::this_thread::yield();
  for (std::uint64_t i = 1; i <= n; ++i) {
    const bool fails = i % 16 == 0;
    begun = i;
    me.begin(true);
    store(me, 0, fails ? i | failed : i);
    store(me, 1, fails ? i | failed : i);
    if (fails) {
      me.rollback();
      me.begin(true);
      store(me, 0, i);
      store(me, 1, i);
    }
    me.commit([](std::uint64_t) {});
  }
  stop = true;
  other->wait();
  EXPECT_EQ(0U, wrong);
  EXPECT_GT(copies, 0U);
  if (mark == 0) {
    EXPECT_EQ(n, line[0]);
    EXPECT_EQ(n, line[1]);
  }
  RecordProperty("copies", static_cast<int>(copies));
}

}  // namespace
}  // namespace perdure::tm::testing
