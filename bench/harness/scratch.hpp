// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch: where a benchmark's files go. Thread safety: one thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {

/// A directory of its owner's own under the one given, gone with it.
class Scratch {
 public:
  explicit Scratch(const std::string& under) {
    std::filesystem::create_directories(under);
    path_ = under + "/perdure-bench-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error(under + ": no directory can be made in it");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace bench
