// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshot::check(): exact at its snapshot's id, whatever transactions allocate and free meanwhile,
// also where they make and dissolve spans and large blocks and a trim frees spans (SNAP-7); and
// Pool::check() beside writers. tests/crash/snapshots_test.cpp has its interleavings.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "perdure/engine/shadow/versions.hpp"
#include "perdure/perdure.hpp"
#include "tests/engine/stages.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

constexpr std::size_t slots = 512;

struct Root {
  std::array<ptr<p<std::uint64_t>>, slots> block;
  map<std::uint64_t, std::string> sorted;
};
using TestPool = AnyPool<Root>;

class SnapshotChecks : public EngineTest {
 protected:
  [[nodiscard]] TestPool open(std::uint64_t memory = std::uint64_t{256} << 20) const {
    Options o;
    o.engine = GetParam().name;
    o.medium = "file";
    o.medium_options.direct = false;
    o.durability = Durability::async;
    o.creation.max_size = std::uint64_t{1} << 30;
    o.creation.log_size = 8 << 20;
    o.engine_options = ShadowOptions{.snapshot_memory = memory};
    return TestPool::open(scratch_.path(), o);
  }
  Scratch scratch_;
};
std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}
ENGINE_SUITE(SnapshotChecks, with_snapshots);

// The block has data, also where a bitmap was.
p<std::uint64_t>* alloc(auto& tx, std::size_t bytes) {
  auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(bytes));
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes / 8, 64); i += 8)
    tx(made[i]) = ~std::uint64_t{0};
  return made;
}

TEST_P(SnapshotChecks, AreOfTheSnapshotSState) {
  auto pool = open();
  const auto update = [&](auto&& f) { pool.update(f); };
  update([](auto& tx, Root& r) {
    for (std::size_t i = 0; i < 16; ++i) tx(r.block[i]) = alloc(tx, 64 << i % 12);
    for (std::uint64_t k = 0; k < 100; ++k) r.sorted.put(tx, k, std::string(k, 'x'));
  });
  const CheckReport first = pool.check();
  EXPECT_EQ(first.problems, std::vector<std::string>{});
  EXPECT_EQ(first.blocks, first.reachable);
  const auto whole = pool.snapshot();
  // A leak, more than an entry's heap ops in one transaction.
  update([](auto& tx, Root& r) {
    for (int i = 0; i < 9; ++i) (void)alloc(tx, 64 << i);
    r.sorted.clear(tx);
  });
  const auto leaking = pool.snapshot();
  // Blocks are freed, and others allocated where they were.
  update([](auto& tx, Root& r) {
    for (std::size_t i = 0; i < 16; ++i) {
      tx.free(tx.read(r.block[i]));
      tx(r.block[i]) = nullptr;
    }
  });
  update([](auto& tx, Root& r) {
    for (std::size_t i = 0; i < 16; ++i) tx(r.block[i]) = alloc(tx, 64 << (15 - i) % 12);
  });
  const auto check = [](const auto& snapshot, std::uint64_t leaked, const CheckReport& expected) {
    const CheckReport found = snapshot.check();
    EXPECT_EQ(found.leaked, leaked);
    EXPECT_EQ(found.problems.size(), leaked);
    EXPECT_EQ(found.blocks, expected.blocks);
    EXPECT_EQ(found.bytes, expected.bytes);
    EXPECT_EQ(found.reachable, expected.reachable);
  };
  check(whole, 0, first);
  const CheckReport now = pool.check();
  EXPECT_EQ(now.leaked, 9U);
  check(leaking, 9, now);  // with as many blocks of the same sizes
  check(whole, 0, first);
  pool.checkpoint();
  check(whole, 0, first);
}

// What each thread does until `stop`; the first thing that is wrong ends all.
struct Threads {
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::string wrong;
  std::vector<std::thread> all;

  void say(const std::string& what) {
    const std::lock_guard lock(mutex);
    wrong = what;
    stop = true;
  }
  template <class F>
  void repeat(F f) {
    all.emplace_back([this, f]() mutable {
      try {
        while (!stop) f();
      } catch (const std::exception& e) {
        say(e.what());
      }
    });
  }
  void run_for(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!stop && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop = true;
    for (auto& t : all) t.join();
  }
};

// Most blocks are of one chunk or more, or in a span of few blocks: so spans and large blocks take
// each other's place all the time, in more chunks than are read at once.
template <class Pool>
auto change(Pool& pool, std::uint64_t seed) {
  return [&pool, random = std::mt19937_64(seed)]() mutable {
    const std::uint64_t at = random() % slots, size = random() % 8, n = random() % 3;
    pool.update([&](auto& tx, Root& r) {
      for (std::uint64_t i = 0; i <= n; ++i) {
        auto& slot = r.block[(at + i * 7) % slots];
        if (auto* const old = tx.read(slot); old != nullptr) {
          tx.free(old);
          tx(slot) = nullptr;
        } else {
          tx(slot) = alloc(tx, size < 4 ? (size + 1) * pool::chunk_bytes : 2048 << size % 4);
        }
      }
    });
  };
}

TEST_P(SnapshotChecks, AreExactBesideWritersAndTrims) {
  auto pool = open();
  Threads threads;
  std::atomic<std::uint64_t> checks{0}, trims{0}, refused{0};
  threads.repeat(change(pool, 1));
  threads.repeat(change(pool, 2));
  threads.repeat([&] {
    try {
      trims += pool.trim(64 << 20).bytes != 0 ? 1U : 0U;
    } catch (const error& e) {
      if (e.code() != Code::busy) throw;
      ++refused;
    }
  });
  threads.repeat([&] {
    {
      const auto snapshot = pool.snapshot();
      for (int i = 0; i < 2; ++i)
        for (const std::string& problem : snapshot.check().problems) threads.say(problem);
    }
    ++checks;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // a trim begins while none is open
  });
  threads.run_for(std::chrono::milliseconds(4000));
  EXPECT_EQ(threads.wrong, "");
  EXPECT_GT(checks, 10U / scale);
  // On a busy machine each may find a snapshot open.
  EXPECT_GT(trims + refused, 0U);
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
}

// Two transactions need a new span, of which each has blocks. One makes it; the other one, which
// began before, has yet to own the bitmap's lines, and changes the span only after the snapshot.
// What it would save of the bitmap is no data.
enum class Role : std::uint8_t { none, opener, second };
thread_local Role role = Role::none;
void meet() {
  ++points;
  if (role == Role::second && points == 1) stage = 2, until(4);  // it is about to own a line
  if (role == Role::opener && points == 1) stage = 1, until(3);  // updates of before have ended
  if (role == Role::opener && points == 2) stage = 4;            // it has the id
}
class ConcurrentSnapshotChecks : public SnapshotChecks {};
std::vector<EngineInfo> with_concurrent_transactions() {
  return engines_that(
      [](const EngineInfo& e) { return e.has_snapshots && e.name != "shadow/global_lock"; });
}
ENGINE_SUITE(ConcurrentSnapshotChecks, with_concurrent_transactions);
TEST_P(ConcurrentSnapshotChecks, HaveTheBlocksOfASpanThatAnotherTransactionMade) {
  auto pool = open();
  constexpr std::size_t bytes = 1024;
  const auto put = [&](std::size_t at) {
    return pool.update([&](auto& tx, Root& r) { tx(r.block[at]) = alloc(tx, bytes); }).id();
  };
  // So that neither of the two has the pool to itself.
  const auto begin = [&] {
    pool.update([&](auto& tx, Root& r) { tx(r.block[slots - 1]) = nullptr; });
  };
  begin();
  std::thread(begin).join();
  const std::uint64_t blocks = pool.check().blocks;
  stage = 0;
  engine::shadow::snapshot_point = &meet;
  std::uint64_t of_second = 0;
  std::thread second([&] {
    until(1);
    role = Role::second;
    of_second = put(1);
  });
  std::optional<Snapshot<Root>> snapshot;
  std::thread opener([&] {
    role = Role::opener;
    snapshot.emplace(pool.snapshot());
  });
  until(2);
  const std::uint64_t of_first = put(0);
  stage = 3;
  second.join();
  opener.join();
  engine::shadow::snapshot_point = nullptr;
  EXPECT_EQ(stage, 4);
  EXPECT_EQ(snapshot->id(), of_first);
  EXPECT_GT(of_second, of_first);
  const CheckReport seen = snapshot->check();
  EXPECT_EQ(seen.problems, std::vector<std::string>{});
  EXPECT_EQ(seen.blocks, blocks + 1);
  EXPECT_EQ(pool.check().blocks, blocks + 2);
}

// A structure at the old end reaches beyond it.
TEST_P(SnapshotChecks, AreExactWhileThePoolGrows) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2000);
  std::uint64_t growths = 0, checks = 0;
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    auto pool = open();
    pool.update([](auto& tx, Root& r) {
      for (std::size_t i = 0; i < 256; ++i) tx(r.block[i]) = alloc(tx, pool::chunk_bytes);
    });
    Threads threads;
    threads.all.emplace_back([&] {
      std::mt19937_64 random(static_cast<std::uint64_t>(round));
      for (std::size_t i = 256; i < slots; ++i)
        pool.update([&](auto& tx, Root& r) {
          tx(r.block[i]) = alloc(tx, (1 + random() % 12) * pool::chunk_bytes);
        });
      threads.stop = true;
    });
    const std::uint64_t before = pool.stats().data_bytes;
    while (!threads.stop) {
      for (const std::string& problem : pool.check().problems) threads.say(problem);
      ++checks;
    }
    threads.all.front().join();
    ASSERT_EQ(threads.wrong, "");
    growths += pool.stats().data_bytes > before ? 1U : 0U;
    pool.close();
    ASSERT_TRUE(std::filesystem::remove(scratch_.path()));
  }
  EXPECT_GT(growths, 0U);
  EXPECT_GT(checks, 2 * growths);
}

TEST_P(SnapshotChecks, OfThePoolAreExactBesideWriters) {
  auto pool = open();
  Threads threads;
  std::atomic<std::uint64_t> checks{0};
  for (std::uint64_t seed : {3, 4}) threads.repeat(change(pool, seed));
  threads.repeat([&] {
    for (const std::string& problem : pool.check().problems) threads.say(problem);
    ++checks;
  });
  threads.run_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(threads.wrong, "");
  EXPECT_GT(checks, 5U / scale);
}

// A check that its snapshot does not outlive says so, and reports nothing.
TEST_P(SnapshotChecks, EndWithTheSnapshot) {
  auto pool = open(64 << 10);
  const auto snapshot = pool.snapshot();
  std::mt19937_64 random(1);
  for (int i = 0; i < 4000 && !snapshot.expired(); ++i)
    pool.update([&](auto& tx, Root& r) {
      tx(r.block[random() % slots]) = alloc(tx, 64);
      r.sorted.put(tx, random(), "x");
    });
  ASSERT_TRUE(snapshot.expired());
  try {
    (void)snapshot.check();
    ADD_FAILURE() << "expected expired";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::expired) << e.what();
  }
}

// Inside a transaction the pool is checked as the transaction sees it, as ever.
TEST_P(SnapshotChecks, OfThePoolInsideATransactionAreTheTransactionS) {
  auto pool = open();
  pool.update([&](auto& tx, Root& r) { tx(r.block[0]) = alloc(tx, 64); });
  pool.view([&](auto&, const Root&) { EXPECT_TRUE(pool.check().ok()); });
}

}  // namespace
}  // namespace perdure::test
