// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of the media: a folder that removes itself, patterns of bytes, and reading a
// file without any of our caches.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "perdure/medium/medium.hpp"

namespace perdure::medium::testing {

/// A new folder, removed at the end.
class Scratch {
 public:
  explicit Scratch(const std::string& under = ::testing::TempDir()) {
    std::string name = (under.back() == '/' ? under : under + "/") + "perdure-medium-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name = "pool") const {
    return folder_ + "/" + name;
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

inline std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

inline std::uint64_t file_bytes(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
}

/// Bytes that identify their place and their round, never zero.
inline std::vector<std::byte> pattern(std::size_t n, std::uint64_t seed) {
  std::vector<std::byte> v(n);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::byte& b : v) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    b = static_cast<std::byte>(x | 1);
  }
  return v;
}

inline std::vector<std::byte> bytes_at(const Medium& m, std::uint64_t offset, std::size_t n) {
  return {m.at(offset), m.at(offset) + n};
}

inline bool zero_at(const Medium& m, std::uint64_t offset, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (m.at(offset)[i] != std::byte{0}) return false;
  }
  return true;
}

}  // namespace perdure::medium::testing
