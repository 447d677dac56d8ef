// SPDX-License-Identifier: BSD-3-Clause
//
// Every call of the C++ interface gives the errors that it lists and no others, whichever call
// below it fails: it never aborts, hangs or leaves a descriptor or a file behind, and what was
// acknowledged is present when the pool is opened again without faults.
#include "call_errors.hpp"

#include <future>
#include <latch>
#include <set>
#include <thread>

namespace perdure::faults {
namespace {

using Codes = std::set<Code>;

class CallErrors : public ::testing::TestWithParam<Case> {
 protected:
  static Options options_of(const Case& c) {
    Options o = small(c);
    const std::string& e = c.engine;
    if (e.starts_with("rewind")) o.creation.log_size = 2 * MiB;
    if (e.starts_with("bppm") || e.starts_with("redo") || e.starts_with("softwrap"))
      o.creation.log_size = 512 * KiB;
    return o;
  }
  TestPool make(std::uint64_t steps) const {
    TestPool pool = TestPool::open(path, options);
    for (std::uint64_t i = 1; i <= steps; ++i)
      pool.update([&](auto& tx, Root& root) { step(tx, root, i); });
    return pool;
  }
  // A step that changes nothing else, but stores 2,000 bytes.
  static void large(TestPool& pool, std::uint64_t n) {
    pool.update([&](auto& tx, Root& root) {
      step(tx, root, n);
      root.names.put(tx, 100, std::string(2000, static_cast<char>('a' + n % 26)));
      root.names.erase(tx, 100);
    });
  }
  // A failed call's code is listed; the faults here are not a reason for any other.
  static void expect_listed(const Answer& a, const Codes& codes, bool may_lack_memory = true) {
    if (a.ok()) return;
    EXPECT_TRUE(a.fired) << "failed without a fault: " << a.text;
    EXPECT_TRUE(a.bad_alloc ? may_lack_memory : codes.contains(a.code)) << a.what << ": " << a.text;
  }
  // Opens the pool without faults: it has from `least` to `most` steps. Removes it.
  void expect_steps(std::uint64_t least, std::uint64_t most, const Answer& a) const {
    {
      auto pool = TestPool::try_open(path, options);
      ASSERT_TRUE(pool.ok()) << a.what << ": " << a.text << ", then " << pool.status().message();
      const std::uint64_t n = steps_in(*pool);
      EXPECT_GE(n, keeps ? least : 0) << a.what << ": " << a.text << ": acknowledged, and lost";
      EXPECT_LE(n, keeps ? most : 0) << a.what << ": " << a.text;
      expect_sound(*pool);
      pool->update([&](auto& tx, Root& root) { step(tx, root, n + 1); });
    }
    std::filesystem::remove(path);
    expect_nothing_else(a);
  }
  void expect_nothing_else(const Answer& a) const {
    for (const auto& e : std::filesystem::directory_iterator(scratch.folder()))
      if (e.path() != path) ADD_FAILURE() << a.what << ": " << a.text << ": left " << e.path();
  }
  // Opens the existing pool, which has five steps.
  void open_case() const {
    const Image image = Image::of(path);
    each_fault("open", [&](const Fault& fault) {
      image.write(path);
      const Answer a =
          with_fault(fault, [&] { return TestPool::try_open(path, options).status(); });
      expect_listed(a, of_opening, false);
      expect_steps(5, 5, a);
      return a.fired;
    });
  }
  // Called after an update of step `n` with the result `a`: the pool continues with or without it,
  // or is poisoned. Opened again, after an orderly close or as a kill leaves it, it has what was
  // acknowledged.
  void expect_goes_on(TestPool pool, std::uint64_t n, const Answer& a, bool killed) const {
    std::uint64_t least = a.ok() ? n : n - 1, most = n;
    Code seen = code_of([&] { least = most = steps_in(pool); });
    if (seen == Code::ok) {
      EXPECT_EQ(least, a.ok() ? n : n - 1) << a.what << ": " << a.text;
      // A medium that failed after the commit, while it looked ahead, reports it to the next call.
      const Code next = code_of(
          [&] { pool.update(durable, [&](auto& tx, Root& root) { step(tx, root, least + 1); }); });
      EXPECT_TRUE(next == Code::ok || next == Code::poisoned)
          << name(next) << " after " << a.what << ": " << a.text;
      most = least + 1;
      if (next == Code::ok) least = most;
      seen = next;
    } else {
      EXPECT_EQ(seen, Code::poisoned) << a.what << ": " << a.text;
      // If there is no memory for the pool's own thread, that poisons the pool.
      EXPECT_TRUE(!a.bad_alloc || a.later)
          << a.what << ": a transaction that changed nothing has poisoned the pool";
      if (a.bad_alloc) most = least;
    }
    if (killed) {
      const Image image = Image::of(path);
      { const TestPool gone = std::move(pool); }
      image.write(path);
    } else {
      const Code closed = code_of([&] { pool.close(); });
      // The pool's own thread may have met the fault meanwhile.
      EXPECT_TRUE(closed == seen || (a.fired && closed == Code::poisoned))
          << name(closed) << " after " << name(seen);
      const TestPool gone = std::move(pool);
    }
    expect_steps(least, most, a);
  }
  // A pool whose `n` steps were acknowledged, after a call with the result `a`, is closed or
  // dropped and opened again.
  void expect_steps_in_order(TestPool pool, std::uint64_t n, const Answer& a) const {
    std::uint64_t there = n;
    const auto seen = code_of([&] { there = steps_in(pool); });
    // If there is no memory for the pool's own thread, that poisons the pool.
    EXPECT_TRUE(seen == Code::ok ||
                (seen == Code::poisoned &&
                 (a.code == Code::poisoned || a.code == Code::io || (a.bad_alloc && a.later))))
        << a.what << ": " << a.text;
    EXPECT_EQ(there, n);
    { const TestPool gone = std::move(pool); }
    expect_steps(n, n, a);
  }
  // An update of step `n`, by `change`, of a pool that has n - 1.
  template <class F>
  void update_case(std::uint64_t n, Durability durability, F&& change) {
    const std::uint64_t faults = each_fault("update", [&](const Fault& fault) {
      TestPool pool = make(n - 1);
      const Answer a = with_fault(fault, [&] {
        pool.update(durability,
                    [&](auto& tx, Root& root) {
                      change(tx, root);
                      step(tx, root, n);
                    })
            .wait();
        return Status();
      });
      expect_listed(
          a, {Code::io, Code::full, Code::out_of_memory, Code::poisoned, Code::too_many_threads});
      expect_goes_on(std::move(pool), n, a, fault.nth % 2 == 0);
      return a.fired;
    });
    EXPECT_GT(faults, 5U) << "the calls are not intercepted";
  }

  const Options options = options_of(GetParam());
  const bool keeps = !GetParam().engine.starts_with("volatile");
  Scratch scratch;  // in memory: nth_call_test.cpp runs on a disk
  const std::string path = scratch.path();
  const Codes of_opening{Code::io, Code::full, Code::out_of_memory, Code::too_many_threads};
};

TEST_P(CallErrors, OpenNew) {
  const std::uint64_t faults = each_fault("open", [&](const Fault& fault) {
    std::optional<TestPool> pool;
    const Answer a = with_fault(fault, [&]() -> Status {
      if (fault.nth % 2 == 0) {
        pool = TestPool::open(path, options);
        return {};
      }
      auto opened = TestPool::try_open(path, options);
      if (!opened) return opened.status();
      pool = std::move(*opened);
      return {};
    });
    expect_listed(a, of_opening, false);
    EXPECT_EQ(pool.has_value(), a.ok());
    EXPECT_TRUE(a.ok() || !std::filesystem::exists(path) || may_leave_a_file(fault))
        << a.what << ": " << a.text;
    pool.reset();
    expect_steps(0, 0, a);
    return a.fired;
  });
  EXPECT_GT(faults, 30U) << "the calls are not intercepted";
}

TEST_P(CallErrors, OpenClosed) {
  { make(5).close(); }
  open_case();
}
TEST_P(CallErrors, OpenKilled) {
  make_unclean(path, options, 5);
  open_case();
}

TEST_P(CallErrors, UpdateFirst) {
  update_case(1, durable, [](auto&, Root&) {});
}
TEST_P(CallErrors, UpdateLarge) {
  update_case(4, GetParam().durability, [](auto& tx, Root& root) {
    tx(root.block) = tx.alloc(5 * MiB);  // grows
    std::byte* blocks[80];               // more than the initial capacity of the lists
    for (auto& b : blocks) b = tx.alloc(24);
    const std::uint64_t word = 7;
    std::byte* const at = tx(root.block);
    for (int i = 0; i < 40; ++i) tx.write_bytes(at + i * 64, &word, sizeof word);
    for (auto* b : blocks) tx.free(b);
    tx.free(at);
    tx(root.block) = nullptr;
  });
}
TEST_P(CallErrors, UpdateAsync) {
  update_case(1, async, [](auto&, Root&) {});
}

// The updates around the one at which the engine first truncates its log. Each logs more than 2,000
// bytes.
TEST_P(CallErrors, UpdateThatTruncates) {
  if (GetParam().medium == "file")
    GTEST_SKIP() << "hundreds of updates for each fault, each a sync";
  std::uint64_t n = 0;
  {
    TestPool pool = make(0);
    while (n < 600 && pool.stats().checkpoints == 0) large(pool, ++n);
    if (pool.stats().checkpoints == 0) GTEST_SKIP() << "not within 600 updates";
  }
  std::filesystem::remove(path);
  each_fault("update", [&](const Fault& fault) {
    TestPool pool = make(0);
    for (std::uint64_t i = 1; i <= n - 2; ++i) large(pool, i);
    std::uint64_t acknowledged = n - 2;
    const Answer a = with_fault(fault, [&] {
      while (acknowledged < n + 1) {
        large(pool, acknowledged + 1);
        ++acknowledged;
      }
      return Status();
    });
    expect_listed(
        a, {Code::io, Code::full, Code::out_of_memory, Code::poisoned, Code::too_many_threads});
    expect_goes_on(std::move(pool), a.ok() ? acknowledged : acknowledged + 1, a,
                   fault.nth % 2 == 0);
    return a.fired;
  });
}

TEST_P(CallErrors, WhenDurable) {
  each_fault("then", [&](const Fault& fault) {
    TestPool pool = make(1);
    const auto receipt = pool.update(async, [](auto& tx, Root& root) { step(tx, root, 2); });
    std::promise<Status> told;
    bool called = false;
    const Answer a = with_fault(fault, [&] {
      receipt.then([](auto g) { g(); },
                   [&](Status s) {
                     called = true;
                     told.set_value(std::move(s));
                   });
      return Status();
    });
    expect_listed(a, {Code::too_many_threads});
    Status status;
    if (a.ok()) status = told.get_future().get();
    EXPECT_EQ(called, a.ok()) << a.what << ": " << a.text;
    EXPECT_TRUE(status.ok() || status.code() == Code::poisoned) << status.message();
    if (a.ok() && status.ok()) {
      expect_steps_in_order(std::move(pool), 2, a);
    } else {
      // The second step was not acknowledged: the pool's own thread may have met the fault, too.
      { const TestPool gone = std::move(pool); }
      expect_steps(1, 2, a);
    }
    return a.fired;
  });
}

TEST_P(CallErrors, ViewAndCheck) {
  { make(5).close(); }
  for (const int how : {0, 1, 2, 3})
    each_fault(how == 0   ? "view"
               : how == 1 ? "checked_view"
               : how == 2 ? "check"
                          : "stats",
               [&](const Fault& fault) {
                 TestPool pool = TestPool::open(path, options);
                 std::uint64_t n = 0;
                 const Answer a = with_fault(fault, [&] {
                   const auto count = [](auto& tx, const Root& root) {
                     return tx(root.count) + (std::string(100, 'x').empty() ? 1 : 0);
                   };
                   if (how == 0) n = pool.view(durable, count);
                   if (how == 1) n = pool.checked_view(count);
                   EXPECT_TRUE(how != 2 || pool.check().ok());
                   if (how == 3) n = pool.stats().commits;
                   return Status();
                 });
                 expect_listed(a, {Code::too_many_threads});
                 if (a.ok() && how < 2) {
                   EXPECT_EQ(n, keeps ? 5U : 0U);
                 }
                 EXPECT_EQ(steps_in(pool), keeps ? 5U : 0U);
                 pool.close();
                 return a.fired;
               });
}

TEST_P(CallErrors, Checkpoint) {
  each_fault("checkpoint", [&](const Fault& fault) {
    TestPool pool = make(5);
    const Answer a = with_fault(fault, [&] { return pool.checkpoint(), Status(); });
    expect_listed(a, {Code::io, Code::poisoned});
    expect_steps_in_order(std::move(pool), 5, a);
    return a.fired;
  });
}

TEST_P(CallErrors, Close) {
  for (const bool destroyed : {false, true})
    each_fault(destroyed ? "~Pool" : "close", [&](const Fault& fault) {
      std::optional<TestPool> pool = make(5);
      const Answer a = with_fault(fault, [&] {
        if (!destroyed) pool->close();
        pool.reset();
        return Status();
      });
      expect_listed(a, {Code::io, Code::poisoned}, !destroyed);
      EXPECT_TRUE(a.ok() || !destroyed);
      pool.reset();
      expect_steps(5, 5, a);
      return a.fired;
    });
}

// A thread for which there is no slot: each call reports it, and returns; so does the destructor.
TEST_P(CallErrors, MoreThreadsThanNumbers) {
  EXPECT_EQ(in_child([&] {
              ::alarm(55);
              base::give_back_thread_slot();
              std::optional<TestPool> pool;
              std::optional<Receipt<void>> receipt;
              std::thread([&] {
                pool = make(5);
                receipt = pool->update(async, [](auto& tx, Root& root) { step(tx, root, 6); });
              }).join();
              std::latch taken(base::max_threads), done(1);
              std::vector<std::thread> threads;
              for (int i = 0; i < base::max_threads; ++i)
                threads.emplace_back([&] {
                  (void)base::thread_slot();
                  taken.count_down();
                  done.wait();
                });
              taken.wait();
              const auto update = [&] {
                pool->update([](auto& tx, Root& root) { step(tx, root, 7); });
              };
              const auto view = [&] {
                (void)pool->view([](auto& tx, const Root& root) { return tx(root.count); });
              };
              EXPECT_EQ(code_of(update), Code::too_many_threads);
              EXPECT_EQ(code_of(view), Code::too_many_threads);
              EXPECT_EQ(code_of([&] { (void)pool->check(); }), Code::too_many_threads);
              EXPECT_EQ(code_of([&] { pool->checkpoint(); }), Code::too_many_threads);
              EXPECT_EQ(code_of([&] { pool->close(); }), Code::too_many_threads);
              EXPECT_EQ(receipt->try_wait().code(), Code::too_many_threads);
              EXPECT_EQ(code_of([&] { (void)pool->stats(); }), Code::ok);
              EXPECT_EQ(TestPool::try_open(scratch.path("other"), options).code(),
                        Code::too_many_threads);
              pool.reset();
              done.count_down();
              for (auto& t : threads) t.join();
            }),
            0);
  expect_steps(5, 6, {});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* e :
       {"shadow", "shadow/stm", "dudetm", "dudetm-inf", "dudetm-combined", "dudetm/htm-stand-in",
        "undo", "rewind-1l-nfp-batch", "rewind-2l-fp-optimized", "bppm", "redo-mne-async",
        "redo-base", "softwrap", "softwrap-local", "volatile"})
    all.push_back({e, "emulated", durable});
  all.push_back({"shadow", "emulated", async});
  for (const char* e : {"shadow", "dudetm", "undo", "rewind-1l-nfp-batch", "bppm", "softwrap"})
    all.push_back({e, "file", durable});
  return chosen(std::move(all));
}
INSTANTIATE_TEST_SUITE_P(Engines, CallErrors, ::testing::ValuesIn(cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
