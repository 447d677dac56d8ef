// SPDX-License-Identifier: BSD-3-Clause
//
// The special properties of a pool on an ordinary file: which blocks a fence writes, for which
// threads it waits, and that a failure stays.
//
// Real failures are made by replacing the medium's own file descriptors with /dev/full: every write
// then fails with ENOSPC and every sync with EINVAL, in the kernel and not in a mock.
#include "perdure/medium/file.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "scratch.hpp"

namespace perdure::medium {
namespace {

using testing::bytes_at;
using testing::pattern;
using testing::read_file;
using testing::Scratch;

constexpr std::uint64_t MiB = 1ULL << 20;
constexpr std::uint64_t log_size = 2 * MiB, data_size = 2 * MiB;

OpenMedium options(const std::string& path, bool create, bool direct) {
  OpenMedium how;
  how.path = path;
  how.kind = "file";
  how.create = create;
  how.direct = direct;
  how.log_bytes = log_size;
  how.data_bytes = data_size;
  how.max_data_bytes = 16 * MiB;
  return how;
}

std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  struct stat wanted = {}, st = {};
  if (::stat(path.c_str(), &wanted) != 0) return found;
  for (int fd = 3; fd < 1024; ++fd) {
    if (::fstat(fd, &st) == 0 && st.st_ino == wanted.st_ino && st.st_dev == wanted.st_dev)
      found.push_back(fd);
  }
  return found;
}

/// Whether the kernel is told that pages at `address` are read in no order ("rr" in smaps).
bool read_in_no_order(const std::byte* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2) here = from <= at && at < to;
    if (here && line.starts_with("VmFlags:")) return line.find(" rr ") != std::string::npos;
  }
  return false;
}

void break_descriptors(const std::string& path) {
  const Descriptor full(::open("/dev/full", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(full);
  const auto all = descriptors_of(path);
  ASSERT_FALSE(all.empty());
  for (const int fd : all) ASSERT_GE(::dup2(full.get(), fd), 0);
}

void write_outside(const std::string& path, std::uint64_t offset, const void* bytes,
                   std::size_t n) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), bytes, n, static_cast<off_t>(offset)), static_cast<ssize_t>(n));
}

class File : public ::testing::TestWithParam<bool> {
 protected:
  void reopen() {
    m.reset();
    m = open_medium(options(path, false, GetParam())).value();
  }
  Scratch scratch;
  std::string path = scratch.path();
  std::unique_ptr<Medium> m = open_medium(options(path, true, GetParam())).value();
};

// A checkpoint's stores must not meet folios that reading ahead has made large: each store might
// have a whole one written back. Readers have mappings of their own, and are helped by it.
TEST(FileMedium, WhatCheckpointsStoreToIsNotReadAhead) {
  const Scratch scratch;
  auto medium = open_medium(options(scratch.path(), true, true)).value();
  EXPECT_TRUE(read_in_no_order(medium->at(log_size)));
  ASSERT_TRUE(medium->grow(4 * MiB).ok());
  EXPECT_TRUE(read_in_no_order(medium->at(log_size + 4 * MiB - 1)));
  void* const view = ::mmap(nullptr, data_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(view, MAP_FAILED);
  auto* const at = static_cast<std::byte*>(view);
  for (const ViewKind kind : {ViewKind::shared, ViewKind::copy_on_write}) {
    ASSERT_TRUE(medium->map_view(at, 0, data_size, kind).ok());
    EXPECT_FALSE(read_in_no_order(at));
  }
  ::munmap(view, data_size);
  medium.reset();
  auto reads = options(scratch.path(), false, true);
  reads.read_only = true;
  medium = open_medium(reads).value();
  EXPECT_FALSE(read_in_no_order(medium->at(log_size)));
}

TEST_P(File, says_whether_it_writes_directly) {
  const bool says_direct = m->describe().find("O_DIRECT") != std::string::npos;
  EXPECT_FALSE(says_direct && !GetParam()) << m->describe();
  EXPECT_TRUE(says_direct || m->describe().find("then fdatasync") != std::string::npos)
      << m->describe();
}

TEST_P(File, the_log_reaches_the_file_at_the_fence_and_not_before) {
  const auto block = pattern(4096, 1);
  m->stream(8192, block.data(), block.size());
  auto file = read_file(path);
  EXPECT_TRUE(std::all_of(file.begin(), file.end(), [](std::byte b) { return b == std::byte{0}; }));
  ASSERT_TRUE(m->fence().ok());
  file = read_file(path);
  ASSERT_EQ(file.size(), log_size + data_size);
  EXPECT_EQ(std::memcmp(file.data() + 8192, block.data(), 4096), 0);
}

TEST_P(File, a_fence_writes_the_marked_blocks_and_no_other) {
  const auto block = pattern(4096, 2), foreign = pattern(8192, 3);
  write_outside(path, 4096, foreign.data(), 4096);  // the neighbour before
  // And the one after it, changed without the medium's knowledge.
  write_outside(path, 4 * 4096, foreign.data(), 4096);
  m->stream(2 * 4096, block.data(), 4096);
  m->stream(3 * 4096 + 64, block.data(), 64);
  ASSERT_TRUE(m->fence().ok());
  const auto file = read_file(path);
  EXPECT_EQ(std::memcmp(file.data() + 4096, foreign.data(), 4096), 0);
  EXPECT_EQ(std::memcmp(file.data() + 4 * 4096, foreign.data(), 4096), 0);
  EXPECT_EQ(std::memcmp(file.data() + 2 * 4096, block.data(), 4096), 0);
  EXPECT_EQ(std::memcmp(file.data() + 3 * 4096 + 64, block.data(), 64), 0);
}

TEST_P(File, what_an_opening_leaves_unread_is_zero_and_stays_in_the_file) {
  const auto block = pattern(4096, 5);
  for (const std::uint64_t at : {std::uint64_t{0}, MiB, MiB + 4096})
    m->stream(at, block.data(), block.size());
  ASSERT_TRUE(m->fence().ok());
  m.reset();
  OpenMedium how = options(path, false, GetParam());
  how.load_bytes = 8192;
  m = open_medium(how).value();
  EXPECT_EQ(std::memcmp(m->at(0), block.data(), 4096), 0);
  EXPECT_TRUE(
      std::all_of(m->at(8192), m->at(log_size), [](std::byte b) { return b == std::byte{0}; }));
  const auto later = pattern(4096, 6);
  m->stream(MiB, later.data(), later.size());
  ASSERT_TRUE(m->fence().ok());
  const auto file = read_file(path);
  EXPECT_EQ(std::memcmp(file.data() + MiB, later.data(), 4096), 0);
  EXPECT_EQ(std::memcmp(file.data() + MiB + 4096, block.data(), 4096), 0);
}

TEST_P(File, counts_its_system_calls) {
  const auto block = pattern(64 << 10, 4);
  const auto fence = [&](std::uint64_t syncs, std::uint64_t bytes, const char* what) {
    const Counters before = m->counters();
    ASSERT_TRUE(m->fence().ok());
    const Counters c = m->counters() - before;
    EXPECT_EQ(c.syncs, syncs) << what;
    EXPECT_EQ(c.written_bytes, bytes) << what;
  };
  fence(0, 0, "nothing marked");
  m->stream(0, block.data(), 64);
  fence(1, 4096, "one block");
  m->stream(4096, block.data(), 64 << 10);
  fence(1, 64 << 10, "one run");
  m->stream(0, block.data(), 64);
  m->stream(4096 * 5, block.data(), 64);
  m->stream(4096 * 3, block.data(), 64);
  m->stream(4096 * 4, block.data(), 64);
  m->stream(4096 * 4, block.data(), 64);
  fence(1, 4 * 4096, "two runs, each block once, one fdatasync");
  m->stream(log_size + 4096, block.data(), 8192);
  fence(1, 8192, "two pages of the data region");
  m->stream(log_size + 4096, block.data(), 8192);
  m->stream(0, block.data(), 4096);
  fence(1, 8192 + 4096, "data region and log together");
  m->store(0, block.data(), 8);
  fence(0, 0, "a store that nobody flushed");
  m->flush(0, 8);
  fence(1, 4096, "now it is");
}

TEST_P(File, more_runs_than_a_thread_can_list_are_all_written) {
  const auto line = pattern(64, 5);
  for (std::uint64_t i = 0; i < 200; ++i) m->stream(i * 8192, line.data(), 64);
  for (std::uint64_t i = 0; i < 200; ++i) m->stream(log_size + i * 8192, line.data(), 64);
  const Counters before = m->counters();
  ASSERT_TRUE(m->fence().ok());
  EXPECT_EQ((m->counters() - before).written_bytes, 400U * 4096);
  const auto file = read_file(path);
  for (std::uint64_t i = 0; i < 200; ++i)
    ASSERT_EQ(std::memcmp(file.data() + i * 8192, line.data(), 64), 0) << i;
}

TEST_P(File, a_block_that_another_thread_made_durable_is_not_written_again) {
  const auto line = pattern(64, 6);
  m->stream(0, line.data(), 64);  // marked by this thread
  std::thread([&] {
    m->stream(64, line.data(), 64);
    ASSERT_TRUE(m->fence().ok());  // writes the block, including this thread's line
  }).join();
  const Counters before = m->counters();
  ASSERT_TRUE(m->fence().ok());
  EXPECT_EQ((m->counters() - before).syncs, 0U);
  EXPECT_EQ(std::memcmp(read_file(path).data(), line.data(), 64), 0);
}

TEST_P(File, threads_that_fence_one_block_at_once_all_find_it_durable) {
  constexpr std::uint64_t threads = 8, rounds = 30;
  std::atomic<bool> all_there{true};
  std::vector<std::thread> all;
  for (std::uint64_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        m->store(4096 + 64 * t, &i, 8);
        m->flush(4096 + 64 * t, 8);
        if (!m->fence().ok()) all_there = false;
        std::uint64_t found = 0;
        if (::pread(fd.get(), &found, 8, static_cast<off_t>(4096 + 64 * t)) != 8 || found < i)
          all_there = false;
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_TRUE(all_there);
  const Counters c = m->counters();
  EXPECT_EQ(c.fences, threads * rounds);
  EXPECT_LE(c.syncs, c.fences);
}

TEST_P(File, a_failed_write_of_the_log_stays_failed) {
  const auto line = pattern(64, 7);
  break_descriptors(path);
  m->stream(0, line.data(), 64);
  const Status first = m->fence();
  EXPECT_FALSE(first.ok());
  EXPECT_NE(first.message().find(path), std::string::npos) << first.message();
  const Status later = m->fence();
  EXPECT_EQ(later.code(), Code::poisoned);
  EXPECT_NE(later.message().find(first.message()), std::string::npos) << later.message();
  EXPECT_EQ(m->flush_all().code(), Code::poisoned);
  EXPECT_EQ(m->grow(4 * MiB).code(), Code::poisoned);
  const RingMap ring = m->map_ring(0, 4096).value();
  EXPECT_EQ(m->append_fence(ring, 0, line.data(), 64).code(), Code::poisoned);
  reopen();
  EXPECT_TRUE(m->fence().ok()) << "reopening recovers";
}

TEST_P(File, a_failed_sync_of_the_data_region_stays_failed_for_every_thread) {
  const auto line = pattern(64, 8);
  break_descriptors(path);
  m->stream(log_size, line.data(), 64);
  EXPECT_EQ(m->fence().code(), Code::io);
  std::thread([&] {
    m->stream(log_size + 4096, line.data(), 64);
    EXPECT_EQ(m->fence().code(), Code::poisoned);
  }).join();
}

TEST_P(File, a_fence_with_nothing_to_write_fails_too_once_poisoned) {
  break_descriptors(path);
  EXPECT_TRUE(m->fence().ok()) << "nothing marked, nothing failed";
  EXPECT_FALSE(m->flush_all().ok());
  EXPECT_EQ(m->fence().code(), Code::poisoned);
}

TEST_P(File, growth_over_what_an_unpublished_growth_left_is_zero) {
  m.reset();
  const auto rubbish = pattern(64 << 10, 9);
  write_outside(path, log_size + data_size, rubbish.data(), rubbish.size());
  reopen();
  ASSERT_TRUE(m->grow(data_size + MiB).ok());
  EXPECT_TRUE(testing::zero_at(*m, log_size + data_size, MiB));
}

// How much of the file's mappings this process has accessed.
std::uint64_t resident_kb(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  std::uint64_t sum = 0;
  bool ours = false;
  while (std::getline(smaps, line)) {
    const bool heading = line.find('-') < line.find(' ');  // "7f00-7f01 rw-s ... path"
    if (heading)
      ours = line.size() > path.size() &&
             line.compare(line.size() - path.size(), path.size(), path) == 0;
    if (ours && line.rfind("Rss:", 0) == 0) sum += std::stoull(line.substr(4));
  }
  return sum;
}

TEST_P(File, opening_reads_the_log_and_touches_no_page_of_the_data_region) {
  reopen();
  EXPECT_EQ(resident_kb(path), 0U);
  (void)*static_cast<const volatile std::byte*>(m->data());
  EXPECT_GT(resident_kb(path), 0U) << "the measure does measure";
}

INSTANTIATE_TEST_SUITE_P(Media, File, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& p) {
                           return std::string(p.param ? "direct" : "buffered");
                         });

}  // namespace
}  // namespace perdure::medium
