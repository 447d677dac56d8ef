// SPDX-License-Identifier: BSD-3-Clause
//
// A full disk while creating and growing: an error that names the file, what was there stays, no half-made thing is left.
//
// On a small tmpfs of its own, mounted in a mount namespace (root), or in a user namespace (not root). Where neither is allowed the
// same is shown with a file size limit (RLIMIT_FSIZE), and said.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <functional>

#include "scratch.hpp"

namespace perdure::medium {
namespace {

using testing::bytes_at;
using testing::file_bytes;
using testing::pattern;
using testing::Scratch;

constexpr std::uint64_t MiB = 1ULL << 20;

bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool ok = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return ok;
}

// In a child: an 8 MiB tmpfs over `folder`, seen by this process only.
bool small_disk(const std::string& folder) {
  const std::string uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
  if (::geteuid() == 0) {
    if (::unshare(CLONE_NEWNS) != 0) return false;
  } else {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", "0 " + uid + " 1") ||
        !write_text("/proc/self/gid_map", "0 " + gid + " 1")) {
      return false;
    }
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("perdure-test", folder.c_str(), "tmpfs", 0, "size=8m") == 0;
}

bool small_files() {
  (void)std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {8 * MiB, 8 * MiB};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

constexpr int not_allowed = 77;

// Runs `body` in a child process; gtest failures there fail the parent.
int in_child(const std::function<bool()>& prepare, const std::function<void()>& body) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!prepare()) ::_exit(not_allowed);
    body();
    (void)std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class FullDisk : public ::testing::TestWithParam<const char*> {
 protected:
  OpenMedium how(std::uint64_t home_bytes) const {
    OpenMedium h;
    h.path = scratch.path();
    h.kind = GetParam();
    h.create = true;
    h.log_bytes = 2 * MiB;
    h.home_bytes = home_bytes;
    h.max_home_bytes = 64 * MiB;
    return h;
  }

  void on_a_small_disk(const std::function<void()>& body) {
    int r = in_child([&] { return small_disk(scratch.folder()); }, body);
    if (r == not_allowed) {
      std::puts("no tmpfs may be mounted here, with or without a user namespace: shown with RLIMIT_FSIZE instead");
      r = in_child(small_files, body);
    }
    EXPECT_EQ(r, 0);
  }

  Scratch scratch;
};

TEST_P(FullDisk, a_pool_too_large_is_refused_and_leaves_nothing) {
  on_a_small_disk([&] {
    const auto m = open_medium(how(16 * MiB));
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.code(), Code::full) << m.status().message();
    EXPECT_NE(m.status().message().find(scratch.path()), std::string::npos) << m.status().message();
    EXPECT_NE(::access(scratch.path().c_str(), F_OK), 0) << "the half-made file is gone";
    EXPECT_TRUE(open_medium(how(2 * MiB)).ok()) << "and there is room for one that fits";
  });
}

TEST_P(FullDisk, growth_without_room_is_refused_and_the_pool_goes_on) {
  on_a_small_disk([&] {
    auto m = open_medium(how(2 * MiB)).value();
    const auto bytes = pattern(4096, 1);
    m->stream(2 * MiB, bytes.data(), bytes.size());
    ASSERT_TRUE(m->fence().ok());
    const Status s = m->grow(16 * MiB);
    EXPECT_EQ(s.code(), Code::full) << s.message();
    EXPECT_NE(s.message().find(scratch.path()), std::string::npos) << s.message();
    EXPECT_EQ(m->home_bytes(), 2 * MiB);
    EXPECT_EQ(file_bytes(scratch.path()), 4 * MiB) << "what was half done is undone";
    m->stream(2 * MiB + 4096, bytes.data(), bytes.size());
    EXPECT_TRUE(m->fence().ok()) << "a full disk at growth poisons nothing";
    EXPECT_TRUE(m->grow(4 * MiB).ok()) << "the room is given back";
    EXPECT_EQ(bytes_at(*m, 2 * MiB, bytes.size()), bytes);
    m->stream(2 * MiB + 4 * MiB - 4096, bytes.data(), bytes.size());  // no SIGBUS: every page has its block
    EXPECT_TRUE(m->fence().ok());
  });
}

TEST_P(FullDisk, the_file_size_limit_counts_as_full) {
  EXPECT_EQ(in_child(small_files,
                     [&] {
                       EXPECT_EQ(open_medium(how(16 * MiB)).code(), Code::full);
                       auto m = open_medium(how(2 * MiB)).value();
                       EXPECT_EQ(m->grow(16 * MiB).code(), Code::full);
                       EXPECT_TRUE(m->grow(4 * MiB).ok());
                     }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Media, FullDisk, ::testing::Values("file", "emulated"),
                         [](const ::testing::TestParamInfo<const char*>& p) { return std::string(p.param); });

}  // namespace
}  // namespace perdure::medium
