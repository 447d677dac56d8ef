// SPDX-License-Identifier: BSD-3-Clause
//
// A small disk for the tests of full ones: a new tmpfs, mounted in a mount namespace (root) or in a
// user namespace (not root), in a child process.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

namespace perdure::medium::testing {

/// In a child: mounts a tmpfs of `size` ("8m") over `folder`, which only this process sees. Returns
/// false if that is not allowed.
inline bool small_disk(const std::string& folder, const char* size) {
  const auto write_text = [](const char* path, const std::string& text) {
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    const bool ok =
        fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0) ::close(fd);
    return ok;
  };
  const std::string uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
  if (::geteuid() == 0) {
    if (::unshare(CLONE_NEWNS) != 0) return false;
  } else if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
             !write_text("/proc/self/setgroups", "deny") ||
             !write_text("/proc/self/uid_map", "0 " + uid + " 1") ||
             !write_text("/proc/self/gid_map", "0 " + gid + " 1")) {
    return false;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("perdure-test", folder.c_str(), "tmpfs", 0,
                 (std::string("size=") + size).c_str()) == 0;
}

inline constexpr int not_allowed = 77;

/// Runs `body` in a child process after `prepare` has succeeded there; returns 0, its exit status,
/// not_allowed, or 1000 + signal. gtest failures there are status 1.
inline int in_child(const std::function<bool()>& prepare, const std::function<void()>& body) {
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

}  // namespace perdure::medium::testing
