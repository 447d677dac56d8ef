// SPDX-License-Identifier: BSD-3-Clause
//
// What the example programs on SQLite share: a database in WAL mode with their tables, prepared
// statements for each connection, and transactions. A function that runs one statement needs no
// BEGIN: a statement alone is a transaction.
// Thread safety: any number of threads may call anything at once.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "bench/apps/bytes.hpp"
#include "bench/sqlite/connection.hpp"
#include "bench/sqlite/connections.hpp"

namespace bench::apps {

/// `Statements` is constructed from a connection, and its static member `schema` makes the tables
/// that do not exist yet. `synchronous`: FULL (a commit is durable when it returns), NORMAL, OFF.
template <class Statements>
class SqliteFile {
 public:
  SqliteFile(const std::string& path, const std::string& synchronous)
      : connections_([path, synchronous] { return std::make_unique<Db>(path, synchronous); }) {
    opened(path, synchronous)->run(Statements::schema);
  }

  /// Calls f(Statements&), which runs one statement.
  template <class F>
  auto write(F f) {
    return connections_.write([&](Db& db) { return f(db.statements); });
  }
  template <class F>
  auto read(F f) {
    return connections_.read([&](Db& db) { return f(db.statements); });
  }
  /// Calls f(Statements&) in a transaction that may write.
  template <class F>
  auto update(F f) {
    return connections_.write([&](Db& db) { return db.in(db.begin_update, f); });
  }
  /// Calls f(Statements&) in a transaction that only reads.
  template <class F>
  auto view(F f) {
    return connections_.read([&](Db& db) { return db.in(db.begin_view, f); });
  }

 private:
  static std::unique_ptr<sqlite::Connection> opened(const std::string& path,
                                                    const std::string& synchronous) {
    auto connection = std::make_unique<sqlite::Connection>(path, nullptr);
    connection->run("PRAGMA journal_mode=WAL");
    connection->run("PRAGMA synchronous=" + synchronous);
    return connection;
  }
  struct Db {
    Db(const std::string& path, const std::string& synchronous)
        : connection(opened(path, synchronous)),
          begin_update(*connection, "BEGIN IMMEDIATE"),
          begin_view(*connection, "BEGIN"),
          commit(*connection, "COMMIT"),
          statements(*connection) {}
    /// Where f throws, the connection is closed, which rolls back.
    template <class F>
    auto in(sqlite::Statement& begin, F& f) {
      begin();
      auto result = f(statements);
      commit();
      return result;
    }
    std::unique_ptr<sqlite::Connection> connection;
    sqlite::Statement begin_update, begin_view, commit;
    Statements statements;
  };
  sqlite::Connections<Db> connections_;
};

}  // namespace bench::apps
