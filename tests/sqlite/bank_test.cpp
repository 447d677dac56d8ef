// SPDX-License-Identifier: BSD-3-Clause
//
// A bank in SQLite on a pool, in this process: what a transaction costs, and every image that a power cut may leave: recovered, it is a database that SQLite finds
// sound, with the money that there was, and with all that was acknowledged.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>
#include <string>
#include <vector>

#include "sqlite/database.hpp"
#include "sqlite/vfs.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using sqlite::block_bytes;
using sqlite::Database;
using sqlite::DatabasePool;
using sqlite::Root;
using sqlite::Store;

/// A connection; what fails is a failed test.
class Connection {
 public:
  explicit Connection(const std::string& uri) {
    EXPECT_EQ(SQLITE_OK, sqlite::register_vfs());
    EXPECT_EQ(SQLITE_OK, sqlite3_open_v2(uri.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr))
        << sqlite3_errmsg(db_);
  }
  ~Connection() { EXPECT_EQ(SQLITE_OK, sqlite3_close(db_)); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// The rows' first columns, a line each.
  std::string run(const std::string& sql) {
    std::string rows;
    char* message = nullptr;
    const auto add = [](void* to, int, char** values, char**) {
      auto& all = *static_cast<std::string*>(to);
      all.append(all.empty() ? "" : "\n").append(values[0] != nullptr ? values[0] : "null");
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), add, &rows, &message) != SQLITE_OK) rows = std::string("error: ") + message;
    sqlite3_free(message);
    return rows;
  }
  [[nodiscard]] sqlite3* db() noexcept { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

constexpr int accounts = 50, each = 100;

void make_bank(Connection& c) {
  EXPECT_EQ("", c.run("create table account (id integer primary key, balance integer); create table transfer (n integer)"));
  EXPECT_EQ("", c.run("begin; with recursive i(x) as (select 1 union all select x + 1 from i where x < " + std::to_string(accounts) +
                      ") insert into account select x, " + std::to_string(each) + " from i; insert into transfer values (0); commit"));
}
std::string transfer(Connection& c, std::uint64_t n) {
  const std::string from = std::to_string(1 + n * 7 % accounts), to = std::to_string(1 + n * 13 % accounts),
                    amount = std::to_string(1 + n % 9);
  return c.run("begin; update account set balance = balance - " + amount + " where id = " + from +
               "; update account set balance = balance + " + amount + " where id = " + to + "; update transfer set n = n + 1; commit");
}

Options options(const char* engine) {
  Options o;
  o.engine = engine;
  o.uuid_seed = 7;
  o.threads = 1;
  o.log_size = 1 << 20;
  return o;
}

class SqliteBank : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, SqliteBank, ::testing::Values("shadow", "softwrap", "undo", "bppm"));

TEST_P(SqliteBank, EveryPowerCutLeavesASoundDatabase) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(1 << 20, 8 << 20);
    Recorded recorded(*made);
    {
      auto database = Store::adopt("/bank", std::make_shared<Database>("/bank", DatabasePool::try_open_on("bank", options(GetParam()), std::move(made), true).value(), false));
      recorded.made(database->pool().file().header());
      Connection c("file:/bank?vfs=perdure");
      for (std::uint64_t step = 0; step < 14; ++step) {
        recorded.begin(step);
        if (step == 0)
          make_bank(c);
        else
          ASSERT_EQ("", transfer(c, step));
        recorded.done(step);
        if (step % 5 == 4) database->pool().checkpoint();
      }
      recorded.end();
    }
    const auto look = [&](auto& tx, const Root& root, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      const std::uint64_t bytes = tx(root.bytes);
      std::vector<std::byte> database(bytes);
      for (std::uint64_t at = 0; at < bytes; at += block_bytes) {
        const auto* const block = tx(*root.blocks.find(tx, at / block_bytes));
        tx.read_bytes(database.data() + at, block, std::min(block_bytes, bytes - at));
      }
      if (bytes == 0) return crash::Verdict{crash.least != 0 ? "an empty database" : "", 0};
      sqlite3* db = nullptr;
      std::string found;
      if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
          sqlite3_deserialize(db, "main", reinterpret_cast<unsigned char*>(database.data()), static_cast<sqlite3_int64>(bytes),
                              static_cast<sqlite3_int64>(bytes), SQLITE_DESERIALIZE_READONLY) == SQLITE_OK) {
        const auto add = [](void* to, int, char** values, char**) {
          static_cast<std::string*>(to)->append(values[0] != nullptr ? values[0] : "null").append(" ");
          return 0;
        };
        char* message = nullptr;
        if (sqlite3_exec(db, "pragma integrity_check; select sum(balance) from account; select n from transfer", add, &found, &message) !=
            SQLITE_OK)
          found += message;
        sqlite3_free(message);
      }
      sqlite3_close(db);
      // Step 0 makes the tables, then the rows: in two commits of its own, and one between.
      const std::uint64_t done = crash.least == 0 ? 0 : crash.least - 1;
      for (std::uint64_t n = done; n <= crash.most; ++n)
        if (found == "ok " + std::to_string(accounts * each) + " " + std::to_string(n) + " ")
          return crash::Verdict{{}, base::hash_bytes(database.data(), bytes, 1)};
      if (crash.least == 0 && found.starts_with("ok ")) return crash::Verdict{};
      return crash::Verdict{"the database is '" + found + "', after " + std::to_string(done) + " transfers", 0};
    };
    recorded.explore<Root>(engine::find_instance(GetParam())->recover, model, 1500 / scale, 200 / scale, look);
  }
}

TEST(Sqlite, ACommitIsOneTransactionOfTheWordsThatDiffer) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + (1 << 20);
  how.home_bytes = how.max_home_bytes = 8 << 20;
  auto made = medium::RecordingMedium::make(how).value();
  medium::RecordingMedium* const medium = made.get();
  auto database = Store::adopt("/counts", std::make_shared<Database>("/counts", DatabasePool::try_open_on("counts", options("shadow"), std::move(made), true).value(), false));
  Connection c("file:/counts?vfs=perdure");
  make_bank(c);
  const auto commits = database->pool().stats().commits;
  for (std::uint64_t n = 1; n <= 10; ++n) {
    const auto before = medium->counters();
    const auto logged = database->pool().stats().log_bytes;
    ASSERT_EQ("", transfer(c, n));
    const auto cost = medium->counters() - before;
    EXPECT_EQ(1U, cost.fences) << n;
    EXPECT_LT(database->pool().stats().log_bytes - logged, 1024U) << "of three pages of 4 KiB";
  }
  EXPECT_EQ(commits + 10, database->pool().stats().commits);
  EXPECT_TRUE(database->pool().check().ok());
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
}

TEST(Sqlite, WhatIsTooBigIsRolledBack) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + (1 << 18);
  how.home_bytes = how.max_home_bytes = 16 << 20;
  auto o = options("shadow");
  o.log_size = 1 << 18;
  auto database =
      Store::adopt("/large", std::make_shared<Database>("/large", DatabasePool::try_open_on("large", o, medium::RecordingMedium::make(how).value(), true).value(), false));
  Connection c("file:/large?vfs=perdure");
  make_bank(c);
  EXPECT_EQ("", c.run("create table blob (x)"));
  EXPECT_TRUE(c.run("insert into blob values (randomblob(1000000))").starts_with("error: database or disk is full"));
  EXPECT_EQ("0", c.run("select count(*) from blob"));
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
  EXPECT_EQ("", transfer(c, 1));
  EXPECT_EQ("", c.run("insert into blob values (randomblob(10000))"));
  EXPECT_EQ(std::to_string(accounts * each), c.run("select sum(balance) from account"));
  EXPECT_TRUE(database->pool().check().ok());
}

}  // namespace
}  // namespace perdure::test
