// SPDX-License-Identifier: BSD-3-Clause
//
// The library's threads receive none of the program's signals (base/signals.hpp): what each thread
// blocks, as it finds it and as /proc says, and that the thread which started them has its mask
// back.
#include "perdure/base/signals.hpp"
#include "perdure/api/open.hpp"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <thread>

#include "perdure/engine/background.hpp"
#include "perdure/log/team.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;
using namespace std::chrono_literals;

constexpr int blocked[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE};
constexpr int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};

std::string mask_of_this_thread() {
  sigset_t set;
  EXPECT_EQ(0, ::pthread_sigmask(SIG_BLOCK, nullptr, &set));
  std::string mask;
  for (int s = 1; s <= SIGRTMAX; ++s) mask += ::sigismember(&set, s) == 1 ? '1' : '0';
  return mask;
}

/// `mask` has a character for each signal, from 1 on.
::testing::AssertionResult is_of_the_library(const std::string& mask) {
  const auto blocks = [&](int s) { return mask.at(static_cast<std::size_t>(s) - 1) == '1'; };
  for (const int s : blocked)
    if (!blocks(s)) return ::testing::AssertionFailure() << "signal " << s << " is open: " << mask;
  for (const int s : open)
    if (blocks(s))
      return ::testing::AssertionFailure() << "signal " << s << " is blocked: " << mask;
  // The watchdog asks each thread for its stack.
  if (const int s = base::debugging_signal; s != 0 && blocks(s))
    return ::testing::AssertionFailure() << "the watchdog's signal is blocked: " << mask;
  return ::testing::AssertionSuccess();
}

std::set<std::string> threads() {
  std::set<std::string> all;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* e = ::readdir(tasks))
    if (e->d_name[0] != '.') all.insert(e->d_name);
  ::closedir(tasks);
  return all;
}

/// The mask of a thread by its number; empty if the thread has ended.
std::string mask_of(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  const std::string name = "SigBlk:\t";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) {
      const std::uint64_t bits = std::stoull(line.substr(name.size()), nullptr, 16);
      std::string mask;
      for (int s = 1; s <= 64; ++s) mask += ((bits >> (s - 1)) & 1) != 0 ? '1' : '0';
      return mask;
    }
  return {};
}

class Signals : public ::testing::Test {
 protected:
  // A sanitizer starts a thread of its own with the program's first one.
  void SetUp() override {
    std::thread([] {}).join();
    mask_ = mask_of_this_thread();
  }
  void TearDown() override { EXPECT_EQ(mask_, mask_of_this_thread()) << "of the starting thread"; }

 private:
  std::string mask_;
};

TEST_F(Signals, ABackgroundThreadBlocksThem) {
  std::promise<std::string> mask;
  engine::PoolThread thread;
  ASSERT_TRUE(thread.start([&] { mask.set_value(mask_of_this_thread()); }));
  EXPECT_TRUE(is_of_the_library(mask.get_future().get()));
  thread.join();
}

TEST_F(Signals, TheThreadOfContinuationsBlocksThem) {
  std::promise<std::string> mask;
  detail::Completions completions([](std::uint64_t) { return Status(); });
  completions.add(1, [&](const Status&) { mask.set_value(mask_of_this_thread()); });
  EXPECT_TRUE(is_of_the_library(mask.get_future().get()));
}

TEST_F(Signals, ATeamBlocksThemAndItsCallerDoesNot) {
  std::string masks[4];
  log::in_team(4, [&](unsigned me) { masks[me] = mask_of_this_thread(); });
  EXPECT_EQ(mask_of_this_thread(), masks[0]) << "the caller has part 0";
  for (const unsigned me : {1, 2, 3}) EXPECT_TRUE(is_of_the_library(masks[me])) << "part " << me;
}

TEST_F(Signals, WhatTheStarterBlocksStaysBlocked) {
  sigset_t profiling, before;
  ::sigemptyset(&profiling);
  ::sigaddset(&profiling, SIGPROF);
  ASSERT_EQ(0, ::pthread_sigmask(SIG_BLOCK, &profiling, &before));
  std::promise<std::string> mask;
  engine::PoolThread thread;
  ASSERT_TRUE(thread.start([&] { mask.set_value(mask_of_this_thread()); }));
  EXPECT_EQ('1', mask.get_future().get().at(SIGPROF - 1));
  thread.join();
  ASSERT_EQ(0, ::pthread_sigmask(SIG_SETMASK, &before, nullptr));
}

struct Root {
  p<std::uint64_t> count;
};

// Whatever threads the pools of all engines start, as the system sees them.
TEST_F(Signals, AllThreadsOfPoolsBlockThem) {
  const std::set<std::string> before = threads();
  Scratch scratch;
  std::vector<AnyPool<Root>> pools;
  for (const EngineInfo& e : durable_ones()) {
    Options o;
    o.engine = e.name;
    o.isolation = e.isolation;
    o.medium = "file";
    o.durability = async;
    o.creation.max_size = 4 << 20;
    o.creation.log_size = 1 << 20;
    const std::string path = scratch.path("pool" + std::to_string(pools.size()));
    pools.push_back(AnyPool<Root>::open(path, o));
    pools.back().update([](auto& tx, Root& r) { ++tx(r.count); });
  }
  const std::set<std::string> all = threads();
  std::set<std::string> started;
  std::ranges::set_difference(all, before, std::inserter(started, started.end()));
  EXPECT_GE(started.size(), 1U);
  // A thread that is being created blocks all signals for a moment.
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (const std::string& thread : started) {
    ::testing::AssertionResult result = ::testing::AssertionSuccess();
    for (;;) {
      const std::string mask = mask_of(thread);
      result = mask.empty() ? ::testing::AssertionSuccess() : is_of_the_library(mask);
      if (result || std::chrono::steady_clock::now() > end) break;
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(result) << "thread " << thread;
  }
}

}  // namespace
}  // namespace perdure::test
