// SPDX-License-Identifier: BSD-3-Clause
//
// SizeLimitIsAnError: while one lives, a call of its thread that would make a file longer than the
// process's limit (RLIMIT_FSIZE, `ulimit -f`) only fails with EFBIG. Without it the kernel also
// sends SIGXFSZ, which ends a process that does not expect it. The kernel sends the signal to the
// thread that makes the call, so it is enough to block it there and to consume it: no handler is
// changed, and a signal that was pending before stays pending.
// Thread safety: an object belongs to the thread that made it, and affects only that thread.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace perdure::base {

class SizeLimitIsAnError {
 public:
  SizeLimitIsAnError() noexcept {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
    blocked_ = ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  SizeLimitIsAnError(const SizeLimitIsAnError&) = delete;
  SizeLimitIsAnError& operator=(const SizeLimitIsAnError&) = delete;
  ~SizeLimitIsAnError() {
    if (!blocked_) return;
    const int error = errno;  // as the guarded call has set it
    const struct timespec now = {};
    if (!was_pending_)
      while (::sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {}
    (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false, blocked_ = false;
};

}  // namespace perdure::base
