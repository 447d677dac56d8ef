// SPDX-License-Identifier: BSD-3-Clause
//
// Small disks for the tests of pools on full ones, and files that fill them.
#pragma once

#include "faults.hpp"
#include "tests/medium/small_disk.hpp"

namespace perdure::faults {

/// Runs `body` in a child that sees a small disk at the scratch folder: a tmpfs in a mount
/// namespace (root) or in a user namespace. Returns false if neither is allowed; then only an
/// injected fault tests growth that fails.
inline bool on_a_small_disk(const Scratch& scratch, const char* size,
                            const std::function<void()>& body) {
  const int r = in_child([&] {
    if (!medium::testing::small_disk(scratch.folder(), size)) ::_exit(medium::testing::not_allowed);
    body();
  });
  if (r == medium::testing::not_allowed) {
    std::puts(
        "  no tmpfs may be mounted here, with or without a user namespace: a full disk is shown by "
        "injection alone");
    return false;
  }
  EXPECT_EQ(r, 0);
  return true;
}

/// Changes the size of the disk that the child sees.
inline void resize_disk(const Scratch& scratch, const char* size) {
  ASSERT_EQ(::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT,
                    (std::string("size=") + size).c_str()),
            0);
}

/// Takes all remaining blocks of the disk, until it is destroyed.
class Filler {
 public:
  explicit Filler(std::string path) : path_(std::move(path)) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const std::string block(4096, 'f');
    while (fd >= 0 && ::write(fd, block.data(), block.size()) > 0) {}
    ::close(fd);
  }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  ~Filler() { remove(); }
  void remove() const { ::unlink(path_.c_str()); }

 private:
  std::string path_;
};

/// The bytes of the file's blocks.
inline std::uint64_t blocks_of(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_blocks) * 512
                                        : ~std::uint64_t{0};
}

/// Copies as `cp --sparse=always` does: a page of zeros becomes a hole. Returns false if the disk
/// is too small for the copy.
inline bool copy_sparsely(const std::string& from, const std::string& to) {
  const std::string text = read_all(from);
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(text.size())) == 0;
  const std::string zeros(4096, '\0');
  for (std::size_t at = 0; good && at < text.size(); at += 4096) {
    const std::size_t n = std::min<std::size_t>(4096, text.size() - at);
    if (text.compare(at, n, zeros, 0, n) != 0)
      good = ::pwrite(fd, text.data() + at, n, static_cast<off_t>(at)) == static_cast<ssize_t>(n);
  }
  if (fd >= 0) ::close(fd);
  return good;
}

}  // namespace perdure::faults
