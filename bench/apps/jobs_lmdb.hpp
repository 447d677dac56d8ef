// SPDX-License-Identifier: BSD-3-Clause
//
// jobs::LmdbQueue: the queue of jobs of examples/jobs.hpp on LMDB.
// Databases: `jobs` and `dead`, id -> task, due time, tries, errors; the index `by_due`, due time
// -> ids; `counts`, with how many jobs were added and done.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/bytes.hpp"
#include "bench/lmdb/environment.hpp"
#include "examples/jobs.hpp"

namespace jobs {

class LmdbQueue {
 public:
  explicit LmdbQueue(const std::string& path, const Policy& policy = {}, bool sync = true)
      : policy_(policy), env_(path, sync) {
    env_.update([&](Tx& tx) {
      jobs_ = tx.database("jobs");
      dead_ = tx.database("dead");
      by_due_ = tx.database("by_due", MDB_DUPSORT | MDB_DUPFIXED);
      counts_ = tx.database("counts");
      return true;
    });
  }

  std::uint64_t add(std::string_view task, Time due) {
    return env_.update([&](Tx& tx) {
      const std::uint64_t id = add_to(tx, "added");
      put(tx, {id, std::string(task), due, 0, {}}, {});
      return id;
    });
  }
  Taken take(Time now) {
    return env_.update([&](Tx& tx) -> Taken {
      bench::lmdb::Cursor at(tx, by_due_);
      while (at.move(MDB_FIRST)) {
        const Time due = time_of(bench::apps::number_of(at.key()));
        if (now < due) return {{}, due};
        Job job = *load(tx, jobs_, bench::apps::number_of(at.value()));
        if (job.tries < policy_.max_tries) {
          job.due = now + policy_.lease;
          ++job.tries;
          put(tx, job, due);
          return {std::move(job), {}};
        }
        bury(tx, std::move(job), due, "its last lease ended");
      }
      return {};
    });
  }
  bool finish(const Job& job) {
    return env_.update([&](Tx& tx) {
      const auto held = load(tx, jobs_, job.id);
      if (!held || held->tries != job.tries) return false;
      add_to(tx, "done");
      erase(tx, job.id, held->due);
      return true;
    });
  }
  bool fail(const Job& job, std::string_view error, Time now) {
    return env_.update([&](Tx& tx) {
      auto held = load(tx, jobs_, job.id);
      if (!held || held->tries != job.tries) return false;
      if (job.tries >= policy_.max_tries) {
        bury(tx, job, held->due, error);
        return true;
      }
      const Time due = held->due;
      held->due = now + policy_.retry_after;
      held->errors.emplace_back(error);
      put(tx, *held, due);
      return true;
    });
  }
  std::vector<Job> dead() {
    return env_.view([&](Tx& tx) {
      std::vector<Job> found;
      bench::lmdb::Cursor at(tx, dead_);
      for (bool there = at.move(MDB_FIRST); there; there = at.move(MDB_NEXT))
        found.push_back(job_of(bench::apps::number_of(at.key()), at.value()));
      return found;
    });
  }
  Counts counts() {
    return env_.view([&](Tx& tx) {
      return Counts{count(tx, "added"), count(tx, "done"), tx.entries(jobs_), tx.entries(dead_)};
    });
  }

 private:
  using Tx = bench::lmdb::Transaction;
  static std::uint64_t number_of(Time t) {
    return bench::apps::unsigned_of(t.time_since_epoch().count());
  }
  static Time time_of(std::uint64_t n) {
    return Time(std::chrono::milliseconds(bench::apps::signed_of(n)));
  }
  static Job job_of(std::uint64_t id, std::string_view bytes) {
    bench::apps::Reader reader(bytes);
    Job job{id, reader.text(), time_of(reader.number()), 0, {}};
    job.tries = static_cast<std::uint32_t>(reader.number());
    job.errors = reader.texts();
    return job;
  }
  static std::string bytes_of(const Job& job) {
    bench::apps::Writer writer;
    writer.text(job.task).number(number_of(job.due)).number(job.tries).texts(job.errors);
    return writer.bytes();
  }

  std::optional<Job> load(Tx& tx, MDB_dbi from, std::uint64_t id) {
    std::string_view bytes;
    if (!tx.get(from, bench::apps::bytes_of(id), bytes)) return {};
    return job_of(id, bytes);
  }
  // Writes a job that was due at `before`, if it was there.
  void put(Tx& tx, const Job& job, std::optional<Time> before) {
    const std::string id = bench::apps::bytes_of(job.id);
    if (before != job.due) {
      if (before) tx.erase(by_due_, bench::apps::bytes_of(number_of(*before)), id);
      tx.put(by_due_, bench::apps::bytes_of(number_of(job.due)), id);
    }
    tx.put(jobs_, id, bytes_of(job));
  }
  void erase(Tx& tx, std::uint64_t job, Time due) {
    const std::string id = bench::apps::bytes_of(job);
    tx.erase(by_due_, bench::apps::bytes_of(number_of(due)), id);
    tx.erase(jobs_, id);
  }
  void bury(Tx& tx, Job job, Time due, std::string_view error) {
    job.errors.emplace_back(error);
    erase(tx, job.id, due);
    tx.put(dead_, bench::apps::bytes_of(job.id), bytes_of(job));
  }
  std::uint64_t count(Tx& tx, std::string_view name) {
    std::string_view bytes;
    return tx.get(counts_, name, bytes) ? bench::apps::number_of(bytes) : 0;
  }
  std::uint64_t add_to(Tx& tx, std::string_view name) {
    const std::uint64_t now = count(tx, name) + 1;
    tx.put(counts_, name, bench::apps::bytes_of(now));
    return now;
  }

  Policy policy_;
  bench::lmdb::Environment env_;
  MDB_dbi jobs_ = 0, dead_ = 0, by_due_ = 0, counts_ = 0;
};

}  // namespace jobs
