// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/file_handle.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "perdure/base/descriptor.hpp"
#include "perdure/base/size_limit.hpp"
#include "perdure/medium/words.hpp"

namespace perdure::medium {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

Status check_sizes(const OpenMedium& how) {
  if (how.path.empty())
    return failure(Code::invalid, "", "an empty path", "the path of a pool file");
  for (const auto& [value, what] :
       {std::pair{how.log_bytes, "log_bytes"}, std::pair{how.data_bytes, "data_bytes"},
        std::pair{how.max_data_bytes, "max_data_bytes"}}) {
    if (value % page_bytes != 0) {
      return failure(Code::invalid, how.path, std::string(what) + " = " + number(value),
                     "a multiple of 4096");
    }
    if (value > (1ULL << 46)) {
      return failure(Code::invalid, how.path, std::string(what) + " = " + number(value),
                     "at most 2^46, what an address space holds");
    }
  }
  if (how.log_bytes == 0) return failure(Code::invalid, how.path, "log_bytes = 0", "at least 4096");
  if (how.create && how.read_only)
    return failure(Code::invalid, how.path, "create and read_only together", "one of them");
  return {};
}

Status open_failure(const OpenMedium& how, int err) {
  if (err == EEXIST)
    return failure(Code::exists, how.path, "the file exists already", "no such file",
                   "open it without create, or choose another path");
  if (err == ENOENT) {
    return failure(
        Code::not_found, how.path, how.create ? "its folder does not exist" : "no such file", {},
        how.create ? "make the folder first" : "create the pool first, or correct the path");
  }
  if (err == EROFS)
    return failure(Code::read_only, how.path, "the file system is mounted read-only", {},
                   "open the pool read-only");
  if (err == EACCES || err == EPERM) {
    return system_failure(how.path, "open", err,
                          how.read_only || how.create
                              ? "check the permissions"
                              : "check the permissions, or open the pool read-only");
  }
  return system_failure(how.path, "open", err);
}

// Calls fallocate, or where the file system has none, the C library's replacement, which writes to
// every block. Returns 0 or an errno.
int allocate(int fd, std::uint64_t from, std::uint64_t to) {
  const base::SizeLimitIsAnError limit;
  return in_pieces(from, to, [fd](std::uint64_t at, std::uint64_t n) {
    const auto offset = static_cast<off_t>(at), length = static_cast<off_t>(n);
    if (::fallocate(fd, 0, offset, length) == 0) return 0;
    return errno == EOPNOTSUPP ? ::posix_fallocate(fd, offset, length) : errno;
  });
}

// Zeros what an unpublished growth may have left beyond the end.
int zero(int fd, std::uint64_t from, std::uint64_t to) noexcept {
  const base::SizeLimitIsAnError limit;
  const auto offset = static_cast<off_t>(from), length = static_cast<off_t>(to - from);
  if (::fallocate(fd, FALLOC_FL_ZERO_RANGE, offset, length) == 0) return 0;
  // The caller allocates the range again.
  if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) == 0) return 0;
  static const std::byte zeros[65536] = {};
  for (std::uint64_t at = from; at < to;) {
    const ssize_t n =
        ::pwrite(fd, zeros, std::min<std::uint64_t>(sizeof zeros, to - at), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

std::uint64_t device_bytes(const struct stat& st) {
  const std::string text = read_sysfs("/sys/dev/char/" + std::to_string(major(st.st_rdev)) + ":" +
                                      std::to_string(minor(st.st_rdev)) + "/size");
  std::uint64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return 0;
    n = n * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return n;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Status no_log_space(const std::string& path, const char* call, int err, std::uint64_t bytes) {
  if (err == ENOSPC || err == EDQUOT || err == EFBIG) {
    const char* why = err == EFBIG
                          ? "the file size limit was met"
                          : (err == EDQUOT ? "the disk quota is used up" : "the disk is full");
    return failure(Code::full, path, std::string(why) + " (" + call + ")",
                   number(bytes) + " free bytes",
                   "free space or ask for a smaller size; the file is as it was before");
  }
  return system_failure(path, call, err);
}

Status allocate_blocks(int fd, const std::string& path, std::uint64_t from, std::uint64_t to) {
  const int err = allocate(fd, from, to);
  return err == 0 ? Status() : no_log_space(path, "fallocate", err, to - from);
}

void each_data(int fd, std::uint64_t from, std::uint64_t to,
               const std::function<void(std::uint64_t, std::uint64_t)>& data) {
  for (std::uint64_t at = from; at < to;) {
    const off_t first = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (first < 0 && errno == ENXIO) return;  // only holes up to the end
    if (first < 0) return data(at, to);
    const auto begin = static_cast<std::uint64_t>(first);
    if (begin >= to) return;
    const off_t hole = ::lseek(fd, first, SEEK_HOLE);
    const std::uint64_t end = hole < 0 ? to : std::min(static_cast<std::uint64_t>(hole), to);
    data(begin, end);
    at = std::max(end, begin + 1);
  }
}

void each_allocated(int fd, std::uint64_t from, std::uint64_t to,
                    const std::function<void(std::uint64_t, std::uint64_t)>& allocated) {
  constexpr std::uint32_t extents = 1000;
  // fiemap ends in an array whose length the caller chooses.
  std::vector<std::uint64_t> room((sizeof(fiemap) + extents * sizeof(fiemap_extent) + 7) / 8);
  auto& map = *reinterpret_cast<fiemap*>(room.data());
  while (from < to) {
    map = {};
    map.fm_start = from;
    map.fm_length = to - from;
    map.fm_extent_count = extents;
    if (::ioctl(fd, FS_IOC_FIEMAP, &map) != 0) return each_data(fd, from, to, allocated);
    for (std::uint32_t i = 0; i < map.fm_mapped_extents; ++i) {
      const fiemap_extent& e = map.fm_extents[i];
      const std::uint64_t begin = std::max<std::uint64_t>(e.fe_logical, from),
                          end = std::min<std::uint64_t>(e.fe_logical + e.fe_length, to);
      if (begin >= end) continue;
      allocated(begin, end);
      from = end;
    }
    if (map.fm_mapped_extents < extents) return;  // there are no more
  }
}

std::string read_sysfs(const std::string& path) {
  std::string text = base::read_whole_file(path);
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

Result<FileHandle> open_pool_file(const OpenMedium& how) {
  if (Status s = check_sizes(how); !s.ok()) return s;
  FileHandle file;
  struct stat st = {};
  const bool there = ::stat(how.path.c_str(), &st) == 0;
  file.character_device = there && S_ISCHR(st.st_mode);
  // A device always exists; its medium checks whether it is in use.
  const bool make = how.create && !file.character_device;
  const int flags = (how.read_only ? O_RDONLY : O_RDWR) | (make ? O_CREAT | O_EXCL : 0);
  if (there && !S_ISREG(st.st_mode) && !file.character_device) {
    if (make) return open_failure(how, EEXIST);
    return failure(Code::invalid, how.path, S_ISDIR(st.st_mode) ? "a folder" : "not a regular file",
                   "a pool file or a /dev/dax device");
  }
  file.fd = Descriptor(base::open_file(how.path.c_str(), flags, 0666));
  if (!file.fd) return open_failure(how, errno);
  file.data_bytes = how.data_bytes;
  const std::uint64_t wanted = how.log_bytes + how.data_bytes;
  if (make) {
    const base::SizeLimitIsAnError limit;
    Status s;
    if (!how.sparse)
      s = allocate_zero(file.fd.get(), how.path, 0, wanted);
    else if (::ftruncate(file.fd.get(), static_cast<off_t>(wanted)) != 0)
      s = no_log_space(how.path, "ftruncate", errno, wanted);
    if (!s.ok()) {
      discard_new_file(how);
      return s;
    }
    file.bytes = wanted;
    return file;
  }
  if (::fstat(file.fd.get(), &st) != 0) return system_failure(how.path, "fstat", errno);
  file.bytes = file.character_device ? device_bytes(st) : static_cast<std::uint64_t>(st.st_size);
  if (file.bytes < wanted) {
    const char* what = file.character_device ? "the device has " : "the file has ";
    return failure(file.character_device ? Code::full : Code::corrupt, how.path,
                   what + number(file.bytes) + " bytes",
                   "at least " + number(wanted) + " (log " + number(how.log_bytes) + " + data " +
                       number(how.data_bytes) + ")",
                   file.character_device
                       ? "ask for a smaller pool"
                       : "it was cut short, or is not a pool: restore it from a copy");
  }
  // A commit that writes its log beyond the limit would fail and poison the pool.
  if (struct rlimit limit = {}; !how.read_only && !file.character_device &&
                                ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                                limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < how.log_bytes)
    return failure(Code::full, how.path,
                   "a file size limit of " + number(limit.rlim_cur) + " bytes (ulimit -f)",
                   "at least the log's " + number(how.log_bytes) + " bytes",
                   "raise the limit, or open the pool read-only");
  if (how.data_bytes == 0 && !how.create)
    file.data_bytes = (file.bytes - how.log_bytes) / page_bytes * page_bytes;
  return file;
}

void discard_new_file(const OpenMedium& how) noexcept {
  struct stat st = {};
  if (how.create && ::stat(how.path.c_str(), &st) == 0 && S_ISREG(st.st_mode))
    ::unlink(how.path.c_str());
}

Status allocate_zero(int fd, const std::string& path, std::uint64_t from, std::uint64_t to) {
  struct stat st = {};
  if (::fstat(fd, &st) != 0) return system_failure(path, "fstat", errno);
  const auto before = static_cast<std::uint64_t>(st.st_size);
  const char* call = "fallocate";
  int err = 0;
  if (before > from) {
    err = zero(fd, from, std::min(before, to));
    call = "zeroing";
  }
  if (err == 0) {
    err = allocate(fd, from, to);
    call = "fallocate";
  }
  if (err == 0) return {};
  // Undone, so that the disk has its space back; what was there before is never cut away.
  if (::ftruncate(fd, static_cast<off_t>(std::max(before, from))) != 0 && err == 0) err = errno;
  return no_log_space(path, call, err, to - from);
}

Status punch_hole(int fd, const std::string& path, std::uint64_t from, std::uint64_t to) {
  const int err = in_pieces(from, to, [fd](std::uint64_t at, std::uint64_t n) {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                       static_cast<off_t>(n)) == 0
               ? 0
               : errno;
  });
  if (err == 0) return {};
  if (err == EOPNOTSUPP || err == ENOSYS || err == ENODEV)
    return failure(Code::unsupported, path,
                   "the file system " + file_system_name(path) + ", which can't make holes",
                   "one that can, such as ext4, xfs, btrfs or tmpfs",
                   "copy the pool to such a file system");
  return system_failure(path, "fallocate (punch hole)", err);
}

Status sync_file_and_folder(int fd, const std::string& path) {
  if (::fsync(fd) != 0) return system_failure(path, "fsync", errno);
  const std::string folder = folder_of(path);
  const Descriptor dir(base::open_file(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (!dir) return system_failure(folder, "open", errno);
  if (::fsync(dir.get()) != 0 && errno != EINVAL) return system_failure(folder, "fsync", errno);
  return {};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_system_name(const std::string& path_or_folder) {
  struct statfs fs = {};
  if (::statfs(path_or_folder.c_str(), &fs) != 0) return "unknown";
  switch (static_cast<std::uint32_t>(fs.f_type)) {
    case EXT4_SUPER_MAGIC: return "ext4";
    case XFS_SUPER_MAGIC: return "xfs";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case TMPFS_MAGIC: return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlay";
    case NFS_SUPER_MAGIC: return "nfs";
    case F2FS_SUPER_MAGIC: return "f2fs";
    case FUSE_SUPER_MAGIC: return "fuse";
    case 0x2fc12fc1U: return "zfs";
    default: break;
  }
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (auto v = static_cast<std::uint32_t>(fs.f_type); v != 0; v >>= 4)
    text.insert(text.begin(), digits[v & 15]);
  return "file system 0x" + text;
}

Result<Descriptor> make_memory_file(const char* name, std::uint64_t bytes) {
  Descriptor fd(base::open_memory_file(name));
  if (!fd) return system_failure(name, "memfd_create", errno);
  const base::SizeLimitIsAnError limit;  // the limit applies to memory files too
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0) return fd;
  if (errno != EFBIG) return system_failure(name, "ftruncate of a memory file", errno);
  return failure(
      Code::full, name,
      "a file size limit (ulimit -f) below the memory file's " + number(bytes) + " bytes", {},
      "raise the limit, or make the pool with a smaller log_size");
}

}  // namespace perdure::medium
