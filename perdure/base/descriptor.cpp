// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/base/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace perdure::base {
namespace {

constexpr int first_own = 3;  // 0, 1 and 2 are standard input, output and error, open or closed

// Returns how many of the standard descriptors are closed, by one call that does not block.
int closed_ones() noexcept {
  struct pollfd standard[first_own] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}};
  (void)::poll(standard, first_own, 0);
  int n = 0;
  for (const auto& s : standard) n += (s.revents & POLLNVAL) != 0 ? 1 : 0;
  return n;
}

/// Occupies the standard descriptors that are closed, for the lifetime of the object.
class Occupied {
 public:
  Occupied() noexcept {
    for (int left = closed_ones(); left > 0; --left) {
      // "/" exists in every chroot. Neither read() nor write() works on an O_PATH descriptor.
      const int got = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (got < 0) return;  // out of descriptors: the real open reports it
      if (got >= first_own) {
        ::close(got);  // another thread has taken the low number meanwhile
        return;
      }
      held_[count_++] = got;
    }
  }
  ~Occupied() {
    const int err = errno;
    for (int i = 0; i < count_; ++i) {
      // Another thread may have put its own file there by dup2(); that file is not ours to close.
      if (const int flags = ::fcntl(held_[i], F_GETFL); flags >= 0 && (flags & O_PATH) != 0)
        ::close(held_[i]);
    }
    errno = err;
  }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;

 private:
  int held_[first_own] = {};
  int count_ = 0;
};

// Moves a descriptor to a number of 3 or higher if it is low nevertheless, because the low numbers
// could not be occupied.
int moved_up(int fd) noexcept {
  if (fd < 0 || fd >= first_own) return fd;
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, first_own), err = errno;
  ::close(fd);
  errno = err;
  return high;
}

template <class Open>
int open_high(Open&& open) noexcept {
  const Occupied standard;
  return moved_up(open());
}

}  // namespace

int open_file(const char* path, int flags, mode_t mode) noexcept {
  return open_high([&] { return ::open(path, flags | O_CLOEXEC, mode); });
}

int open_inotify() noexcept {
  return open_high([] { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); });
}

int open_shared_memory(const char* name, int flags, mode_t mode) noexcept {
  return open_high([&] { return ::shm_open(name, flags | O_CLOEXEC, mode); });
}

int open_memory_file(const char* name) noexcept {
  return open_high([&] { return ::memfd_create(name, MFD_CLOEXEC); });
}

int open_pipe(int (&ends)[2]) noexcept {
  const Occupied standard;
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  ends[0] = moved_up(ends[0]);
  const int err = errno;
  ends[1] = moved_up(ends[1]);
  if (ends[0] >= 0 && ends[1] >= 0) return 0;
  if (ends[0] < 0) errno = err;
  const int why = errno;
  for (const int end : ends)
    if (end >= 0) ::close(end);
  errno = why;
  return -1;
}

DIR* open_folder(const char* path) noexcept {
  const int fd = open_file(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return nullptr;
  DIR* const folder = ::fdopendir(fd);
  if (folder == nullptr) {
    const int err = errno;
    ::close(fd);
    errno = err;
  }
  return folder;
}

std::string read_whole_file(const std::string& path) {
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) ::close(fd);
    }
  } const file{open_file(path.c_str(), O_RDONLY | O_NONBLOCK)};
  std::string text;
  char part[4096];
  while (file.fd >= 0) {
    const ssize_t n = ::read(file.fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace perdure::base
