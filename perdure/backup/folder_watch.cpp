// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/folder_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "perdure/base/descriptor.hpp"

namespace perdure::backup {
namespace {

using Clock = std::chrono::steady_clock;

// Returns when something has happened that was not told yet, or at `until`.
void wait_for_event(int fd, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::max(until - Clock::now(), Clock::duration::zero()));
  const timespec at_most = {static_cast<time_t>(left.count() / 1'000'000'000),
                            static_cast<long>(left.count() % 1'000'000'000)};
  pollfd one = {fd, POLLIN, 0};
  if (::ppoll(&one, 1, &at_most, nullptr) != 1) return;
  alignas(inotify_event) char events[4096];
  while (::read(fd, events, sizeof events) > 0) {}
}

}  // namespace

// Under the lock.
void FolderWatch::watch() {
  tried_ = true;
  medium::Descriptor events(base::open_inotify());
  // A name is given by link(), which is a creation, or by a rename.
  if (events &&
      ::inotify_add_watch(events.get(), folder_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) >= 0)
    events_ = std::move(events);
}

bool FolderWatch::wait_for(const std::string& name, std::chrono::microseconds at_most) {
  const auto until = Clock::now() + at_most;
  const std::string path = folder_ + "/" + name;
  const auto is_there = [&path] { return ::access(path.c_str(), F_OK) == 0; };
  const std::lock_guard lock(mutex_);
  if (!tried_) watch();
  if (!events_) {
    std::this_thread::sleep_until(until);
    return is_there();
  }
  // What is not there now is told: the folder is watched, and old events only make it look again.
  while (!is_there()) {
    if (Clock::now() >= until) return false;
    wait_for_event(events_.get(), until);
  }
  return true;
}

}  // namespace perdure::backup
