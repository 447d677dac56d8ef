// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a new pool that fails leaves no file, whichever step fails. The limit of the address
// space (ulimit -v) is raised step by step until a new pool opens.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "perdure/perdure.hpp"

namespace {

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they reserve terabytes

constexpr std::uint64_t MiB = 1 << 20;

struct Root {
  perdure::p<std::uint64_t> count{7};  // stored when a new pool is opened
};

std::uint64_t address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Runs in a child. Returns 0 when the pool opens, 1 when it fails with a message, 2 when it fails
/// otherwise.
int open_within(const std::string& path, std::uint64_t limit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit all{limit, limit};
    if (::setrlimit(RLIMIT_AS, &all) != 0) ::_exit(3);
    try {
      perdure::Options options;
      options.creation.max_size = 64 * MiB;
      options.creation.log_size = 1 * MiB;
      auto pool = perdure::Pool<Root>::try_open(path, options);
      if (pool.ok()) pool->close();
      ::_exit(pool.ok() ? 0 : 1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Create, WhatFailsLeavesNoFile) {
  std::string folder = testing::TempDir() + "perdure-create-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  int failed = 0;
  bool opened = false;
  for (std::uint64_t more = 1 * MiB; !opened && more < 1024 * MiB; more += 2 * MiB) {
    const int how = open_within(folder + "/pool", address_space() + more);
    ASSERT_GE(how, 0) << "the child crashed with " << more / MiB << " MiB";
    opened = how == 0;
    if (opened) break;
    ++failed;
    EXPECT_TRUE(std::filesystem::is_empty(folder))
        << "left a file with " << more / MiB << " MiB, outcome " << how;
    for (const auto& e : std::filesystem::directory_iterator(folder))
      std::filesystem::remove(e.path());
  }
  EXPECT_TRUE(opened);
  EXPECT_GT(failed, 10);
  std::filesystem::remove_all(folder);
}

// An empty file becomes a pool; if that fails the file stays empty.
TEST(Create, WhatFailsLeavesAnEmptyFileEmpty) {
  namespace fs = std::filesystem;
  std::string folder = testing::TempDir() + "perdure-create-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const fs::path file = folder + "/pool";
  std::ofstream(file).close();
  fs::permissions(file, fs::perms(0640));
  int failed = 0;
  bool opened = false;
  for (std::uint64_t more = 1 * MiB; !opened && more < 1024 * MiB; more += 2 * MiB) {
    const int how = open_within(file, address_space() + more);
    ASSERT_GE(how, 0) << "the child crashed with " << more / MiB << " MiB";
    opened = how == 0;
    if (opened) break;
    ++failed;
    ASSERT_TRUE(fs::exists(file)) << "removed the file with " << more / MiB << " MiB, outcome "
                                  << how;
    EXPECT_EQ(fs::file_size(file), 0U) << more / MiB << " MiB, outcome " << how;
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  }
  EXPECT_TRUE(opened);
  EXPECT_GT(failed, 10);
  fs::remove_all(folder);
}

#endif

}  // namespace
