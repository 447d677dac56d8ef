// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of a transaction of SQLite on a pool, in both designs; what is too big; super-journals.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "testing/recording_medium.hpp"
#include "tests/sqlite/bank.hpp"

namespace perdure::test {
namespace {

std::unique_ptr<medium::RecordingMedium> recording(std::uint64_t ring_bytes,
                                                   std::uint64_t data_bytes) {
  medium::RecordingOptions how;
  how.log_bytes = pool::first_ring + ring_bytes;
  how.data_bytes = how.max_data_bytes = data_bytes;
  return medium::RecordingMedium::make(how).value();
}

TEST(Sqlite, ACommitIsOneTransactionOfTheWordsThatDiffer) {
  auto made = recording(1 << 20, 8 << 20);
  medium::RecordingMedium* const medium = made.get();
  auto database = Store::adopt(
      "/counts",
      std::make_shared<Database>(
          "/counts",
          DatabasePool::try_open_on("counts", options("shadow"), std::move(made), true).value(),
          false));
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

// SQLite itself could not undo it: the store drops what no commit has synced, what SQLite's cache
// has spilled included.
TEST(Sqlite, WithoutAJournalARollbackDropsWhatWasWritten) {
  auto database = Store::adopt(
      "/off",
      std::make_shared<Database>(
          "/off",
          DatabasePool::try_open_on("off", options("shadow"), recording(1 << 20, 8 << 20), true)
              .value(),
          false));
  Connection c("file:/off?vfs=perdure"), other("file:/off?vfs=perdure");
  make_bank(c);
  EXPECT_EQ("off", c.run("pragma journal_mode = off"));
  for (const bool spills : {false, true}) {
    ASSERT_EQ("", transfer(c, spills ? 2 : 1));
    const std::string before = c.run("select group_concat(balance) from account");
    EXPECT_EQ("", c.run(spills ? "pragma cache_size = 5" : ""));
    EXPECT_EQ("",
              c.run("begin; update account set balance = balance + 1; create table big (t text)"));
    if (spills) {
      EXPECT_EQ("", c.run("insert into big select hex(randomblob(1500)) from account, account "
                          "limit 100"));
    }
    EXPECT_EQ("", c.run("rollback"));
    EXPECT_EQ(before, c.run("select group_concat(balance) from account"));
    EXPECT_EQ(before, other.run("select group_concat(balance) from account"));
    EXPECT_EQ("ok", c.run("pragma integrity_check"));
  }
  ASSERT_EQ("", transfer(c, 3));
  EXPECT_EQ(std::to_string(accounts * each), other.run("select sum(balance) from account"));
  EXPECT_TRUE(database->pool().check().ok());
}

// As an earlier build left it when a database in WAL mode was copied into it.
TEST(Sqlite, APoolWhoseHeaderSaysWalOpens) {
  auto database = Store::adopt(
      "/wal",
      std::make_shared<Database>(
          "/wal",
          DatabasePool::try_open_on("wal", options("shadow"), recording(1 << 20, 8 << 20), true)
              .value(),
          false));
  {
    Connection c("file:/wal?vfs=perdure");
    make_bank(c);
  }
  database->write(18, "\2\2", 2);
  database->sync(Durability::durable);
  Connection c("file:/wal?vfs=perdure");
  EXPECT_EQ(std::to_string(accounts * each), c.run("select sum(balance) from account"));
  EXPECT_EQ("", transfer(c, 1));
  EXPECT_EQ("delete", c.run("pragma journal_mode"));
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
}

// SQLite refuses it inside a transaction; the VFS is informed before.
TEST(Sqlite, APragmaThatIsRefusedChangesNothing) {
  auto made = recording(1 << 20, 8 << 20);
  medium::RecordingMedium* const medium = made.get();
  auto database = Store::adopt(
      "/pragma",
      std::make_shared<Database>(
          "/pragma",
          DatabasePool::try_open_on("pragma", options("dudetm"), std::move(made), true).value(),
          false));
  Connection c("file:/pragma?vfs=perdure");
  make_bank(c);
  EXPECT_TRUE(c.run("begin; pragma synchronous = off")
                  .starts_with("error: Safety level may not be changed"));
  EXPECT_EQ("", c.run("update transfer set n = 7"));
  const auto before = medium->counters().fences;
  EXPECT_EQ("", c.run("commit"));
  EXPECT_LT(before, medium->counters().fences) << "durable when it returns";
}

// Other databases' journals rely on the absence of a super-journal: it is a file, whatever the main
// database is.
TEST(Sqlite, ASuperJournalIsAFile) {
  ASSERT_EQ(SQLITE_OK, sqlite::register_vfs());
  const Folder folder;
  const std::string name = folder.path + "/bank-mj01234567";
  sqlite3_vfs* const vfs = sqlite3_vfs_find("perdure");
  std::vector<std::max_align_t> room(
      static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
  auto* const file = reinterpret_cast<sqlite3_file*>(room.data());
  ASSERT_EQ(SQLITE_OK, vfs->xOpen(vfs, name.c_str(), file,
                                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                      SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_SUPER_JOURNAL,
                                  nullptr));
  EXPECT_TRUE(std::filesystem::exists(name));
  file->pMethods->xClose(file);
  EXPECT_EQ(SQLITE_OK, vfs->xDelete(vfs, name.c_str(), 1));
  EXPECT_FALSE(std::filesystem::exists(name));
}

// Design A's costs, in DELETE mode.
TEST(Sqlite, ACommitOnBlocksIsFiveFences) {
  auto made = recording(1 << 20, 8 << 20);
  medium::RecordingMedium* const medium = made.get();
  auto store = Store::adopt(
      "/blocks", std::make_shared<BlockStore>(
                     "/blocks",
                     BlockPool::try_open_on("blocks", BlockStore::options_of("blocks", options("")),
                                            std::move(made), true)
                         .value(),
                     false));
  Connection c("file:/blocks?vfs=perdure");
  make_bank(c);
  EXPECT_EQ("", transfer(c, 1));
  for (std::uint64_t n = 2; n <= 10; ++n) {
    const auto before = medium->counters();
    ASSERT_EQ("", transfer(c, n));
    const auto cost = medium->counters() - before;
    EXPECT_EQ(5U, cost.fences) << n
                               << ": the journal's bytes, its size, how many pages it has, the "
                                  "database's bytes, the journal's end";
    EXPECT_GT(cost.stored_bytes, 4096U * 4) << "whole pages, and what they were";
  }
  EXPECT_TRUE(store->pool().check().ok());
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
  EXPECT_EQ("", c.run("delete from account; vacuum"));
  EXPECT_EQ("", c.run("create table blob (x); insert into blob values (randomblob(1000000)); "
                      "delete from blob; vacuum"));
  EXPECT_EQ("ok", c.run("pragma integrity_check"));
  const auto check = store->pool().check();
  EXPECT_TRUE(check.ok());
  EXPECT_LT(check.bytes, 2U << 20) << "what VACUUM has given back is free; the journal keeps a MiB";
}

// 1 MB through a log of 256 KiB, in every way in which SQLite writes much at once.
TEST(Sqlite, ACommitMayBeLargerThanTheLog) {
  for (const char* const engine : {"shadow", "dudetm", "softwrap", "bppm"}) {
    auto o = options(engine);
    o.creation.log_size = 1 << 18;
    auto database = Store::adopt(
        "/large",
        std::make_shared<Database>(
            "/large",
            DatabasePool::try_open_on("large", o, recording(1 << 18, 16 << 20), true).value(),
            false));
    Connection c("file:/large?vfs=perdure");
    make_bank(c);
    EXPECT_EQ("1", c.run("pragma secure_delete = on; create table large (a, b)"));
    for (const char* const statement :
         {"with recursive i(x) as (select 1 union all select x + 1 from i where x < 1000) insert "
          "into large "
          "select x, randomblob(1000) from i",
          "create index on_b on large (b)", "update large set b = randomblob(1000)",
          "begin; delete from large; rollback", "vacuum", "drop table large", "vacuum"}) {
      EXPECT_EQ("", c.run(statement)) << engine << ": " << statement;
      EXPECT_EQ("ok", c.run("pragma integrity_check")) << engine << ": " << statement;
      EXPECT_EQ(std::to_string(accounts * each), c.run("select sum(balance) from account"))
          << engine;
    }
    EXPECT_EQ("", transfer(c, 1));
    const auto check = database->pool().check();
    EXPECT_TRUE(check.ok()) << engine;
    EXPECT_GT(256U << 10, check.bytes)
        << engine << ": what was written beside the old blocks is free again";
  }
}

// The blocks that a commit left when a crash interrupted it.
TEST(Sqlite, BlocksBeyondTheEndAreFreedAtTheNextOpening) {
  auto pool = DatabasePool::try_open_on("cut", options("shadow"), recording(1 << 20, 8 << 20), true)
                  .value();
  pool.update([](auto& tx, sqlite::Root& root) {
    for (const std::uint64_t number : {0, 1, 511, 512, 5000}) {
      auto* const block = reinterpret_cast<sqlite::Block*>(tx.alloc(sqlite::block_bytes));
      tx(root.blocks.place(tx, number)) = block;
    }
    tx(root.bytes) = sqlite::block_bytes;
  });
  EXPECT_LT(4 * sqlite::block_bytes, pool.check().bytes);
  auto database = std::make_shared<Database>("/cut", std::move(pool), false);
  const auto check = database->pool().check();
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(3U, check.blocks) << "the root, its first table, its first block";
  EXPECT_EQ(sqlite::block_bytes, database->size());
}

// Even the pointers do not fit, or the pool is full.
TEST(Sqlite, WhatIsTooBigIsRolledBack) {
  for (const auto& [engine, ring, data, said] :
       {std::tuple{"shadow", 1 << 16, 64 << 20, "error: string or blob too big"},
        std::tuple{"shadow", 1 << 18, 4 << 20, "error: database or disk is full"}}) {
    auto o = options(engine);
    o.creation.log_size = static_cast<std::uint64_t>(ring);
    auto database = Store::adopt(
        "/large",
        std::make_shared<Database>(
            "/large",
            DatabasePool::try_open_on(
                "large", o,
                recording(static_cast<std::uint64_t>(ring), static_cast<std::uint64_t>(data)), true)
                .value(),
            false));
    Connection c("file:/large?vfs=perdure");
    make_bank(c);
    EXPECT_EQ("", c.run("create table blob (x)"));
    const auto before = database->pool().check().bytes;
    EXPECT_EQ(said, c.run("insert into blob values (randomblob(10000000))")
                        .substr(0, std::string_view(said).size()));
    EXPECT_EQ("0", c.run("select count(*) from blob"));
    EXPECT_EQ("ok", c.run("pragma integrity_check"));
    EXPECT_EQ(before, database->pool().check().bytes)
        << "what was written beside the old blocks is free again";
    EXPECT_EQ("", transfer(c, 1));
    EXPECT_EQ("", c.run("insert into blob values (randomblob(10000))"));
    EXPECT_EQ(std::to_string(accounts * each), c.run("select sum(balance) from account"));
    EXPECT_TRUE(database->pool().check().ok());
    if (std::string_view(said).ends_with("big")) {
      EXPECT_NE(std::string::npos, c.run("pragma perdure_error").find("larger log_size"))
          << c.run("pragma perdure_error");
    }
  }
}

}  // namespace
}  // namespace perdure::test
