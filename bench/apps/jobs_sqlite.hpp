// SPDX-License-Identifier: BSD-3-Clause
//
// jobs::SqliteQueue: the queue of jobs of examples/jobs.hpp on SQLite.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/sqlite.hpp"
#include "examples/jobs.hpp"

namespace jobs {

class SqliteQueue {
 public:
  explicit SqliteQueue(const std::string& path, const Policy& policy = {},
                       const std::string& synchronous = "FULL")
      : policy_(policy), file_(path, synchronous) {}

  std::uint64_t add(std::string_view task, Time due) {
    return file_.update([&](Statements& sql) {
      sql.count_added();
      const auto id = static_cast<std::uint64_t>(sql.count_added.number(0));
      sql.count_added.done();
      sql.insert(id, task, milliseconds(due));
      return id;
    });
  }
  Taken take(Time now) {
    return file_.update([&](Statements& sql) -> Taken {
      while (sql.first()) {
        Job job = row(sql.first);
        sql.first.done();
        if (now < job.due) return {{}, job.due};
        if (job.tries < policy_.max_tries) {
          job.due = now + policy_.lease;
          ++job.tries;
          sql.lease(job.id, milliseconds(job.due), job.tries);
          return {std::move(job), {}};
        }
        bury(sql, std::move(job), "its last lease ended");
      }
      return {};
    });
  }
  bool finish(const Job& job) {
    return file_.update([&](Statements& sql) {
      sql.finish(job.id, job.tries);
      if (sqlite3_changes(sql.db.get()) == 0) return false;
      sql.count_done();
      return true;
    });
  }
  bool fail(const Job& job, std::string_view error, Time now) {
    return file_.update([&](Statements& sql) {
      auto mine = held(sql, job);
      if (!mine) return false;
      if (job.tries >= policy_.max_tries) {
        bury(sql, job, error);
        return true;
      }
      mine->errors.emplace_back(error);
      bench::apps::Writer errors;
      errors.texts(mine->errors);
      sql.retry(job.id, milliseconds(now + policy_.retry_after),
                bench::sqlite::Blob{errors.bytes()});
      return true;
    });
  }
  std::vector<Job> dead() {
    return file_.read([&](Statements& sql) {
      std::vector<Job> found;
      for (bool there = sql.dead(); there; there = sql.dead.next()) found.push_back(row(sql.dead));
      return found;
    });
  }
  Counts counts() {
    return file_.read([&](Statements& sql) {
      sql.counts();
      const auto n = [&](int column) {
        return static_cast<std::uint64_t>(sql.counts.number(column));
      };
      const Counts found{n(0), n(1), n(2), n(3)};
      sql.counts.done();
      return found;
    });
  }

 private:
  struct Statements {
    static constexpr const char* schema =
        "CREATE TABLE IF NOT EXISTS jobs(id INTEGER PRIMARY KEY, task TEXT NOT NULL,"
        " due INTEGER NOT NULL, tries INTEGER NOT NULL, errors BLOB NOT NULL);"
        "CREATE INDEX IF NOT EXISTS by_due ON jobs(due);"
        "CREATE TABLE IF NOT EXISTS dead(id INTEGER PRIMARY KEY, task TEXT NOT NULL,"
        " due INTEGER NOT NULL, tries INTEGER NOT NULL, errors BLOB NOT NULL);"
        "CREATE TABLE IF NOT EXISTS counts(one INTEGER PRIMARY KEY CHECK(one = 1),"
        " added INTEGER NOT NULL, done INTEGER NOT NULL);"
        "INSERT INTO counts VALUES(1, 0, 0) ON CONFLICT DO NOTHING";
    explicit Statements(bench::sqlite::Connection& c)
        : db(c),
          count_added(c, "UPDATE counts SET added = added + 1 RETURNING added"),
          count_done(c, "UPDATE counts SET done = done + 1"),
          // No errors are an empty list, which is a number of 8 bytes (bytes.hpp).
          insert(c, "INSERT INTO jobs VALUES(?1, ?2, ?3, 0, zeroblob(8))"),
          first(c, "SELECT id, task, due, tries, errors FROM jobs ORDER BY due, id LIMIT 1"),
          lease(c, "UPDATE jobs SET due = ?2, tries = ?3 WHERE id = ?1"),
          retry(c, "UPDATE jobs SET due = ?2, errors = ?3 WHERE id = ?1"),
          held(c, "SELECT id, task, due, tries, errors FROM jobs WHERE id = ?1 AND tries = ?2"),
          finish(c, "DELETE FROM jobs WHERE id = ?1 AND tries = ?2"),
          erase(c, "DELETE FROM jobs WHERE id = ?1"),
          bury(c, "INSERT INTO dead VALUES(?1, ?2, ?3, ?4, ?5)"),
          dead(c, "SELECT id, task, due, tries, errors FROM dead ORDER BY id"),
          counts(c,
                 "SELECT added, done, (SELECT count(*) FROM jobs), (SELECT count(*) FROM dead)"
                 " FROM counts") {}
    bench::sqlite::Connection& db;
    bench::sqlite::Statement count_added, count_done, insert, first, lease, retry, held, finish,
        erase, bury, dead, counts;
  };
  static std::int64_t milliseconds(Time t) { return t.time_since_epoch().count(); }
  static Job row(const bench::sqlite::Statement& at) {
    const std::string errors = at.text(4);
    return {static_cast<std::uint64_t>(at.number(0)), at.text(1),
            Time(std::chrono::milliseconds(at.number(2))), static_cast<std::uint32_t>(at.number(3)),
            bench::apps::Reader(errors).texts()};
  }
  static std::optional<Job> held(Statements& sql, const Job& job) {
    if (!sql.held(job.id, job.tries)) return {};
    Job found = row(sql.held);
    sql.held.done();
    return found;
  }
  static void bury(Statements& sql, Job job, std::string_view error) {
    job.errors.emplace_back(error);
    bench::apps::Writer errors;
    errors.texts(job.errors);
    sql.erase(job.id);
    sql.bury(job.id, job.task, milliseconds(job.due), job.tries,
             bench::sqlite::Blob{errors.bytes()});
  }

  Policy policy_;
  bench::apps::SqliteFile<Statements> file_;
};

}  // namespace jobs
