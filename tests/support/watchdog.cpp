// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/watchdog.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <cstdlib>

#include "tests/support/stacks.hpp"

// Defined by the source that perdure_add_test(... CASE_LIMIT n) adds; otherwise absent.
extern "C" {
extern const unsigned perdure_case_limit_s __attribute__((weak));
}

namespace perdure::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double factor = 4;  // 240 s: below the 300 s that ctest gives a program
#else
constexpr double factor = 1;
#endif
constexpr double usual_limit = 60, grace = 30;

struct Timers {
  timer_t expiry{}, last_resort{};
  bool made = false;
};
Timers timers;

void set(timer_t timer, double seconds) noexcept {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(seconds);
  when.it_value.tv_nsec =
      static_cast<long>((seconds - static_cast<double>(when.it_value.tv_sec)) * 1e9);
  ::timer_settime(timer, 0, &when, nullptr);
}

bool make(timer_t& timer, int signal) noexcept {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  return ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

// Of the running case, in seconds. `limit` is 0 if there is none.
double limit = 0, began = 0, used_before = 0, used_at_look = 0, due = 0;
long blocks_at_look = 0;

double seconds(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The blocks that this process has read from devices and written to them.
long blocks() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_inblock + usage.ru_oublock;
}

void look_after(double more) noexcept {
  due = seconds(CLOCK_MONOTONIC) + more;
  set(timers.expiry, more);
}

// Called in the handler of the timer's signal. The first signal comes a sixth before the limit, to
// check for progress. A signal that comes late found the process stopped (SIGSTOP, a suspended
// machine) for an unknown time: the limit begins again.
bool goes_on() noexcept {
  if (seconds(CLOCK_MONOTONIC) - due > 0.5) {
    watch_again();
    return true;
  }
  const double part = limit / 6, took = seconds(CLOCK_MONOTONIC) - began,
               used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used_before;
  const bool computes = used - used_at_look > 0.02 * part && used < limit,
             transfers = blocks() != blocks_at_look;
  used_at_look = used;
  blocks_at_look = blocks();
  if (const double left = limit - took; left > 0.001 * limit)
    look_after(left);
  else if ((computes || transfers) && took < 10 * limit)
    look_after(part);
  else {
    set(timers.last_resort, grace);  // if the report hangs
    return false;
  }
  return true;
}

// A forked child has no timers, but it has the handlers, so that its parent can ask it for its
// stacks.
bool prepare() noexcept {
  if (timers.made) return true;
  stacks::install(goes_on);
  timers.made = make(timers.expiry, stacks::report_signal()) && make(timers.last_resort, SIGKILL);
  return timers.made;
}

}  // namespace

double case_limit() noexcept {
  if (const char* text = std::getenv("PERDURE_CASE_LIMIT")) return std::strtod(text, nullptr);
  const double own = &perdure_case_limit_s != nullptr ? perdure_case_limit_s : usual_limit;
  return own * factor;
}

void watch(const char* what, double seconds) noexcept {
  if (seconds <= 0) return unwatch();
  if (!prepare()) return;
  stacks::name(what, seconds);
  limit = seconds;
  watch_again();
}

void watch_again() noexcept {
  if (limit <= 0 || !timers.made) return;
  set(timers.expiry, 0);
  began = seconds(CLOCK_MONOTONIC);
  used_before = seconds(CLOCK_PROCESS_CPUTIME_ID);
  used_at_look = 0;
  blocks_at_look = blocks();
  look_after(limit * 5 / 6);
}

void unwatch() noexcept {
  limit = 0;
  if (!timers.made) return;
  set(timers.expiry, 0);
  set(timers.last_resort, 0);
}

}  // namespace perdure::test

extern "C" void perdure_test_watch_again(void) { perdure::test::watch_again(); }
