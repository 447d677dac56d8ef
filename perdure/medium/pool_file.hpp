// SPDX-License-Identifier: BSD-3-Clause
//
// The operating system's side of a pool file: make it, open it, give it room, find out what it lies on.
//
// A file that Perdure makes has every byte allocated before it is mapped, so that a full disk is an error of create or grow and never
// a SIGBUS later; what fails half way is undone (a new file removed, a grown one cut back). Thread safety: none needed, these are
// functions over their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct PoolFile {
  Descriptor fd;
  std::uint64_t bytes = 0;        ///< its length; a character device's size
  std::uint64_t home_bytes = 0;   ///< as asked for, or what the file has
  bool character_device = false;  ///< /dev/dax*
};

/// Checks the sizes, then opens or creates (allocated, zero, not yet synced) what `how` names.
Result<PoolFile> open_pool_file(const OpenMedium& how);

/// Removes a file that was being created and could not be finished.
void discard_new_file(const OpenMedium& how) noexcept;

/// Makes [from, to) of the file allocated and zero, whatever lay there, and the file at least `to` long. On failure the file is cut
/// back to `from` if it was not longer before.
Status allocate_zero(int fd, const std::string& path, std::uint64_t from, std::uint64_t to);

/// fsync of the file and of the folder that names it: a new file survives a power cut only after both.
Status sync_file_and_folder(int fd, const std::string& path);

/// "ext4", "tmpfs", ..., or the magic number.
std::string file_system_name(const std::string& path_or_folder);
std::string folder_of(const std::string& path);

/// An anonymous DRAM file that can be mapped twice.
Result<Descriptor> make_memory_file(const char* name, std::uint64_t bytes);

/// The whole text of a small file in /sys, without the line end; empty when it can't be read.
std::string read_sysfs(const std::string& path);

}  // namespace perdure::medium
