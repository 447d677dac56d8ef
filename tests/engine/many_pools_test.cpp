// SPDX-License-Identifier: BSD-3-Clause
//
// A thousand pools in one process, and idle pools: their threads take no slots of the program's
// threads, are started when they are first needed, and sleep without a wake-up when nothing is left
// to do; what was promised has been done by then.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"
#include "tests/support/comes.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;
using namespace std::chrono_literals;

struct Root {
  p<std::uint64_t> count;
};

/// Voluntary context switches of this process's threads, except for the calling one: a thread that
/// waits and wakes makes one.
std::map<int, std::uint64_t> wake_ups() {
  std::map<int, std::uint64_t> all;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* e = ::readdir(tasks)) {
    const int id = std::atoi(e->d_name);
    if (id == 0 || id == ::gettid()) continue;
    std::ifstream status("/proc/self/task/" + std::string(e->d_name) + "/status");
    const std::string name = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(name)) all[id] = std::stoull(line.substr(name.size()));
  }
  ::closedir(tasks);
  return all;
}

/// Whether all other threads become idle: for a second none of them wakes.
::testing::AssertionResult all_sleep() {
  std::map<int, std::uint64_t> before, after;
  for (int tries = 0; tries < 30; ++tries) {
    before = wake_ups();
    std::this_thread::sleep_for(1s);
    after = wake_ups();
    if (before == after) return ::testing::AssertionSuccess();
  }
  std::uint64_t sum = 0, threads = 0;
  for (const auto& [id, n] : after)
    if (n != before[id]) sum += n - before[id], ++threads;
  return ::testing::AssertionFailure()
         << threads << " of " << after.size() << " threads woke " << sum << " times in a second";
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t pages = 0;
  in >> pages >> pages;
  return pages * 4096;
}
std::size_t descriptors() {
  std::size_t n = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++n;
  ::closedir(folder);
  return n;
}

class ManyPools : public ::testing::Test {
 protected:
  static Options small(const char* medium) {
    Options o;
    o.medium = medium;
    o.creation.max_size = 4 << 20;
    o.creation.log_size = 64 << 10;
    o.creation.threads = 1;
    return o;
  }
  Scratch scratch;
};

TEST_F(ManyPools, AThousandInOneProcess) {
  constexpr std::size_t count = 1000 / scale;
  rlimit files = {};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &files));
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  const auto path = [&](std::size_t i) { return scratch.path("pool" + std::to_string(i)); };
  const auto open = [&](std::size_t i) { return AnyPool<Root>::open(path(i), small("file")); };
  std::vector<AnyPool<Root>> pools;
  const std::uint64_t memory = resident_bytes(), files_open = descriptors();
  for (std::size_t i = 0; i < count; ++i) pools.push_back(open(i));
  EXPECT_EQ(0U, wake_ups().size()) << "threads of pools in which nothing has happened";
  std::printf("%zu pools: %.2f descriptors and %.0f KiB of resident memory each\n", count,
              static_cast<double>(descriptors() - files_open) / count,
              static_cast<double>(resident_bytes() - memory) / count / 1024);
  for (auto& pool : pools) pool.update(durable, [](auto& tx, Root& r) { ++tx(r.count); });
  EXPECT_EQ(0U, wake_ups().size()) << "threads of pools whose updates waited for themselves";
  for (auto& pool : pools) pool.update(async, [](auto& tx, Root& r) { ++tx(r.count); });
  EXPECT_EQ(count, wake_ups().size()) << "a thread each for updates that nobody waits for";
  std::printf("after two updates: %.0f KiB of resident memory each\n",
              static_cast<double>(resident_bytes() - memory) / count / 1024);
  ASSERT_TRUE(comes([&] {
    for (auto& pool : pools)
      if (pool.durable_id() < pool.stats().last_id) return false;
    return true;
  }));
  EXPECT_TRUE(all_sleep());
  // The program's threads have all their slots.
  in_threads(200 / static_cast<int>(scale), [&](int t) {
    auto& pool = pools[static_cast<std::size_t>(t) % count];
    EXPECT_NO_THROW(pool.update([](auto& tx, Root& r) { ++tx(r.count); }));
  });
  for (auto& pool : pools) EXPECT_TRUE(pool.close().clean);
  pools.clear();
  EXPECT_EQ(0U, wake_ups().size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) pools.push_back(open(i));
  for (auto& pool : pools) sum += pool.view([](auto& tx, const Root& r) { return tx(r.count); });
  EXPECT_EQ(2 * count + 200 / scale, sum);
}

// At the limit of descriptors the error says which limit to raise; the open pools continue.
TEST_F(ManyPools, TheLimitOfDescriptors) {
  rlimit before = {};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &before));
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &few));
  std::vector<AnyPool<Root>> pools;
  Status refused;
  for (int i = 0; i < 64 && refused.ok(); ++i) {
    auto pool = AnyPool<Root>::try_open(scratch.path("pool" + std::to_string(i)), small("file"));
    if (pool.ok())
      pools.push_back(std::move(*pool));
    else
      refused = pool.status();
  }
  (void)::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(Code::io, refused.code());
  EXPECT_NE(std::string::npos, refused.message().find("ulimit -n")) << refused.message();
  EXPECT_GT(pools.size(), 10U);
  for (auto& pool : pools) {
    pool.update([](auto& tx, Root& r) { ++tx(r.count); });
    EXPECT_TRUE(pool.close().clean);
  }
}

// Every engine, in every durability mode, on a file and on memory: used, then left idle.
TEST_F(ManyPools, IdlePoolsOfAllEnginesDoNotWake) {
  struct Open {
    EngineInfo entry;
    std::string name;
    AnyPool<Root> pool;
    std::uint64_t last;
  };
  std::vector<Open> open;
  for (const EngineInfo& e : chosen_engines()) {
    if (is_stood_for(e) || !runs_here(e)) continue;
    for (const Durability durability : {durable, group, async})
      for (const char* medium : {"emulated", "file"}) {
        Options o = small(medium);
        o.engine = e.name;
        o.isolation = e.isolation;
        o.durability = durability;
        o.creation.log_size = 1 << 20;
        const std::string name = std::string(e.name) +
                                 (durability == durable ? " durable "
                                  : durability == group ? " group "
                                                        : " async ") +
                                 medium;
        open.push_back({e, name,
                        AnyPool<Root>::open(scratch.path("pool" + std::to_string(open.size())), o),
                        0});
      }
  }
  for (int times = 0; times < 2; ++times) {
    for (auto& [entry, name, pool, last] : open) {
      for (int i = 0; i < 20; ++i)
        last = pool.update([](auto& tx, Root& r) { ++tx(r.count); }).id();
      pool.view([](auto& tx, const Root& r) { return tx(r.count); });
    }
    // What is promised is done first: durability, and DudeTM's checkpoint of an idle pool.
    for (auto& [entry, name, pool, last] : open) {
      if (is_durable(entry)) {
        ASSERT_TRUE(comes([&] { return pool.durable_id() >= last; })) << name;
      }
      if (is_dudetm(entry)) {
        ASSERT_TRUE(comes([&] {
          return pool.stats().checkpoint_id >= last && pool.stats().log_used == 0;
        })) << name;
      }
    }
    EXPECT_TRUE(all_sleep());
  }
  for (auto& [entry, name, pool, last] : open) EXPECT_TRUE(pool.close().clean) << name;
}

}  // namespace
}  // namespace perdure::test
