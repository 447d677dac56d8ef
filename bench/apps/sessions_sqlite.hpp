// SPDX-License-Identifier: BSD-3-Clause
//
// sessions::SqliteStore: the session store of examples/sessions.hpp on SQLite.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include "bench/apps/sqlite.hpp"
#include "examples/sessions.hpp"

namespace sessions {

class SqliteStore {
 public:
  explicit SqliteStore(const std::string& path, const std::string& synchronous = "FULL")
      : file_(path, synchronous) {}

  bool put(const Session& session) {
    bench::apps::Writer roles;
    roles.texts(session.roles);
    const bench::sqlite::Blob blob{roles.bytes()};
    return file_.update([&](Statements& sql) {
      sql.insert(session.token, session.user, blob, seconds(session.until));
      if (sql.changed()) return true;
      sql.replace(session.token, session.user, blob, seconds(session.until));
      return false;
    });
  }
  std::optional<Session> find(std::string_view token, Time now) {
    return file_.read([&](Statements& sql) -> std::optional<Session> {
      if (!sql.find(token, seconds(now))) return {};
      const std::string roles = sql.find.text(1);
      Session found{std::string(token), static_cast<std::uint64_t>(sql.find.number(0)),
                    bench::apps::Reader(roles).texts(),
                    Time(std::chrono::seconds(sql.find.number(2)))};
      sql.find.done();
      return found;
    });
  }
  bool renew(std::string_view token, Time until) {
    return file_.write([&](Statements& sql) {
      sql.renew(token, seconds(until));
      return sql.changed() != 0;
    });
  }
  bool end(std::string_view token) {
    return file_.write([&](Statements& sql) {
      sql.end(token);
      return sql.changed() != 0;
    });
  }
  std::vector<std::string> of_user(std::uint64_t user) {
    return file_.read([&](Statements& sql) {
      std::vector<std::string> tokens;
      for (bool row = sql.of_user(user); row; row = sql.of_user.next())
        tokens.push_back(sql.of_user.text(0));
      return tokens;
    });
  }
  std::uint64_t expire(Time now, std::uint64_t most) {
    return file_.write([&](Statements& sql) {
      sql.expire(seconds(now), most);
      return sql.changed();
    });
  }
  std::uint64_t size() {
    return file_.read([&](Statements& sql) {
      sql.size();
      const auto n = static_cast<std::uint64_t>(sql.size.number(0));
      sql.size.done();
      return n;
    });
  }

 private:
  struct Statements {
    static constexpr const char* schema =
        "CREATE TABLE IF NOT EXISTS sessions(number INTEGER PRIMARY KEY,"
        " token TEXT NOT NULL UNIQUE, user INTEGER NOT NULL, roles BLOB NOT NULL,"
        " until INTEGER NOT NULL);"
        "CREATE INDEX IF NOT EXISTS by_user ON sessions(user);"
        "CREATE INDEX IF NOT EXISTS by_until ON sessions(until)";
    explicit Statements(bench::sqlite::Connection& c)
        : db(c),
          insert(c,
                 "INSERT INTO sessions(token, user, roles, until) VALUES(?1, ?2, ?3, ?4)"
                 " ON CONFLICT(token) DO NOTHING"),
          replace(c, "UPDATE sessions SET user = ?2, roles = ?3, until = ?4 WHERE token = ?1"),
          find(c, "SELECT user, roles, until FROM sessions WHERE token = ?1 AND until > ?2"),
          renew(c, "UPDATE sessions SET until = ?2 WHERE token = ?1"),
          end(c, "DELETE FROM sessions WHERE token = ?1"),
          of_user(c, "SELECT token FROM sessions WHERE user = ?1 ORDER BY number DESC"),
          expire(c,
                 "DELETE FROM sessions WHERE number IN (SELECT number FROM sessions"
                 " WHERE until <= ?1 ORDER BY until, number LIMIT ?2)"),
          size(c, "SELECT count(*) FROM sessions") {}
    // The rows that the last statement changed.
    [[nodiscard]] std::uint64_t changed() const {
      return static_cast<std::uint64_t>(sqlite3_changes(db.get()));
    }
    bench::sqlite::Connection& db;
    bench::sqlite::Statement insert, replace, find, renew, end, of_user, expire, size;
  };
  static std::int64_t seconds(Time t) { return t.time_since_epoch().count(); }

  bench::apps::SqliteFile<Statements> file_;
};

}  // namespace sessions
