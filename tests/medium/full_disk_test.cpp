// SPDX-License-Identifier: BSD-3-Clause
//
// A full disk while creating and growing: an error that names the file, existing contents stay, and
// nothing half-made remains.
//
// The disk is a small tmpfs, mounted in a mount namespace (root), or in a user namespace (not
// root). If neither is allowed the test uses a file size limit (RLIMIT_FSIZE) instead, and says so.
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <functional>

#include "scratch.hpp"
#include "small_disk.hpp"

namespace perdure::medium {
namespace {

using testing::bytes_at;
using testing::file_bytes;
using testing::in_child;
using testing::not_allowed;
using testing::pattern;
using testing::Scratch;
using testing::small_disk;

constexpr std::uint64_t MiB = 1ULL << 20;

bool small_files() {
  struct rlimit limit = {8 * MiB, 8 * MiB};
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

class FullDisk : public ::testing::TestWithParam<const char*> {
 protected:
  OpenMedium how(std::uint64_t data_bytes) const {
    OpenMedium h;
    h.path = scratch.path();
    h.kind = GetParam();
    h.create = true;
    h.log_bytes = 2 * MiB;
    h.data_bytes = data_bytes;
    h.max_data_bytes = 64 * MiB;
    return h;
  }

  void on_a_small_disk(const std::function<void()>& body) {
    int r = in_child([&] { return small_disk(scratch.folder(), "8m"); }, body);
    if (r == not_allowed) {
      std::puts(
          "no tmpfs may be mounted here, with or without a user namespace: shown with RLIMIT_FSIZE "
          "instead");
      r = in_child(small_files, body);
    }
    EXPECT_EQ(r, 0);
  }

  Scratch scratch;
};

TEST_P(FullDisk, a_pool_too_large_is_refused_and_leaves_nothing) {
  on_a_small_disk([&] {
    const auto m = open_medium(how(16 * MiB));
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.code(), Code::full) << m.status().message();
    EXPECT_NE(m.status().message().find(scratch.path()), std::string::npos) << m.status().message();
    EXPECT_NE(::access(scratch.path().c_str(), F_OK), 0) << "the half-made file is gone";
    EXPECT_TRUE(open_medium(how(2 * MiB)).ok()) << "and there is room for one that fits";
  });
}

TEST_P(FullDisk, growth_without_room_is_refused_and_the_pool_goes_on) {
  on_a_small_disk([&] {
    auto m = open_medium(how(2 * MiB)).value();
    const auto bytes = pattern(4096, 1);
    m->stream(2 * MiB, bytes.data(), bytes.size());
    ASSERT_TRUE(m->fence().ok());
    const Status s = m->grow(16 * MiB);
    EXPECT_EQ(s.code(), Code::full) << s.message();
    EXPECT_NE(s.message().find(scratch.path()), std::string::npos) << s.message();
    EXPECT_EQ(m->data_bytes(), 2 * MiB);
    EXPECT_EQ(file_bytes(scratch.path()), 4 * MiB) << "what was half done is undone";
    m->stream(2 * MiB + 4096, bytes.data(), bytes.size());
    EXPECT_TRUE(m->fence().ok()) << "a full disk at growth poisons nothing";
    EXPECT_TRUE(m->grow(4 * MiB).ok()) << "the room is given back";
    EXPECT_EQ(bytes_at(*m, 2 * MiB, bytes.size()), bytes);
    // No SIGBUS: every page has its block.
    m->stream(2 * MiB + 4 * MiB - 4096, bytes.data(), bytes.size());
    EXPECT_TRUE(m->fence().ok());
  });
}

// The program did not ask to ignore SIGXFSZ: it is not raised, and a pending one stays pending.
TEST_P(FullDisk, the_file_size_limit_counts_as_full) {
  EXPECT_EQ(in_child(small_files,
                     [&] {
                       EXPECT_EQ(open_medium(how(16 * MiB)).code(), Code::full);
                       auto m = open_medium(how(2 * MiB)).value();
                       EXPECT_EQ(m->grow(16 * MiB).code(), Code::full);
                       EXPECT_TRUE(m->grow(4 * MiB).ok());
                       sigset_t pending;
                       ASSERT_EQ(::sigpending(&pending), 0);
                       EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
                     }),
            0);
}

// A limit below an existing pool's log: its commits could not be written.
TEST_P(FullDisk, a_file_size_limit_below_the_log_is_refused_for_writing) {
  { ASSERT_TRUE(open_medium(how(2 * MiB)).ok()); }
  EXPECT_EQ(in_child(
                [] {
                  struct rlimit limit = {1 * MiB, 1 * MiB};
                  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
                },
                [&] {
                  OpenMedium h = how(2 * MiB);
                  h.create = false;
                  const auto m = open_medium(h);
                  EXPECT_EQ(m.code(), Code::full) << m.status().message();
                  EXPECT_NE(m.status().message().find("ulimit -f"), std::string::npos)
                      << m.status().message();
                  h.create = true;
                  h.path += "-other";
                  EXPECT_EQ(open_medium(h).code(), Code::full);
                }),
            0);
  OpenMedium h = how(2 * MiB);
  h.create = false;
  EXPECT_TRUE(open_medium(h).ok());
}

INSTANTIATE_TEST_SUITE_P(Media, FullDisk, ::testing::Values("file", "emulated"),
                         [](const ::testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

}  // namespace
}  // namespace perdure::medium
