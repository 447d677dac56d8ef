// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshots under free threads: writers transfer between accounts on a few lines, roll back, change
// containers and free blocks, while threads open, read and close snapshots. In each, the accounts
// have their sum and the containers hold the same keys (SNAP-1 to SNAP-6).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "perdure/perdure.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

constexpr std::size_t accounts = 96;
constexpr std::uint64_t start = 1000;

struct Root {
  std::array<p<std::uint64_t>, accounts> account;
  p<std::uint64_t> keys;  // that both maps have
  map<std::uint64_t, std::string> sorted;
  hash_map<std::uint64_t, std::string> hashed;
};

class SnapshotsOfFreeThreads : public EngineTest {};
std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}
ENGINE_SUITE(SnapshotsOfFreeThreads, with_snapshots);

struct Oops {};

template <class Pool>
void write(Pool& pool, std::mt19937_64& random) {
  try {
    pool.update([&](auto& tx, Root& r) {
      auto& from = r.account[random() % accounts];
      auto& to = r.account[random() % accounts];
      if (tx(from) > 0) {
        --tx(from);
        ++tx(to);
      }
      if (random() % 4 == 0) {
        const std::uint64_t key = random() % 200;
        const std::string text(random() % 100, 'x');
        if (random() % 2 == 0 && r.sorted.erase(tx, key)) {
          r.hashed.erase(tx, key);
          --tx(r.keys);
        } else if (r.sorted.put(tx, key, text)) {
          r.hashed.put(tx, key, text);
          ++tx(r.keys);
        } else {
          r.hashed.put(tx, key, text);
        }
      }
      if (random() % 8 == 0) throw Oops();
    });
  } catch (const Oops&) {}
}

/// Reads everything; returns what is wrong.
template <class Tx>
std::string wrong_in(Tx& tx, const Root& r) {
  std::uint64_t sum = 0;
  for (const auto& a : r.account) sum += tx(a);
  if (sum != accounts * start) return "a sum of " + std::to_string(sum);
  std::uint64_t n = 0, differ = 0;
  r.sorted.for_each(tx, [&](std::uint64_t k, const std::string& v) {
    ++n;
    differ += r.hashed.find(tx, k) != v ? 1U : 0U;
  });
  if (differ != 0) return std::to_string(differ) + " entries that differ";
  if (n != tx(r.keys)) return std::to_string(n) + " of " + std::to_string(tx(r.keys)) + " keys";
  return "";
}

void run(const EngineInfo& e, std::size_t writers, Durability durability, bool file,
         std::uint64_t memory) {
  const Scratch scratch;
  Options o;
  o.engine = e.name;
  o.medium = file ? "file" : "emulated";
  o.medium_options.direct = false;
  o.creation.max_size = 64 << 20;
  o.creation.log_size = 8 << 20;
  o.durability = durability;
  o.engine_options = ShadowOptions{.snapshot_memory = memory};
  auto pool = AnyPool<Root>::open(scratch.path(), o);
  pool.update([](auto& tx, Root& r) {
    for (auto& a : r.account) tx(a) = start;
  });
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::string wrong;
  std::atomic<std::uint64_t> read{0}, expired{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < writers; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(10 + t);
      for (unsigned i = 0; !stop; ++i) {
        write(pool, random);
        if (t == 0 && i % 5000 == 4999) pool.checkpoint();
      }
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      std::uint64_t last = 0;
      while (!stop) try {
          const auto s = pool.snapshot();
          EXPECT_GE(s.id(), last);
          last = s.id();
          for (int i = 0; i < 3 && !stop; ++i) {
            const std::string found =
                s.view([](auto& tx, const Root& r) { return wrong_in(tx, r); });
            ++read;
            if (found.empty()) continue;
            const std::lock_guard lock(mutex);
            wrong = found;
            stop = true;
          }
          // Between openings: while one goes on, each transaction saves what it stores to, and what
          // an older snapshot reads has to be found behind that.
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        } catch (const error& failed) {
          ASSERT_EQ(failed.code(), Code::expired) << failed.what();
          ++expired;
        }
    });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  while (!stop && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, "");
  EXPECT_GT(read, 20U / scale);
  EXPECT_EQ(pool.stats().snapshots, 0U);
  EXPECT_TRUE(pool.check().ok());
}

constexpr std::uint64_t enough = std::uint64_t{256} << 20;

TEST_P(SnapshotsOfFreeThreads, AreWhole) { run(GetParam(), 2, durable, false, enough); }
TEST_P(SnapshotsOfFreeThreads, AreWholeBesideOneWriter) {
  run(GetParam(), 1, durable, false, enough);
}
TEST_P(SnapshotsOfFreeThreads, AreWholeInThePipelinedOrder) {
  run(GetParam(), 2, async, true, enough);
}
TEST_P(SnapshotsOfFreeThreads, AreWholeOrExpire) { run(GetParam(), 3, durable, false, 128 << 10); }

}  // namespace
}  // namespace perdure::test
