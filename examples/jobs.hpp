// SPDX-License-Identifier: BSD-3-Clause
//
// jobs::Queue: a durable queue of jobs with leases, retries and dead letters. A worker takes a job
// for the time of a lease. If it neither finishes nor fails it in that time, because it died, the
// job is taken again. A lease is nothing but a due time in the future, and so is a retry.
// The program is jobs.cpp; the same queue on LMDB and on SQLite is in bench/apps. How a worker
// waits for a job is in wait_for_job.hpp.
// Thread safety: any number of threads may call anything at once.
// Invariant: added = done + dead + waiting.
#pragma once

#include <perdure.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jobs {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;

struct Job {
  std::uint64_t id = 0;
  std::string task;
  Time due;                         // when it may be taken (again)
  std::uint32_t tries = 0;          // how often it was taken
  std::vector<std::string> errors;  // of the tries that failed
};
struct Policy {
  std::chrono::milliseconds lease{30'000};
  std::chrono::milliseconds retry_after{1'000};
  std::uint32_t max_tries = 3;
};
// A job that was taken; or else, when the next one becomes due.
struct Taken {
  std::optional<Job> job;
  Time next = Time::max();
};
struct Counts {
  std::uint64_t added = 0, done = 0, waiting = 0, dead = 0;
};

struct Root {
  perdure::p<std::uint64_t> added, done;
  perdure::table<Job, perdure::key<&Job::id>, perdure::indexed<&Job::due>> jobs;
  perdure::table<Job, perdure::ordered_key<&Job::id>> dead;
};

class Queue {
 public:
  explicit Queue(const std::string& path, const Policy& policy = {},
                 const perdure::Options& options = {})
      : policy_(policy), pool_(perdure::Pool<Root>::open(path, options)) {}

  // Adds a job that may be taken from `due` on. Returns its id: 1, 2, 3, ...
  std::uint64_t add(std::string_view task, Time due) {
    return pool_
        .update([&](auto& tx, Root& root) {
          tx(root.added) += 1;
          return root.jobs.add(tx, {0, std::string(task), due, 0, {}});
        })
        .value();
  }
  // Takes the job that has been due for longest, for the time of a lease.
  Taken take(Time now) {
    return pool_
        .update([&](auto& tx, Root& root) -> Taken {
          for (auto job : root.jobs.ordered<&Job::due>(tx)) {
            if (now < job->due) return {{}, job->due};
            if (job->tries < policy_.max_tries) {
              root.jobs.update(tx, job, [&](Job& j) { j.due = now + policy_.lease, ++j.tries; });
              return {job.value(), {}};
            }
            bury(tx, root, job->id, "its last lease ended");
          }
          return {};
        })
        .value();
  }
  // The job is done. Returns false, and changes nothing, if its lease ended and it was taken again.
  bool finish(const Job& job) {
    return pool_
        .update([&](auto& tx, Root& root) {
          const auto row = root.jobs.at(tx, job.id);
          if (!held(row, job)) return false;
          tx(root.done) += 1;
          root.jobs.erase(tx, *row);
          return true;
        })
        .value();
  }
  // The try failed: the job is due again later, or is a dead letter after its last try. Returns as
  // finish() does.
  bool fail(const Job& job, std::string_view error, Time now) {
    return pool_
        .update([&](auto& tx, Root& root) {
          const auto row = root.jobs.at(tx, job.id);
          if (!held(row, job)) return false;
          if (job.tries >= policy_.max_tries) {
            bury(tx, root, job.id, error);
          } else {
            root.jobs.update(tx, *row, [&](Job& j) {
              j.due = now + policy_.retry_after;
              j.errors.emplace_back(error);
            });
          }
          return true;
        })
        .value();
  }
  // The dead letters, by id.
  std::vector<Job> dead() {
    return pool_.view([](auto& tx, const Root& root) {
      std::vector<Job> found;
      for (auto job : root.dead.ordered<&Job::id>(tx)) found.push_back(job.value());
      return found;
    });
  }
  Counts counts() {
    return pool_.view([](auto& tx, const Root& root) {
      return Counts{tx(root.added), tx(root.done), root.jobs.size(tx), root.dead.size(tx)};
    });
  }
  auto& pool() { return pool_; }

 private:
  // Whether the job is still the worker's: each take counts as a try.
  static bool held(const auto& row, const Job& job) {
    return row && (*row)[&Job::tries] == job.tries;
  }
  static void bury(auto& tx, Root& root, std::uint64_t id, std::string_view error) {
    Job job = root.jobs.take(tx, id).value();
    job.errors.emplace_back(error);
    root.dead.insert(tx, job);
  }

  Policy policy_;
  perdure::Pool<Root> pool_;
};

}  // namespace jobs
