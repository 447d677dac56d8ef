// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure sqlite import POOL DATABASE`, `perdure sqlite export POOL DATABASE`: between SQLite's plain file and a pool that its VFS opens (docs/sqlite.md).
// Either way the new file is written under another name and gets its own when it is whole; what is there already is never replaced.
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "sqlite/database.hpp"
#include "sqlite/parameters.hpp"
#include "tools/command.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"

namespace perdure::tool {
namespace {

using sqlite::Database;
using sqlite::DatabasePool;

struct Arguments {
  PoolArguments pool;
  std::string database, progress = "auto";
} arguments;

/// A file that goes with its owner.
struct Scratch {
  std::string path;
  ~Scratch() { ::unlink(path.c_str()); }
};

/// SQLite on a plain file. What fails is a perdure::error with SQLite's words.
class Plain {
 public:
  Plain(const std::string& path, int flags) : path_(path) {
    if (const int code = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr); code != SQLITE_OK) {
      const std::string why = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
      sqlite3_close(db_);
      throw failed(code, why);
    }
    sqlite3_busy_timeout(db_, 5000);
  }
  ~Plain() { sqlite3_close(db_); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  /// The first column of all rows, a line each.
  std::string run(const char* sql) {
    std::string rows;
    const auto add = [](void* to, int, char** values, char**) {
      auto& all = *static_cast<std::string*>(to);
      all.append(all.empty() ? "" : "\n").append(values[0] != nullptr ? values[0] : "");
      return 0;
    };
    if (const int code = sqlite3_exec(db_, sql, add, &rows, nullptr); code != SQLITE_OK) throw failed(code, sqlite3_errmsg(db_));
    return rows;
  }
  /// All pages of `from`, as its open transaction sees them.
  void copy_of(Plain& from) {
    sqlite3_backup* const copy = sqlite3_backup_init(db_, "main", from.db_, "main");
    if (copy == nullptr) throw failed(sqlite3_errcode(db_), sqlite3_errmsg(db_));
    const int code = sqlite3_backup_step(copy, -1);
    sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE) throw from.failed(code, sqlite3_errstr(code));
  }

 private:
  error failed(int code, const std::string& why) const {
    const bool hot = (code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_CANTOPEN;
    const Code as = (code & 0xff) == SQLITE_BUSY ? Code::busy : (code & 0xff) == SQLITE_FULL ? Code::full : Code::corrupt;
    return error(failure(as, path_, "SQLite says: " + why, "a database that it can read",
                         as == Code::busy ? "try again when the other program has finished"
                         : hot            ? "open it once with sqlite3, which plays back its journal"
                                          : "see what sqlite3 makes of it: PRAGMA integrity_check, .recover"));
  }
  std::string path_;
  sqlite3* db_ = nullptr;
};

/// What `plain` has committed, its WAL and all, as one file at `copy`; checked.
void snapshot(const std::string& plain, const std::string& copy) {
  if (!std::filesystem::exists(plain)) throw error(failure(Code::not_found, plain, "no such file", "a database of SQLite's"));
  Plain from(plain, SQLITE_OPEN_READONLY), to(copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  to.run("pragma journal_mode = off; pragma synchronous = off");
  to.copy_of(from);
  if (const std::string found = to.run("pragma quick_check(5)"); found != "ok")
    throw error(failure(Code::corrupt, plain, "damage: " + found, "a sound database", "repair it with sqlite3's .recover first"));
}

/// In transactions as large as the pool's log takes: how many bytes of it a new page needs is the engine's and the medium's.
std::uint64_t bring_in(const std::string& from, Database& to) {
  const std::uint64_t all = std::filesystem::file_size(from);
  Progress progress(arguments.progress, all, "pages");
  std::ifstream in(from, std::ios::binary);
  std::uint64_t step = 4 << 20;
  std::vector<char> bytes(std::min(step, all));
  for (std::uint64_t at = 0; at < all;) {
    const std::uint64_t n = std::min(step, all - at);
    if (!in.seekg(static_cast<std::streamoff>(at)).read(bytes.data(), static_cast<std::streamsize>(n)))
      throw error(system_failure(from, "read", EIO));
    // The file format's read and write versions: 2 is WAL, which a pool has no use for; 1 a rollback journal.
    if (at == 0 && n >= 20) bytes[18] = bytes[19] = 1;
    to.write(at, bytes.data(), n);
    try {
      to.commit(Durability::durable);
    } catch (const error& e) {
      if (e.code() != Code::too_big || step == sqlite::block_bytes) throw;
      to.discard();
      step /= 2;
      continue;
    }
    at += n;
    progress.durable(at / sqlite::block_bytes, at);
  }
  return all;
}

int tell(App& app, const char* what, std::uint64_t bytes) {
  if (app.json)
    App::print({{"pool", arguments.pool.path}, {"database", arguments.database}, {"bytes", bytes}});
  else
    fmt::print(stderr, "perdure: {}: {} {}\n", arguments.database, human_bytes(bytes), what);
  return exit_ok;
}

Options options(bool read_only) {
  Options o = sqlite::options_of(arguments.pool.path, [](const char*) -> const char* { return nullptr; });
  o.engine = arguments.pool.engine;
  o.medium = arguments.pool.medium;
  o.direct = !arguments.pool.no_direct;
  o.create = false;
  o.read_only = read_only;
  if (arguments.pool.max_size != 0) o.max_size = arguments.pool.max_size;
  if (arguments.pool.log_size != 0) o.log_size = arguments.pool.log_size;
  return o;
}

int import(App& app) {
  const std::string& pool = arguments.pool.path;
  if (std::filesystem::exists(pool))
    throw error(failure(Code::exists, pool, "a file of this name", "none", "name another, or remove that one first"));
  const std::string part = pool + ".part-" + std::to_string(::getpid());
  const Scratch copy{part + ".db"}, made{part};
  snapshot(arguments.database, copy.path);
  Options o = options(false);
  o.create = true;
  Database database(part, DatabasePool::open(part, o), false);
  const std::uint64_t bytes = bring_in(copy.path, database);
  database.pool().close();
  give_name(part, pool, true);
  return tell(app, ("in " + pool).c_str(), bytes);
}

int export_(App& app) {
  auto pool = DatabasePool::try_open(arguments.pool.path, options(true));
  if (pool.code() == Code::read_only) pool = DatabasePool::try_open(arguments.pool.path, options(false));  // not closed in order: recovered
  Database database(arguments.pool.path, std::move(pool).value(), true);
  OutputFile out(arguments.database, arguments.pool.path, true);
  const std::uint64_t all = database.size();
  Progress progress(arguments.progress, all, "pages");
  std::string bytes;
  for (std::uint64_t at = 0; at < all; at += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(1 << 20, all - at));
    database.read(at, bytes.data(), bytes.size());
    out.write(bytes);
    progress.durable((at + bytes.size()) / sqlite::block_bytes, at + bytes.size());
  }
  out.finish();
  database.pool().close();
  return tell(app, "written", all);
}

}  // namespace

void add_sqlite(App& app) {
  const char* const example = "perdure sqlite import app.perdure app.db";
  auto* sub = app.add("sqlite", "bring a database of SQLite's into a pool, or out of one", example);
  sub->require_subcommand(1);
  const auto one = [&](const char* name, const char* what, int (*go)(App&)) {
    auto* const command = app.add(sub, name, what, std::string("perdure sqlite ") + name + " app.perdure app.db");
    arguments.pool.add_to(command);
    command->add_option("DATABASE", arguments.database, "SQLite's file")->required();
    command->add_option("--progress", arguments.progress, "how progress is shown: auto, bar, plain, json or none")
        ->check(CLI::IsMember({"auto", "bar", "plain", "json", "none"}))
        ->capture_default_str();
    command->callback([&app, go] { app.go = go; });
    return command;
  };
  auto* const in = one("import", "make a pool of what a database has committed", import);
  arguments.pool.add_creation_to(in, "default: 128MiB; a transaction may change half of it");
  one("export", "write a pool's database as a plain file", export_);
}

}  // namespace perdure::tool
