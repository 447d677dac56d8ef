// SPDX-License-Identifier: BSD-3-Clause
//
// What can go wrong inside a transaction: an exception, an abort, nesting, a change inside a view;
// threads that end; a pool left open.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "faults.hpp"

namespace perdure::faults {
namespace {

class Transaction : public ::testing::TestWithParam<Case> {
 protected:
  // Whether committed transactions are present after reopening.
  const bool keeps = GetParam().engine != "volatile";
  Options options() const { return small(GetParam()); }
  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
};

TEST_P(Transaction, AThrowRollsBackAndPasses) {
  auto pool_ = std::make_unique<TestPool>(TestPool::open(path, options()));
  TestPool& pool = *pool_;
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  const std::uint64_t used = pool.stats().heap_used;
  for (int i = 0; i < 50; ++i) {
    try {
      pool.update([&](auto& tx, Root& root) {
        step(tx, root, 2);
        for (std::uint64_t k = 100; k < 140; ++k) root.names.put(tx, k, std::string(k * 2, 'x'));
        tx(root.block) = tx.alloc(200000);
        root.names.erase(tx, 1);
        throw std::runtime_error("the user's own");
      });
      FAIL() << "the exception did not pass";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "the user's own");
    }
    EXPECT_EQ(
        code_of([&] {
          (void)pool
              .try_update([](auto&, Root&) { throw error(Status(Code::not_found, "mine too")); })
              .value();
        }),
        Code::not_found);
  }
  EXPECT_EQ(steps_in(pool), 1U);
  EXPECT_EQ(pool.stats().heap_used, used);
  expect_sound(pool);
  pool.update([](auto& tx, Root& root) { step(tx, root, 2); });
  pool_.reset();
  TestPool again = TestPool::open(path, options());
  EXPECT_EQ(steps_in(again), keeps ? 2U : 0U);
  expect_sound(again);
}

TEST_P(Transaction, Abort) {
  TestPool pool = TestPool::open(path, options());
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  const Stats before = pool.stats();
  EXPECT_THROW(pool.update([](auto& tx, Root& root) {
    step(tx, root, 2);
    perdure::abort(tx);
  }),
               aborted);
  EXPECT_EQ(pool.stats().commits, before.commits);
  EXPECT_EQ(pool.stats().last_id, before.last_id) << "aborts draw no id";
  EXPECT_EQ(steps_in(pool), 1U);
  expect_sound(pool);
}

TEST_P(Transaction, NestedUpdateIsFlat) {
  TestPool pool = TestPool::open(path, options());
  const Stats before = pool.stats();
  const auto receipt = pool.update([&](auto& tx, Root& root) {
    step(tx, root, 1);
    const auto inner = pool.update([&](auto& tx2, Root& root2) {
      EXPECT_EQ(tx2.read(root2.count), 1U);  // it sees the outer one's changes
      step(tx2, root2, 2);
      return 7;
    });
    EXPECT_EQ(inner.value(), 7);
    EXPECT_EQ(inner.id(), 0U);
    EXPECT_EQ(inner.try_wait().code(), Code::invalid);
    EXPECT_EQ(tx.read(root.count), 2U);
    // A view inside it: the same transaction.
    EXPECT_EQ(pool.view([](auto& tx2, const Root& root2) { return tx2(root2.count); }), 2U);
  });
  EXPECT_NE(receipt.id(), 0U);
  EXPECT_EQ(pool.stats().commits, before.commits + 1);
  EXPECT_EQ(steps_in(pool), 2U);
  // An exception out of the inner one rolls everything back.
  EXPECT_THROW(pool.update([&](auto& tx, Root& root) {
    step(tx, root, 3);
    pool.update([&](auto& tx2, Root& root2) {
      step(tx2, root2, 4);
      throw std::runtime_error("inner");
    });
  }),
               std::runtime_error);
  EXPECT_EQ(steps_in(pool), 2U);
  expect_sound(pool);
}

TEST_P(Transaction, UpdateInAViewIsRefused) {
  TestPool pool = TestPool::open(path, options());
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  Code code = Code::ok;
  const std::uint64_t seen = pool.view([&](auto& tx, const Root& root) {
    code = code_of([&] { pool.update([](auto& tx2, Root& root2) { step(tx2, root2, 2); }); });
    return tx(root.count) +
           pool.view([](auto& tx2, const Root& root2) { return tx2(root2.count); });
  });
  EXPECT_EQ(code, Code::invalid);
  EXPECT_EQ(seen, 2U);
  EXPECT_THROW(pool.view([](auto&, const Root&) { throw std::runtime_error("from a view"); }),
               std::runtime_error);
  pool.update([](auto& tx, Root& root) { step(tx, root, 2); });
  EXPECT_EQ(steps_in(pool), 2U);
}

// Two pools at once: a transaction on one inside a transaction on the other is independent of it.
TEST_P(Transaction, TwoPoolsAtOnce) {
  TestPool a = TestPool::open(path, options()), b = TestPool::open(scratch.path("b"), options());
  a.update([&](auto& tx, Root& root) {
    step(tx, root, 1);
    b.update([&](auto& tx2, Root& root2) { step(tx2, root2, 1); });
  });
  EXPECT_THROW(a.update([&](auto& tx, Root& root) {
    step(tx, root, 2);
    b.update([&](auto& tx2, Root& root2) { step(tx2, root2, 2); });
    throw std::runtime_error("a's");
  }),
               std::runtime_error);
  EXPECT_EQ(steps_in(a), 1U);
  EXPECT_EQ(steps_in(b), 2U) << "b's transaction had committed";
}

TEST_P(Transaction, ManyShortThreads) {
  if (GetParam().engine.ends_with("none")) GTEST_SKIP() << "the caller isolates";
  TestPool pool = TestPool::open(path, options());
  // More than there are thread slots.
  const std::uint64_t threads = GetParam().medium == "file" ? 30 : 300;
  for (std::uint64_t i = 1; i <= threads; ++i)
    std::thread([&] { pool.update([&](auto& tx, Root& root) { step(tx, root, i); }); }).join();
  EXPECT_EQ(steps_in(pool), threads);
  // And a few at a time.
  std::atomic<std::uint64_t> failed{0};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> some;
    for (int t = 0; t < 8; ++t)
      some.emplace_back([&, t] {
        try {
          for (int i = 0; i < 3; ++i)
            pool.update(i == 0 ? async : durable,
                        [&](auto& tx, Root& root) { tx(root.slot[t].value) += 1; });
        } catch (const std::exception&) {
          ++failed;
        }
      });
    for (auto& s : some) s.join();
  }
  EXPECT_EQ(failed, 0U);
  pool.view([&](auto& tx, const Root& root) {
    for (const auto& s : root.slot) EXPECT_EQ(tx(s.value), threads * 3 + 60);
  });
  expect_sound(pool);
}

// A thread that ends while others work, and a pool that is destroyed by another thread than the one
// that opened it.
TEST_P(Transaction, DestroyedElsewhere) {
  std::unique_ptr<TestPool> pool;
  std::thread([&] {
    pool = std::make_unique<TestPool>(TestPool::open(path, options()));
    pool->update([](auto& tx, Root& root) { step(tx, root, 1); });
    pool->update(async, [](auto& tx, Root& root) { step(tx, root, 2); });
  }).join();
  EXPECT_EQ(steps_in(*pool), 2U);
  std::thread([&] { pool.reset(); }).join();
  EXPECT_EQ(header_of(path).clean, 1U) << "the destructor closes in order";
  TestPool again = TestPool::open(path, options());
  EXPECT_EQ(steps_in(again), keeps ? 2U : 0U);
}

// A program that ends with its pool open, in whatever way: the next opening recovers.
TEST_P(Transaction, ProgramEndsWithThePoolOpen) {
  for (const int how : {0, 1, 2, 3}) {
    (void)std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      // An object of static storage: destroyed by exit(), as in many programs; not by _exit or a
      // signal.
      static std::unique_ptr<TestPool> pool;
      pool = std::make_unique<TestPool>(TestPool::open(path, options()));
      const std::uint64_t n = steps_in(*pool) + 1;
      pool->update(durable, [&](auto& tx, Root& root) { step(tx, root, n); });
      if (how == 0) {
        pool.reset();
        ::_exit(0);
      }
      if (how == 1) ::_exit(0);
      if (how == 2) ::raise(SIGKILL);
      std::thread([] { std::quick_exit(0); }).join();
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(how == 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                         : WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << how;
    TestPool pool = TestPool::open(path, options());
    EXPECT_EQ(steps_in(pool), keeps ? static_cast<std::uint64_t>(how) + 1 : 0U);
    expect_sound(pool);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, Transaction, ::testing::ValuesIn(all_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
