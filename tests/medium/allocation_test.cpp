// SPDX-License-Identifier: BSD-3-Clause
//
// ALLOC-1 at the medium: a sparse file gets its blocks when they are requested and not before,
// holes read as zeros and cost nothing to read, a full disk is an error of allocate() that changes
// nothing, and an allocation that signals interrupt makes progress in pieces.
//
// fallocate() goes through a wrapper (-Wl,--wrap=fallocate) that can imitate a kernel which undoes
// the whole of an interrupted allocation.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>

#include "perdure/medium/file_handle.hpp"
#include "scratch.hpp"
#include "small_disk.hpp"
#include "testing/recording_medium.hpp"

namespace {
std::atomic<std::uint64_t> longest{0};  // a longer allocation is interrupted; 0: none is
std::atomic<std::uint64_t> asked{0};
}  // namespace

extern "C" {
int __real_fallocate(int, int, off_t, off_t);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t n) {
  ++asked;
  if (longest != 0 && static_cast<std::uint64_t>(n) > longest) {
    if (asked > 100000) std::abort();  // it would never end
    errno = EINTR;
    return -1;
  }
  return __real_fallocate(fd, mode, offset, n);
}
}

namespace perdure::medium {
namespace {

using testing::pattern;
using testing::Scratch;

constexpr std::uint64_t KiB = 1ULL << 10, MiB = 1ULL << 20;
constexpr std::uint64_t log_bytes = 4 * MiB, data_bytes = 2 * MiB;

std::uint64_t blocks(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_blocks) * 512
                                        : ~std::uint64_t{0};
}

struct How {
  const char* kind;
  bool on_memory;
  bool direct;
};
std::string name_of(const ::testing::TestParamInfo<How>& info) {
  return std::string(info.param.kind) + (info.param.on_memory ? "_tmpfs" : "_disk") +
         (info.param.direct ? "" : "_buffered");
}

class Allocation : public ::testing::TestWithParam<How> {
 protected:
  OpenMedium how(bool create) const {
    OpenMedium h;
    h.path = path;
    h.kind = GetParam().kind;
    h.direct = GetParam().direct;
    h.create = create;
    h.sparse = create;
    h.log_bytes = log_bytes;
    h.data_bytes = data_bytes;
    h.max_data_bytes = 64 * MiB;
    return h;
  }
  std::unique_ptr<Medium> open(bool create) const {
    auto m = open_medium(how(create));
    EXPECT_TRUE(m.ok()) << m.status().message();
    return std::move(m).value();
  }
  Scratch scratch{GetParam().on_memory ? std::string("/dev/shm") : ::testing::TempDir()};
  const std::string path = scratch.path();
};

TEST_P(Allocation, ANewFileIsHolesUntilTheyAreAskedFor) {
  auto m = open(true);
  EXPECT_EQ(testing::file_bytes(path), log_bytes + data_bytes);
  EXPECT_LE(blocks(path), 16 * KiB);
  EXPECT_FALSE(m->allocated(0, 8));
  EXPECT_EQ(m->allocated_from(0, log_bytes), 0U);
  EXPECT_EQ(m->allocated_end(0, log_bytes), 0U);

  ASSERT_TRUE(m->allocate(64 * KiB, 100).ok());  // the page in which they lie
  // The log's last block and the data region's first.
  ASSERT_TRUE(m->allocate(log_bytes - 4096, 8192).ok());
  EXPECT_TRUE(m->allocated(64 * KiB, 4096));
  EXPECT_FALSE(m->allocated(64 * KiB, 4097));
  EXPECT_TRUE(m->allocated(log_bytes - 4096, 8192));
  EXPECT_EQ(m->allocated_from(64 * KiB + 100, log_bytes / 2), 3996U);
  EXPECT_EQ(m->allocated_from(68 * KiB, 4096), 0U);
  EXPECT_EQ(m->allocated_end(0, 1 * MiB), 68 * KiB);
  EXPECT_EQ(m->allocated_end(0, 66 * KiB), 66 * KiB);
  EXPECT_GE(blocks(path), 12 * KiB);
  EXPECT_LE(blocks(path), 32 * KiB);
  EXPECT_TRUE(testing::zero_at(*m, 64 * KiB, 4096));

  const auto bytes = pattern(4096, 1);
  m->stream(64 * KiB, bytes.data(), bytes.size());
  m->stream(log_bytes, bytes.data(), bytes.size());
  ASSERT_TRUE(m->fence().ok());
  const std::uint64_t syncs = m->counters().syncs;
  ASSERT_TRUE(m->allocate(64 * KiB, 4096).ok());
  EXPECT_EQ(m->counters().syncs, syncs) << "what is allocated is not asked for again";
  m.reset();
  m = open(false);
  EXPECT_TRUE(m->allocated(64 * KiB, 4096)) << "what was written is known to be allocated";
  EXPECT_TRUE(m->allocated(log_bytes, 4096));
  EXPECT_EQ(testing::bytes_at(*m, 64 * KiB, 4096), bytes);
  ASSERT_TRUE(m->allocate(0, log_bytes + data_bytes).ok());
  EXPECT_EQ(m->allocated_from(0, log_bytes + data_bytes), log_bytes + data_bytes);
  EXPECT_GE(blocks(path), log_bytes + data_bytes);
  EXPECT_EQ(testing::bytes_at(*m, 64 * KiB, 4096), bytes) << "what they held stays";
  EXPECT_EQ(testing::bytes_at(*m, log_bytes, 4096), bytes);
  EXPECT_TRUE(testing::zero_at(*m, 0, 64 * KiB));
}

// A ring, mapped before and after: each address of a byte shows what was stored, and a scan of the
// whole ring takes no blocks.
TEST_P(Allocation, ARingsHolesReadAsZerosAndCostNothing) {
  const std::uint64_t at = 128 * KiB, bytes = 1 * MiB;
  auto m = open(true);
  RingMap ring = m->map_ring(at, bytes).value();
  const auto scan = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; i += 64)
      if (*reinterpret_cast<const std::uint64_t*>(ring.base + i) != 0) return false;
    return true;
  };
  const std::uint64_t before = blocks(path);
  EXPECT_TRUE(scan(0, 2 * bytes));
  EXPECT_TRUE(testing::zero_at(*m, 0, log_bytes));
  EXPECT_LE(blocks(path), before) << "reading took blocks";
  ASSERT_TRUE(m->allocate(at, 8192).ok());
  ASSERT_TRUE(m->allocate(at + bytes - 4096, 4096).ok());
  const auto record = pattern(8192, 7);
  // Across the ring's end.
  ASSERT_TRUE(m->append_fence(ring, bytes - 4096, record.data(), record.size()).ok());
  for (int opening = 0; opening < 2; ++opening) {
    EXPECT_EQ(0, std::memcmp(ring.base + bytes - 4096, record.data(), record.size()));
    EXPECT_EQ(0, std::memcmp(ring.base, record.data() + 4096, 4096));
    EXPECT_EQ(0, std::memcmp(m->at(at), record.data() + 4096, 4096));
    EXPECT_TRUE(scan(8192, bytes - 4096));
    EXPECT_TRUE(scan(bytes + 8192, 2 * bytes - 4096));
    EXPECT_LE(blocks(path), before + 32 * KiB);
    m.reset();
    m = open(false);
    ring = m->map_ring(at, bytes).value();
  }
}

TEST_P(Allocation, GrowthIsAllocatedAndTakenBack) {
  auto m = open(true);
  ASSERT_TRUE(m->grow(4 * MiB).ok());
  EXPECT_TRUE(m->allocated(log_bytes + data_bytes, 2 * MiB));
  EXPECT_FALSE(m->allocated(log_bytes, 4096)) << "what was there before is as it was";
  EXPECT_EQ(m->allocate(log_bytes + 4 * MiB, 4096).code(), Code::invalid)
      << "beyond the data region's end";
}

TEST_P(Allocation, ReadOnlyItIsRefused) {
  open(true).reset();
  OpenMedium h = how(false);
  h.read_only = true;
  auto m = open_medium(h);
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ((*m)->allocate(0, 4096).code(), Code::read_only);
  EXPECT_TRUE(testing::zero_at(**m, 0, log_bytes));
  EXPECT_LE(blocks(path), 32 * KiB);
}

// What was allocated and never written stays allocated: otherwise each opening would ask again for
// as many parts as the data region has, one call each. tmpfs has no call that tells it.
TEST_P(Allocation, WhatWasNeverWrittenIsKnownToBeAllocated) {
  if (GetParam().on_memory) GTEST_SKIP() << "tmpfs does not say which pages are allocated";
  auto m = open(true);
  const std::uint64_t first = log_bytes + data_bytes / 2, end = log_bytes + data_bytes;
  ASSERT_TRUE(m->allocate(first, end - first).ok());
  const auto bytes = pattern(4096, 1);
  for (std::uint64_t at = first; at < end; at += 8192) m->stream(at, bytes.data(), bytes.size());
  ASSERT_TRUE(m->fence().ok());
  m.reset();
  m = open(false);
  EXPECT_EQ(m->allocated_from(first, end - first), end - first);
  EXPECT_FALSE(m->allocated(log_bytes, 4096)) << "a hole is one";
}

INSTANTIATE_TEST_SUITE_P(Media, Allocation,
                         ::testing::Values(How{"emulated", true, true},
                                           How{"emulated", false, true}, How{"file", true, true},
                                           How{"file", false, true}, How{"file", false, false}),
                         name_of);

// --- a full disk ---------------------------------------------------------------------------------

class FullDiskAllocation : public ::testing::TestWithParam<const char*> {};

TEST_P(FullDiskAllocation, IsFullChangesNothingAndSucceedsLater) {
  Scratch scratch;
  const int r = testing::in_child(
      [&] { return testing::small_disk(scratch.folder(), "1m"); },
      [&] {
        OpenMedium h;
        h.path = scratch.path();
        h.kind = GetParam();
        h.create = h.sparse = true;
        h.log_bytes = log_bytes;
        h.data_bytes = data_bytes;
        h.max_data_bytes = data_bytes;
        auto m = open_medium(h).value();
        ASSERT_TRUE(m->allocate(0, 4096).ok());
        const auto bytes = pattern(4096, 3);
        m->stream(0, bytes.data(), bytes.size());
        ASSERT_TRUE(m->fence().ok());
        for (const std::uint64_t at : {std::uint64_t{0}, log_bytes}) {
          // The log, then the data region.
          const Status s = m->allocate(at, 2 * MiB);
          EXPECT_EQ(s.code(), Code::full) << s.message();
          EXPECT_NE(s.message().find(scratch.path()), std::string::npos) << s.message();
          EXPECT_FALSE(m->allocated(at, 2 * MiB));
        }
        EXPECT_TRUE(m->fence().ok()) << "nothing is poisoned";
        EXPECT_EQ(testing::bytes_at(*m, 0, 4096), bytes);
        EXPECT_TRUE(testing::zero_at(*m, 4096, log_bytes - 4096))
            << "holes are read without a page";
        ASSERT_EQ(
            ::mount("perdure-test", scratch.folder().c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
        EXPECT_TRUE(m->allocate(0, log_bytes + data_bytes).ok()) << "room again";
        m->stream(log_bytes + data_bytes - 4096, bytes.data(), bytes.size());
        EXPECT_TRUE(m->fence().ok());
        EXPECT_EQ(testing::bytes_at(*m, 0, 4096), bytes);
      });
  if (r == testing::not_allowed)
    GTEST_SKIP() << "no tmpfs may be mounted here, with or without a user namespace";
  EXPECT_EQ(r, 0);
}

INSTANTIATE_TEST_SUITE_P(Media, FullDiskAllocation, ::testing::Values("file", "emulated"),
                         [](const ::testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

// --- signals -------------------------------------------------------------------------------------

// A kernel may undo the whole of an allocation on tmpfs that a signal interrupts: a program with a
// timer would start a long one again for ever.
TEST(Signals, AnInterruptedAllocationMakesProgressInPieces) {
  const Scratch scratch("/dev/shm");
  OpenMedium h;
  h.path = scratch.path();
  h.kind = "emulated";
  h.create = true;
  h.log_bytes = 2 * MiB;
  h.data_bytes = 8 * MiB;
  h.max_data_bytes = 32 * MiB;
  longest = 100 * KiB;  // in the time between two signals
  asked = 0;
  auto m = open_medium(h);
  longest = 0;
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_GE(blocks(scratch.path()), 10 * MiB);
  EXPECT_LE(asked.load(), 10 * MiB / (50 * KiB) + 20)
      << "pieces are as long as they may be, within a factor of two";
  longest = 100 * KiB;
  asked = 0;
  EXPECT_TRUE((*m)->grow(16 * MiB).ok());
  longest = 0;
  EXPECT_GE(blocks(scratch.path()), 18 * MiB);
  EXPECT_LE(asked.load(), 8 * MiB / (50 * KiB) + 20);
}

TEST(Signals, PiecesCoverTheRangeOnceAndStopAtAnError) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> done;
  std::uint64_t calls = 0;
  const auto call = [&](std::uint64_t at, std::uint64_t n) {
    if (++calls % 3 == 0 && n > page_bytes) return EINTR;
    done.emplace_back(at, n);
    return at >= 40 * MiB ? ENOSPC : 0;
  };
  EXPECT_EQ(in_pieces(4096, 30 * MiB, call), 0);
  std::uint64_t at = 4096;
  for (const auto& [from, n] : done) {
    EXPECT_EQ(from, at);
    at += n;
  }
  EXPECT_EQ(at, 30 * MiB);
  EXPECT_EQ(in_pieces(39 * MiB, 5000 * MiB,
                      [&](std::uint64_t from, std::uint64_t n) {
                        return n > 8 * MiB ? EINTR : call(from, n);
                      }),
            ENOSPC);
  EXPECT_EQ(in_pieces(0, 4096, [](std::uint64_t, std::uint64_t) { return EIO; }), EIO);
  EXPECT_EQ(in_pieces(4096, 4096, [](std::uint64_t, std::uint64_t) { return EIO; }), 0)
      << "nothing to do";
}

}  // namespace
}  // namespace perdure::medium
