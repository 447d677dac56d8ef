// SPDX-License-Identifier: BSD-3-Clause
#include "tools/source_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "perdure/base/checksum.hpp"
#include "perdure/base/descriptor.hpp"

namespace perdure::tool {
namespace {

constexpr std::size_t hash_block = 1 << 20;  // part of the identity: see source_file.hpp
constexpr std::size_t min_read = 64 << 10;

// Reads up to n bytes at an offset; fewer only at the end of the file.
ssize_t read_at(int fd, char* to, std::size_t n, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got = ::pread(fd, to + done, n - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

Result<SourceFile> SourceFile::open(const std::string& path) {
  // O_NONBLOCK, because opening a FIFO would wait for its writer.
  const int fd = base::open_file(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return system_failure(path, "open", errno, "name a file that can be read");
  SourceFile file(path, fd);
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return system_failure(path, "fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    return failure(Code::invalid, path,
                   S_ISDIR(status.st_mode) ? "a directory" : "not a regular file", "a regular file",
                   "save the data to a file first: a load that is cut short reads it again from "
                   "where it was cut");
  }
  return file;
}

SourceFile::~SourceFile() {
  if (fd_ >= 0) ::close(fd_);
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      buffer_offset_(other.buffer_offset_),
      status_(std::move(other.status_)) {}

Result<Identity> SourceFile::identity() const {
  Identity id;
  std::string block(hash_block, '\0');
  for (;;) {
    const ssize_t n = read_at(fd_, block.data(), hash_block, id.size);
    if (n < 0) return system_failure(path_, "read", errno);
    if (n == 0) return id;
    id.size += static_cast<std::uint64_t>(n);
    id.hash = base::hash_bytes(block.data(), static_cast<std::size_t>(n), id.hash);
  }
}

Result<std::string> SourceFile::first_bytes(std::size_t n) const {
  std::string bytes(n, '\0');
  const ssize_t got = read_at(fd_, bytes.data(), n, 0);
  if (got < 0) return system_failure(path_, "read", errno);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

void SourceFile::seek(std::uint64_t offset) noexcept {
  buffer_.clear();
  begin_ = 0;
  buffer_offset_ = offset;
}

bool SourceFile::more() {
  if (!status_.ok()) return false;
  buffer_.erase(0, begin_);
  buffer_offset_ += begin_;
  begin_ = 0;
  // A long record doubles the window, so the work stays linear.
  const std::size_t had = buffer_.size(), want = had < min_read ? min_read : had;
  buffer_.resize(had + want);
  const ssize_t got = read_at(fd_, buffer_.data() + had, want, buffer_offset_ + had);
  if (got < 0) status_ = system_failure(path_, "read", errno);
  buffer_.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
  return got > 0;
}

}  // namespace perdure::tool
