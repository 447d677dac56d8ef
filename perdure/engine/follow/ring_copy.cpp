// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/ring_copy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "perdure/base/descriptor.hpp"

namespace perdure::engine::follow {
namespace {

Status out_of_space(const std::string& path, const char* call, std::uint64_t bytes) {
  return system_failure(path, std::string(call) + " of " + std::to_string(bytes) + " bytes", errno);
}

// Copies the parts of [offset, offset + bytes) that have data; the rest of `to` is zero.
Status copy_data(int fd, const std::string& path, std::byte* to, std::uint64_t offset,
                 std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset; at < end;) {
    const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {};  // a hole up to the file's end
    if (data < 0) return system_failure(path, "lseek(SEEK_DATA)", errno);
    at = static_cast<std::uint64_t>(data);
    if (at >= end) return {};
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return system_failure(path, "lseek(SEEK_HOLE)", errno);
    for (const std::uint64_t to_hole = std::min(static_cast<std::uint64_t>(hole), end);
         at < to_hole;) {
      const ssize_t n = ::pread(fd, to + (at - offset), to_hole - at, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_failure(path, "read of the log", errno);
      if (n == 0) return failure(Code::corrupt, path, "a file that became shorter");
      at += static_cast<std::uint64_t>(n);
    }
  }
  return {};
}

}  // namespace

RingCopy::RingCopy(RingCopy&& other) noexcept : map_(std::exchange(other.map_, {})) {}

RingCopy::~RingCopy() {
  if (map_.base != nullptr) ::munmap(const_cast<std::byte*>(map_.base), 2 * map_.bytes);
}

Result<RingCopy> RingCopy::make(int fd, const std::string& path, std::uint64_t offset,
                                std::uint64_t bytes) {
  const int memory = base::open_memory_file("perdure-log");
  if (memory < 0) return system_failure(path, "memfd_create", errno);
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{memory};
  if (::ftruncate(memory, static_cast<off_t>(bytes)) != 0)
    return out_of_space(path, "ftruncate", bytes);
  void* const space =
      ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return out_of_space(path, "mmap", 2 * bytes);
  RingCopy copy;
  auto* const base = static_cast<std::byte*>(space);
  copy.map_ = {base, offset, bytes, nullptr};
  for (const std::uint64_t half : {std::uint64_t{0}, bytes})
    if (::mmap(base + half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) ==
        MAP_FAILED)
      return out_of_space(path, "mmap", bytes);
  if (Status s = copy_data(fd, path, base, offset, bytes); !s.ok()) return s;
  return copy;
}

}  // namespace perdure::engine::follow
