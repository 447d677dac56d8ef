// SPDX-License-Identifier: BSD-3-Clause
//
// SourceFile: the text file that is loaded: its identity (size and hash of all its bytes) and a
// growing window for reading it. It is read with read(2) and never mapped: if another process
// truncates the file meanwhile, the result is an error, not a SIGBUS. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"

namespace perdure::tool {

struct Identity {
  /// hash: base::hash_bytes of each MiB, seeded with the hash before it.
  std::uint64_t size = 0, hash = 0;
  bool operator==(const Identity&) const = default;
};

class SourceFile {
 public:
  /// Opens a regular file; `invalid` for anything else (a resumed load must read it again).
  static Result<SourceFile> open(const std::string& path);
  ~SourceFile();
  SourceFile(SourceFile&& other) noexcept;
  SourceFile& operator=(SourceFile&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Reads the whole file once. Does not change the window.
  Result<Identity> identity() const;
  /// The first bytes (at most n), to guess the format.
  Result<std::string> first_bytes(std::size_t n) const;

  /// Starts the window at this offset, empty.
  void seek(std::uint64_t offset) noexcept;
  /// The bytes from position() on that are in memory. The view is valid until more() or consume().
  [[nodiscard]] std::string_view window() const noexcept {
    return std::string_view(buffer_).substr(begin_);
  }
  /// Enlarges the window; returns false at the end of the file (or after a failure, see status()).
  bool more();
  /// Drops the window's first n bytes. Does not move the bytes after them: views of those stay
  /// valid until more().
  void consume(std::size_t n) noexcept { begin_ += n; }
  /// File offset of the window's first byte.
  [[nodiscard]] std::uint64_t position() const noexcept { return buffer_offset_ + begin_; }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  SourceFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t buffer_offset_ = 0;
  Status status_;
};

}  // namespace perdure::tool
