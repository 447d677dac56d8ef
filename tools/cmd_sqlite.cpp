// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure sqlite import POOL DATABASE`, `perdure sqlite export POOL DATABASE`: copies between
// SQLite's plain file and a pool that its VFS opens (docs/sqlite.md). In both directions the new
// file is written under another name and gets its own name when it is whole; an existing file is
// never replaced.
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "perdure/base/descriptor.hpp"
#include "sqlite/blocks.hpp"
#include "sqlite/parameters.hpp"
#include "sqlite/store.hpp"
#include "sqlite/vfs.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

using sqlite::Design;
using sqlite::Store;

struct Arguments {
  PoolArguments pool;
  std::string database, progress = "auto", design = "b";
} arguments;

/// A file that is removed with its owner.
struct Scratch {
  // Removes the file of an earlier process of the same number that was killed.
  explicit Scratch(std::string name) : path(std::move(name)) { ::unlink(path.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
  ~Scratch() { ::unlink(path.c_str()); }
};

/// A connection of SQLite. A failure is a perdure::error with SQLite's message.
class Connection {
 public:
  /// `vfs`: null means a plain file.
  Connection(const std::string& path, int flags, const char* vfs = nullptr) : path_(path) {
    if (const int code = sqlite3_open_v2(path.c_str(), &db_, flags, vfs); code != SQLITE_OK) {
      const std::string why = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
      sqlite3_close(db_);
      throw failed(code, why);
    }
    sqlite3_busy_timeout(db_, 5000);
  }
  ~Connection() { sqlite3_close(db_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The first column of all rows, one row per line.
  std::string run(const char* sql) {
    std::string rows;
    const auto add = [](void* to, int, char** values, char**) {
      auto& all = *static_cast<std::string*>(to);
      all.append(all.empty() ? "" : "\n").append(values[0] != nullptr ? values[0] : "");
      return 0;
    };
    if (const int code = sqlite3_exec(db_, sql, add, &rows, nullptr); code != SQLITE_OK)
      throw failed(code, sqlite3_errmsg(db_));
    return rows;
  }
  /// Copies all pages of `from`, as of now.
  void copy_of(Connection& from) {
    // The copy is of one state, however many steps it takes.
    from.run("begin; select count(*) from sqlite_schema");
    sqlite3_backup* const copy = sqlite3_backup_init(db_, "main", from.db_, "main");
    if (copy == nullptr) throw failed(sqlite3_errcode(db_), sqlite3_errmsg(db_));
    std::optional<Progress> progress;
    int code = SQLITE_OK;
    while (code == SQLITE_OK) {
      code = sqlite3_backup_step(copy, 1024);
      const auto all = static_cast<std::uint64_t>(sqlite3_backup_pagecount(copy)),
                 left = static_cast<std::uint64_t>(sqlite3_backup_remaining(copy));
      if (!progress) progress.emplace(arguments.progress, all, "pages");
      progress->durable(all - left, all - left);
    }
    sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE)
      throw failed(code,
                   std::string(sqlite3_errstr(code)) + ", while " + from.path_ + " was copied");
    from.run("commit");
  }

 private:
  error failed(int code, const std::string& why) const {
    const bool hot = (code & 0xff) == SQLITE_READONLY;
    const Code as = [code] {
      switch (code & 0xff) {
        case SQLITE_BUSY: return Code::busy;
        case SQLITE_FULL: return Code::full;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
        case SQLITE_PERM: return Code::io;
        default: return Code::corrupt;
      }
    }();
    return error(failure(as, path_, "SQLite says: " + why, "a database that it can read",
                         as == Code::busy ? "try again when the other program has finished"
                         : as == Code::io || as == Code::full
                             ? "look at the folder, its rights and its free space"
                         : hot ? "open it once with sqlite3, which plays back its journal"
                               : "see what sqlite3 makes of it: PRAGMA integrity_check, .recover"));
  }
  std::string path_;
  sqlite3* db_ = nullptr;
};

constexpr int to_read = SQLITE_OPEN_READONLY, to_write = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;

void must_be_sound(Connection& db, const std::string& path) {
  if (const std::string found = db.run("pragma quick_check(5)"); found != "ok")
    throw error(failure(Code::corrupt, path, "damage: " + found, "a sound database",
                        "repair it with sqlite3's .recover first"));
}

/// Copies what the database has committed, including its WAL, as one file to `copy`, not in WAL
/// mode, and checks it.
void snapshot(const std::string& database, const std::string& copy) {
  if (!std::filesystem::exists(database))
    throw error(failure(Code::not_found, database, "no such file", "a database of SQLite's"));
  {
    Connection from(database, to_read), to(copy, to_write);
    to.run("pragma journal_mode = off; pragma synchronous = off");
    to.copy_of(from);
  }
  Connection made(copy, to_write);
  made.run("pragma journal_mode = delete");
  must_be_sound(made, database);
}

/// Copies in transactions that are as large as the pool's log takes; how many bytes of log a new
/// page needs depends on the engine and the medium.
void bring_in(const std::string& from, Store& to) {
  const std::uint64_t all = std::filesystem::file_size(from);
  Progress progress(arguments.progress, all, "blocks");
  struct Input {
    int fd;
    ~Input() { ::close(fd); }
  } const in{base::open_file(from.c_str(), O_RDONLY)};
  std::uint64_t step = 4 << 20;
  std::vector<char> bytes(std::min(step, all));
  for (std::uint64_t at = 0; at < all;) {
    const std::uint64_t n = std::min(step, all - at);
    for (std::uint64_t done = 0; done < n;) {
      const ssize_t got =
          ::pread(in.fd, bytes.data() + done, n - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw error(system_failure(from, "read", got < 0 ? errno : EIO));
      done += static_cast<std::uint64_t>(got);
    }
    to.write(at, bytes.data(), n);
    try {
      to.sync(Durability::durable);
    } catch (const error& e) {
      if (e.code() != Code::too_big || step == sqlite::block_bytes) throw;
      to.discard();
      step /= 2;
      continue;
    }
    at += n;
    progress.durable(at / sqlite::block_bytes, at);
  }
}

int tell(App& app, const std::string& what, std::uint64_t bytes) {
  if (app.json)
    print_json({{"pool", arguments.pool.path}, {"database", arguments.database}, {"bytes", bytes}});
  else
    fmt::print(stderr, "perdure: {}: {} {}\n", arguments.database, human_bytes(bytes), what);
  return exit_ok;
}

Options options(bool read_only) {
  Options o =
      sqlite::options_of(arguments.pool.path, [](const char*) -> const char* { return nullptr; });
  o.engine = arguments.pool.engine;
  o.medium = arguments.pool.medium;
  o.medium_options.direct = !arguments.pool.no_direct;
  o.create = false;
  o.read_only = read_only;
  if (arguments.pool.max_size != 0) o.creation.max_size = arguments.pool.max_size;
  if (arguments.pool.log_size != 0) o.creation.log_size = arguments.pool.log_size;
  return o;
}

int import(App& app) {
  const std::string& pool = arguments.pool.path;
  if (std::filesystem::exists(pool)) throw name_taken(pool);
  const std::string part =
      std::filesystem::absolute(pool).string() + ".part-" + std::to_string(::getpid());
  const Scratch copy{part + ".db"}, made{part};
  snapshot(arguments.database, copy.path);
  Options o = options(false);
  o.create = o.must_create = true;
  const Design design = arguments.design == "a" ? Design::a : Design::b;
  auto store = Store::open(part, o, design);
  if (design == Design::a) {
    Connection from(copy.path, to_read), to(part, to_write, "perdure");
    to.copy_of(from);
  } else {
    bring_in(copy.path, *store);
  }
  const std::uint64_t bytes = store->size();
  store->close();
  give_name(part, pool, true);
  return tell(app, "in " + pool, bytes);
}

/// Opens for reading; if the pool was not closed in order, or has a journal that must be played
/// back, for writing.
std::shared_ptr<Store> open_to_copy(const std::string& path) {
  try {
    auto store = Store::open(path, options(true));
    if (store->journal(false) == nullptr) return store;
  } catch (const error& e) {
    if (e.code() != Code::read_only) throw;
  }
  return Store::open(path, options(false));
}

int export_(App& app) {
  const std::string pool = std::filesystem::absolute(arguments.pool.path).string();
  if (std::error_code none; std::filesystem::equivalent(pool, arguments.database, none))
    throw error(
        failure(Code::invalid, arguments.database, "the pool itself", "another file to export to"));
  // The first process that opens the new file would play an old journal back over it.
  for (const char* const beside : {"", "-journal", "-wal"})
    if (std::filesystem::exists(arguments.database + beside))
      throw name_taken(arguments.database + beside);
  const Scratch part{arguments.database + ".part-" + std::to_string(::getpid())};
  auto store = open_to_copy(pool);
  {
    Connection from(pool, store->read_only() ? to_read : to_write, "perdure"),
        to(part.path, to_write);
    to.run("pragma journal_mode = off; pragma synchronous = full");
    to.copy_of(from);
  }
  const std::uint64_t bytes = store->size();
  store->close();
  give_name(part.path, arguments.database, true);
  return tell(app, "written", bytes);
}

}  // namespace

void add_sqlite(App& app) {
  const char* const example = "perdure sqlite import app.perdure app.db";
  auto sub = app.add("sqlite", "bring a database of SQLite's into a pool, or out of one", example);
  const auto one = [&](const char* name, const char* what, int (*go)(App&)) {
    auto command =
        sub.add(name, what, std::string("perdure sqlite ") + name + " app.perdure app.db");
    arguments.pool.add_to(command);
    command.option("DATABASE", arguments.database, "SQLite's file").required();
    command
        .option("--progress", arguments.progress,
                "how progress is shown: auto, bar, plain, json or none")
        .one_of({"auto", "bar", "plain", "json", "none"})
        .show_default();
    command.runs(go);
    return command;
  };
  auto in = one("import", "make a pool of what a database has committed", import);
  arguments.pool.add_creation_to(in, "default: 128MiB; a transaction may change half of it");
  in.option("--design", arguments.design,
            "b: a commit is a transaction of the pool; a: SQLite's own journal, in the pool")
      .one_of({"a", "b"})
      .show_default();
  if (sqlite::register_vfs() != SQLITE_OK)
    throw std::runtime_error("this SQLite has no VFS of the system");
  one("export", "write a pool's database as a plain file", export_);
}

}  // namespace perdure::tool
