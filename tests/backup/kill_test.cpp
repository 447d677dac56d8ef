// SPDX-License-Identifier: BSD-3-Clause
//
// The process is killed before each of its file operations, one after the other: while it opens a
// pool with an archive, archives, backs up, and closes. Whatever is left, the archive's files are
// whole, no transaction that was acknowledged is missing, and the next session goes on without a
// gap (STORE-1, BASE-1, ARCHIVE-1 to 3).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <mutex>
#include <set>

#include "tests/backup/history.hpp"

namespace {

// The parent and its children share it.
struct Counts {
  std::atomic<std::uint64_t> operations{0}, kill_at{0}, acknowledged{0};
};
Counts* counts = nullptr;

// What a power cut would take, as the calls show it: contents that were written and not synced, and
// names that were given in folders that were not synced since.
struct Watch {
  std::map<int, std::string> path_of;
  std::set<std::string> unsynced, names;
  std::vector<std::string> problems;
  std::uint64_t links = 0;
};
std::mutex watch_mutex;
Watch* watch = nullptr;
template <class F>
void seen(F&& f) {
  const std::lock_guard lock(watch_mutex);
  if (watch != nullptr) f(*watch);
}
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

void operation() {
  if (counts == nullptr || counts->kill_at == 0) return;
  if (counts->operations.fetch_add(1) + 1 == counts->kill_at) ::kill(::getpid(), SIGKILL);
}

}  // namespace

// The library's calls come here (--wrap).
extern "C" {
int __real_link(const char* from, const char* to);
int __wrap_link(const char* from, const char* to) {
  operation();
  seen([&](Watch& w) {
    ++w.links;
    if (w.unsynced.count(from) != 0)
      w.problems.push_back(std::string(to) + " is named before its contents are synced");
    if (std::string(to).find("/base-") != std::string::npos)
      for (const std::string& name : w.names)
        if (name.find("/chunk/") != std::string::npos)
          w.problems.push_back(std::string(to) + " is named before the name " + name +
                               " is synced");
    w.names.insert(to);
  });
  return __real_link(from, to);
}
int __real_unlink(const char* path);
int __wrap_unlink(const char* path) {
  operation();
  return __real_unlink(path);
}
int __real_fsync(int fd);
int __wrap_fsync(int fd) {
  operation();
  const int result = __real_fsync(fd);
  seen([&](Watch& w) {
    const std::string path = w.path_of[fd];
    w.unsynced.erase(path);
    std::erase_if(w.names, [&](const std::string& name) { return folder_of(name) == path; });
  });
  return result;
}
int __real_syncfs(int fd);
int __wrap_syncfs(int fd) {
  operation();
  const int result = __real_syncfs(fd);
  seen([&](Watch& w) {
    w.unsynced.clear();
    w.names.clear();
  });
  return result;
}
int __real_mkdir(const char* path, mode_t mode);
int __wrap_mkdir(const char* path, mode_t mode) {
  operation();
  return __real_mkdir(path, mode);
}
ssize_t __real_write(int fd, const void* bytes, std::size_t n);
ssize_t __wrap_write(int fd, const void* bytes, std::size_t n) {
  operation();
  seen([&](Watch& w) { w.unsynced.insert(w.path_of[fd]); });
  if (counts != nullptr && counts->kill_at != 0 && n > 100 &&
      counts->operations.fetch_add(1) + 1 == counts->kill_at) {  // in the middle, too
    (void)__real_write(fd, bytes, n / 2);
    ::kill(::getpid(), SIGKILL);
  }
  return __real_write(fd, bytes, n);
}
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  operation();
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  const int fd = __real_open(path, flags, mode);
  seen([&](Watch& w) { w.path_of[fd] = path; });
  return fd;
}
int __real_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                     unsigned how);
int __wrap_renameat2(int from_folder, const char* from, int to_folder, const char* to,
                     unsigned how) {
  operation();
  return __real_renameat2(from_folder, from, to_folder, to, how);
}
}

namespace perdure::test {
namespace {

using pool::testing::Scratch;

class Killed : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const shared =
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    counts = new (shared) Counts;
  }
  void TearDown() override {
    ::munmap(counts, sizeof(Counts));
    counts = nullptr;
  }
  static Options options(const std::string& folder, const std::string& medium) {
    Options o;
    o.medium = medium;
    o.medium_options.direct = false;
    o.creation.max_size = std::uint64_t{256} << 20;
    o.creation.log_size = 1 << 20;
    o.creation.threads = 2;
    o.archive.folder = folder;
    o.archive.file_age = std::chrono::hours(1);
    return o;
  }
  static constexpr int steps = 12;
  // What the killed process does: two sessions, a backup in each.
  static void live(const std::string& path, const std::string& folder, const std::string& medium) {
    Program program(30);
    for (int session = 0; session < 2; ++session) {
      auto pool = AnyPool<BackedUp>::open(path, options(folder, medium));
      for (int i = 0; i < steps; ++i) {
        counts->acknowledged = program.step(pool);
        if (i == 3) pool.flush_archive();
        if (i == 6) (void)pool.backup();
      }
      pool.close();
    }
  }
  // Runs f in a child that is killed before operation `at`. Returns false if it came to its end.
  template <class F>
  static bool killed(std::uint64_t at, F&& f) {
    counts->operations = 0;
    counts->kill_at = at;
    const pid_t child = ::fork();
    if (child == 0) {
      f();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(child, ::waitpid(child, &status, 0));
    counts->kill_at = 0;
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
  }
  void explore(const std::string& medium, std::uint64_t each);
};

void Killed::explore(const std::string& medium, std::uint64_t each) {
  Program program(30);  // the states, without kills and without an archive
  {
    const Scratch scratch;
    Options o = options("", medium);
    auto pool = AnyPool<BackedUp>::open(scratch.path(), o);
    program.knows(pool);
    for (int i = 0; i < 2 * steps; ++i) program.step(pool);
  }
  std::uint64_t kills = 0;
  for (std::uint64_t at = 1;; at += each) {
    const Scratch scratch;
    const std::string path = scratch.path(), folder = scratch.path("archive"),
                      to = scratch.path("restored");
    counts->acknowledged = 0;
    if (!killed(at, [&] { live(path, folder, medium); })) break;
    ++kills;
    // The next opening, which archives what the log has, is killed, too: now here, now there.
    for (const std::uint64_t again : {at % 7 + 1, at % 31 + 1})
      kills += killed(again, [&] { (void)AnyPool<BackedUp>::open(path, options(folder, medium)); })
                   ? 1U
                   : 0U;
    const std::uint64_t acknowledged = counts->acknowledged;
    if (std::filesystem::exists(folder)) {
      const VerifyReport found = verify_backups(folder);
      EXPECT_TRUE(found.ok()) << at << ": " << found.problems.front();
    }
    std::uint64_t last = 0;
    Program after(31);
    {
      auto pool = AnyPool<BackedUp>::open(path, options(folder, medium));
      EXPECT_EQ(0U, pool.archive().gaps) << at;
      after.knows(pool);
      last = pool.stats().last_id;
      EXPECT_GE(last, acknowledged) << at;
      for (int i = 0; i < 3; ++i) after.step(pool);
      pool.close();
    }
    EXPECT_TRUE(verify_backups(folder).ok()) << at;
    EXPECT_EQ(program.at(last), after.at(last)) << at;
    EXPECT_EQ(after.states().rbegin()->second, restored(folder, to, {})) << at;
    // From the first backup on every state can be restored; a sample of them is.
    const std::uint64_t first = verify_backups(folder).backups.front().id;
    for (std::uint64_t id = first; id <= last; id += 1 + at % 5)
      EXPECT_EQ(program.at(id), restored(folder, to, {.id = id})) << at << ", " << id;
  }
  EXPECT_GT(kills * each, 100U) << "the calls do not come through the wrappers";
  std::printf("%s: %llu kills\n", medium.c_str(), static_cast<unsigned long long>(kills));
}

// STORE-1 and BASE-1 for power cuts, which leave what was synced alone.
TEST_F(Killed, NamesFollowTheirContents) {
  const Scratch scratch;
  Watch all;
  watch = &all;
  live(scratch.path(), scratch.path("archive"), "emulated");
  watch = nullptr;
  for (const std::string& problem : all.problems) ADD_FAILURE() << problem;
  EXPECT_GT(all.links, 20U) << "the calls do not come through the wrappers";
  EXPECT_TRUE(all.names.empty()) << *all.names.begin() << " may be lost";
}

// PRUNE-1
TEST_F(Killed, WhileOldBackupsAreRemoved) {
  const Scratch scratch;
  const std::string made = scratch.path("made"), folder = scratch.path("archive");
  live(scratch.path(), made, "emulated");
  const std::vector<VerifyReport::Backup> backups = verify_backups(made).backups;
  const std::uint64_t keep = backups.back().id, last = backups.back().restores_to;
  std::uint64_t kills = 0;
  for (std::uint64_t at = 1;; ++at) {
    std::filesystem::remove_all(folder);
    std::filesystem::copy(made, folder, std::filesystem::copy_options::recursive);
    if (!killed(at, [&] { (void)prune_backups(folder, {.id = keep}); })) break;
    ++kills;
    const VerifyReport found = verify_backups(folder);
    EXPECT_TRUE(found.ok()) << at << ": " << found.problems.front();
    for (const auto& backup : found.backups) EXPECT_EQ(last, backup.restores_to) << at;
    (void)restored(folder, scratch.path("restored"), {.id = keep});
    (void)prune_backups(folder, {.id = keep});
    EXPECT_EQ(1U, verify_backups(folder).backups.size());
  }
  EXPECT_GT(kills, 20U);
}

TEST_F(Killed, BeforeEachFileOperationOnMemory) { explore("emulated", scale); }
TEST_F(Killed, BeforeEachFileOperationOnAFile) { explore("file", 3 * scale); }

}  // namespace
}  // namespace perdure::test
