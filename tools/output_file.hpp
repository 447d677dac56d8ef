// SPDX-License-Identifier: BSD-3-Clause
//
// A file that a command writes: it is written under a temporary name, made durable, then renamed,
// so it is whole or absent. A path that is no regular file (a pipe, "-") is written directly.
// Single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"

namespace perdure::tool {

class OutputFile {
 public:
  /// Throws perdure::error if `path` is `not_this` (the pool that is read) or can't be opened.
  OutputFile(const std::string& path, const std::string& not_this);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  /// Gives the file its name.
  void finish();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void flush();
  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
};

/// The error for a file that exists already.
[[nodiscard]] error name_taken(const std::string& path);
/// Gives a whole file its name, durably; `is_new`: throws error(exists) instead of replacing an
/// existing file.
void give_name(const std::string& temporary, const std::string& path, bool is_new);

}  // namespace perdure::tool
