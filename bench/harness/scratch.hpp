// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch: the directory for a benchmark's files. Thread safety: one thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {

/// A directory below the given one that is removed with this object.
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
