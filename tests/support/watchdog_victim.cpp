// SPDX-License-Identifier: BSD-3-Clause
//
// Cases that hang in every way that the watchdog must report; watchdog_test runs them one by one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/support/watchdog.hpp"

// Not in an anonymous namespace: the names are in the dynamic symbol table, so that the report has
// them without addr2line, too.
namespace perdure_victim {

std::mutex mutex;
std::condition_variable never;
std::atomic<bool> stop{false};

[[gnu::noinline]] void waits_for_a_condition() {
  std::unique_lock lock(mutex);
  never.wait(lock, [] { return stop.load(); });
  lock.unlock();
}

[[gnu::noinline]] void waits_for_a_thread() {
  std::thread other(waits_for_a_condition);
  other.join();
  stop.store(false);
}

[[gnu::noinline]] void spins() {
  while (!stop.load()) {}
  stop.store(false);
}

[[gnu::noinline]] void waits_in_a_child() {
  ::pause();
  stop.store(true);
}

}  // namespace perdure_victim

namespace {

using namespace perdure_victim;

TEST(Victim, TwoThreadsBlock) { waits_for_a_thread(); }

TEST(Victim, AThreadSpins) {
  std::thread other(spins);
  other.join();
}

TEST(Victim, AChildBlocks) {
  const pid_t child = ::fork();
  if (child == 0) {
    waits_in_a_child();
    ::_exit(0);
  }
  std::printf("child %d\n", child);
  std::fflush(stdout);
  int status = 0;
  ::waitpid(child, &status, 0);
}

// 30 rounds of 100 ms: 3 s in all, each within 2 s.
TEST(Victim, RoundsEachWithinTheLimit) {
  for (int round = 0; round < 30; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    perdure::test::watch_again();
  }
}

TEST(Victim, Ends) {}

struct EndsNever {
  ~EndsNever() {
    if (std::getenv("VICTIM_ENDS_NEVER") != nullptr) waits_for_a_thread();
  }
} ends_never;

}  // namespace
