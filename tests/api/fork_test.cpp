// SPDX-License-Identifier: BSD-3-Clause
//
// A forked child's copy of a Pool: refused, and got rid of without waiting for threads that only the parent has.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "perdure/perdure.hpp"

namespace {

struct Root {
  perdure::p<std::uint64_t> count;
};
using Pool = perdure::Pool<Root, perdure::engines<perdure::any_engine>>;

class Fork : public testing::TestWithParam<std::tuple<const char*, perdure::Durability>> {};

TEST_P(Fork, ChildIsRefusedAndEndsParentGoesOn) {
  const auto& [engine, durability] = GetParam();
  const auto path = std::filesystem::path(testing::TempDir()) / ("fork-" + std::to_string(getpid()) + ".pool");
  std::filesystem::remove(path);
  perdure::Options options;
  options.engine = engine;
  options.medium = "emulated";
  options.durability = durability;
  options.max_size = 64 << 20;
  options.log_size = 1 << 20;
  std::optional<Pool> pool(Pool::open(path, options));
  const auto add = [](auto& tx, Root& root) { tx(root.count) += 1; };
  const auto receipt = pool->update(perdure::async, add);
  receipt.then([](auto task) { task(); }, [](const perdure::Status&) {});  // the completion thread, where there is one, is running now
  receipt.wait();

  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const auto code_of = [](auto&& call) {
      try {
        call();
      } catch (const perdure::error& e) {
        return e.code();
      }
      return perdure::Code::ok;
    };
    if (code_of([&] { pool->update(add); }) != perdure::Code::closed) _exit(1);
    if (code_of([&] { pool->view([](auto& tx, const Root& root) { return tx(root.count); }); }) != perdure::Code::closed) _exit(2);
    if (code_of([&] { pool->close(); }) != perdure::Code::closed) _exit(3);
    pool.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ": the child hung or crashed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  pool->update(add).wait();
  EXPECT_EQ(pool->view([](auto& tx, const Root& root) { return tx(root.count); }), 2U);
  EXPECT_TRUE(pool->close().clean);
  pool.reset();
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Engines, Fork,
                         testing::Combine(testing::Values("shadow", "dudetm", "undo", "volatile"),
                                          testing::Values(perdure::durable, perdure::group, perdure::async)));

}  // namespace
