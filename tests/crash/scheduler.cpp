// SPDX-License-Identifier: BSD-3-Clause
#include "tests/crash/scheduler.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "perdure/base/thread_slot.hpp"

namespace perdure::test {
namespace {

struct Thread {
  sem_t turn;
  pthread_t id{};
  bool ended = false;
  void* (*run)(void*) = nullptr;
  void* argument = nullptr;
  Thread() { ::sem_init(&turn, 0, 0); }
  ~Thread() { ::sem_destroy(&turn); }
};

// Only the thread whose turn it is accesses these.
std::vector<std::unique_ptr<Thread>> threads;
std::mt19937_64 random_number;
std::uint64_t switched = 0;
thread_local Thread* me = nullptr;
constexpr std::uint64_t longest = 2000;  // meanwhile others fill their logs and wait
Thread* held = nullptr;                  // the delayed thread
std::uint64_t held_for = 0;
// Of the others one is delayed, after a number of points; until it continues nothing else is
// random.
Thread* spared = nullptr;
std::uint64_t countdown = 0;

void wait_for_turn(Thread& t) {
  while (::sem_wait(&t.turn) != 0) {}
}

// A thread other than the caller, and other than the delayed one if there is any other; or null.
Thread* any_other() {
  if (held_for != 0 && --held_for == 0) held = nullptr;
  std::vector<Thread*> others;
  for (const auto& t : threads)
    if (t.get() != me && t.get() != held && !t->ended) others.push_back(t.get());
  if (others.empty() && held != nullptr && held != me) return std::exchange(held, nullptr);
  return others.empty() ? nullptr : others[random_number() % others.size()];
}

void hand_over() {
  Thread* const next = any_other();
  if (next == nullptr) return;
  ++switched;
  ::sem_post(&next->turn);
  wait_for_turn(*me);
}

template <class F>
F real(F, const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<F>(found);
}
#define PERDURE_REAL(function)                              \
  ([] {                                                     \
    static const auto found = real(&::function, #function); \
    return found;                                           \
  }())

void* trampoline(void* argument) {
  auto* const t = static_cast<Thread*>(argument);
  me = t;
  wait_for_turn(*t);
  void* const result = t->run(t->argument);
  // Within this thread's turn: otherwise its number would come free at some instant of another
  // thread's, which may be looking for the log of a thread that has ended.
  base::give_back_thread_slot();
  t->ended = true;
  if (held == t) held = nullptr;
  Thread* const next = any_other();
  me = nullptr;
  if (next != nullptr) {
    ++switched;
    ::sem_post(&next->turn);
  }
  return result;
}

}  // namespace

void Scheduler::start(std::uint64_t seed) {
  threads.clear();
  random_number.seed(seed);
  switched = held_for = countdown = 0;
  held = spared = nullptr;
  threads.push_back(std::make_unique<Thread>());
  me = threads.back().get();
  me->id = ::pthread_self();
}

void Scheduler::stop() {
  assert(any_other() == nullptr);
  me = nullptr;
  threads.clear();
}

void Scheduler::point() noexcept {
  if (me == nullptr) return;
  if (countdown != 0) {
    if (me == spared || --countdown != 0) return;
    held = me;
    held_for = longest / 3;
    return hand_over();
  }
  if (spared != nullptr && held != nullptr) {
    if (--held_for == 0) held = nullptr;
    if (held != nullptr) return;
  }
  const std::uint64_t drawn = random_number();
  if (held == nullptr && drawn % 64 == 0) {
    held = me;
    held_for = 1 + drawn / 64 % longest;
  }
  if (drawn % 2 == 0) hand_over();
}

void Scheduler::preempt_at(std::uint64_t n) noexcept {
  spared = me;
  countdown = n;
}

bool Scheduler::preempting() noexcept { return countdown != 0; }

std::uint64_t Scheduler::switches() noexcept { return switched; }

}  // namespace perdure::test

// --- the C library's waits, for registered threads -----------------------------------------------

using perdure::test::hand_over;
using perdure::test::me;
using perdure::test::real;

extern "C" {

int pthread_create(pthread_t* id, const pthread_attr_t* how, void* (*run)(void*), void* argument) {
  const auto create = PERDURE_REAL(pthread_create);
  if (me == nullptr) return create(id, how, run, argument);
  auto t = std::make_unique<perdure::test::Thread>();
  t->run = run;
  t->argument = argument;
  const int failed = create(&t->id, how, perdure::test::trampoline, t.get());
  if (failed != 0) return failed;
  *id = t->id;
  perdure::test::threads.push_back(std::move(t));
  return 0;
}

int pthread_join(pthread_t id, void** result) {
  if (me != nullptr) {
    for (bool waits = true; waits;) {
      waits = false;
      for (const auto& t : perdure::test::threads)
        if (!t->ended && ::pthread_equal(t->id, id) != 0) waits = true;
      if (waits) hand_over();
    }
  }
  return PERDURE_REAL(pthread_join)(id, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (me == nullptr) return PERDURE_REAL(pthread_mutex_lock)(mutex);
  int failed = 0;
  while ((failed = ::pthread_mutex_trylock(mutex)) == EBUSY) hand_over();
  return failed;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (me == nullptr) return PERDURE_REAL(pthread_cond_wait)(condition, mutex);
  ::pthread_mutex_unlock(mutex);
  hand_over();
  return pthread_mutex_lock(mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (me == nullptr) return PERDURE_REAL(pthread_cond_timedwait)(condition, mutex, until);
  pthread_cond_wait(condition, mutex);
  return ETIMEDOUT;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (me == nullptr) return PERDURE_REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
  pthread_cond_wait(condition, mutex);
  return ETIMEDOUT;
}

int sched_yield() {
  if (me == nullptr) return PERDURE_REAL(sched_yield)();
  hand_over();
  return 0;
}

int nanosleep(const timespec* how_long, timespec* left) {
  if (me == nullptr) return PERDURE_REAL(nanosleep)(how_long, left);
  hand_over();
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* until, timespec* left) {
  if (me == nullptr) return PERDURE_REAL(clock_nanosleep)(clock, flags, until, left);
  hand_over();
  return 0;
}

// std::atomic::wait is a futex, by syscall(); so are latches and barriers. It reads more arguments
// than some callers pass, as the C library's does.
__attribute__((no_sanitize("address"))) long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (me != nullptr && number == SYS_futex && (a[1] & FUTEX_CMD_MASK) % 9 == FUTEX_WAIT) {
    // FUTEX_WAIT, FUTEX_WAIT_BITSET
    hand_over();
    return 0;
  }
  return PERDURE_REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
