// SPDX-License-Identifier: BSD-3-Clause
//
// Every image that a power cut may leave of a bank in SQLite on a pool: after recovery it is a
// database that SQLite finds sound, with the initial money, and with everything that was
// acknowledged.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"
#include "tests/sqlite/bank.hpp"

namespace perdure::test {
namespace {

using sqlite::block_bytes;
using sqlite::Root;

/// The first columns of what a connection finds: its integrity check, the sum, the number of
/// transfers.
std::string seen_by(sqlite3* db) {
  std::string found;
  const auto add = [](void* to, int, char** values, char**) {
    static_cast<std::string*>(to)->append(values[0] != nullptr ? values[0] : "null").append(" ");
    return 0;
  };
  char* message = nullptr;
  if (sqlite3_exec(
          db, "pragma integrity_check; select sum(balance) from account; select n from transfer",
          add, &found, &message) != SQLITE_OK)
    found += message;
  sqlite3_free(message);
  return found;
}
/// Step 0 makes the tables, then the rows: in two commits of its own, with one in between.
crash::Verdict judged(const std::string& found, const crash::Crash& crash, std::uint64_t digest) {
  const std::uint64_t done = crash.least == 0 ? 0 : crash.least - 1;
  for (std::uint64_t n = done; n <= crash.most; ++n)
    if (found == "ok " + std::to_string(accounts * each) + " " + std::to_string(n) + " ")
      return {{}, digest};
  if (crash.least == 0 && found.starts_with("ok ")) return {};
  return {"the database is '" + found + "', after " + std::to_string(done) + " transfers", 0};
}
/// A file's bytes, from where they lie.
template <class Tx>
std::vector<char> bytes_of(Tx& tx, const sqlite::Blocks& blocks, std::uint64_t bytes) {
  std::vector<char> all(bytes);
  for (std::uint64_t at = 0; at < bytes; at += block_bytes)
    tx.read_bytes(all.data() + at, tx(*blocks.find(tx, at / block_bytes)),
                  std::min(block_bytes, bytes - at));
  return all;
}
// With each transfer 100 KB change, in a table and in an index on it, so that SQLite's integrity
// check compares the two.
constexpr const char* make_ballast =
    "create table ballast (b); create index on_b on ballast (b); with recursive i(x) as (select 1 "
    "union all select x + 1 from i where x < "
    "50) insert "
    "into ballast select printf('%d %01000d', x, 0) from i";
std::string move_ballast(Connection& c, std::uint64_t n) {
  return c.run("begin; update ballast set b = printf('%d %01000d', rowid * " +
               std::to_string(n * 7 + 1) + ", " + std::to_string(n) +
               "); update transfer set n = n + 1; commit");
}
/// Makes the bank and runs transfers, as 14 steps; with ballast each is larger than a log of 64 KiB
/// can take.
template <class S>
void run_bank(Recorded& recorded, S& store, const char* pragma, bool ballast = false) {
  recorded.made(store.pool().file().header());
  Connection c("file:/bank?vfs=perdure");
  c.run(pragma);
  for (std::uint64_t step = 0; step < 14; ++step) {
    recorded.begin(step);
    if (step == 0) {
      if (ballast) {
        EXPECT_EQ("", c.run(make_ballast));
      }
      make_bank(c);
    } else {
      ASSERT_EQ("", ballast ? move_ballast(c, step) : transfer(c, step));
    }
    recorded.done(step);
    if (step % 5 == 4) store.pool().checkpoint();
  }
  recorded.end();
}

class SqliteBank : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, SqliteBank,
                         ::testing::Values("shadow", "softwrap", "undo", "bppm"));

void every_power_cut(const char* engine, std::uint64_t log, bool ballast) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(log, 8 << 20);
    Recorded recorded(*made);
    {
      auto o = options(engine);
      o.creation.log_size = log;
      auto pool = DatabasePool::try_open_on("bank", o, std::move(made), true).value();
      auto database =
          Store::adopt("/bank", std::make_shared<Database>("/bank", std::move(pool), false));
      run_bank(recorded, *database, "", ballast);
    }
    const auto look = [&](auto& tx, const Root& root, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      auto bytes = bytes_of(tx, root.blocks, tx(root.bytes));
      if (bytes.empty()) return crash::Verdict{crash.least != 0 ? "an empty database" : "", 0};
      sqlite3* db = nullptr;
      std::string found = "none";
      const auto size = static_cast<sqlite3_int64>(bytes.size());
      if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
          sqlite3_deserialize(db, "main", reinterpret_cast<unsigned char*>(bytes.data()), size,
                              size, SQLITE_DESERIALIZE_READONLY) == SQLITE_OK)
        found = seen_by(db);
      sqlite3_close(db);
      return judged(found, crash, base::hash_bytes(bytes.data(), bytes.size(), 1));
    };
    for (const std::uint64_t from :
         ballast ? std::vector<std::uint64_t>{1, 6} : std::vector<std::uint64_t>{0})
      recorded.explore<Root>(engine::find_instance(engine)->recover, model, 1500 / scale,
                             200 / scale, look, from);
  }
}

TEST_P(SqliteBank, EveryPowerCutLeavesASoundDatabase) {
  every_power_cut(GetParam(), 1 << 20, false);
}

// Commits that are larger than the log: written beside the old blocks, then swapped with them
// (sqlite/database_spill.cpp).
class SqliteLargeCommits : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, SqliteLargeCommits,
                         ::testing::Values("shadow", "dudetm", "softwrap", "bppm"));

TEST_P(SqliteLargeCommits, EveryPowerCutLeavesASoundDatabase) {
  every_power_cut(GetParam(), 1 << 16, true);
}

// Design A: the pool contains a database and its journal, as on a file system: SQLite restores from
// them what was committed, for each of its journal modes.
class SqliteBlocks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, SqliteBlocks,
                         ::testing::Values("delete", "truncate", "persist",
                                           "truncate; pragma synchronous = normal"));

TEST_P(SqliteBlocks, EveryPowerCutLeavesASoundDatabase) {
  const Folder folder;
  const std::string plain = folder.path + "/bank.db";
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = Recorded::make_medium(1 << 20, 8 << 20);
    Recorded recorded(*made);
    {
      auto pool = BlockPool::try_open_on("bank", BlockStore::options_of("bank", options("")),
                                         std::move(made), true)
                      .value();
      auto store =
          Store::adopt("/bank", std::make_shared<BlockStore>("/bank", std::move(pool), false));
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
        std::ofstream(name, std::ios::binary)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (file == 0) database = bytes;
        hot += file;
      }
      sqlite3* db = nullptr;
      const std::string found =
          sqlite3_open(plain.c_str(), &db) == SQLITE_OK ? seen_by(db) : "none";
      sqlite3_close(db);
      if (crash.least == 0 && !found.starts_with("ok ") &&
          found.find("no such table") != std::string::npos)
        return crash::Verdict{};
      // Recovery gives the same result each time, but the result of SQLite is what counts.
      return judged(found, crash, base::hash_bytes(database.data(), database.size(), 1));
    };
    for (const std::uint64_t from : {0, 2, 9})  // a transfer has hundreds of images
      recorded.explore<BlockRoot>(engine::find_instance("undo/none")->recover, model, 1000 / scale,
                                  200 / scale, look, from);
    EXPECT_LT(0U, hot);
  }
}

}  // namespace
}  // namespace perdure::test
