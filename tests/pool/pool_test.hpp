// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of pools: a folder that removes itself, small pools, children that are
// killed, a transaction over the heap alone.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "perdure/pool/format.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/open_pool.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::pool::testing {

inline constexpr std::uint64_t KiB = 1ULL << 10, MiB = 1ULL << 20;

/// Sanitizers cost a factor of 5 to 20: random tests then run fewer rounds.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int rounds_in(int full) { return full / 5 + 1; }
#else
inline constexpr int rounds_in(int full) { return full; }
#endif

class Scratch {
 public:
  /// `memory`: on a tmpfs if there is one: creating a pool prewrites its log.
  explicit Scratch(bool memory = true) {
    std::string name = (memory && ::access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm/")
                                                                  : ::testing::TempDir() + "/") +
                       "perdure-pool-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name = "pool") const {
    return folder_ + "/" + name;
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// A pool of a few MiB on emulated memory: 2 MiB of log, a data region of slightly more than 1 MiB.
inline OpenFile small(const std::string& path) {
  OpenFile how;
  how.path = path;
  how.max_bytes = 4 * MiB;
  how.log_bytes = 64 * KiB;
  how.medium = "emulated";
  return how;
}

inline Identity tester() {
  Identity who;
  who.engine = "tester";
  who.rings = 2;
  who.layout = "0 count: u64 @0 8\n1 items: vector<u64>/1 @8 24\n2 name: string/1 @32 16\n";
  who.root_bytes = 48;
  return who;
}

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string text(static_cast<std::size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}
inline void write_all(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
/// Overwrites part of a file in place.
inline void poke(const std::string& path, std::uint64_t offset, const void* src, std::size_t n) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::pwrite(fd, src, n, static_cast<off_t>(offset)), static_cast<ssize_t>(n));
  ::close(fd);
}
inline Header header_of(const std::string& path, std::uint64_t at = header_a) {
  Header h{};
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at));
  in.read(reinterpret_cast<char*>(&h), sizeof h);
  return h;
}

/// Makes a pool and closes it in order after one session.
inline void make_pool(const OpenFile& how, const Identity& who = tester()) {
  auto made = OpenPool::open(how, who);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE((*made)->start_session(ViewPolicy::shadow).ok());
  ASSERT_TRUE((*made)->close_clean(0).ok());
}

/// Runs `body` in a child process; returns its exit status, or 1000 + the signal that ended it.
/// gtest failures there are status 1.
inline int in_child(const std::function<void()>& body) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    (void)std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A child that runs `body`, reports it, and lives until it is ended.
class Helper {
 public:
  explicit Helper(const std::function<void()>& body) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    (void)std::fflush(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      body();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char c = 0;
    while (::read(ready[0], &c, 1) < 0 && errno == EINTR) {}
    ::close(ready[0]);
  }
  ~Helper() { end(); }
  void end() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return child_; }

 private:
  pid_t child_ = -1;
};

/// What an engine does with the heap, and nothing else: the mapping is the only state.
class HeapUser {
 public:
  explicit HeapUser(OpenPool& pool)
      : pool_(pool), heap_(pool.heap()), target_(pool.view()), directory_(pool.header()) {}
  Result<std::uint64_t> allocate(std::uint64_t bytes) {
    auto op = heap_.reserve(bytes);
    if (!op.ok()) return op.status();
    commit(*op);
    return op->offset;
  }
  Status free(std::uint64_t offset) {
    auto op = heap_.prepare_free(offset);
    if (!op.ok()) return op.status();
    commit(*op);
    heap_.reusable(*op);
    return {};
  }
  void commit(const HeapOp& op) {
    apply_op(target_, op, directory_);
    heap_.note_applied(op);
  }
  /// Copies the mapping to the data region and closes the pool: the result of a checkpoint and
  /// close().
  void close() {
    auto& m = pool_.medium();
    for (std::uint64_t at = 0; at < pool_.data_bytes(); at += 4096)
      if (m.allocated(m.log_bytes() + at, 4096) &&
          std::memcmp(m.data() + at, pool_.view() + at, 4096) != 0)
        m.store(m.log_bytes() + at, pool_.view() + at, 4096);
    ASSERT_TRUE(m.flush_all().ok());
    ASSERT_TRUE(pool_.close_clean(0).ok());
  }

 private:
  OpenPool& pool_;
  Heap& heap_;
  MemoryTarget target_;
  Directory directory_;
};

}  // namespace perdure::pool::testing
