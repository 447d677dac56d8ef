// SPDX-License-Identifier: BSD-3-Clause
//
// A pool that is replicated over three NATS servers: what was acknowledged as `quorum` is in the
// copy that takes over, although one of the servers and then the primary were killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "nats/nats_log.hpp"
#include "perdure/backup/store.hpp"
#include "perdure/perdure.hpp"
#include "perdure/replication/copy.hpp"
#include "perdure/replication/logs.hpp"
#include "tests/nats/server.hpp"
#include "tests/pool/pool_test.hpp"
#include "tests/support/comes.hpp"

namespace perdure::nats::test {
namespace {

using namespace std::chrono_literals;

struct Root {
  p<std::uint64_t> count;
};

TEST(NatsPool, WhatAQuorumHasOutlivesAServerAndThePrimary) {
  Servers servers(3);
  enable();
  const pool::testing::Scratch scratch;
  const std::string log = servers.log("shop?replicas=3&patience_ms=2000&system=system:secret");
  Options options;
  options.medium = "emulated";
  options.replicate.log = log;
  options.replicate.patience = 120s;
  options.creation.log_size = 1 << 20;
  int pipe[2];
  ASSERT_EQ(0, ::pipe(pipe));
  const pid_t child = ::fork();
  if (child == 0) {
    auto pool = Pool<Root>::open(scratch.path(), options);
    (void)pool.backup(scratch.path("folder"));
    for (std::uint64_t i = 1;; ++i) {
      pool.update(quorum, [&](auto& tx, Root& r) { tx.write(r.count, i); });
      if (::write(pipe[1], &i, sizeof i) < 0) ::_exit(1);
    }
  }
  ::close(pipe[1]);
  std::uint64_t acknowledged = 0;
  while (acknowledged < 50 && ::read(pipe[0], &acknowledged, sizeof acknowledged) > 0) {}
  ASSERT_EQ(acknowledged, 50U);
  servers.send(0, SIGKILL);
  while (acknowledged < 100 && ::read(pipe[0], &acknowledged, sizeof acknowledged) > 0) {}
  EXPECT_EQ(acknowledged, 100U) << "a majority of the servers is there";
  ::kill(child, SIGKILL);
  while (::read(pipe[0], &acknowledged, sizeof acknowledged) > 0) {}
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);

  const auto store = backup::open_folder(scratch.path("folder"), false).value();
  const std::string copy = scratch.path("copy");
  // The servers choose other leaders meanwhile.
  auto opened = replication::open_named_log(log, false);
  perdure::test::comes(
      [&] {
        return opened.code() != Code::io ||
               (opened = replication::open_named_log(log, false)).code() != Code::io;
      },
      120s);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  auto made = replication::make_copy(*store, *opened, copy);
  perdure::test::comes(
      [&] {
        return made.code() != Code::io ||
               (made = replication::make_copy(*store, *opened, copy)).code() != Code::io;
      },
      120s);
  ASSERT_TRUE(made.ok()) << made.status().message();
  {
    auto pool = Pool<Root>::open(copy, options);
    EXPECT_EQ(pool.replication().term, 2U);
    pool.update(quorum, [&](auto& tx, Root& r) {
      EXPECT_GE(tx.read(r.count), acknowledged);
      tx.write(r.count, 1);
    });
  }
  const auto old = Pool<Root>::try_open(scratch.path(), options);
  EXPECT_FALSE(old.ok());
  EXPECT_TRUE(old.code() == Code::deposed || old.code() == Code::diverged)
      << old.status().message();
}

}  // namespace
}  // namespace perdure::nats::test
