// SPDX-License-Identifier: BSD-3-Clause
//
// A bank in SQLite on a pool, in this process: what a transaction costs, and every image that a power cut may leave: recovered, it is a database that SQLite finds
// sound, with the money that there was, and with all that was acknowledged.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sqlite/block_store.hpp"
#include "sqlite/database.hpp"
#include "sqlite/vfs.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using sqlite::block_bytes;
using sqlite::BlockPool;
using sqlite::BlockRoot;
using sqlite::BlockStore;
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

/// The first columns of what a connection finds: its integrity check, the sum, how many transfers.
std::string seen_by(sqlite3* db) {
  std::string found;
  const auto add = [](void* to, int, char** values, char**) {
    static_cast<std::string*>(to)->append(values[0] != nullptr ? values[0] : "null").append(" ");
    return 0;
  };
  char* message = nullptr;
  if (sqlite3_exec(db, "pragma integrity_check; select sum(balance) from account; select n from transfer", add, &found, &message) !=
      SQLITE_OK)
    found += message;
  sqlite3_free(message);
  return found;
}
/// Step 0 makes the tables, then the rows: in two commits of its own, and one between.
crash::Verdict judged(const std::string& found, const crash::Crash& crash, std::uint64_t digest) {
  const std::uint64_t done = crash.least == 0 ? 0 : crash.least - 1;
  for (std::uint64_t n = done; n <= crash.most; ++n)
    if (found == "ok " + std::to_string(accounts * each) + " " + std::to_string(n) + " ") return {{}, digest};
  if (crash.least == 0 && found.starts_with("ok ")) return {};
  return {"the database is '" + found + "', after " + std::to_string(done) + " transfers", 0};
}
/// A file's bytes, from where they lie.
template <class Tx>
std::vector<char> bytes_of(Tx& tx, const sqlite::Blocks& blocks, std::uint64_t bytes) {
  std::vector<char> all(bytes);
  for (std::uint64_t at = 0; at < bytes; at += block_bytes)
    tx.read_bytes(all.data() + at, tx(*blocks.find(tx, at / block_bytes)), std::min(block_bytes, bytes - at));
  return all;
}
/// Makes the bank and does transfers, as 14 steps.
template <class S>
void run_bank(Recorded& recorded, S& store, const char* pragma) {
  recorded.made(store.pool().file().header());
  Connection c("file:/bank?vfs=perdure");
  c.run(pragma);
  for (std::uint64_t step = 0; step < 14; ++step) {
    recorded.begin(step);
    if (step == 0)
      make_bank(c);
    else
      ASSERT_EQ("", transfer(c, step));
    recorded.done(step);
    if (step % 5 == 4) store.pool().checkpoint();
  }
  recorded.end();
}

class SqliteBank : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, SqliteBank, ::testing::Values("shadow", "softwrap", "undo", "bppm"));

TEST_P(SqliteBank, EveryPowerCutLeavesASoundDatabase) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(1 << 20, 8 << 20);
    Recorded recorded(*made);
    {
      auto pool = DatabasePool::try_open_on("bank", options(GetParam()), std::move(made), true).value();
      auto database = Store::adopt("/bank", std::make_shared<Database>("/bank", std::move(pool), false));
      run_bank(recorded, *database, "");
    }
    const auto look = [&](auto& tx, const Root& root, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      auto bytes = bytes_of(tx, root.blocks, tx(root.bytes));
      if (bytes.empty()) return crash::Verdict{crash.least != 0 ? "an empty database" : "", 0};
      sqlite3* db = nullptr;
      std::string found = "none";
      const auto size = static_cast<sqlite3_int64>(bytes.size());
      if (sqlite3_open(":memory:", &db) == SQLITE_OK && sqlite3_deserialize(db, "main", reinterpret_cast<unsigned char*>(bytes.data()),
                                                                            size, size, SQLITE_DESERIALIZE_READONLY) == SQLITE_OK)
        found = seen_by(db);
      sqlite3_close(db);
      return judged(found, crash, base::hash_bytes(bytes.data(), bytes.size(), 1));
    };
    recorded.explore<Root>(engine::find_instance(GetParam())->recover, model, 1500 / scale, 200 / scale, look);
  }
}

/// A folder for the time of a test.
struct Folder {
  Folder() {
    const std::string in = std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    std::string name = in + "/perdure-sqlite-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

// Design A: what lies in the pool is a database and its journal, as on a file system: SQLite makes of them what was committed, for each of its journal modes.
class SqliteBlocks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, SqliteBlocks, ::testing::Values("delete", "truncate", "persist"));

TEST_P(SqliteBlocks, EveryPowerCutLeavesASoundDatabase) {
  const Folder folder;
  const std::string plain = folder.path + "/bank.db";
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(1 << 20, 8 << 20);
    Recorded recorded(*made);
    {
      auto pool = BlockPool::try_open_on("bank", BlockStore::options_of("bank", options("")), std::move(made), true).value();
      auto store = Store::adopt("/bank", std::make_shared<BlockStore>("/bank", std::move(pool), false));
      run_bank(recorded, *store, (std::string("pragma journal_mode = ") + GetParam()).c_str());
    }
    std::uint64_t hot = 0;
    const auto look = [&](auto& tx, const BlockRoot& root, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      std::vector<char> database;
      for (std::size_t file = 0; file < 2; ++file) {
        const std::string name = plain + (file == 0 ? "" : "-journal");
        std::filesystem::remove(name);
        const std::uint64_t size_1 = tx(root.file[file].size_1);
        if (size_1 == 0) continue;
        const auto bytes = bytes_of(tx, root.file[file].blocks, size_1 - 1);
        std::ofstream(name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (file == 0) database = bytes;
        hot += file;
      }
      sqlite3* db = nullptr;
      const std::string found = sqlite3_open(plain.c_str(), &db) == SQLITE_OK ? seen_by(db) : "none";
      sqlite3_close(db);
      if (crash.least == 0 && !found.starts_with("ok ") && found.find("no such table") != std::string::npos) return crash::Verdict{};
      // What recovery makes is the same each time, but what SQLite makes of it is what counts.
      return judged(found, crash, base::hash_bytes(database.data(), database.size(), 1));
    };
    for (const std::uint64_t from : {0, 2, 9})  // a transfer is some hundreds of images
      recorded.explore<BlockRoot>(engine::find_instance("undo/none")->recover, model, 1000 / scale, 200 / scale, look, from);
    EXPECT_LT(0U, hot);
  }
}

TEST(Sqlite, ACommitIsOneTransactionOfTheWordsThatDiffer) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + (1 << 20);
  how.home_bytes = how.max_home_bytes = 8 << 20;
  auto made = medium::RecordingMedium::make(how).value();
  medium::RecordingMedium* const medium = made.get();
  auto database = Store::adopt(
      "/counts",
      std::make_shared<Database>("/counts", DatabasePool::try_open_on("counts", options("shadow"), std::move(made), true).value(), false));
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

// What a super-journal's absence says, other databases' journals rest on: it is a file, whatever the main database is.
TEST(Sqlite, ASuperJournalIsAFile) {
  ASSERT_EQ(SQLITE_OK, sqlite::register_vfs());
  const Folder folder;
  const std::string name = folder.path + "/bank-mj01234567";
  sqlite3_vfs* const vfs = sqlite3_vfs_find("perdure");
  std::vector<std::max_align_t> room(static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
  auto* const file = reinterpret_cast<sqlite3_file*>(room.data());
  ASSERT_EQ(SQLITE_OK, vfs->xOpen(vfs, name.c_str(), file,
                                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_SUPER_JOURNAL, nullptr));
  EXPECT_TRUE(std::filesystem::exists(name));
  file->pMethods->xClose(file);
  EXPECT_EQ(SQLITE_OK, vfs->xDelete(vfs, name.c_str(), 1));
  EXPECT_FALSE(std::filesystem::exists(name));
}

// Design A's costs, in DELETE mode.
TEST(Sqlite, ACommitOnBlocksIsFiveFences) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + (1 << 20);
  how.home_bytes = how.max_home_bytes = 8 << 20;
  auto made = medium::RecordingMedium::make(how).value();
  medium::RecordingMedium* const medium = made.get();
  auto store = Store::adopt(
      "/blocks",
      std::make_shared<BlockStore>(
          "/blocks", BlockPool::try_open_on("blocks", BlockStore::options_of("blocks", options("")), std::move(made), true).value(),
          false));
  Connection c("file:/blocks?vfs=perdure");
  make_bank(c);
  EXPECT_EQ("", transfer(c, 1));
  for (std::uint64_t n = 2; n <= 10; ++n) {
    const auto before = medium->counters();
    ASSERT_EQ("", transfer(c, n));
    const auto cost = medium->counters() - before;
    EXPECT_EQ(5U, cost.fences) << n << ": the journal's bytes, its size, how many pages it has, the database's bytes, the journal's end";
    EXPECT_GT(cost.stored_bytes, 4096U * 4) << "whole pages, and what they were";
  }
  EXPECT_TRUE(store->pool().check().ok());
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
  EXPECT_EQ("", c.run("delete from account; vacuum"));
  EXPECT_EQ("", c.run("create table blob (x); insert into blob values (randomblob(1000000)); delete from blob; vacuum"));
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
  const auto check = store->pool().check();
  EXPECT_TRUE(check.ok());
  EXPECT_LT(check.bytes, 2U << 20) << "what VACUUM has given back is free; the journal keeps a MiB";
}

TEST(Sqlite, WhatIsTooBigIsRolledBack) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + (1 << 18);
  how.home_bytes = how.max_home_bytes = 16 << 20;
  auto o = options("shadow");
  o.log_size = 1 << 18;
  auto database = Store::adopt(
      "/large", std::make_shared<Database>(
                    "/large", DatabasePool::try_open_on("large", o, medium::RecordingMedium::make(how).value(), true).value(), false));
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
