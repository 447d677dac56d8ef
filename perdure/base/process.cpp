// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "perdure/base/descriptor.hpp"

namespace perdure::base {

std::uint64_t process_start(std::int64_t pid) noexcept {
  char name[48], text[1024];
  std::snprintf(name, sizeof name, "/proc/%lld/stat", static_cast<long long>(pid));
  const int fd = open_file(name, O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  // The name may hold spaces and brackets: fields are counted after its last bracket.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  unsigned long long start = 0;
  return at != nullptr && std::sscanf(at + 1, "%llu", &start) == 1 ? start : 0;
}

bool process_runs(std::int64_t pid, std::uint64_t start) noexcept {
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const std::uint64_t now = process_start(pid);
  return now == 0 || now == start;
}

}  // namespace perdure::base
