// SPDX-License-Identifier: BSD-3-Clause
//
// A bank in SQLite on a pool, in this process, for the tests of the VFS: accounts whose sum is
// constant, transfers, and the number of transfers.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sqlite/block_store.hpp"
#include "sqlite/database.hpp"
#include "sqlite/vfs.hpp"

namespace perdure::test {

using sqlite::BlockPool;
using sqlite::BlockRoot;
using sqlite::BlockStore;
using sqlite::Database;
using sqlite::DatabasePool;
using sqlite::Store;

/// A connection; a failure of SQLite fails the test.
class Connection {
 public:
  explicit Connection(const std::string& uri) {
    EXPECT_EQ(SQLITE_OK, sqlite::register_vfs());
    EXPECT_EQ(SQLITE_OK, sqlite3_open_v2(
                             uri.c_str(), &db_,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr))
        << sqlite3_errmsg(db_);
  }
  ~Connection() { EXPECT_EQ(SQLITE_OK, sqlite3_close(db_)); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// The rows' first columns, one per line.
  std::string run(const std::string& sql) {
    std::string rows;
    char* message = nullptr;
    const auto add = [](void* to, int, char** values, char**) {
      auto& all = *static_cast<std::string*>(to);
      all.append(all.empty() ? "" : "\n").append(values[0] != nullptr ? values[0] : "null");
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), add, &rows, &message) != SQLITE_OK)
      rows = std::string("error: ") + message;
    sqlite3_free(message);
    return rows;
  }
  [[nodiscard]] sqlite3* db() noexcept { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

inline constexpr int accounts = 50, each = 100;

inline void make_bank(Connection& c) {
  EXPECT_EQ("", c.run("create table account (id integer primary key, balance integer); create "
                      "table transfer (n integer)"));
  EXPECT_EQ(
      "", c.run("begin; with recursive i(x) as (select 1 union all select x + 1 from i where x < " +
                std::to_string(accounts) + ") insert into account select x, " +
                std::to_string(each) + " from i; insert into transfer values (0); commit"));
}
inline std::string transfer(Connection& c, std::uint64_t n) {
  const std::string from = std::to_string(1 + n * 7 % accounts),
                    to = std::to_string(1 + n * 13 % accounts), amount = std::to_string(1 + n % 9);
  return c.run("begin; update account set balance = balance - " + amount + " where id = " + from +
               "; update account set balance = balance + " + amount + " where id = " + to +
               "; update transfer set n = n + 1; commit");
}

inline Options options(const char* engine) {
  Options o;
  o.engine = engine;
  o.creation.uuid_seed = 7;
  o.creation.threads = 1;
  o.creation.log_size = 1 << 20;
  return o;
}

/// A folder that exists during a test.
struct Folder {
  Folder() {
    const std::string in = std::filesystem::exists("/dev/shm")
                               ? "/dev/shm"
                               : std::filesystem::temp_directory_path().string();
    std::string name = in + "/perdure-sqlite-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace perdure::test
