// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of the job queue (jobs.hpp): workers take jobs of one kind. The text of a job, such as
// "mail 17", is now two fields, its kind and what is to be done. A step makes them for each job
// that version 1 left. docs/version-2.md goes through this program.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <perdure.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/jobs.hpp"

namespace jobs::v2 {

struct Job {
  std::uint64_t id = 0;
  std::string kind, what;           // one text in version 1, `task`
  Time due;                         // when it may be taken (again)
  std::uint64_t tries = 0;          // 32 bits in version 1
  std::vector<std::string> errors;  // one for each try that failed
};

struct Root {
  perdure::p<std::uint64_t> added, finished;
  perdure::table<Job, perdure::key<&Job::id>, perdure::dropped<perdure::indexed<&Job::due>>,
                 perdure::indexed<&Job::kind, &Job::due>>
      jobs;
  perdure::table<Job, perdure::ordered_key<&Job::id>, perdure::indexed<&Job::kind>> dead;
  static constexpr perdure::renamed perdure_renamed[] = {{"finished", "done"}};
};

// The step. All other fields are set when it is called. It must depend on the row alone.
inline void split_task(const jobs::Job& before, Job& now) {
  const auto space = before.task.find(' ');
  now.kind = before.task.substr(0, space);
  if (space != std::string::npos) now.what = before.task.substr(space + 1);
}
inline std::vector<perdure::MigrationStep> steps() {
  return {perdure::step<jobs::Job, Job>("jobs", split_task),
          perdure::step<jobs::Job, Job>("dead", split_task)};
}

class Queue {
 public:
  explicit Queue(const std::string& path, perdure::Options options = {})
      : pool_((options.migrate.steps = steps(), perdure::Pool<Root>::open(path, options))) {}

  std::uint64_t add(std::string_view kind, std::string_view what, Time due) {
    return pool_
        .update([&](auto& tx, Root& root) {
          tx(root.added) += 1;
          return root.jobs.add(tx, {0, std::string(kind), std::string(what), due, 0, {}});
        })
        .value();
  }
  // Takes the job of this kind that has been due for longest, for the time of a lease.
  std::optional<Job> take(std::string_view kind, Time now, std::chrono::milliseconds lease) {
    return pool_
        .update([&](auto& tx, Root& root) -> std::optional<Job> {
          for (auto job : root.jobs.range<&Job::kind, &Job::due>(tx, kind, perdure::through(now))) {
            root.jobs.update(tx, job, [&](Job& j) { j.due = now + lease, ++j.tries; });
            return job.value();
          }
          return {};
        })
        .value();
  }
  // Call this when the job is done. Returns false, and changes nothing, if its lease ended and it
  // was taken again.
  bool finish(const Job& job) {
    return pool_
        .update([&](auto& tx, Root& root) {
          const auto row = root.jobs.at(tx, job.id);
          if (!row || (*row)[&Job::tries] != job.tries) return false;
          tx(root.finished) += 1;
          root.jobs.erase(tx, *row);
          return true;
        })
        .value();
  }
  Counts counts() {
    return pool_.view([](auto& tx, const Root& root) {
      return Counts{tx(root.added), tx(root.finished), root.jobs.size(tx), root.dead.size(tx)};
    });
  }
  auto& pool() { return pool_; }

 private:
  perdure::Pool<Root> pool_;
};

}  // namespace jobs::v2
