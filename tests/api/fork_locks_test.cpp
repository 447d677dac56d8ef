// SPDX-License-Identifier: BSD-3-Clause
//
// A child is forked while another thread of its parent holds a mutex: each mutex in turn that
// opening a pool, using it and closing it lock. The child opens a pool of its own. To stop the
// thread there, this program defines pthread_mutex_lock(), which the library then calls. A fork()
// may itself wait for a mutex (base/at_fork.hpp): then the thread continues.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "tests/api/fork.hpp"
#include "tests/pool/pool_test.hpp"

namespace {

using Lock = int (*)(pthread_mutex_t*);
Lock real_lock() {
  static constinit std::atomic<Lock> found{nullptr};
  Lock lock = found.load(std::memory_order_relaxed);  // pairs with nothing: only the value matters
  if (lock == nullptr)
    found.store(lock = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock")),
                std::memory_order_relaxed);
  return lock;
}

sem_t stopped, go_on;  // the thread has stopped, or has ended; it may continue
thread_local constinit int locks_left = 0;
thread_local constinit bool forking = false;
bool went_on = false;  // whether fork() needed the mutex

void wait_for(sem_t& one) {
  while (::sem_wait(&one) != 0 && errno == EINTR) {}
}

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (forking) {
    if (::pthread_mutex_trylock(mutex) == 0) return 0;
    if (!std::exchange(went_on, true)) ::sem_post(&go_on);
  }
  const int code = real_lock()(mutex);
  if (locks_left > 0 && --locks_left == 0) {
    ::sem_post(&stopped);
    wait_for(go_on);
  }
  return code;
}

namespace perdure {
namespace {

using Root = test::ForkRoot;
using CountPool = test::ForkPool;

class ForkLocks : public testing::TestWithParam<const char*> {
 protected:
  // Uses everything of which a process has one in a pool's life: its file's lock, its address, a
  // trace, blocks of a new kind.
  void live(const std::string& name) const {
    Options o;
    o.engine = GetParam();
    o.medium = "emulated";
    o.creation.max_size = 16 << 20;
    o.creation.log_size = 256 << 10;
    o.trace = scratch.path(name + ".trace");
    const std::string path = scratch.path(name);
    {
      CountPool pool = CountPool::open(path, o);
      for (int i = 0; i < 3; ++i)
        pool.update([](auto& tx, Root& root) { root.numbers.push_back(tx, 1); });
      pool.checkpoint();
      pool.close();
    }
    ::unlink(path.c_str());
  }
  const pool::testing::Scratch scratch;
};

TEST_P(ForkLocks, AChildIsForkedWhileAnotherThreadHoldsAMutex) {
  if (test::no_fork_beside_threads != nullptr) GTEST_SKIP() << test::no_fork_beside_threads;
  ::sem_init(&stopped, 0, 0);
  ::sem_init(&go_on, 0, 0);
  live("first");  // makes what is made once per process
  int taken = 0, waited = 0;
  for (bool ended = false; !ended; ++taken) {
    std::thread thread([&] {
      locks_left = taken + 1;
      live("threads");
      ended = locks_left > 0;
      locks_left = 0;
      if (ended) ::sem_post(&stopped);
    });
    wait_for(stopped);
    went_on = false;
    (void)std::fflush(nullptr);
    forking = true;
    const pid_t child = ::fork();
    forking = false;
    if (child == 0) {
      ::alarm(20);
      try {
        live("childs");
      } catch (const error& e) {
        std::fprintf(stderr, "the child: %s\n", e.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    if (!went_on) ::sem_post(&go_on);
    thread.join();
    if (ended) wait_for(go_on);  // no thread locked it
    waited += went_on ? 1 : 0;
    ASSERT_EQ(status, 0) << "the child hung or failed beside a thread that held its mutex number "
                         << taken;
  }
  std::printf("%d mutexes taken, fork() waited for %d of them\n", taken - 1, waited);
  EXPECT_GT(taken, 10);
  EXPECT_GT(waited, 3);
}

INSTANTIATE_TEST_SUITE_P(Engines, ForkLocks,
                         testing::Values("shadow", "dudetm", "undo", "softwrap"));

}  // namespace
}  // namespace perdure
