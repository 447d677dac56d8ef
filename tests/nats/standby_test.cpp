// SPDX-License-Identifier: BSD-3-Clause
//
// A standby over a NATS server, and the level standby(n) of its primary. In a program of its own:
// its primary is a child of a process that has not used NATS before.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "nats/nats_log.hpp"
#include "perdure/perdure.hpp"
#include "perdure/replication/standby.hpp"
#include "tests/nats/server.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::nats::test {
namespace {

using namespace std::chrono_literals;

struct Root {
  p<std::uint64_t> count;
};

// A standby says how far it is by messages that are not stored: one that begins later, or begins
// again, says it again.
TEST(NatsStandby, IsWaitedFor) {
  Servers servers(1);
  enable();
  const pool::testing::Scratch scratch;
  Options options;
  options.medium = "emulated";
  options.replicate.log = servers.log("shop");
  options.replicate.patience = 120s;
  options.creation.log_size = 1 << 20;
  int pipe[2];
  ASSERT_EQ(0, ::pipe(pipe));
  const auto next = [&] {
    std::uint64_t id = 0;
    EXPECT_EQ(::read(pipe[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    return id;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      auto pool = Pool<Root>::open(scratch.path(), options);
      std::uint64_t id = pool.backup(scratch.path("folder")).id;
      for (std::uint64_t i = 1; ::write(pipe[1], &id, sizeof id) > 0; ++i)
        id = pool.update(standby(1), [&](auto& tx, Root& r) { tx.write(r.count, i); }).id();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "the primary: %s\n", e.what());
    }
    ::_exit(1);
  }
  ::close(pipe[1]);
  (void)next();  // of the backup
  StandbyOptions of_copy;
  of_copy.medium = "emulated";
  of_copy.replicate = options.replicate;
  of_copy.backups = scratch.path("folder");
  const auto follow = [&] {
    return replication::StandbyCopy::open(scratch.path("copy"), of_copy).value();
  };
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(100ms);  // the primary waits
    const auto copy = follow();
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t id = next();
      ASSERT_GE(copy->status().id, id);
    }
  }
  ::kill(child, SIGKILL);
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace perdure::nats::test
