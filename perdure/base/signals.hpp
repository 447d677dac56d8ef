// SPDX-License-Identifier: BSD-3-Clause
//
// The signal mask of the library's own threads.
//
// The kernel hands a signal that is sent to the process to any thread that does not block it. A
// thread of the library must not receive the program's: a handler of the program would run in it,
// and a program that waits for signals in its own threads, which block them (sigwait, signalfd),
// would miss those. So a thread is started while the starting thread blocks them: the new thread
// inherits the mask, and there is no moment at which it could receive one.
// Left open are signals that a thread's own instructions cause, which end the process where they
// are blocked, and SIGPROF, by which profilers look at every thread.
// Thread safety: an object belongs to the thread that made it, which also destroys it.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>

namespace perdure::base {

/// One more signal that the library's threads leave open; 0: none. The tests' watchdog sends it to
/// each thread, which answers with its stack.
inline std::atomic<int> debugging_signal{0};

/// Blocks the program's signals in the calling thread while it exists. A thread that is started
/// meanwhile has them blocked for all its life.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t set;
    ::sigfillset(&set);
    for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
      ::sigdelset(&set, open);
    // Relaxed: it is set before there are threads.
    if (const int open = debugging_signal.load(std::memory_order_relaxed); open != 0)
      ::sigdelset(&set, open);
    // SIG_BLOCK: what the calling thread blocks stays blocked. The call can't fail: its arguments
    // are valid.
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace perdure::base
