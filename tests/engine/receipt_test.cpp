// SPDX-License-Identifier: BSD-3-Clause
//
// Receipts, on every engine and in every mode: when they report durability, what they cover,
// callbacks, coroutines, and what happens to them when the pool is closed or the medium fails.
#include <coroutine>
#include <future>

#include "testing/faulty_medium.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using namespace std::chrono_literals;

struct Root {
  std::array<p<std::uint64_t>, 64> word;
};

class Receipts : public EngineTest {
 public:
  static Shape shape(Durability d) {
    Shape s;
    s.durability = d;
    return s;
  }
};
ENGINE_SUITE(Receipts, durable_ones);

TEST_P(Receipts, OfADurableUpdateAreDurableAtOnce) {
  for (const Durability d : {durable, group}) {
    auto rig = open_rig<Root>(GetParam(), this->shape(d));
    for (std::uint64_t i = 1, last = 0; i <= 20; ++i) {
      const auto receipt = rig.pool.update([&](auto& tx, Root& r) { return tx(r.word[0]) += i; });
      EXPECT_TRUE(receipt.durable());
      if (has_timestamps(GetParam()))
        EXPECT_LT(std::exchange(last, receipt.id()), receipt.id());
      else
        EXPECT_EQ(i, receipt.id());
      EXPECT_EQ(i * (i + 1) / 2, receipt.value());
      EXPECT_TRUE(receipt.try_wait().ok());
      EXPECT_GE(rig.pool.durable_id(), receipt.id());
    }
  }
}

TEST_P(Receipts, OfAsyncUpdatesBecomeDurableInOrderWithoutAnybodyWaiting) {
  auto rig = open_rig<Root>(GetParam(), this->shape(async));
  std::vector<decltype(rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; }))> receipts;
  for (std::uint64_t i = 0; i < 100; ++i)
    receipts.push_back(rig.pool.update([&](auto& tx, Root& r) { tx(r.word[i % 64]) = i; }));
  const auto start = std::chrono::steady_clock::now();
  while (!receipts.back().durable() && std::chrono::steady_clock::now() - start < 20s)
    std::this_thread::sleep_for(1ms);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    EXPECT_TRUE(receipts[i].durable());
    if (i == 0) continue;
    if (has_timestamps(GetParam()))
      EXPECT_LT(receipts[i - 1].id(), receipts[i].id());
    else
      EXPECT_EQ(receipts[i - 1].id() + 1, receipts[i].id());
  }
}

TEST_P(Receipts, TheCallsOwnDurabilityIsWhatCounts) {
  auto rig = open_rig<Root>(GetParam(), this->shape(async));
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  const auto receipt = rig.pool.update(durable, [](auto& tx, Root& r) { tx(r.word[1]) = 2; });
  EXPECT_TRUE(receipt.durable());
  const Recovered r = recover(GetParam(), rig.medium->durable_image(), this->shape(async));
  ASSERT_TRUE(r.status.ok());
  std::uint64_t words[2];
  std::memcpy(words, r.state.root.data(), 16);
  EXPECT_EQ(1U, words[0]) << "it covers what came before";
  EXPECT_EQ(2U, words[1]);
}

TEST_P(Receipts, AreCalledBackOnceEach) {
  auto rig = open_rig<Root>(GetParam(), this->shape(async));
  std::atomic<int> called{0}, failed{0};
  const auto here = [](auto g) { g(); };
  for (std::uint64_t i = 0; i < 200; ++i)
    rig.pool.update([&](auto& tx, Root& r) { tx(r.word[i % 64]) = i; })
        .then(here, [&](const Status& s) {
          ++called;
          failed += s.ok() ? 0 : 1;
        });
  const auto start = std::chrono::steady_clock::now();
  while (called < 200 && std::chrono::steady_clock::now() - start < 20s)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(200, called);
  EXPECT_EQ(0, failed);
  std::promise<std::thread::id> where;  // an executor chooses the thread
  std::function<void()> queued;
  std::atomic<bool> has{false};
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; })
      .then(
          [&](auto g) {
            queued = std::move(g);
            has = true;
          },
          [&](const Status&) { where.set_value(std::this_thread::get_id()); });
  while (!has) std::this_thread::yield();
  queued();
  EXPECT_EQ(std::this_thread::get_id(), where.get_future().get());
}

/// The smallest coroutine that can wait for receipts.
struct Task {
  struct promise_type {
    std::promise<std::uint64_t> result;
    Task get_return_object() { return {result.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(std::uint64_t v) { result.set_value(v); }
    void unhandled_exception() { result.set_exception(std::current_exception()); }
  };
  std::future<std::uint64_t> result;
};

template <class Pool>
Task move_money(Pool& pool, std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i <= n; ++i) {
    const std::uint64_t v =
        co_await pool.update([&](auto& tx, Root& r) { return tx(r.word[0]) += i; });
    EXPECT_GE(pool.durable_id(), i);
    sum += v;
  }
  co_await pool.update([](auto& tx, Root& r) { tx(r.word[1]) = 5; });  // a receipt without a value
  co_return sum;
}

TEST_P(Receipts, CanBeAwaited) {
  for (const Durability d : {durable, async}) {
    auto rig = open_rig<Root>(GetParam(), this->shape(d));
    Task task = move_money(rig.pool, 20);
    EXPECT_EQ(1540U, task.result.get());
    EXPECT_EQ(5U, rig.pool.view([](auto& tx, const Root& r) { return tx(r.word[1]); }));
  }
}

TEST_P(Receipts, StayValidAfterClose) {
  auto rig = open_rig<Root>(GetParam(), this->shape(async));
  std::atomic<int> called{0};
  const auto first = rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  for (int i = 0; i < 50; ++i)
    rig.pool.update([](auto& tx, Root& r) { ++tx(r.word[1]); })
        .then([](auto g) { g(); }, [&](const Status& s) { called += s.ok() ? 1 : 0; });
  const auto last = rig.pool.update([](auto& tx, Root& r) { return ++tx(r.word[1]); });
  EXPECT_TRUE(rig.pool.close().clean);
  EXPECT_TRUE(first.durable() && last.durable());
  EXPECT_TRUE(first.try_wait().ok() && last.try_wait().ok());
  EXPECT_EQ(51U, last.value());
  EXPECT_EQ(Code::closed, rig.pool.try_update([](auto& tx, Root& r) { tx(r.word[0]) = 1; }).code());
  EXPECT_THROW(rig.pool.view([](auto& tx, const Root& r) { return tx(r.word[0]); }), error);
  std::atomic<bool> late{false};
  last.then([](auto g) { g(); }, [&](const Status& s) { late = s.ok(); });
  EXPECT_TRUE(late);
  { auto gone = std::move(rig.pool); }
  EXPECT_EQ(50, called) << "every callback has run when the pool is gone";
}

// LAW-2: a thread that returns a value which it read before it was durable waits until it is.
TEST_P(Receipts, CoverWhatWasReadAndNothingReadIsToldBefore) {
  Shape shape = this->shape(group);
  auto rig = open_rig<Root>(GetParam(), shape);
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  if (!isolates(GetParam()) || is_durable_when_seen(GetParam())) {
    GTEST_SKIP() << "isolation, or a lock, is held through the fence";
  } else {
    std::atomic<bool> hold{true};
    std::atomic<int> in_fence{0}, told{0};
    rig.medium->set_fence_hooks(
        [&] {
          ++in_fence;
          while (hold) std::this_thread::yield();
        },
        {});
    std::thread writer([&] { rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 2; }); });
    // Committed, visible, and not durable: every fence waits (a fence alone proves nothing,
    // Reproduce has its own).
    while (rig.pool.view([](auto& tx, const Root& r) { return tx(r.word[0]); }) != 2 ||
           in_fence == 0)
      std::this_thread::yield();
    const auto seen = rig.pool.update(
        async, [](auto& tx, Root& r) { return static_cast<std::uint64_t>(tx(r.word[0])); });
    EXPECT_EQ(2U, seen.value());
    EXPECT_FALSE(seen.durable()) << "its receipt covers what it read";
    std::vector<std::thread> readers;
    readers.reserve(3);
    readers.emplace_back([&] {
      rig.pool.view(durable, [](auto& tx, const Root& r) { return tx(r.word[0]); });
      ++told;
    });
    readers.emplace_back([&] {
      rig.pool.update([](auto& tx, Root& r) { return static_cast<std::uint64_t>(tx(r.word[0])); });
      ++told;
    });
    readers.emplace_back([&] {
      seen.wait();
      ++told;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(0, told) << "told of what a power cut would take back";
    hold = false;
    for (auto& t : readers) t.join();
    writer.join();
    EXPECT_EQ(3, told);
    EXPECT_TRUE(seen.durable());
    rig.medium->set_fence_hooks({}, {});
  }
}

// With `held` an acknowledged transaction is durable although an older one may not be.
TEST_P(Receipts, OfADurableUpdateDoNotWaitForAnOlderOneOfAnother) {
  if (GetParam().name == "shadow/stm") {
    auto rig = open_rig<Root>(GetParam(), this->shape(durable));
    std::atomic<bool> hold{true};
    std::atomic<int> fences{0};
    rig.medium->set_fence_hooks(
        [&] {
          if (++fences == 1)
            while (hold) std::this_thread::yield();
        },
        {});
    std::thread slow([&] { rig.pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; }); });
    while (fences == 0) std::this_thread::yield();
    const auto receipt = rig.pool.update([](auto& tx, Root& r) { tx(r.word[32]) = 2; });
    EXPECT_EQ(2U, receipt.id());
    EXPECT_TRUE(receipt.durable());
    EXPECT_TRUE(receipt.try_wait().ok());
    EXPECT_EQ(0U, rig.pool.durable_id()) << "1 is not, and this says: all up to it";
    const Recovered r = recover(GetParam(), rig.medium->durable_image(), this->shape(durable));
    std::uint64_t words[33];
    std::memcpy(words, r.state.root.data(), sizeof words);
    EXPECT_EQ(0U, words[0]);
    EXPECT_EQ(2U, words[32]);
    hold = false;
    slow.join();
    EXPECT_EQ(2U, rig.pool.durable_id());
    rig.medium->set_fence_hooks({}, {});  // the pool outlives what they use
  }
}

// LAW-9.
TEST_P(Receipts, OfAMediumThatFailedResolveToTheError) {
  for (const Durability d : {durable, async}) {
    const Shape shape = this->shape(d);
    auto recording = medium::RecordingMedium::make(shape.medium()).value();
    auto* const raw = recording.get();
    auto faulty = std::make_unique<medium::FaultyMedium>(std::move(recording));
    auto* const faults = faulty.get();
    auto pool =
        AnyPool<Root>::try_open_on("recording", shape.options(GetParam()), std::move(faulty), true)
            .value();
    pool.update(durable, [](auto& tx, Root& r) { tx(r.word[0]) = 1; });
    pool.checkpoint();  // an engine's own thread is idle: the fence that fails is the next update's
    const std::uint64_t durable_before = pool.durable_id();
    faults->fail(medium::FaultyMedium::Call::fence, 1, EIO);
    std::atomic<int> good{0}, bad{0};
    for (int i = 0; i < 20; ++i) {
      try {
        pool.update([&](auto& tx, Root& r) { ++tx(r.word[1]); })
            .then([](auto g) { g(); }, [&](const Status& s) { s.ok() ? ++good : ++bad; });
      } catch (const error& e) {
        EXPECT_EQ(Code::poisoned, e.code()) << e.what();
        ++bad;
      }
    }
    const auto start = std::chrono::steady_clock::now();
    while (good + bad < 20 && std::chrono::steady_clock::now() - start < 20s)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(0, good) << "acknowledged after the failure";
    EXPECT_EQ(20, bad);
    EXPECT_EQ(Code::poisoned, pool.try_update([](auto& tx, Root& r) { tx(r.word[0]) = 3; }).code());
    EXPECT_THROW(pool.view([](auto& tx, const Root& r) { return tx(r.word[0]); }), error);
    EXPECT_THROW(pool.view(durable, [](auto& tx, const Root& r) { return tx(r.word[0]); }), error);
    EXPECT_THROW(pool.checkpoint(), error);
    EXPECT_EQ(durable_before, pool.durable_id());
    EXPECT_THROW(pool.close(), error);
    for (const auto& image : {raw->durable_image(), raw->current_image()}) {
      // Reopening recovers, after a kill or a power cut.
      const Recovered r = recover(GetParam(), image, shape);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      std::uint64_t words[2];
      std::memcpy(words, r.state.root.data(), 16);
      EXPECT_EQ(1U, words[0]) << "what was acknowledged stays";
      EXPECT_LE(words[1], 20U);
    }
  }
}

TEST_P(Receipts, OfTryUpdateComeAsResults) {
  auto rig = open_rig<Root>(GetParam(), this->shape(durable));
  auto good = rig.pool.try_update([](auto& tx, Root& r) { return ++tx(r.word[0]); });
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(1U, good->value());
  EXPECT_TRUE(good->durable());
  auto full = rig.pool.try_update([](auto& tx, Root&) { (void)tx.alloc(1ULL << 40); });
  EXPECT_EQ(Code::full, full.code());
  struct Mine {};
  EXPECT_THROW((void)rig.pool.try_update([](auto&, Root&) { throw Mine(); }), Mine);
  EXPECT_EQ(2U, rig.pool.try_update([](auto& tx, Root& r) { return ++tx(r.word[0]); })->value());
}

TEST_P(Receipts, WaitingOnesOwnTransactionIsRefused) {
  auto rig = open_rig<Root>(GetParam(), this->shape(durable));
  rig.pool.update([&](auto& tx, Root& r) {
    tx(r.word[0]) = 1;
    EXPECT_THROW(rig.pool.checkpoint(), error);
    EXPECT_THROW(rig.pool.close(), error);
    tx(r.word[1]) = 2;
  });
  rig.pool.update([](auto& tx, Root& r) { tx(r.word[2]) = 3; });
  rig.pool.checkpoint();
  rig.pool.view([](auto& tx, const Root& r) {
    EXPECT_EQ(6U, tx(r.word[0]) + tx(r.word[1]) + tx(r.word[2]));
  });
}

}  // namespace
}  // namespace perdure::test
