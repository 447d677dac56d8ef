// SPDX-License-Identifier: BSD-3-Clause
//
// FileLock: one writer or several readers of a pool file, in this process, in others, and through
// hard links.
//
// Between processes: an open-file-description lock (fcntl F_OFD_SETLK) on the whole file, which the
// kernel drops when its last descriptor closes: a dead owner blocks nobody. Within the process: a
// registry by device and inode. A forked child closes its copies of the descriptors before fork()
// returns there, so that a child that outlives its parent doesn't keep the pool busy.
// Thread safety: all calls, from any thread.
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
    create  ///< exclusive, the file is made if it is not there
  };
  /// Opens and locks. `busy` names what is known of the owner; `shown` is the path for messages
  /// (that of the pool).
  static Result<FileLock> acquire(const std::string& path, Mode mode, const std::string& shown);

  [[nodiscard]] bool held() const noexcept { return id_ != 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }  ///< stale in a forked child
  /// Sets `is_it`: whether `path` names the locked file now. An error where the system does not
  /// say.
  [[nodiscard]] Status look_at(const char* path, bool& is_it) const noexcept;
  /// From now on messages call it so: the file was renamed.
  void renamed(const std::string& path);
  void release() noexcept;

 private:
  std::uint64_t id_ = 0;  // in the registry; never used twice, in a forked child neither
  int fd_ = -1;
};

/// The pools that this process has open, for messages: path of the pool whose view covers
/// `address`, or empty.
[[nodiscard]] std::string pool_viewed_at(std::uint64_t address);
/// Records [base, +bytes) as the view of the pool `path`; bytes = 0 forgets it.
void note_view(const std::string& path, std::uint64_t base, std::uint64_t bytes);

}  // namespace perdure::pool
