// SPDX-License-Identifier: BSD-3-Clause
//
// jobs-5: a worker takes a job; 5 % of its jobs fail, which is a second transaction; it finishes
// the others and adds a new job for each, which are two more. 10,000 jobs wait at first. Each
// operation is a millisecond of the queue's time.
// Invariants: added = done + dead + waiting; the queue's counts are those of the calls.
// Thread safety: any number of threads call step; a process has one session of this structure.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"
#include "bench/harness/timed.hpp"
#include "examples/jobs.hpp"

namespace bench::apps {

struct JobsWork {
  static constexpr const char* structure = "jobs";
  static constexpr std::uint64_t loaded = 10'000;

  static jobs::Time time(std::uint64_t ms) {
    return jobs::Time(std::chrono::milliseconds(1'700'000'000'000 + static_cast<long>(ms)));
  }
  static std::string task_of(std::uint64_t n) {
    return "send the invoice " + std::to_string(n) + " to the customer " + std::to_string(n % 997) +
           ", with a copy to the accounts";
  }

  template <class Host>
  static void fill(Host& host, const Setting&) {
    constexpr std::uint64_t a_batch = 10;
    for (std::uint64_t from = 0; from < loaded; from += a_batch)
      host.batch([&] {
        for (std::uint64_t n = from; n < from + a_batch; ++n) host.store().add(task_of(n), time(0));
      });
    added_.store(loaded);
  }
  static void check_parameter(unsigned percent) { check_percent(structure, percent); }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned percent, Rng& rng) {
    const std::uint64_t tick = 1 + clock_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t fails = rng.below(100), n = rng();
    const auto taken = host.store().take(time(tick));
    if (taken.job && fails < percent) {
      host.store().fail(*taken.job, "the mail server does not answer", time(tick));
      return {.wrote = true};
    }
    // A lease may end meanwhile where a thread is off the processor for 30,000 operations of others
    if (taken.job && host.store().finish(*taken.job)) done_.fetch_add(1, std::memory_order_relaxed);
    host.store().add(task_of(n % 1'000'000), time(tick));
    added_.fetch_add(1, std::memory_order_relaxed);
    return {.wrote = true};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    const auto found = host.store().counts();
    if (found.added == added_.load() && found.done == done_.load() &&
        found.added == found.done + found.dead + found.waiting &&
        host.store().dead().size() == found.dead)
      return {};
    return {"jobs: found " + std::to_string(found.added) +
            " added = " + std::to_string(found.done) + " done + " + std::to_string(found.dead) +
            " dead + " + std::to_string(found.waiting) + " waiting, expected " +
            std::to_string(added_.load()) + " added and " + std::to_string(done_.load()) + " done"};
  }

 private:
  // Read after the threads have ended.
  static inline std::atomic<std::uint64_t> clock_{0}, added_{0}, done_{0};
};

}  // namespace bench::apps
