// SPDX-License-Identifier: BSD-3-Clause
//
// FolderWatch: waits until a file appears in a folder, told by the kernel (inotify).
// Thread safety: any thread; one waits at a time, and the others until it has.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "perdure/medium/file_handle.hpp"

namespace perdure::backup {

class FolderWatch {
 public:
  /// `folder` is watched from the first wait on.
  explicit FolderWatch(std::string folder) : folder_(std::move(folder)) {}

  /// Waits until there is a file of that name in the folder, and returns true; false when `at_most`
  /// is over. Where the kernel tells nothing (another machine made the file, no inotify instance is
  /// left), it waits that long, and then looks.
  [[nodiscard]] bool wait_for(const std::string& name, std::chrono::microseconds at_most);

 private:
  void watch();

  const std::string folder_;
  std::mutex mutex_;  // guards what follows
  // Kept: to close one takes the kernel milliseconds.
  medium::Descriptor events_;
  bool tried_ = false;
};

}  // namespace perdure::backup
