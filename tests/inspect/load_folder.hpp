// SPDX-License-Identifier: BSD-3-Clause
//
// LoadFolder: a folder in memory for a test's pools, removed with all that is in it.
// Thread safety: one thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace perdure::test {

class LoadFolder {
 public:
  LoadFolder() {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    name += "/perdure-load-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    name_ = name;
  }
  ~LoadFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  LoadFolder(const LoadFolder&) = delete;
  LoadFolder& operator=(const LoadFolder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return name_ + "/" + name; }

 private:
  std::string name_;
};

}  // namespace perdure::test
