// SPDX-License-Identifier: BSD-3-Clause
//
// The operating system's side of a pool file: create it, open it, allocate its space, and find out
// which file system it is on.
//
// A page has its block before anything is stored to it (ALLOC-1, medium.hpp), so that a full disk
// is an error of create, grow or allocate and never a SIGBUS later. A creation or a growth that
// fails is undone (a new file is removed, a grown one truncated to its old length).
// Thread safety: none is needed, since these functions work only on their arguments.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "perdure/medium/medium.hpp"

namespace perdure::medium {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct FileHandle {
  Descriptor fd;
  std::uint64_t bytes = 0;        ///< the file's length, or a character device's size
  std::uint64_t data_bytes = 0;   ///< as requested, or what the file has
  bool character_device = false;  ///< /dev/dax*
};

/// Checks the sizes, then opens or creates the file that `how` names. A new file is zero, allocated
/// unless `how.sparse`, and not yet synced.
Result<FileHandle> open_pool_file(const OpenMedium& how);

/// Removes a file whose creation could not be finished.
void discard_new_file(const OpenMedium& how) noexcept;

/// Gives bytes [from, to) of the file their blocks, in pieces; existing contents stay. Returns
/// `full` if there are too few blocks: a part of them is allocated then.
Status allocate_blocks(int fd, const std::string& path, std::uint64_t from, std::uint64_t to);

/// Calls call(at, n) for one piece of [from, to) after the other until one returns an errno other
/// than EINTR; returns that errno, or 0. A signal that interrupts a call makes the next piece half
/// as long: some kernels give up all of an interrupted allocation, and a program with a timer would
/// otherwise restart the same one for ever.
template <class Call>
int in_pieces(std::uint64_t from, std::uint64_t to, Call&& call) {
  constexpr std::uint64_t longest = 1ULL << 30, shortest = page_bytes;
  std::uint64_t piece = longest;
  while (from < to) {
    const std::uint64_t n = std::min(piece, to - from);
    const int err = call(from, n);
    if (err == EINTR) {
      piece = std::max(std::min(piece, n) / 2 / page_bytes * page_bytes, shortest);
      continue;
    }
    if (err != 0) return err;
    from += n;
  }
  return 0;
}

/// Calls data(first, end) for each part of the file's bytes [from, to) that is not a hole according
/// to SEEK_DATA. Parts that are allocated but were never written may be reported as holes: they are
/// zero. A file system without SEEK_DATA reports no holes.
void each_data(int fd, std::uint64_t from, std::uint64_t to,
               const std::function<void(std::uint64_t, std::uint64_t)>& data);

/// Calls allocated(first, end) for each part of the file's bytes [from, to) that has blocks, those
/// that were allocated but never written included: in FIEMAP's words, an extent, unwritten or not.
/// One system call finds about 1000 extents. What each_data() finds where the file system has no
/// FIEMAP (tmpfs, NFS).
void each_allocated(int fd, std::uint64_t from, std::uint64_t to,
                    const std::function<void(std::uint64_t, std::uint64_t)>& allocated);

/// Describes a call that makes or fills blocks and has failed with `err`: `full`, with what to do,
/// where `err` means that there is no space.
Status no_log_space(const std::string& path, const char* call, int err, std::uint64_t bytes);

/// Makes [from, to) of the file allocated and zero, whatever its contents were, and the file at
/// least `to` long. After a failure the file is truncated to `from` if it was not longer before.
Status allocate_zero(int fd, const std::string& path, std::uint64_t from, std::uint64_t to);

/// Makes a hole of bytes [from, to) of the file, whole pages: its length stays. `unsupported` where
/// the file system has no holes. It is durable after the next sync.
Status punch_hole(int fd, const std::string& path, std::uint64_t from, std::uint64_t to);

/// Calls fsync on the file and on the folder that names it: a new file survives a power cut only
/// after both.
Status sync_file_and_folder(int fd, const std::string& path);

/// "ext4", "tmpfs", ..., or the magic number.
std::string file_system_name(const std::string& path_or_folder);
std::string folder_of(const std::string& path);

/// An anonymous DRAM file that can be mapped twice.
Result<Descriptor> make_memory_file(const char* name, std::uint64_t bytes);

/// The whole text of a small file in /sys, without the line end; empty if it can't be read.
std::string read_sysfs(const std::string& path);

}  // namespace perdure::medium
