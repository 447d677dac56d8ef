// SPDX-License-Identifier: BSD-3-Clause
//
// The loop that measures everything: a number of threads call their worker repeatedly, first to
// warm up, then for a fixed time. A thread's clock stops after its worker has settled: if a system
// acknowledges before a transaction is durable, the wait for the last transaction is included.
// Thread safety: run_timed has one caller; make(thread) is called in the thread that will use the
// worker.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "bench/harness/session.hpp"

namespace bench {

/// What one call of a worker did.
struct Step {
  bool wrote = false;  ///< it changed something
  int grown = 0;       ///< change of the number of elements: +1, 0 or -1
};

/// The sum over the workers of a cell.
struct Tally {
  std::uint64_t operations = 0, writes = 0;  ///< in the measured time
  double seconds = 0, rate = 0;
  double cpu_seconds = 0;            ///< the processor time of the threads in it, summed
  std::uint64_t all_operations = 0;  ///< including the warm-up
  std::int64_t grown = 0;            ///< including the warm-up
};

inline double thread_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Sleeps so that its thread is idle for a share of its time. It sleeps when it owes a millisecond:
/// shorter sleeps would consist mostly of the kernel's overhead.
class Idle {
 public:
  void rest(unsigned percent) {
    const auto now = Clock::now();
    owed_ += std::chrono::duration<double>(now - since_).count() * percent / (100 - percent);
    since_ = now;
    if (owed_ < 1e-3) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(owed_));
    since_ = Clock::now();
    // Time that it overslept is subtracted.
    owed_ -= std::chrono::duration<double>(since_ - now).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_ = Clock::now();
  double owed_ = 0;
};

/// `make(thread)` returns a worker: `Step operator()()`, and `settle()`, after which everything
/// that it did is durable.
template <class Make>
Tally run_timed(const Cell& cell, Make make) {
  using Clock = std::chrono::steady_clock;
  enum Phase : int { waiting, warming, measuring, over };
  constexpr unsigned batch = 16;  // calls between two checks of the phase

  struct alignas(128) Own {
    Tally tally;
    std::exception_ptr failed;
  };
  std::vector<Own> own(cell.threads);
  std::atomic<int> phase{waiting};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;

  for (unsigned t = 0; t < cell.threads; ++t) {
    threads.emplace_back([&, t] {
      Tally tally;
      try {
        auto worker = make(t);
        ready.fetch_add(1);
        while (phase.load(std::memory_order_relaxed) == waiting) std::this_thread::yield();
        while (phase.load(std::memory_order_relaxed) == warming) {
          for (unsigned i = 0; i < batch; ++i) tally.grown += worker().grown;
          tally.all_operations += batch;
        }
        const auto start = Clock::now();
        const double cpu_start = thread_cpu_seconds();
        Idle idle;
        while (phase.load(std::memory_order_relaxed) == measuring) {
          for (unsigned i = 0; i < batch; ++i) {
            const Step step = worker();
            tally.writes += step.wrote ? 1U : 0U;
            tally.grown += step.grown;
          }
          tally.operations += batch;
          if (cell.idle_percent != 0) idle.rest(cell.idle_percent);
        }
        worker.settle();
        tally.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        tally.cpu_seconds = thread_cpu_seconds() - cpu_start;
        tally.all_operations += tally.operations;
      } catch (...) {
        own[t].failed = std::current_exception();
      }
      own[t].tally = tally;
    });
  }

  // A worker that failed before it was ready never counts itself: join() below then finds its
  // exception.
  const auto patience = Clock::now() + std::chrono::seconds(30);
  while (ready.load() < cell.threads && Clock::now() < patience) std::this_thread::yield();
  const auto pause = [](double s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(s));
  };
  phase.store(warming);
  pause(cell.warmup);
  phase.store(measuring);
  pause(cell.seconds);
  phase.store(over);
  for (auto& thread : threads) thread.join();

  Tally sum;
  for (const Own& o : own) {
    if (o.failed) std::rethrow_exception(o.failed);
    sum.operations += o.tally.operations;
    sum.writes += o.tally.writes;
    sum.cpu_seconds += o.tally.cpu_seconds;
    sum.all_operations += o.tally.all_operations;
    sum.grown += o.tally.grown;
    if (o.tally.seconds > sum.seconds) sum.seconds = o.tally.seconds;
    if (o.tally.seconds > 0) sum.rate += static_cast<double>(o.tally.operations) / o.tally.seconds;
  }
  return sum;
}

}  // namespace bench
