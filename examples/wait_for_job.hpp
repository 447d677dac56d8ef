// SPDX-License-Identifier: BSD-3-Clause
//
// jobs::Waiting<Queue>: a queue of jobs (jobs.hpp) whose take() waits: until a job is added, or one
// that is there becomes due: a job of the future, a retry, or one whose worker's lease ended.
// Nothing of it is in the pool: it is for the threads of one process.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "examples/jobs.hpp"

namespace jobs {

// The time now, as jobs have it.
inline Time now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

template <class Queue>
class Waiting {
 public:
  explicit Waiting(Queue& queue) : queue_(queue) {}

  std::uint64_t add(std::string_view task, Time due = now()) {
    const std::uint64_t id = queue_.add(task, due);
    changed();
    return id;
  }
  // Waits for a job and takes it. Nothing after stop().
  std::optional<Job> take() {
    for (;;) {
      // What changes from here on ends the wait below, so that no job can be missed between the two
      std::unique_lock lock(mutex_);
      if (stopped_) return {};
      const std::uint64_t seen = changes_;
      lock.unlock();
      Taken taken = queue_.take(now());
      if (taken.job) return std::move(taken.job);
      lock.lock();
      const auto woken = [&] { return stopped_ || changes_ != seen; };
      if (taken.next == Time::max())
        change_.wait(lock, woken);
      else
        change_.wait_until(lock, taken.next, woken);
    }
  }
  bool finish(const Job& job) { return queue_.finish(job); }
  bool fail(const Job& job, std::string_view error) {
    const bool held = queue_.fail(job, error, now());
    changed();  // it may be due before what the other workers wait for
    return held;
  }
  // All take() that wait, and all later ones, return nothing.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    change_.notify_all();
  }

 private:
  void changed() {
    const std::lock_guard lock(mutex_);
    ++changes_;
    change_.notify_all();
  }

  Queue& queue_;
  std::mutex mutex_;  // of the members below
  std::condition_variable change_;
  std::uint64_t changes_ = 0;
  bool stopped_ = false;
};

}  // namespace jobs
