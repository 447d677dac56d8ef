// SPDX-License-Identifier: BSD-3-Clause
//
// The linker redirects the library's system calls to the wrappers below (-Wl,--wrap=...). Operator
// new is replaced, as is pthread_create, which the C++ library calls.
#include "interposed.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>

#include "faults.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PERDURE_SANITIZED 1
#else
#define PERDURE_SANITIZED 0
#endif

namespace perdure::faults::interposed {
namespace {

// Plain atomics: they are used where nothing may be allocated.
std::atomic<std::uint64_t> count{0}, first{0}, last{0};
std::atomic<Kind> counted{Kind::call};
std::atomic<bool> armed{false};
std::atomic<const char*> fired{nullptr};

bool strikes(const char* name) {
  const std::uint64_t n = count.fetch_add(1) + 1;
  if (n < first.load() || n > last.load()) return false;
  const char* none = nullptr;
  fired.compare_exchange_strong(none, name);
  return true;
}
bool strike(const char* name) {
  return armed.load() && counted.load() == Kind::call && strikes(name);
}
bool strike_allocation(const char* name) {
  return armed.load() && counted.load() == Kind::allocation && strikes(name);
}
[[maybe_unused]] bool strike_thread() {
  return armed.load() && (counted.load() == Kind::call || counted.load() == Kind::thread) &&
         strikes("pthread_create");
}
int fails(int err) {
  errno = err;
  return -1;
}

}  // namespace

void arm(const Fault& fault) noexcept {
  count = 0;
  first = fault.nth;
  last = fault.and_later ? ~std::uint64_t{0} : fault.nth;
  counted = fault.kind;
  fired = nullptr;
  armed = true;
}
const char* disarm() noexcept {
  armed = false;
  return fired.load();
}

}  // namespace perdure::faults::interposed

namespace interposed = perdure::faults::interposed;
using interposed::fails, interposed::strike, interposed::strike_allocation;

extern "C" {
void* __real_aligned_alloc(std::size_t, std::size_t);
void* __real_calloc(std::size_t, std::size_t);
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
int __real_posix_fallocate(int, off_t, off_t);
int __real_pipe2(int*, int);
long __real_syscall(long, ...);

void* __wrap_aligned_alloc(std::size_t align, std::size_t n) {
  return strike_allocation("aligned_alloc") ? nullptr : __real_aligned_alloc(align, n);
}
void* __wrap_calloc(std::size_t n, std::size_t each) {
  return strike_allocation("calloc") ? nullptr : __real_calloc(n, each);
}
void* __wrap_mmap(void* at, std::size_t n, int protection, int flags, int fd, off_t offset) {
  if (strike("mmap")) return fails(ENOMEM), MAP_FAILED;
  return __real_mmap(at, n, protection, flags, fd, offset);
}
int __wrap_madvise(void* at, std::size_t n, int advice) {
  return strike("madvise") ? fails(ENOMEM) : __real_madvise(at, n, advice);
}
int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  return strike("open") ? fails(EMFILE) : __real_open(path, flags, mode);
}
int __wrap_stat(const char* path, struct stat* to) {
  return strike("stat") ? fails(EIO) : __real_stat(path, to);
}
int __wrap_fstat(int fd, struct stat* to) {
  return strike("fstat") ? fails(EIO) : __real_fstat(fd, to);
}
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
int __wrap_posix_fallocate(int fd, off_t offset, off_t n) {
  return strike("posix_fallocate") ? ENOSPC : __real_posix_fallocate(fd, offset, n);
}
int __wrap_pipe2(int* ends, int flags) {
  return strike("pipe2") ? fails(EMFILE) : __real_pipe2(ends, flags);
}
int __wrap_ftruncate(int fd, off_t n) {
  return strike("ftruncate") ? fails(ENOSPC) : __real_ftruncate(fd, n);
}
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
  // membarrier, once registered, can't fail; futex (std::atomic's wait) does not fail in this way.
  if (number != SYS_membarrier && number != SYS_futex && strike("syscall")) return fails(EIO);
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#if !PERDURE_SANITIZED  // otherwise there is one already
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* arg) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return interposed::strike_thread() ? EAGAIN : real(thread, attributes, start, arg);
}
#endif
}

namespace {
void* allocate(std::size_t n, std::size_t align) {
  if (strike_allocation("operator new")) return nullptr;
  return align <= alignof(std::max_align_t)
             ? std::malloc(n == 0 ? 1 : n)
             : __real_aligned_alloc(align, (n + align - 1) / align * align);
}
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmismatched-new-delete"  // when inlined, it sees free() of a pointer from this operator new
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
