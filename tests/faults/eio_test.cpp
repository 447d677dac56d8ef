// SPDX-License-Identifier: BSD-3-Clause
//
// A medium that fails (EIO from a fence, an append, a growth), injected at the n-th call, for every
// n: LAW-9. The pool is poisoned, nothing is acknowledged afterwards, open receipts resolve to the
// error, nothing is retried; reopening recovers what was acknowledged.
//
// A failed fence makes its record neither durable nor undone: after reopening the transaction may
// be present or not, but whole (LAW-1).
#include <atomic>
#include <coroutine>
#include <thread>

#include "faults.hpp"

namespace perdure::faults {
namespace {

using medium::FaultyMedium;
using Call = FaultyMedium::Call;

class Eio : public ::testing::TestWithParam<Case> {
 protected:
  Options options() const {
    Options o = small(GetParam());
    o.creation.max_size = 16 * MiB;
    o.creation.log_size = log_bytes != 0 ? log_bytes : (undo ? 256 : 32) * (file ? 8 : 1) * KiB;
    return o;
  }
  // The pool at `path` on a medium that can be made to fail.
  Result<TestPool> open(FaultyMedium*& faulty, Call call = Call::fence,
                        std::uint64_t nth = FaultyMedium::never, bool and_later = false) {
    const pool::Header h = header_of(path);
    medium::OpenMedium m;
    m.path = path, m.kind = GetParam().medium, m.log_bytes = h.log_bytes,
    m.data_bytes = h.data_bytes, m.max_data_bytes = h.max_data_bytes;
    auto made = std::make_unique<FaultyMedium>(medium::open_medium(m).value());
    faulty = made.get();
    faulty->fail(call, nth, EIO, and_later);
    return TestPool::try_open_on(path, options(), std::move(made), false);
  }
  void refuses_everything(TestPool& pool) {
    EXPECT_EQ(code_of([&] { pool.update([](auto& tx, Root& root) { tx(root.count) = 999; }); }),
              Code::poisoned);
    EXPECT_EQ(
        code_of([&] { pool.update(async, [](auto& tx, Root& root) { tx(root.count) = 999; }); }),
        Code::poisoned);
    EXPECT_EQ(code_of([&] { pool.view([](auto& tx, const Root& root) { (void)tx(root.count); }); }),
              Code::poisoned);
    EXPECT_EQ(code_of([&] { pool.checkpoint(); }), Code::poisoned);
    const std::string why = message_of([&] { pool.view([](auto&, const Root&) {}); });
    EXPECT_NE(why.find("injected"), std::string::npos) << why;
    EXPECT_NE(why.find("open it again"), std::string::npos) << why;
  }
  const bool undo = GetParam().engine == "undo", file = GetParam().medium == "file";
  std::uint64_t log_bytes = 0;  // 0: small
  Scratch scratch{!file};
  const std::string path = scratch.path();
};

// One thread; the n-th fence (or append) from the opening on fails, for every n: during opening,
// committing, checkpointing, closing.
TEST_P(Eio, AtEveryCall) {
  make_clean(path, options(), 0);
  const std::string image = read_all(path);
  std::uint64_t opened = 0, worked = 0, closed = 0;
  const std::uint64_t all = file ? 60 : undo ? 400 : 160;
  for (const Call call : {Call::fence, Call::append}) {
    std::uint64_t skip = 1;
    for (std::uint64_t n = 1; n < all * 4; n += skip) {
      // Each of the first calls, which opening makes.
      skip = n > 24 ? (sanitized ? 17 : file ? 5 : 3) : 1;
      poke(path, 0, image.data(), image.size());
      ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(image.size())), 0);
      std::uint64_t acked = 0, begun = 0, through = 0;
      std::vector<std::pair<std::uint64_t, ReceiptBase>> receipts;
      bool fired = true;
      {
        FaultyMedium* faulty = nullptr;
        auto pool = open(faulty, call, n);
        if (!pool.ok()) {
          ASSERT_TRUE(pool.code() == Code::io || pool.code() == Code::poisoned)
              << pool.status().message();
          ++opened;
        } else {
          const auto work = [&] {
            for (begun = 1; begun <= all / (undo ? 16 : 1); ++begun) {
              const auto r = pool->update(begun % 4 == 0   ? async
                                          : begun % 4 == 1 ? group
                                                           : durable,
                                          [&](auto& tx, Root& root) { step(tx, root, begun); });
              if (begun % 4 == 0)
                receipts.emplace_back(begun, r);
              else
                acked = begun;
              if (begun % 16 == 0) pool->checkpoint();
            }
            --begun;
          };
          const Code code = code_of(work);
          if (code == Code::ok) {
            const Code closing = code_of([&] { pool->close(); });
            fired = closing != Code::ok;
            closed += fired ? 1 : 0;
          } else {
            ASSERT_TRUE(code == Code::poisoned || code == Code::io) << message_of(work);
            ++worked;
            refuses_everything(*pool);
          }
          for (const auto& [number, receipt] : receipts) {
            const Status s = receipt.try_wait();
            if (s.ok()) acked = std::max(acked, number);
            EXPECT_TRUE(s.ok() || s.code() == Code::poisoned) << s.message();
            if (receipt.durable()) acked = std::max(acked, number);
          }
          if (fired) {
            through = pool->durable_id();
            EXPECT_NE(code_of([&] { pool->close(); }), Code::ok);
          }
        }
      }
      FaultyMedium* healthy = nullptr;
      auto again = open(healthy);
      ASSERT_TRUE(again.ok()) << again.status().message();
      const std::uint64_t found = steps_in(*again);
      EXPECT_GE(found, acked) << "acknowledged, and lost; call " << n;
      EXPECT_LE(found, begun);
      EXPECT_GE(again->stats().recovery.last_id, through)
          << "durable_id() claimed more; call " << n;
      expect_sound(*again);
      again->update([&](auto& tx, Root& root) { step(tx, root, found + 1); });
      EXPECT_EQ(steps_in(*again), found + 1);
      if (HasFailure()) return;
      if (!fired) break;  // the whole run makes fewer calls
    }
  }
  EXPECT_GT(opened, 0U);
  EXPECT_GT(worked, 0U);
  std::printf("  failed while opening %llu times, working %llu, closing %llu\n",
              static_cast<unsigned long long>(opened), static_cast<unsigned long long>(worked),
              static_cast<unsigned long long>(closed));
}

// Several threads at once, and every way of waiting for a receipt.
TEST_P(Eio, OthersAreTold) {
  make_clean(path, options(), 1);
  for (std::uint64_t round = 0; round < (sanitized ? 6 : 30); ++round) {
    std::atomic<std::uint64_t> acked[4]{}, after{0};
    std::atomic<bool> told{false};
    std::atomic<int> resolved{0};
    std::uint64_t base[4];
    {
      FaultyMedium* faulty = nullptr;
      TestPool pool = open(faulty).value();
      pool.view([&](auto& tx, const Root& root) {
        for (int t = 0; t < 4; ++t) base[t] = tx(root.slot[4 + t].value);
      });
      faulty->fail(Call::fence, 5 + round * 7 % 60, EIO);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (std::uint64_t i = 1; i < 100000; ++i) {
            const bool was = told.load();
            try {
              const auto r = pool.update(i % 3 == 0 ? async : durable, [&](auto& tx, Root& root) {
                tx(root.slot[4 + t].value) = base[t] + i;
                root.names.put(tx, 1000 + static_cast<std::uint64_t>(t) * 100 + i % 50,
                               std::string(i % 200, 'x'));
              });
              if (i % 3 != 0)
                acked[t] = i;
              else if (i % 2 == 0)
                r.then([](auto f) { f(); },
                       [&](const Status& s) {
                         resolved += s.ok() || s.code() == Code::poisoned ? 1 : 1000000;
                       });
              if (was && i % 3 != 0) ++after;
            } catch (const error& e) {
              EXPECT_EQ(e.code(), Code::poisoned) << e.what();
              told = true;
              break;
            }
          }
        });
      }
      for (auto& t : threads) t.join();
      EXPECT_TRUE(told) << "nobody was told";
      EXPECT_EQ(after, 0U) << "acknowledged after the failure";
      refuses_everything(pool);
    }
    EXPECT_LT(resolved, 1000000);
    TestPool again = TestPool::open(path, options());
    again.view([&](auto& tx, const Root& root) {
      for (int t = 0; t < 4; ++t)
        EXPECT_GE(tx(root.slot[4 + t].value), base[t] + acked[t].load())
            << "thread " << t << ", round " << round;
      for (int t = 0; t < 4; ++t) {  // LAW-1: what each of its transactions wrote belongs together
        const std::uint64_t i = tx(root.slot[4 + t].value) - base[t];
        if (i == 0) continue;
        EXPECT_EQ(root.names.find(tx, 1000 + static_cast<std::uint64_t>(t) * 100 + i % 50)
                      .value_or("none")
                      .size(),
                  i % 200)
            << "thread " << t << ", round " << round;
      }
    });
    expect_sound(again);
    if (HasFailure()) return;
  }
}

// A thread waits for a receipt, or a coroutine awaits it, while the medium fails.
TEST_P(Eio, ReceiptsResolveToTheError) {
  make_clean(path, options(), 1);
  struct Task {
    struct promise_type {
      Task get_return_object() { return {}; }
      std::suspend_never initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }
    };
  };
  std::atomic<int> awaited{0};
  const auto await = [&](Receipt<void> receipt) -> Task {
    try {
      co_await receipt;
      awaited = 1;
    } catch (const error& e) {
      awaited = e.code() == Code::poisoned ? 2 : 3;
    }
  };
  Status then = Status(Code::ok, "");
  std::atomic<bool> called{false};
  bool refused = false;
  {
    FaultyMedium* faulty = nullptr;
    TestPool pool = open(faulty).value();
    faulty->fail(Call::fence, 1, EIO);
    try {
      // `held` must wait for its fence.
      auto receipt = pool.update(async, [](auto& tx, Root& root) { step(tx, root, 2); });
      receipt.then([](auto f) { f(); }, [&](Status s) { then = std::move(s), called = true; });
      await(receipt);
      const Status s = receipt.try_wait();
      EXPECT_EQ(s.code(), Code::poisoned) << s.message();
      EXPECT_FALSE(receipt.durable());
      EXPECT_EQ(code_of([&] { receipt.wait(); }), Code::poisoned);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), Code::poisoned);
      refused = true;
    }
    refuses_everything(pool);
  }
  if (!refused) {
    EXPECT_TRUE(called);
    EXPECT_EQ(then.code(), Code::poisoned) << then.message();
    EXPECT_EQ(awaited, 2);
  }
  TestPool again = TestPool::open(path, options());
  EXPECT_LE(steps_in(again), 2U);
  EXPECT_GE(steps_in(again), 1U);
}

// Growth that fails: the transaction is rolled back, the pool is not poisoned, and growth that
// works later is used.
TEST_P(Eio, Growth) {
  for (const int err : {ENOSPC, EIO}) {
    const std::string name = path + std::to_string(err);
    { make_clean(name, options(), 1); }
    const pool::Header h = header_of(name);
    medium::OpenMedium m;
    m.path = name, m.kind = GetParam().medium, m.log_bytes = h.log_bytes,
    m.data_bytes = h.data_bytes, m.max_data_bytes = h.max_data_bytes;
    auto made = std::make_unique<FaultyMedium>(medium::open_medium(m).value());
    FaultyMedium& faulty = *made;
    TestPool pool = TestPool::try_open_on(name, options(), std::move(made), false).value();
    faulty.fail(Call::grow, 1, err, true);
    const auto big = [&] {
      pool.update(
          [&](auto& tx, Root& root) { step(tx, root, 2), tx(root.block) = tx.alloc(3 * MiB); });
    };
    const Code code = code_of(big);
    EXPECT_EQ(code, err == ENOSPC ? Code::full : Code::io) << message_of(big);
    EXPECT_EQ(steps_in(pool), 1U);
    expect_sound(pool);
    pool.update([](auto& tx, Root& root) { step(tx, root, 2); });
    faulty.fail(Call::grow, FaultyMedium::never, 0);
    EXPECT_EQ(code_of([&] {
                pool.update([&](auto& tx, Root& root) {
                  step(tx, root, 3), tx(root.block) = tx.alloc(3 * MiB);
                });
              }),
              Code::ok);
    // A mapping that fails after the medium has grown.
    faulty.fail(Call::map_view, 1, ENOMEM);
    EXPECT_EQ(code_of([&] { pool.update([&](auto& tx, Root&) { (void)tx.alloc(4 * MiB); }); }),
              Code::out_of_memory);
    EXPECT_EQ(steps_in(pool), 3U);
    EXPECT_EQ(code_of([&] {
                pool.update([&](auto& tx, Root& root) {
                  tx.free(tx(root.block)), tx(root.block) = tx.alloc(4 * MiB);
                });
              }),
              Code::ok);
    expect_sound(pool);
    pool.close();
  }
}

// The medium has failed on another thread, which has not told the pool yet, and the next call that
// meets it is not a commit's: an allocation of log space, or the growth of the data region. The
// update fails, and so does everything after it, views too.
TEST_P(Eio, MetOutsideACommit) {
  log_bytes = 32 * MiB;  // most of it is a hole until it is used
  const std::string bytes(512 * KiB, 'x');
  for (const bool growth : {false, true}) {
    std::filesystem::remove(path);
    {
      TestPool pool = TestPool::open(path, options());
      pool.update([&](auto& tx, Root& root) { tx(root.block) = tx.alloc(bytes.size()); });
      pool.close();
    }
    FaultyMedium* faulty = nullptr;
    TestPool pool = open(faulty).value();
    faulty->fail(Call::fence, 1, EIO, true);
    ASSERT_FALSE(faulty->fence().ok());  // on behalf of the other thread
    const auto update = [&] {
      pool.update([&](auto& tx, Root& root) {
        if (growth) (void)tx.alloc(4 * MiB);
        tx.write_bytes(tx(root.block), bytes.data(), bytes.size());
      });
    };
    EXPECT_EQ(code_of(update), Code::poisoned) << growth;
    EXPECT_EQ(code_of([&] { pool.view([](auto& tx, const Root& root) { (void)tx(root.count); }); }),
              Code::poisoned)
        << growth;
    refuses_everything(pool);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, Eio, ::testing::ValuesIn(durable_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
