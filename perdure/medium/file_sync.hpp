// SPDX-License-Identifier: BSD-3-Clause
//
// FileSync: fdatasync of one file, shared by the threads that wait for it at the same time.
//
// A sync covers everything stored or written before it began, so a sync that starts after a
// thread's request serves that thread too.
// SYNC-1: one sync runs at a time. The kernel reports a lost page to a single caller per
// descriptor, so a second sync concurrent with a failing one could return success for bytes that
// are lost.
// Thread safety: any thread may call all functions.
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

  /// When this returns ok, everything that the caller wrote before is durable. `calls` grows by the
  /// number of system calls that this thread made.
  Status wait(std::uint64_t& calls);
  /// The same by fsync, never shared: it includes the file's length and other metadata.
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
