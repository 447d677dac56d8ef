// SPDX-License-Identifier: BSD-3-Clause
//
// A file that a command writes: beside its name, made durable, then renamed: it is whole or not
// there. What is no regular file (a pipe, "-") is written as it comes. Single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"

namespace perdure::tool {

class OutputFile {
 public:
  /// Throws perdure::error: `path` is `not_this` (the pool that is read), can't be opened.
  OutputFile(const std::string& path, const std::string& not_this);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  /// The file has its name.
  void finish();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void flush();
  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
};

/// What is said of a file that is there already.
[[nodiscard]] error name_taken(const std::string& path);
/// Gives a file that is whole its name, durably; `is_new`: throws error(exists) rather than take
/// another's.
void give_name(const std::string& temporary, const std::string& path, bool is_new);

}  // namespace perdure::tool
