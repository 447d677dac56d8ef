// SPDX-License-Identifier: BSD-3-Clause
//
// The watchdog on a program whose cases hang: what it prints, how the program ends, and that no
// process of it remains. The only times are lower bounds: the limit, and rounds that together
// exceed it.
#include "tests/support/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  std::string output;
  int status = 0;  // of waitpid
};

Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    outcome.output.append(buffer, n);
  outcome.status = ::pclose(pipe);
  return outcome;
}

// Runs the victim's case with a limit; collects standard error and output together.
Outcome victim(const std::string& test_case, const char* limit,
               const std::string& environment = "") {
  return run(environment + " PERDURE_CASE_LIMIT=" + limit +
             " exec " PERDURE_VICTIM " --gtest_filter=Victim." + test_case + " 2>&1");
}

bool aborted(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }

TEST(Watchdog, PrintsTheStacksOfAllThreads) {
  const Outcome o = victim("TwoThreadsBlock", "1");
  EXPECT_TRUE(aborted(o.status)) << o.status;
  EXPECT_THAT(
      o.output,
      HasSubstr(
          "[ WATCHDOG ] Victim.TwoThreadsBlock: still running, expected it to end within 1000 ms"));
  // From the dynamic symbols.
  EXPECT_THAT(o.output, HasSubstr("perdure_victim21waits_for_a_condition"));
  EXPECT_THAT(o.output, HasSubstr("perdure_victim18waits_for_a_thread"));
  EXPECT_THAT(o.output, HasSubstr("PERDURE_CASE_LIMIT"));
#ifndef __SANITIZE_THREAD__  // it has a thread of its own that takes no signals
  EXPECT_THAT(o.output, Not(HasSubstr("no answer")));
#endif
  if (std::FILE* tool = std::fopen("/usr/bin/addr2line", "r")) {
    std::fclose(tool);
    EXPECT_THAT(o.output, HasSubstr("perdure_victim::waits_for_a_condition()"));
    EXPECT_THAT(o.output, HasSubstr("Victim_TwoThreadsBlock_Test::TestBody()"));
    EXPECT_THAT(o.output, HasSubstr("watchdog_victim.cpp:"));
  }
}

TEST(Watchdog, PrintsTheStackOfAThreadThatSpins) {
  const Outcome o = victim("AThreadSpins", "1");
  EXPECT_TRUE(aborted(o.status)) << o.status;
  EXPECT_THAT(o.output, HasSubstr("Victim_AThreadSpins_Test"));
  EXPECT_THAT(o.output, HasSubstr("perdure_victim5spins"));
}

TEST(Watchdog, EndsChildrenAndPrintsTheirStacks) {
  const Outcome o = victim("AChildBlocks", "1");
  EXPECT_TRUE(aborted(o.status)) << o.status;
  EXPECT_THAT(o.output, HasSubstr("a child process of it, whose parent ran into its limit"));
  EXPECT_THAT(o.output, HasSubstr("perdure_victim16waits_in_a_child"));
  const std::size_t at = o.output.find("child ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(::kill(std::atoi(o.output.c_str() + at + 6), 0), 0) << "the child is still there";
}

TEST(Watchdog, WatchesTheProgramsEnd) {
  const Outcome o = victim("Ends", "1", "VICTIM_ENDS_NEVER=1");
  EXPECT_TRUE(aborted(o.status)) << o.status;
  EXPECT_THAT(o.output, HasSubstr("[ WATCHDOG ] the end of the program"));
  EXPECT_THAT(o.output, HasSubstr("perdure_victim18waits_for_a_thread"));
}

TEST(Watchdog, WatchesAProgramWithoutGoogleTest) {
  const Outcome o = run("PERDURE_CASE_LIMIT=1 exec " PERDURE_C_VICTIM " 2>&1");
  EXPECT_TRUE(aborted(o.status)) << o.status;
  EXPECT_THAT(
      o.output,
      HasSubstr(
          "[ WATCHDOG ] watchdog_c_victim: still running, expected it to end within 1000 ms"));
  EXPECT_THAT(o.output, HasSubstr("waits_in_c"));
}

// 1.5 s of processor time, of which it gets a third: at least 4.5 s.
TEST(Watchdog, ABusyMachineEndsNoCaseThatComputes) {
  const Outcome o = victim("ComputesOnABusyProcessor", "4");
  EXPECT_EQ(o.status, 0) << o.output;
}

// At least 3 s, on the file system of the build.
TEST(Watchdog, ASlowDeviceEndsNoCaseThatWritesToIt) {
  const Outcome o = victim("WritesToADevice", "2");
  if (o.output.find("no device") != std::string::npos)
    GTEST_SKIP() << "the working folder lies on no device";
  EXPECT_EQ(o.status, 0) << o.output;
}

// It runs three seconds longer than its limit, and is stopped for that time.
TEST(Watchdog, TimeInWhichTheProcessWasStoppedDoesNotCount) {
  const Outcome o =
      run("PERDURE_CASE_LIMIT=1 " PERDURE_VICTIM
          " --gtest_filter=Victim.SleepsBriefly 2>&1 & p=$!; sleep 0.3; kill -STOP $p; sleep 3; "
          "kill -CONT $p; wait $p");
  EXPECT_EQ(o.status, 0) << o.output;
}

TEST(Watchdog, RoundsThatBeginTheLimitAgainHaveItEach) {
  const Outcome o = victim("RoundsEachWithinTheLimit", "2");
  EXPECT_EQ(o.status, 0) << o.output;
}

TEST(Watchdog, IsOffWithALimitOfZero) {
  EXPECT_EQ(victim("Ends", "0").status, 0);
  ::setenv("PERDURE_CASE_LIMIT", "0", 1);
  EXPECT_EQ(perdure::test::case_limit(), 0);
  ::unsetenv("PERDURE_CASE_LIMIT");
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(perdure::test::case_limit(), 240);
#else
  EXPECT_EQ(perdure::test::case_limit(), 60);  // this program's own
#endif
}

}  // namespace
