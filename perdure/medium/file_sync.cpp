// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/file_sync.hpp"

#include <unistd.h>

#include <cerrno>

namespace perdure::medium {

Status FileSync::wait(std::uint64_t& calls) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++asked_;
  while (served_ < ticket) {
    if (running_) {
      finished_.wait(lock);
      if (Status s = poison_.check(); !s.ok()) return s;
      continue;
    }
    running_ = true;
    const std::uint64_t serves = asked_;  // all of these stored before this sync begins
    lock.unlock();
    const int err = ::fdatasync(fd_) == 0 ? 0 : errno;
    Status failed;
    // Poisoned before any waiting thread continues.
    if (err != 0)
      failed = poison_.fail(system_failure(path_, "fdatasync", err, "reopen the pool to recover"));
    lock.lock();
    ++calls;
    running_ = false;
    if (err == 0) served_ = serves;
    finished_.notify_all();
    if (err != 0) return failed;
  }
  return poison_.check();
}

Status FileSync::wait_with_metadata(std::uint64_t& calls) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return !running_; });
  const int err = ::fsync(fd_) == 0 ? 0 : errno;  // under the mutex: one sync at a time
  ++calls;
  if (err != 0)
    return poison_.fail(system_failure(path_, "fsync", err, "reopen the pool to recover"));
  return poison_.check();
}

}  // namespace perdure::medium
