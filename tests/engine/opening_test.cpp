// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a pool that was closed in order: system calls, page faults and bytes read, counted
// exactly, do not grow with what the pool holds: 2 MiB, and a hundred times as much.
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

struct Root {
  ptr<std::uint64_t>
      newest;  // of a chain of blocks, each of which begins with the next one's address
};
using TestPool = AnyPool<Root>;

struct Cost {
  long faults = 0;
  std::uint64_t read = 0, calls = 0;
  friend std::ostream& operator<<(std::ostream& out, const Cost& c) {
    return out << c.faults << " page faults, " << c.read << " bytes read, " << c.calls
               << " system calls";
  }
};

struct Case {
  const char* engine;
  const char* medium;
};
class Opening : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static Options options() {
    Options o;
    o.engine = GetParam().engine;
    o.medium = GetParam().medium;
    o.creation.log_size = 64 << 20;
    o.creation.max_size = 4ULL << 30;
    return o;
  }
  /// Makes a pool of some MiB of small and large blocks and closes it, in a child.
  static void make(const std::string& path, std::uint64_t mib) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto pool = TestPool::open(path, options());
      for (std::uint64_t i = 0; i < mib; ++i)
        pool.update([i](auto& tx, Root& r) {
          for (std::uint64_t bytes = 0; bytes < 1 << 20;) {
            const std::uint64_t one = i % 8 == 7 ? 1 << 20 : 4096 >> bytes % 3;
            auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(one));
            std::uint64_t* const next = tx.read(r.newest);
            tx.write_bytes(block, &next, sizeof next);
            tx(r.newest) = block;
            bytes += one;
          }
        });
      ::_exit(pool.close().clean ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(0, status);
  }
  static std::uint64_t read_so_far() {
    std::ifstream io("/proc/self/io");
    std::string name;
    std::uint64_t bytes = 0;
    io >> name >> bytes;
    return bytes;
  }
  /// Opens it in a child that stops itself before and after. Between the two its system calls are
  /// counted by this process, which traces it.
  static Cost measure(const std::string& path) {
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    const pid_t child = ::fork();
    if (child == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
      const Options o = options();
      rusage before{}, after{};
      const std::uint64_t read = read_so_far();
      ::getrusage(RUSAGE_THREAD, &before);
      ::raise(SIGSTOP);
      auto pool = TestPool::open(path, o);
      ::raise(SIGSTOP);
      ::getrusage(RUSAGE_THREAD, &after);
      const Cost seen{after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt,
                      read_so_far() - read, 0};
      (void)!::write(pipe[1], &seen, sizeof seen);
      ::_exit(pool.close().clean ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    Cost seen;
    if (!WIFSTOPPED(status) || ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return seen;
    }
    std::uint64_t stops = 0;
    while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
           WSTOPSIG(status) != SIGSTOP) {
      ++stops;  // at each call's entry and at its exit
      ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    }
    ::ptrace(PTRACE_DETACH, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
    EXPECT_EQ(static_cast<ssize_t>(sizeof seen), ::read(pipe[0], &seen, sizeof seen));
    ::close(pipe[0]);
    ::close(pipe[1]);
    seen.calls = stops / 2;
    return seen;
  }
};
INSTANTIATE_TEST_SUITE_P(Media, Opening,
                         ::testing::Values(Case{"shadow", "emulated"}, Case{"shadow", "file"},
                                           Case{"undo", "emulated"}),
                         [](const auto& of) {
                           return std::string(of.param.engine) + "_" + of.param.medium;
                         });

TEST_P(Opening, OfAClosedPoolDoesNotDependOnWhatItHolds) {
  const Scratch scratch(false);
  make(scratch.path("small"), 2);
  make(scratch.path("large"), 200);
  const Cost warm = measure(scratch.path("small"));
  if (warm.calls == 0) GTEST_SKIP() << "a process may not trace its child here";
  // Waiting for another thread takes more calls where the machine is busy: the least of three.
  const auto least = [&](const std::string& path) {
    Cost cost = measure(path);
    for (int i = 0; i < 2; ++i) {
      const Cost again = measure(path);
      cost.calls = std::min(cost.calls, again.calls);
      cost.faults = std::min(cost.faults, again.faults);
      cost.read = std::min(cost.read, again.read);
    }
    return cost;
  };
  const Cost small = least(scratch.path("small")), large = least(scratch.path("large"));
  EXPECT_LE(large.calls, small.calls + 16) << small << "; " << large;
  EXPECT_LE(large.read, small.read + 4096) << small << "; " << large;
  EXPECT_LE(large.faults, small.faults + 16) << small << "; " << large;
}

}  // namespace
}  // namespace perdure::test
