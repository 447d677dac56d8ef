// SPDX-License-Identifier: BSD-3-Clause
//
// Cases that hang in every way that the watchdog must report; watchdog_test runs them one by one.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
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

TEST(Victim, TwoThreadsBlock) {
  waits_for_a_thread();
  SUCCEED();  // the call is not the last: it stays on the stack
}

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

// Two child processes take two thirds of the one processor.
TEST(Victim, ComputesOnABusyProcessor) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  int first = 0;
  while (CPU_ISSET(first, &set) == 0) ++first;
  CPU_ZERO(&set);
  CPU_SET(first, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
  pid_t others[2];
  for (pid_t& other : others)
    if ((other = ::fork()) == 0) spins();
  timespec used{};
  do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  while (used.tv_sec == 0 || used.tv_nsec < 500'000'000);
  for (const pid_t other : others) {
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  }
}

// 300 durable writes, with pauses: longer than the limit, hardly any processor time.
TEST(Victim, WritesToADevice) {
  char name[] = "watchdog-XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::unlink(name);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::pwrite(file, &i, sizeof i, 4096 * i), static_cast<ssize_t>(sizeof i));
    ASSERT_EQ(::fdatasync(file), 0);
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_oublock == 0) {
      std::puts("no device");  // tmpfs
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::close(file);
}

TEST(Victim, SleepsBriefly) { std::this_thread::sleep_for(std::chrono::milliseconds(600)); }

TEST(Victim, Ends) {}

struct EndsNever {
  ~EndsNever() {
    if (std::getenv("VICTIM_ENDS_NEVER") != nullptr) waits_for_a_thread();
  }
} ends_never;

}  // namespace
