// SPDX-License-Identifier: BSD-3-Clause
//
// Out of memory, and a failing system call, at the n-th call, for every n: a clean error or a poisoned pool, never a lost
// acknowledgement, never a crash, nothing left behind.
//
// The linker sends the library's system calls through the wrappers below (-Wl,--wrap=...), and operator new is replaced. Each n is a
// process: makes a pool, works, grows, checkpoints, closes. Another then opens what is there, without faults.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>
#include <new>

#include "faults.hpp"
#include "tests/support/watchdog.hpp"

namespace {

// One fault: the n-th call of a kind fails. Plain atomics: used from malloc-free places.
std::atomic<std::uint64_t> calls{0}, nth{0}, allocations{0}, nth_allocation{0};
std::atomic<const char*> fired{nullptr};
std::atomic<bool> armed{false};

bool strike(const char* name) {
  if (!armed.load() || calls.fetch_add(1) + 1 != nth.load()) return false;
  fired = name;
  return true;
}
int fails(int err) {
  errno = err;
  return -1;
}

bool strike_allocation(const char* name) {
  if (!armed.load() || allocations.fetch_add(1) + 1 != nth_allocation.load()) return false;
  fired = name;
  return true;
}

}  // namespace

extern "C" {
void* __real_aligned_alloc(std::size_t, std::size_t);
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_madvise(void*, std::size_t, int);
int __real_open(const char*, int, ...);
int __real_stat(const char*, struct stat*);
int __real_fstat(int, struct stat*);
ssize_t __real_pread(int, void*, std::size_t, off_t);
ssize_t __real_pwrite(int, const void*, std::size_t, off_t);
ssize_t __real_pwritev2(int, const struct iovec*, int, off_t, int);
int __real_fallocate(int, int, off_t, off_t);
int __real_ftruncate(int, off_t);
int __real_fsync(int);
int __real_fdatasync(int);
int __real_memfd_create(const char*, unsigned);
int __real_renameat2(int, const char*, int, const char*, unsigned);
int __real_fcntl(int, int, ...);
ssize_t __real_getrandom(void*, std::size_t, unsigned);
int __real_shm_open(const char*, int, mode_t);
long __real_syscall(long, ...);

void* __wrap_aligned_alloc(std::size_t align, std::size_t n) {
  return strike_allocation("aligned_alloc") ? nullptr : __real_aligned_alloc(align, n);
}
void* __wrap_mmap(void* at, std::size_t n, int protection, int flags, int fd, off_t offset) {
  if (strike("mmap")) return fails(ENOMEM), MAP_FAILED;
  return __real_mmap(at, n, protection, flags, fd, offset);
}
int __wrap_madvise(void* at, std::size_t n, int advice) { return strike("madvise") ? fails(ENOMEM) : __real_madvise(at, n, advice); }
int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  return strike("open") ? fails(EMFILE) : __real_open(path, flags, mode);
}
int __wrap_stat(const char* path, struct stat* to) { return strike("stat") ? fails(EIO) : __real_stat(path, to); }
int __wrap_fstat(int fd, struct stat* to) { return strike("fstat") ? fails(EIO) : __real_fstat(fd, to); }
ssize_t __wrap_pread(int fd, void* to, std::size_t n, off_t offset) {
  return strike("pread") ? fails(EIO) : __real_pread(fd, to, n, offset);
}
ssize_t __wrap_pwrite(int fd, const void* from, std::size_t n, off_t offset) {
  return strike("pwrite") ? fails(ENOSPC) : __real_pwrite(fd, from, n, offset);
}
ssize_t __wrap_pwritev2(int fd, const struct iovec* from, int n, off_t offset, int flags) {
  return strike("pwritev2") ? fails(EIO) : __real_pwritev2(fd, from, n, offset, flags);
}
int __wrap_fallocate(int fd, int mode, off_t offset, off_t n) {
  return strike("fallocate") ? fails(ENOSPC) : __real_fallocate(fd, mode, offset, n);
}
int __wrap_ftruncate(int fd, off_t n) { return strike("ftruncate") ? fails(ENOSPC) : __real_ftruncate(fd, n); }
int __wrap_fsync(int fd) { return strike("fsync") ? fails(EIO) : __real_fsync(fd); }
int __wrap_fdatasync(int fd) { return strike("fdatasync") ? fails(EIO) : __real_fdatasync(fd); }
int __wrap_memfd_create(const char* name, unsigned flags) {
  return strike("memfd_create") ? fails(ENFILE) : __real_memfd_create(name, flags);
}
int __wrap_renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  return strike("renameat2") ? fails(EIO) : __real_renameat2(a, from, b, to, flags);
}
int __wrap_fcntl(int fd, int what, ...) {
  va_list rest;
  va_start(rest, what);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return strike("fcntl") ? fails(ENOLCK) : __real_fcntl(fd, what, argument);
}
ssize_t __wrap_getrandom(void* to, std::size_t n, unsigned flags) {
  return strike("getrandom") ? fails(ENOSYS) : __real_getrandom(to, n, flags);
}
int __wrap_shm_open(const char* name, int flags, mode_t mode) {
  return strike("shm_open") ? fails(EMFILE) : __real_shm_open(name, flags, mode);
}
long __wrap_syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& v : a) v = va_arg(rest, long);
  va_end(rest);
  // membarrier, once registered, can't fail; futex (std::atomic's wait) not like this
  if (number != SYS_membarrier && number != SYS_futex && strike("syscall")) return fails(EIO);
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}

namespace {
void* allocate(std::size_t n, std::size_t align) {
  if (strike_allocation("operator new")) return nullptr;
  return align <= alignof(std::max_align_t) ? std::malloc(n == 0 ? 1 : n) : __real_aligned_alloc(align, (n + align - 1) / align * align);
}
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, it sees free() of what this operator new returned
#endif
void* operator new(std::size_t n) {
  if (void* p = allocate(n, 0)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t align) {
  if (void* p = allocate(n, static_cast<std::size_t>(align))) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t n) { return operator new(n); }
void* operator new[](std::size_t n, std::align_val_t align) { return operator new(n, align); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace perdure::faults {
namespace {

/// What the process with the fault tells the test.
struct Report {
  std::atomic<std::uint64_t> acked, begun;
  std::atomic<bool> made, fired, finished;
  char what[64];    ///< the call that failed
  char error[512];  ///< what the library said of it
};

class NthCall : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    void* p = ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(p, MAP_FAILED);
    report = ::new (p) Report;
  }
  void TearDown() override { ::munmap(static_cast<void*>(report), sizeof(Report)); }
  Options options() const {
    Options o = small(GetParam());
    o.max_size = 16 * MiB;
    return o;
  }
  static std::vector<std::string> open_files() {
    std::vector<std::string> names;
    std::error_code gone;  // the directory's own
    for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
      names.push_back(std::filesystem::read_symlink(e.path(), gone));
    std::sort(names.begin(), names.end());
    return names;
  }

  // More blocks, stripes and bytes of record than the first rooms of their lists hold.
  void much(auto& tx, std::byte* at) const {
    const bool slow = GetParam().engine == "undo" && GetParam().medium == "file";  // a sync a line
    std::byte* blocks[80];
    for (auto& b : blocks) b = tx.alloc(24);
    std::sort(std::begin(blocks), std::end(blocks));  // a try before this one may have failed and given back
    EXPECT_EQ(std::adjacent_find(std::begin(blocks), std::end(blocks)), std::end(blocks)) << "a block was given out twice";
    const std::uint64_t word = 7;
    for (int i = 0; i < (slow ? 20 : 400); ++i) tx.write_bytes(at + i * 64, &word, sizeof word);
    for (auto* b : blocks) tx.free(b);
  }
  // Everything that a program does with a pool. Errors are noted, and work goes on as long as the pool allows.
  void script() {
    const auto note = [&](const char* text) { std::snprintf(report->error, sizeof report->error, "%s", text); };
    const auto attempt = [&](auto&& f) {
      try {
        f();
        return true;
      } catch (const std::exception& e) {  // bad_alloc too: the user's own strings may fail
        note(e.what());
        return false;
      }
    };
    std::unique_ptr<TestPool> pool;
    if (!attempt([&] { pool = std::make_unique<TestPool>(TestPool::open(path, options())); })) return;
    report->made = true;
    std::uint64_t done = 0;
    for (int tries = 0; done < 8 && tries < 12; ++tries) {
      report->begun = done + 1;
      const bool ok = attempt([&] {
        const auto receipt = pool->update(done % 3 == 2 ? async : durable, [&](auto& tx, Root& root) {
          step(tx, root, done + 1);
          if (done == 3) tx(root.block) = tx.alloc(5 * MiB);  // grows
          if (done == 4) much(tx, tx(root.block));
          if (done == 5) tx.free(tx(root.block)), tx(root.block) = nullptr;
        });
        receipt.wait();
        report->acked = done + 1;
      });
      std::uint64_t there = done + (ok ? 1 : 0);
      // An error may come after the commit; then the step is there, but not acknowledged.
      if (!ok && !attempt([&] { there = pool->view([](auto& tx, const Root& root) { return tx(root.count); }); })) break;
      done = there;
      if (done == 6) attempt([&] { pool->checkpoint(); });
    }
    attempt([&] { pool->close(); });
    pool.reset();
    report->finished = true;
  }

  // Runs the script in a process whose n-th call fails, then looks at what it left. False when there is no n-th call.
  bool one(std::uint64_t call, std::uint64_t allocation) {
    test::watch_again();  // the limit is of one call that fails
    const std::string which = call != 0 ? "system call " + std::to_string(call) : "allocation " + std::to_string(allocation);
    ::new (report) Report{};
    const int r = in_child([&] {
      ::alarm(60);
      const auto files = open_files();
      nth = call, nth_allocation = allocation;
      armed = true;
      script();
      armed = false;
      if (const char* name = fired.load()) {
        report->fired = true;
        std::snprintf(report->what, sizeof report->what, "%s", name);
      }
      EXPECT_EQ(open_files(), files) << "file descriptors left open";
    });
    const std::string about = which + " (" + report->what + "): " + report->error;
    EXPECT_EQ(r, 0) << about;
    if (!report->fired) return false;
    if (!report->made && report->error[0] == 0) ADD_FAILURE() << about << ": no pool and no error";
    // A pool that could not be opened may be there (made, then not opened), whole; or not.
    auto pool = TestPool::try_open(path, options());
    EXPECT_TRUE(pool.ok()) << about << ", then " << pool.status().message();
    if (pool.ok()) {
      const std::uint64_t n = steps_in(*pool);
      EXPECT_GE(n, report->acked.load()) << about << ": acknowledged, and lost";
      EXPECT_LE(n, report->begun.load()) << about;
      expect_sound(*pool);
    }
    pool = failure(Code::closed, "", "");
    std::uint64_t others = 0;  // a creator that failed before it had the lock may leave the lock's file, which the next one removes
    for (const auto& e : std::filesystem::directory_iterator(scratch.folder()))
      if (e.path() != path) ++others;
    EXPECT_EQ(others, 0U) << about << ": a half-made file is left";
    std::filesystem::remove(path);
    return true;
  }

  Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path();
  Report* report = nullptr;
};

TEST_P(NthCall, OfTheSystem) {
  std::uint64_t n = 1, step = sanitized ? 5 : 1;
  while (one(n, 0) && !HasFailure()) n += step;
  EXPECT_GT(n, 40U) << "the wrappers are not reached: is the library linked as a shared one?";
  std::printf("  %llu system calls failed, one at a time\n", static_cast<unsigned long long>((n - 1) / step));
}

TEST_P(NthCall, OfTheAllocator) {
  std::uint64_t n = 1, step = sanitized ? 7 : 1;
  while (one(0, n) && !HasFailure()) n += step;
  EXPECT_GT(n, 20U);
  std::printf("  %llu allocations failed, one at a time\n", static_cast<unsigned long long>((n - 1) / step));
}

std::vector<Case> cases() {
  std::vector<Case> all = durable_cases();
  all.push_back({"shadow/stm", "emulated", durable});  // orecs: alone, shadow has the bias
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, NthCall, ::testing::ValuesIn(cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
