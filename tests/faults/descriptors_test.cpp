// SPDX-License-Identifier: BSD-3-Clause
//
// A program that runs without standard descriptors (0, 1 and 2 closed, as some daemons are started)
// opens a pool, prints 130 KB to both outputs, and is killed. The pool must contain everything that
// was acknowledged: no descriptor of the library may ever be 0, 1 or 2, and none may outlive an
// exec. Every registered engine, on each medium that needs no special hardware.
#include <dirent.h>

#include <atomic>
#include <set>

#include "faults.hpp"
#include "perdure/engine/dynamic_engine.hpp"

namespace perdure::faults {
namespace {

constexpr std::uint64_t steps = 20;

std::vector<Case> every_engine() {
  std::vector<Case> all;
  for (const engine::EngineInfo& e : test::chosen_engines()) {
    if (!e.runs_here().ok()) continue;
    for (const char* medium : {"emulated", "file"}) {
      all.push_back({std::string(e.name), medium, durable});
      if (e.family == "shadow") all.push_back({std::string(e.name), medium, async});
    }
  }
  return all;
}

// The process's descriptors, without the one that looks.
std::set<int> descriptors() {
  std::set<int> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* e = ::readdir(folder))
    if (e->d_name[0] != '.' && std::atoi(e->d_name) != ::dirfd(folder))
      found.insert(std::atoi(e->d_name));
  ::closedir(folder);
  return found;
}

std::string target_of(int fd) {
  char text[256] = {};
  const ssize_t n =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text, sizeof text - 1);
  return n < 0 ? std::string("closed") : std::string(text);
}

// Prints to the two outputs, whatever they are now: through stdio, as a program does, and with
// write().
void print_130_KB() {
  const std::string line(1000, 'x');
  for (int i = 0; i < 65; ++i) {
    std::printf("%s\n", line.c_str());
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  (void)std::fflush(nullptr);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    for (int i = 0; i < 130; ++i) (void)!::write(fd, line.data(), line.size());
}

class Descriptors : public ::testing::TestWithParam<Case> {
 protected:
  Options options() const {
    Options o = small(GetParam());
    o.creation.log_size = 4 * MiB;
    o.trace = scratch.path("trace");
    return o;
  }
  Scratch scratch;
  const std::string path = scratch.path();
};

TEST_P(Descriptors, StandardOnesAreNeverThePools) {
  void* const shared =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& acknowledged = *new (shared) std::atomic<std::uint64_t>(0);
  const int r = in_child([&] {
    const int out = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    (void)std::fflush(nullptr);
    for (const int fd : {0, 1, 2}) ::close(fd);
    {
      const std::set<int> before = descriptors();
      auto* const pool = new TestPool(TestPool::open(path, options()));  // never destroyed
      for (const int fd : {0, 1, 2}) EXPECT_EQ(target_of(fd), "closed");
      for (std::uint64_t i = 1; i <= steps; ++i) {
        pool->update(durable, [&](auto& tx, Root& root) { step(tx, root, i); });
        acknowledged.store(i);
      }
      pool->checkpoint();
      for (const int fd : descriptors()) {
        if (before.contains(fd)) continue;
        EXPECT_GE(fd, 3) << target_of(fd);
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0)
            << "descriptor " << fd << " (" << target_of(fd) << ") outlives an exec";
      }
      print_130_KB();
      for (const int fd : {0, 1, 2}) EXPECT_EQ(target_of(fd), "closed");
    }
    if (!::testing::Test::HasFailure()) ::raise(SIGKILL);
    ::dup2(out, STDOUT_FILENO);
    for (int i = 0;
         i < ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
         ++i)
      std::printf("%s\n", ::testing::UnitTest::GetInstance()
                              ->current_test_info()
                              ->result()
                              ->GetTestPartResult(i)
                              .summary());
  });
  EXPECT_EQ(r, 1000 + SIGKILL);
  EXPECT_EQ(acknowledged.load(), steps);
  auto pool = TestPool::try_open(path, options());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  EXPECT_EQ(steps_in(*pool), GetParam().engine.starts_with("volatile") ? 0 : steps);
  expect_sound(*pool);
  ::munmap(shared, 4096);
}

INSTANTIATE_TEST_SUITE_P(Engines, Descriptors, ::testing::ValuesIn(every_engine()), CaseName());

// The program that replaces the process has none of them. It writes its own list of descriptors to
// a file.
TEST(Exec, LeavesNoDescriptorOfAPool) {
  for (const char* medium : {"emulated", "file"}) {
    Scratch scratch;
    const std::string path = scratch.path(), list = scratch.path("list");
    const int r = in_child([&] {
      auto* const pool = new TestPool(TestPool::open(path, small({"shadow", medium, durable})));
      pool->update([](auto& tx, Root& root) { step(tx, root, 1); });
      ::execl("/bin/sh", "sh", "-c", ("ls -l /proc/$$/fd > " + list).c_str(), nullptr);
      ADD_FAILURE() << "exec failed";
    });
    EXPECT_EQ(r, 0);
    const std::string text = read_all(list);
    EXPECT_NE(text.find(" -> "), std::string::npos) << "the list is empty";
    EXPECT_EQ(text.find(path), std::string::npos) << text;
    EXPECT_EQ(text.find("memfd:"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace perdure::faults
