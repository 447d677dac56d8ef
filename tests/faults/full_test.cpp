// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that can be full: the log (transactions wait), a transaction larger than the log
// (too_big), the heap (full; free still works), the disk (an error from the call, the pool as
// before, usable again when there is space).
#include <atomic>
#include <thread>

#include "faults.hpp"
#include "small_disk.hpp"

namespace perdure::faults {
namespace {

class Full : public ::testing::TestWithParam<Case> {
 protected:
  const bool undo = GetParam().engine.starts_with("undo"),
             rewind = GetParam().engine.starts_with("rewind");
  // its log at each commit
  const bool clears = GetParam().engine.find("-fp-") != std::string::npos;
  const bool file = GetParam().medium == "file", logs = GetParam().engine != "volatile";
  Options options() const { return small(GetParam()); }
  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
};

struct Blocks {
  ptr<std::byte> block[60];  // a record of more than a quarter of the smallest ring
};

// --- the log -------------------------------------------------------------------------------------

// Many threads, the smallest rings: a thread that finds no log space waits for a checkpoint and
// continues; nothing is lost, nothing waits for ever.
TEST_P(Full, ALogPushesBackAndGoesOn) {
  if (GetParam().engine.ends_with("none")) GTEST_SKIP() << "the caller isolates";
  Options o = options();
  // two rings of their own, one shared
  o.creation.threads = 3;
  // On a file a record takes a block; undo writes one record per line.
  o.creation.log_size = (rewind || (file && undo) ? 3 * 32 : 3 * 4) * 4096;
  auto pool = std::make_unique<TestPool>(TestPool::open(path, o));
  constexpr int threads = 6;
  const std::uint64_t each = 300 / (file ? 6 : 1);
  std::atomic<int> failed{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      try {
        for (std::uint64_t i = 1; i <= each; ++i) {
          pool->update(i % 3 == 0 ? async : durable, [&](auto& tx, Root& root) {
            tx(root.slot[t].value) = i;
            tx(root.count) += 1;
            root.names.put(tx, static_cast<std::uint64_t>(t) * 8 + i % 8,
                           std::string(i * 7 % 300, static_cast<char>('a' + t)));
          });
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
        ++failed;
      }
    });
  }
  for (auto& t : all) t.join();
  ASSERT_EQ(failed, 0);
  const auto right = [&](auto& tx, const Root& root) {
    EXPECT_EQ(tx(root.count), each * threads);
    for (int t = 0; t < threads; ++t) EXPECT_EQ(tx(root.slot[t].value), each);
    EXPECT_EQ(root.names.size(tx), 8U * threads);
  };
  pool->view(right);
  expect_sound(*pool);
  if (logs) {
    const Stats stats = pool->stats();
    EXPECT_GT(stats.log_bytes, stats.log_capacity) << "the log never wrapped";
    EXPECT_LE(stats.log_used, stats.log_capacity);
    EXPECT_EQ(stats.checkpoints == 0, clears);
  }
  pool.reset();
  if (!logs) return;
  TestPool again = TestPool::open(path, o);
  again.view(right);
  expect_sound(again);
}

// A transaction that waits for log space releases everything that it had reserved: otherwise a heap
// this small is soon full.
TEST_P(Full, ATransactionThatWaitsForTheLogKeepsNoBlocks) {
  Options o = options();
  o.creation.threads = 1;
  o.creation.log_size = (rewind ? 32
                         : undo ? 16
                                : 2) *
                            (file ? 8 : 1) * 4096 +
                        (file && !undo ? 4096 * 16 : 0);
  o.creation.max_size = 1 * MiB;
  Pool<Blocks, Tested> pool = Pool<Blocks, Tested>::open(path, o);
  for (std::uint64_t i = 0; i < (file ? 100U : 400U); ++i)
    pool.update(i % 2 == 0 ? durable : async, [&](auto& tx, Blocks& root) {
      for (auto& b : root.block) {
        if (tx(b) != nullptr) tx.free(tx(b));
        tx(b) = tx.alloc(2000);
      }
    });
  const Stats stats = pool.stats();
  if (logs && !file) {
    EXPECT_GT(stats.log_bytes, 4 * stats.log_capacity);
  }
  EXPECT_LT(stats.heap_used, 200U * KiB);
  const CheckReport report = pool.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

// Larger than the log can hold: reported, rolled back, and the pool continues.
TEST_P(Full, ATransactionTooBigForTheLog) {
  TestPool pool = TestPool::open(path, options());
  pool.update([](auto& tx, Root& root) { step(tx, root, 1); });
  pool.update([&](auto& tx, Root& root) { tx(root.block) = tx.alloc(4 * MiB); });
  const std::uint64_t used = pool.stats().heap_used, half = pool.stats().log_capacity / 2;
  const auto big = [&](std::uint64_t bytes) {
    return [&pool, bytes] {
      pool.update([bytes](auto& tx, Root& root) {
        step(tx, root, 2);
        std::byte* const at = tx(root.block);
        const std::string text(4096, 'b');
        for (std::uint64_t done = 0; done < bytes; done += text.size())
          tx.write_bytes(at + done % (4 * MiB), text.data(), text.size());
        root.names.put(tx, 1000, std::string(5000, 'y'));
      });
    };
  };
  if (!logs) {
    EXPECT_EQ(code_of(big(4 * MiB)), Code::ok);
    return;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code_of(big(4 * MiB)), Code::too_big);
    EXPECT_NE(message_of(big(half + 100)).find("log_size"), std::string::npos)
        << message_of(big(half + 100));
    EXPECT_EQ(steps_in(pool), 1U);
    EXPECT_EQ(pool.stats().heap_used, used);
    pool.view([](auto& tx, const Root& root) {
      std::byte first;
      tx.read_bytes(&first, tx(root.block), 1);
      EXPECT_EQ(first, std::byte{0});
    });
    expect_sound(pool);
  }
  // A transaction that fits, however little space others leave; many times over.
  const std::uint64_t fits = rewind ? half / 24
                             : undo ? half / (file ? 4096 : 128) * 64 * 3 / 4
                                    : half / 2;
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(code_of(big(fits > 16384 ? fits - 16384 : 4096)), Code::ok);
  EXPECT_EQ(pool.view([](auto& tx, const Root& root) { return tx(root.count); }), 2U);
  expect_sound(pool);
}

// If the user catches the error inside the lambda, a transaction must not commit a half of what it
// could not log.
TEST_P(Full, TooBigCaughtInsideTheLambda) {
  if (!logs) GTEST_SKIP() << "no log";
  {
    TestPool pool = TestPool::open(path, options());
    pool.update([&](auto& tx, Root& root) { tx(root.block) = tx.alloc(4 * MiB); });
    bool caught = false;
    const Code code = code_of([&] {
      pool.update([&](auto& tx, Root& root) {
        std::byte* const at = tx(root.block);
        const std::string text(64, 'c');
        std::uint64_t done = 0;
        try {
          for (; done < 4 * MiB; done += 64) tx.write_bytes(at + done, text.data(), 64);
        } catch (const error&) {
          caught = true;
          for (int i = 0; i < 8; ++i) {
            // The same place again, with a small value, after the error was ignored.
            try {
              tx.write_bytes(at + done, text.data(), 64);
            } catch (const error&) {}
          }
        }
      });
    });
    EXPECT_TRUE(caught);
    // Either it committed everything that was stored (what was refused was not stored), or it was
    // refused as a whole.
    pool.view([&](auto& tx, const Root& root) {
      std::string text(4 * MiB, '\0');
      tx.read_bytes(text.data(), tx(root.block), text.size());
      const std::size_t n = text.find('\0');
      EXPECT_TRUE(code == Code::ok ? n > 0 : n == 0) << n;
      EXPECT_EQ(text.find('c', n), std::string::npos);
    });
  }
  TestPool again = TestPool::open(path, options());
  expect_sound(again);
}

struct Many {
  static constexpr std::size_t blocks = 5000;
  p<std::uint64_t> freed;
  std::array<ptr<std::byte>, blocks> block;
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (std::uint64_t i = tx.read(freed); i < blocks; ++i) f(tx.read(block[i]));
  }
};

// What was freed before a free was refused for lack of log space is not freed, although the lambda
// continues and returns (REFUSED-1).
TEST_P(Full, TooBigCaughtWhileFreeing) {
  if (!logs) GTEST_SKIP() << "no log";
  std::uint64_t freed = 0;
  Options o = options();
  if (rewind) o.creation.log_size = 512 * KiB;
  {
    auto pool = Pool<Many, Tested>::open(path, o);
    for (std::size_t from = 0; from < Many::blocks; from += 10)
      pool.update(async, [&](auto& tx, Many& root) {
        for (std::size_t i = from; i < from + 10; ++i) tx(root.block[i]) = tx.alloc(16);
      });
    const Code code = code_of([&] {
      freed = pool.update([](auto& tx, Many& root) -> std::uint64_t {
                    std::uint64_t n = 0;
                    try {
                      for (; n < Many::blocks; ++n) tx.free(tx(root.block[n]));
                    } catch (const error& e) {
                      EXPECT_EQ(e.code(), Code::too_big);
                    }
                    return n;
                  })
                  .value();
    });
    if (rewind) {
      EXPECT_EQ(code, Code::too_big) << "the log is too large for this test";
    }
    if (code != Code::ok) {
      EXPECT_EQ(code, Code::too_big);
      EXPECT_EQ(freed, 0U);
    }
    EXPECT_TRUE(undo || code != Code::ok) << "the log is too large for this test";
    pool.update([&](auto& tx, Many& root) { tx(root.freed) = freed; });
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
  auto again = Pool<Many, Tested>::open(path, o);
  const CheckReport report = again.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

// --- the heap ------------------------------------------------------------------------------------

TEST_P(Full, TheHeap) {
  Options o = options();
  const bool slow = undo && file;  // one sync per line
  o.creation.max_size = (slow ? 2 : 8) * MiB;
  TestPool pool = TestPool::open(path, o);
  std::uint64_t n = 0;
  Code code = Code::ok;
  const auto put = [&] {
    pool.update([&](auto& tx, Root& root) {
      root.names.put(tx, n, std::string(3000, static_cast<char>('a' + n % 26)));
    });
  };
  for (; code == Code::ok && n < 100000; ++n) code = code_of(put);
  --n;  // the last one did not fit
  EXPECT_EQ(code, Code::full);
  EXPECT_GT(n, slow ? 100U : 1000U);
  EXPECT_NE(message_of(put).find("max_size"), std::string::npos) << message_of(put);
  const auto size = [&] {
    return pool.view([](auto& tx, const Root& root) { return root.names.size(tx); });
  };
  EXPECT_EQ(size(), n);
  expect_sound(pool);
  // Reads, stores that need no block, and frees continue.
  pool.update([](auto& tx, Root& root) { tx(root.count) = 5; });
  pool.update([](auto& tx, Root& root) {
    EXPECT_TRUE(root.names.erase(tx, 0));
    EXPECT_TRUE(root.names.erase(tx, 1));
  });
  // Freed blocks can be allocated again.
  const std::uint64_t full_at = n;
  for (n = full_at; n < full_at + 2; ++n) EXPECT_EQ(code_of(put), Code::ok) << message_of(put);
  EXPECT_EQ(size(), full_at);
  // A transaction that frees and allocates in a full pool may not use what it freed itself before
  // it commits.
  for (std::uint64_t i = 2; i < 40; ++i)
    pool.update([&](auto& tx, Root& root) { root.names.erase(tx, i); });
  EXPECT_EQ(size(), full_at - 38);
  for (n = full_at + 2; n < full_at + 30; ++n) EXPECT_EQ(code_of(put), Code::ok);
  expect_sound(pool);
  pool.update([](auto& tx, Root& root) { (void)root.names.clear_some(tx, 10); });
  // One block larger than any free space.
  EXPECT_EQ(code_of([&] {
              pool.update([](auto& tx, Root& root) { tx(root.block) = tx.alloc(6 * MiB); });
            }),
            Code::full);
  EXPECT_EQ(code_of([&] {
              pool.update([](auto& tx, Root& root) { tx(root.block) = tx.alloc(100 * MiB); });
            }),
            Code::full);
  expect_sound(pool);
}

INSTANTIATE_TEST_SUITE_P(Engines, Full, ::testing::ValuesIn(all_cases()), CaseName());

// --- the disk ------------------------------------------------------------------------------------

class FullDisk : public ::testing::TestWithParam<Case> {
 protected:
  const bool keeps = GetParam().engine != "volatile";
  Options options() const {
    Options o = small(GetParam());
    o.creation.max_size = 64 * MiB;
    return o;
  }
  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
};

TEST_P(FullDisk, WhileCreating) {
  on_a_small_disk(scratch, "64k", [&] {  // less than the root's span and the header
    const auto pool = TestPool::try_open(path, options());
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.code(), Code::full) << pool.status().message();
    EXPECT_NE(pool.status().message().find(path), std::string::npos) << pool.status().message();
    EXPECT_TRUE(std::filesystem::is_empty(scratch.folder())) << "nothing half-made is left";
    resize_disk(scratch, "32m");
    TestPool made = TestPool::open(path, options());
    made.update([](auto& tx, Root& root) { step(tx, root, 1); });
    EXPECT_EQ(steps_in(made), 1U);
  });
}

TEST_P(FullDisk, WhileGrowingLoggingAndCheckpointing) {
  on_a_small_disk(scratch, "12m", [&] {
    {
      auto pool = std::make_unique<TestPool>(TestPool::open(path, options()));
      pool->update([](auto& tx, Root& root) { step(tx, root, 1); });
      std::uint64_t blocks = 0;
      Code code = Code::ok;
      const auto grow = [&] {
        pool->update([&](auto& tx, Root& root) {
          root.names.put(tx, 100 + blocks, std::string(20000, 'd'));
        });
      };
      for (; code == Code::ok && blocks < 5000; ++blocks) code = code_of(grow);
      --blocks;
      EXPECT_EQ(code, Code::full);
      EXPECT_GT(blocks, 50U);
      EXPECT_LT(blocks, 1000U);
      EXPECT_NE(message_of(grow).find("disk is full"), std::string::npos) << message_of(grow);
      // The disk is full to the last byte: what needs no growth continues, through many generations
      // of the log and many checkpoints.
      for (std::uint64_t i = 2; i <= 600; ++i)
        pool->update([&](auto& tx, Root& root) {
          tx(root.count) = i;
          for (auto& s : root.slot) tx(s.value) = i * 3;
        });
      pool->checkpoint();
      expect_sound(*pool);
      // freed blocks are used again
      for (std::uint64_t i = 0; i < 10; ++i)
        pool->update([&](auto& tx, Root& root) { root.names.erase(tx, 100 + i); });
      for (std::uint64_t i = 0; i < 5; ++i)
        EXPECT_EQ(code_of([&] {
                    pool->update([&](auto& tx, Root& root) {
                      root.names.put(tx, 5000 + i, std::string(20000, 'e'));
                    });
                  }),
                  Code::ok);
      expect_sound(*pool);
      // With space again: it grows.
      resize_disk(scratch, "48m");
      for (std::uint64_t i = 0; i < 200; ++i)
        pool->update(
            [&](auto& tx, Root& root) { root.names.put(tx, 6000 + i, std::string(20000, 'f')); });
      expect_sound(*pool);
    }
    TestPool again = TestPool::open(path, options());
    again.view([&](auto& tx, const Root& root) {
      EXPECT_EQ(tx(root.count), keeps ? 600U : 0U);
      EXPECT_EQ(root.names.find(tx, 6199).value_or(""), keeps ? std::string(20000, 'f') : "");
    });
    expect_sound(again);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, FullDisk, ::testing::ValuesIn(all_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
