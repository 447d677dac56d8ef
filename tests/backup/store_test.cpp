// SPDX-License-Identifier: BSD-3-Clause
//
// The folder in which archives and backups lie (STORE-1).
#include "perdure/backup/store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/backup/store_contract.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::backup {
namespace {

using pool::testing::Scratch;

TEST(Store, ObjectsAreWrittenOnce) {
  const Scratch scratch;
  const std::string path = scratch.path("store");
  EXPECT_EQ(Code::not_found, open_folder(path, false).code());
  const auto store = open_folder(path, true).value();
  test::expect_written_once(*store);
  std::ofstream(scratch.path("file")) << "x";
  EXPECT_EQ(Code::invalid, open_folder(scratch.path("file"), true).code());
}

TEST(Store, ManyAtOnceHaveTheirNamesAfterTheFlush) {
  const Scratch scratch;
  const auto store = open_folder(scratch.path("store"), true).value();
  const auto batch = store->batch();
  ASSERT_TRUE(batch->put("a/one", "1", 1).ok());
  ASSERT_TRUE(batch->put("a/two", "2", 1).ok());
  EXPECT_TRUE(store->list("").value().empty());
  ASSERT_TRUE(batch->flush().ok());
  EXPECT_EQ((std::vector<std::string>{"a/one", "a/two"}), store->list("").value());
  EXPECT_EQ("2", test::text_of(*store, "a/two"));
}

TEST(Store, OneWriterOfTheLog) {
  const Scratch scratch;
  const auto store = open_folder(scratch.path("store"), true).value();
  const auto other = open_folder(scratch.path("store"), false).value();
  test::expect_locks(*store, *other);
}

// A batch that is not flushed leaves nothing; one whose flush failed can be dropped.
TEST(Store, WhatABatchDoesNotNameIsRemoved) {
  const Scratch scratch;
  const std::string path = scratch.path("store");
  const auto store = open_folder(path, true).value();
  {
    const auto batch = store->batch();
    ASSERT_TRUE(batch->put("a/one", "1", 1).ok());
    if (const pid_t child = ::fork(); child == 0) {
      std::exit(0);  // a child's copy removes nothing
    } else {
      int status = 0;
      ASSERT_EQ(child, ::waitpid(child, &status, 0));
    }
    ASSERT_FALSE(std::filesystem::is_empty(path + "/a"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path + "/a"));
}

// A relative path means the folder that it named.
TEST(Store, TheProcessMayGoElsewhere) {
  const Scratch scratch;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.folder());
  const auto store = open_folder("store/", true).value();
  std::filesystem::current_path(before);
  EXPECT_TRUE(store->put("one", "1", 1).value());
  EXPECT_TRUE(std::filesystem::exists(scratch.path("store") + "/one"));
}

// A forked child does not keep the log.
TEST(Store, AChildDoesNotHoldTheLock) {
  const Scratch scratch;
  const auto store = open_folder(scratch.path("store"), true).value();
  auto lock = store->lock(Store::Use::log).value();
  int ends[2];
  ASSERT_EQ(0, ::pipe(ends));
  const pid_t child = ::fork();
  if (child == 0) {
    char c;
    ::close(ends[1]);
    (void)!::read(ends[0], &c, 1);
    ::_exit(0);
  }
  lock.reset();
  EXPECT_TRUE(store->lock(Store::Use::log).ok());
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  ::close(ends[0]);
}

// A process that is killed while it writes leaves files without a name, which the next writer of
// the log removes.
TEST(Store, WhatAKilledProcessHasLeftIsRemoved) {
  const Scratch scratch;
  const std::string path = scratch.path("store");
  const auto store = open_folder(path, true).value();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto batch = store->batch();
    (void)batch->put("chunk/ab/one", "1", 1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  for (const auto& f : std::filesystem::directory_iterator(path + "/chunk/ab"))
    std::filesystem::last_write_time(
        f, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  const auto batch = store->batch();
  ASSERT_TRUE(batch->put("chunk/ab/two", "2", 1).ok());  // what is new stays
  const auto files = [&] {
    int n = 0;
    for (const auto& f : std::filesystem::directory_iterator(path + "/chunk/ab")) {
      (void)f;
      ++n;
    }
    return n;
  };
  EXPECT_EQ(2, files());
  EXPECT_TRUE(store->lock(Store::Use::log).ok());
  EXPECT_EQ(1, files());
  ASSERT_TRUE(batch->flush().ok());
  EXPECT_EQ((std::vector<std::string>{"chunk/ab/two"}), store->list("").value());
}

}  // namespace
}  // namespace perdure::backup
