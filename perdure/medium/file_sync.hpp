// SPDX-License-Identifier: BSD-3-Clause
//
// FileSync: fdatasync of one file, shared by the threads that wait for it at the same time.
//
// A sync covers whatever was stored or written before it began, so one that starts after a thread
// asked serves that thread too.
// One runs at a time: the kernel reports a lost page to a single caller of a descriptor, so a
// second sync beside a failing one could return success for bytes that are gone. Thread safety: any
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "perdure/medium/poison.hpp"

namespace perdure::medium {

class FileSync {
 public:
  FileSync(std::string path, int fd, Poison& poison)
      : path_(std::move(path)), fd_(fd), poison_(poison) {}

  /// What the caller wrote before is durable when this returns ok. `calls` grows by the system
  /// calls made by this thread.
  Status wait(std::uint64_t& calls);
  /// The same by fsync, never shared: the file's length and other metadata too.
  Status wait_with_metadata(std::uint64_t& calls);

 private:
  std::string path_;
  int fd_;
  Poison& poison_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::uint64_t asked_ = 0, served_ = 0;  // guarded by mutex_
  bool running_ = false;                  // guarded by mutex_
};

}  // namespace perdure::medium
