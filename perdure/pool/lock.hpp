// SPDX-License-Identifier: BSD-3-Clause
//
// FileLock: one writer or several readers of a pool file, in this process, in other processes, and
// through hard links; and followers, which read while a writer writes.
//
// Between processes it is an open-file-description lock (fcntl F_OFD_SETLK), which the kernel drops
// when its last descriptor closes: a dead owner blocks no one. Writers and readers lock the bytes
// below 2^62, where everything of a pool is. A follower locks the byte at 2^62, for reading: it
// keeps no writer away, and writers can see that there is one. While it reads, it also locks a byte
// behind that, whose number says how far it has read; it needs no permission to write the file for
// that, and when it dies the kernel drops the lock. A writer that serves followers locks another
// such byte, and one that has closed its pool, but not its file, a third. Builds that know no
// followers lock the whole file, so they and followers exclude each other. Within the process it is
// a registry by device and inode: one opening a process. A forked child closes its copies of the
// descriptors before fork() returns there, so that a child that outlives its parent doesn't keep
// the pool busy. Thread safety: any thread may make all calls.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::pool {

class FileLock {
 public:
  FileLock() noexcept = default;
  FileLock(FileLock&& o) noexcept
      : id_(std::exchange(o.id_, 0)),
        fd_(std::exchange(o.fd_, -1)),
        position_(std::exchange(o.position_, nowhere)) {}
  FileLock& operator=(FileLock&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(fd_, o.fd_);
    std::swap(position_, o.position_);
    return *this;
  }
  ~FileLock() { release(); }

  enum class Mode : std::uint8_t {
    write,   ///< exclusive, open for reading and writing
    read,    ///< shared, open for reading
    follow,  ///< beside a writer or readers, open for reading
    create   ///< exclusive, the file is made if it does not exist
  };
  /// Opens and locks. The error `busy` names what is known of the owner; `shown` is the path for
  /// messages (the pool's).
  static Result<FileLock> acquire(const std::string& path, Mode mode, const std::string& shown);

  [[nodiscard]] bool held() const noexcept { return id_ != 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }  ///< stale in a forked child
  /// Sets `is_it` to whether `path` names the locked file now. Returns an error if the system can't
  /// tell.
  [[nodiscard]] Status look_at(const char* path, bool& is_it) const noexcept;
  /// Whether another process has it open for writing. Error: the system can't tell.
  [[nodiscard]] Result<bool> has_writer() const noexcept { return other_has(writers, F_RDLCK); }
  /// Writers: followers may follow the session from now on, or no more; the pool is closed, and
  /// this process changes it no more. Where the system refuses it, followers see neither.
  void serve(bool serves) noexcept { mark(serving, serves); }
  void closed(bool closed) noexcept { mark(was_closed, closed); }
  /// Whether another process serves followers; whether its pool is closed.
  [[nodiscard]] Result<bool> is_served() const noexcept { return other_has(serving, F_RDLCK); }
  [[nodiscard]] Result<bool> is_closed() const noexcept { return other_has(was_closed, F_RDLCK); }
  /// Whether another process follows it.
  [[nodiscard]] Result<bool> has_followers() const noexcept {
    return other_has(followers, F_WRLCK);
  }
  /// A follower shows writers up to which id it has read ahead: a lock of one byte. Where the
  /// system refuses it, nothing is shown.
  void show_position(std::uint64_t id) noexcept;
  void hide_position() noexcept;
  /// Whether a follower of another process shows a position in [from, to). False where the system
  /// can't tell.
  [[nodiscard]] bool shows_position(std::uint64_t from, std::uint64_t to) const noexcept;
  /// For messages: the other processes that have it open, as far as they can be seen.
  [[nodiscard]] std::string others() const;
  /// Messages use this path from now on, because the file was renamed.
  void renamed(const std::string& path);
  void release() noexcept;

 private:
  struct Range {
    std::int64_t from, bytes;
  };
  static constexpr Range writers{0, std::int64_t{1} << 62}, followers{std::int64_t{1} << 62, 1};
  static constexpr std::int64_t positions = followers.from + followers.bytes;  // that of id 0
  // Ids are below 2^48.
  static constexpr Range serving{followers.from + (std::int64_t{1} << 60), 1},
      was_closed{serving.from + 1, 1};
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  [[nodiscard]] Result<bool> other_has(Range range, short against) const noexcept;
  void mark(Range range, bool on) noexcept;

  std::uint64_t id_ = 0;  // in the registry; never used twice, not even in a forked child
  int fd_ = -1;
  std::uint64_t position_ = nowhere;
};

/// For messages, from the pools that this process has open: the path of the pool whose view covers
/// `address`, or empty.
[[nodiscard]] std::string pool_viewed_at(std::uint64_t address);
/// Records [base, base + bytes) as the view of the pool `path`; bytes = 0 forgets it.
void note_view(const std::string& path, std::uint64_t base, std::uint64_t bytes);

}  // namespace perdure::pool
