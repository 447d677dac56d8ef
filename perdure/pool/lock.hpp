// SPDX-License-Identifier: BSD-3-Clause
//
// FileLock: one writer or several readers of a pool file, in this process, in other processes, and
// through hard links.
//
// Between processes it is an open-file-description lock (fcntl F_OFD_SETLK) on the whole file,
// which the kernel drops when its last descriptor closes: a dead owner blocks no one. Within the
// process it is a registry by device and inode. A forked child closes its copies of the descriptors
// before fork() returns there, so that a child that outlives its parent doesn't keep the pool busy.
// Thread safety: any thread may make all calls.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::pool {

class FileLock {
 public:
  FileLock() noexcept = default;
  FileLock(FileLock&& o) noexcept : id_(std::exchange(o.id_, 0)), fd_(std::exchange(o.fd_, -1)) {}
  FileLock& operator=(FileLock&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~FileLock() { release(); }

  enum class Mode : std::uint8_t {
    write,  ///< exclusive, open for reading and writing
    read,   ///< shared, open for reading
    create  ///< exclusive, the file is made if it does not exist
  };
  /// Opens and locks. The error `busy` names what is known of the owner; `shown` is the path for
  /// messages (the pool's).
  static Result<FileLock> acquire(const std::string& path, Mode mode, const std::string& shown);

  [[nodiscard]] bool held() const noexcept { return id_ != 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }  ///< stale in a forked child
  /// Sets `is_it` to whether `path` names the locked file now. Returns an error if the system can't
  /// tell.
  [[nodiscard]] Status look_at(const char* path, bool& is_it) const noexcept;
  /// Messages use this path from now on, because the file was renamed.
  void renamed(const std::string& path);
  void release() noexcept;

 private:
  std::uint64_t id_ = 0;  // in the registry; never used twice, not even in a forked child
  int fd_ = -1;
};

/// For messages, from the pools that this process has open: the path of the pool whose view covers
/// `address`, or empty.
[[nodiscard]] std::string pool_viewed_at(std::uint64_t address);
/// Records [base, base + bytes) as the view of the pool `path`; bytes = 0 forgets it.
void note_view(const std::string& path, std::uint64_t base, std::uint64_t bytes);

}  // namespace perdure::pool
